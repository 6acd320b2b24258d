//! Which faults a run plants.

use super::Fault;

/// The most faults that the gate plants.
pub const MOST: usize = 30;

/// Of the faults that nothing has changed for, the gate plants one in so many.
const ONE_IN: usize = 12;

/// What the gate plants, and what it would have planted if there were no [`MOST`].
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<'a> {
    /// The faults to plant.
    pub planted: Vec<&'a Fault>,
    /// Faults that something was changed for, and that are not planted.
    pub left_out: Vec<&'a Fault>,
}

/// The faults of the gate: those for which a file was changed since all of them were caught, and a twelfth of the others, at most [`MOST`]
/// in all. Where there are more, those that were changed come first, and the hash of the tree chooses among them. A fault whose test is
/// compiled [apart](Fault::is_apart), which takes minutes, is planted here only if something was changed for it.
pub fn gate<'a>(faults: &'a [Fault], is_changed: impl Fn(&Fault) -> bool, tree: &str) -> Choice<'a> {
    let (mut changed, mut others): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| is_changed(fault));
    for part in [&mut changed, &mut others] {
        part.sort_by_key(|fault| (rank(tree, &fault.name), fault.name.clone()));
    }
    let left_out = changed.split_off(changed.len().min(MOST));
    others.retain(|fault| !fault.is_apart());
    let twelfth = others.len().div_ceil(ONE_IN).min(MOST - changed.len());
    changed.extend(others.drain(..twelfth));
    Choice { planted: changed, left_out }
}

/// Part `part` of `parts`, counted from 1: every fault is in one of them, and faults that share a test binary are spread evenly. Those whose
/// test is compiled [apart](Fault::is_apart) are all in the last part, so that one alone compiles for them.
pub fn share(faults: &[Fault], part: usize, parts: usize) -> Vec<&Fault> {
    let (apart, mut sorted): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| fault.is_apart());
    sorted.sort_by_key(|fault| (fault.build(), fault.name.as_str()));
    let own = sorted.into_iter().skip(part.saturating_sub(1)).step_by(parts.max(1));
    own.chain(apart.into_iter().filter(|_| part == parts)).collect()
}

/// A number that looks random and is the same for the same tree and name (FNV-1a, its bits mixed).
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
    fn a_twelfth_is_planted_where_nothing_changed_another_for_another_tree() {
        let all = faults(120);
        let first = gate(&all, |_| false, "tree 1");
        assert_eq!((first.planted.len(), first.left_out.len()), (10, 0));
        assert_eq!(first, gate(&all, |_| false, "tree 1"));
        assert_ne!(names(&first.planted), names(&gate(&all, |_| false, "tree 2").planted));
        // Every fault is planted for some tree.
        let seen: BTreeSet<_> = (0..200).flat_map(|n| names(&gate(&all, |_| false, &n.to_string()).planted)).collect();
        assert_eq!(seen.len(), 120);
        assert_eq!(gate(&faults(1), |_| false, "tree").planted.len(), 1);
        assert_eq!(gate(&[], |_| false, "tree").planted.len(), 0);
    }

    #[test]
    fn what_was_changed_is_planted_and_the_rest_of_the_places_are_the_twelfths() {
        let all = faults(240);
        let changed = |fault: &Fault| fault.name.ends_with('7');
        let choice = gate(&all, changed, "tree");
        assert!(all.iter().filter(|fault| changed(fault)).all(|fault| choice.planted.contains(&fault)));
        // 24 were changed; of the 216 others 18 are a twelfth, and 6 places are left.
        assert_eq!((choice.planted.len(), choice.left_out.len()), (30, 0));
    }

    #[test]
    fn of_too_many_changed_ones_the_tree_chooses_and_the_others_are_named() {
        let all = faults(100);
        let choice = gate(&all, |_| true, "tree 1");
        assert_eq!((choice.planted.len(), choice.left_out.len()), (MOST, 70));
        assert_eq!(names(&[choice.planted.clone(), choice.left_out].concat()).len(), 100);
        assert_ne!(names(&choice.planted), names(&gate(&all, |_| true, "tree 2").planted));
    }

    #[test]
    fn what_is_compiled_apart_is_planted_if_it_was_changed_and_in_the_last_share() {
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
