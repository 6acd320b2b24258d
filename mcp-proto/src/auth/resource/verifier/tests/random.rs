//! Any order of requests, answers and faults.

use super::rig::{EPOCH, HEADER, ISSUER, JKT, Rig, SELF, proof, token};
use super::seconds;
use crate::auth::{CheckId, IssuerConfig, Resource, VerifierConfig};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use proptest::prelude::*;

const MAX_WAITING: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    /// A request with one of several tokens.
    Check(u8),
    Withdraw(usize),
    /// An answer to one of the steps that wait.
    Answer(usize, u8),
    Pass(u64),
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![3 => Just(0_u8), 1 => 1..4_u8];
    prop_oneof![
        4 => (0..8_u8).prop_map(Step::Check),
        1 => any::<usize>().prop_map(Step::Withdraw),
        4 => (any::<usize>(), fault).prop_map(|(which, fault)| Step::Answer(which, fault)),
        1 => prop_oneof![Just(1), Just(30), Just(700)].prop_map(Step::Pass),
        1 => Just(Step::Forget),
    ]
}

/// Begins a request with one of several tokens.
fn begin(rig: &mut Rig, kind: u8, number: usize) -> u64 {
    let bearer = |rig: &mut Rig, token: &str| rig.begin(&[("Authorization", &format!("Bearer {token}"))]);
    match kind {
        0 => bearer(rig, &token(HEADER, &[])),
        1 => bearer(rig, &token(&HEADER.replace("\"a\"", "\"b\""), &[])),
        2 => bearer(rig, &token(HEADER, &[]).replace(".c2ln", ".Zm9v")),
        3 => bearer(rig, "good"),
        4 => bearer(rig, &format!("bad{number}")),
        5 => bearer(rig, "a b"),
        _ => {
            let token = token(HEADER, &[("cnf", &format!(r#"{{"jkt":"{JKT}"}}"#)), ("jti", &kind.to_string())]);
            let proof = proof(&token, &format!("{}", number % 3), EPOCH, None);
            rig.begin(&[("Authorization", &format!("DPoP {token}")), ("DPoP", &proof)])
        }
    }
}

proptest! {
    // covers: AUTHT-S-003
    #[test]
    fn each_request_is_decided_once(steps in proptest::collection::vec(step(), 0..60)) {
        let asked = IssuerConfig::introspection("https://b.example", "s1", "secret");
        let mut config = VerifierConfig::jwt(ISSUER).and_issuer(asked);
        config.max_waiting = MAX_WAITING;
        let mut rig = Rig::with(config, Resource::new(SELF, [ISSUER]).dpop(false));
        rig.opaque.insert("good".into(), format!(r#"{{"active":true,"aud":"{SELF}","sub":"u1"}}"#));
        rig.is_held = true;
        let (mut ids, mut withdrawn) = (Vec::new(), BTreeSet::new());
        for step in steps {
            match step {
                Step::Check(kind) => ids.push((kind, begin(&mut rig, kind, ids.len()))),
                Step::Withdraw(which) if !ids.is_empty() => {
                    let (_, id) = ids[which % ids.len()];
                    rig.verifier.withdraw(CheckId(id));
                    if !rig.decisions.contains_key(&id) {
                        withdrawn.insert(id);
                    }
                }
                Step::Withdraw(_) => {}
                Step::Answer(which, fault) => rig.answer_one(which, fault),
                Step::Pass(time) => rig.pass(seconds(time)),
                Step::Forget => rig.verifier.forget(&r#"["https://as.example","u1","c1"]"#.into()),
            }
            let verifier = &rig.verifier;
            prop_assert!(verifier.waiting.len() <= MAX_WAITING && verifier.tokens.len() <= MAX_WAITING);
            // Beside them, each issuer has at most one fetch.
            prop_assert!(verifier.steps.len() <= MAX_WAITING + 2);
            prop_assert!(verifier.issuers.iter().all(|issuer| issuer.queue.len() <= MAX_WAITING));
        }
        rig.release();
        for (kind, id) in ids {
            let decision = rig.decisions.get(&id);
            prop_assert_eq!(decision.is_none(), withdrawn.contains(&id), "{}", id);
            // What is never valid, whatever the answers are.
            let is_valid = decision.is_some_and(Result::is_ok);
            prop_assert!(!is_valid || !matches!(kind, 1 | 2 | 4 | 5), "{}", kind);
        }
        let verifier = &rig.verifier;
        prop_assert!(verifier.waiting.is_empty() && verifier.tokens.is_empty() && verifier.steps.is_empty());
        prop_assert!(verifier.issuers.iter().all(|issuer| issuer.queue.is_empty() && issuer.asked == 0));
    }
}
