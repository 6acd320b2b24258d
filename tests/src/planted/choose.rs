//! Selects the faults of a run.

use super::Fault;

/// Maximum number of faults that the gate plants. Each compiles a crate, which takes ten seconds.
pub const MOST: usize = 12;

/// The faults of the gate, and those that it omits because of [`MOST`].
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<'a> {
    /// The faults to plant.
    pub planted: Vec<&'a Fault>,
    /// Faults with a change that are not planted.
    pub left_out: Vec<&'a Fault>,
}

/// Returns the faults of the gate, [`MOST`] in all: those with a changed file since all of them
/// were caught, then others. The hash of the tree selects among each. A fault whose test is
/// compiled [apart](Fault::is_apart), which takes minutes, is only planted after a change.
pub fn gate<'a>(faults: &'a [Fault], is_changed: impl Fn(&Fault) -> bool, tree: &str) -> Choice<'a> {
    let (mut changed, mut others): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| is_changed(fault));
    for part in [&mut changed, &mut others] {
        part.sort_by_key(|fault| (rank(tree, &fault.name), fault.name.clone()));
    }
    let left_out = changed.split_off(changed.len().min(MOST));
    others.retain(|fault| !fault.is_apart());
    let slots = MOST - changed.len();
    changed.extend(others.into_iter().take(slots));
    Choice { planted: changed, left_out }
}

/// Returns part `part` of `parts`, counted from 1. Every fault is in one part, and faults that
/// share a test binary are spread evenly. Those whose test is compiled [apart](Fault::is_apart) are
/// all in the last part, so that only one part compiles for them.
pub fn share(faults: &[Fault], part: usize, parts: usize) -> Vec<&Fault> {
    let (apart, mut sorted): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| fault.is_apart());
    sorted.sort_by_key(|fault| (fault.build(), fault.name.as_str()));
    let own = sorted.into_iter().skip(part.saturating_sub(1)).step_by(parts.max(1));
    own.chain(apart.into_iter().filter(|_| part == parts)).collect()
}

/// Returns a pseudorandom number that depends only on the tree and the name (FNV-1a, with its bits
/// mixed).
fn rank(tree: &str, name: &str) -> u64 {
    let bytes = tree.bytes().chain([0]).chain(name.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn faults(count: usize) -> Vec<Fault> {
        let text = |n: usize| {
            let package = if n.is_multiple_of(3) { "mcp-smol" } else { "mcp-proto" };
            format!("# test: -p {package} --lib a::b{n}\n# breaks: b\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n")
        };
        (0..count).map(|n| Fault::parse(&format!("fault{n}"), &text(n)).unwrap()).collect()
    }

    fn names(faults: &[&Fault]) -> BTreeSet<String> {
        faults.iter().map(|fault| fault.name.clone()).collect()
    }

    #[test]
    fn without_changes_some_are_chosen_by_the_tree() {
        let all = faults(120);
        let first = gate(&all, |_| false, "tree 1");
        assert_eq!((first.planted.len(), first.left_out.len()), (MOST, 0));
        assert_eq!(first, gate(&all, |_| false, "tree 1"));
        assert_ne!(names(&first.planted), names(&gate(&all, |_| false, "tree 2").planted));
        // Every fault is planted for some tree.
        let seen: BTreeSet<_> = (0..200).flat_map(|n| names(&gate(&all, |_| false, &n.to_string()).planted)).collect();
        assert_eq!(seen.len(), 120);
        assert_eq!(gate(&faults(1), |_| false, "tree").planted.len(), 1);
        assert_eq!(gate(&[], |_| false, "tree").planted.len(), 0);
    }

    #[test]
    fn changed_faults_come_before_the_others() {
        let all = faults(70);
        let changed = |fault: &Fault| fault.name.ends_with('7');
        let choice = gate(&all, changed, "tree");
        assert!(all.iter().filter(|fault| changed(fault)).all(|fault| choice.planted.contains(&fault)));
        // 7 have changed, and 5 slots are left.
        assert_eq!((choice.planted.len(), choice.left_out.len()), (MOST, 0));
    }

    #[test]
    fn too_many_changed_faults_are_chosen_by_the_tree() {
        let all = faults(100);
        let choice = gate(&all, |_| true, "tree 1");
        assert_eq!((choice.planted.len(), choice.left_out.len()), (MOST, 100 - MOST));
        assert_eq!(names(&[choice.planted.clone(), choice.left_out].concat()).len(), 100);
        assert_ne!(names(&choice.planted), names(&gate(&all, |_| true, "tree 2").planted));
    }

    #[test]
    fn separate_crates_are_planted_if_changed_or_in_last_share() {
        let text =
            "# test: --config build.rustflags=\"x\" -p a --lib b\n# breaks: b\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n";
        let all = vec![Fault::parse("apart", text).unwrap()];
        assert_eq!(gate(&all, |_| false, "tree").planted.len(), 0);
        assert_eq!(gate(&all, |_| true, "tree").planted.len(), 1);
        assert_eq!([1, 2, 3, 4].map(|part| share(&all, part, 4).len()), [0, 0, 0, 1]);
    }

    #[test]
    fn shares_hold_every_fault_once_and_are_alike() {
        let all = faults(90);
        let shares: Vec<_> = (1..=4).map(|part| share(&all, part, 4)).collect();
        assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), 90);
        assert_eq!(names(&shares.concat()).len(), 90);
        for share in &shares {
            let of_smol = share.iter().filter(|fault| fault.build().contains(&"mcp-smol")).count();
            assert!((7..=8).contains(&of_smol) && (22..=23).contains(&share.len()), "{of_smol} of {}", share.len());
        }
    }
}
