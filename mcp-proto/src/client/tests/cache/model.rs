//! The cache against a simple model, with two principals that take turns.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Results that the cache holds.
const MAX: usize = 3;

/// A method, a member of its params, and the changes that concern it.
type Request = (&'static str, Option<(&'static str, &'static str)>, &'static [u8]);

/// The requests of a run.
const REQUESTS: [Request; 8] = [
    ("tools/list", None, &[0]),
    ("tools/list", Some(("cursor", "2")), &[0]),
    ("tools/list", Some(("cursor", "3")), &[0]),
    ("resources/list", None, &[1]),
    ("resources/list", Some(("cursor", "2")), &[1]),
    ("resources/read", Some(("uri", "x:a")), &[2]),
    ("resources/read", Some(("uri", "x:b")), &[3]),
    ("server/discover", None, &[]),
];

#[derive(Clone, Debug)]
enum Step {
    Call {
        request: usize,
        fresh: bool,
    },
    /// The server responds to one of the open requests.
    Answer {
        which: usize,
        ttl: i64,
        is_public: bool,
    },
    Refuse {
        which: usize,
    },
    Wait(u64),
    /// The other principal takes over.
    Turn,
    Change(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..REQUESTS.len(), prop::bool::weighted(0.1))
            .prop_map(|(request, fresh)| Step::Call { request, fresh }),
        8 => (0..4_usize, prop_oneof![Just(-1_i64), Just(0), Just(20), Just(1000)], any::<bool>())
            .prop_map(|(which, ttl, is_public)| Step::Answer { which, ttl, is_public }),
        1 => (0..4_usize).prop_map(|which| Step::Refuse { which }),
        2 => (1..25_u64).prop_map(Step::Wait),
        1 => Just(Step::Turn),
        1 => (0..4_u8).prop_map(Step::Change),
    ]
}

/// A result in the model.
#[derive(Clone, Debug)]
struct Kept {
    request: usize,
    n: u64,
    until: u64,
    is_public: bool,
    call: CallId,
}

/// A request on its way.
struct Open {
    id: Value,
    call: CallId,
    request: usize,
    /// The turn in which it was sent. Absent once a change may have overtaken it.
    turn: Option<u64>,
}

/// The results, the one that was used last at the end.
#[derive(Default)]
struct Model {
    kept: Vec<Kept>,
    open: Vec<Open>,
    now: u64,
    turn: u64,
    evicted: u64,
    /// Who fetched each result, and for whom it is.
    fetched: Vec<(u64, bool)>,
}

impl Model {
    fn find(&mut self, request: usize) -> Option<Kept> {
        let at = self.kept.iter().position(|kept| kept.request == request)?;
        let kept = self.kept.remove(at);
        if self.now < kept.until {
            self.kept.push(kept.clone());
            Some(kept)
        } else {
            None
        }
    }

    fn drop_where(&mut self, is_dropped: impl Fn(usize) -> bool) {
        self.kept.retain(|kept| !is_dropped(kept.request));
        self.open.iter_mut().filter(|open| is_dropped(open.request)).for_each(|open| open.turn = None);
    }

    /// Earlier requests get older results.
    fn forget_earlier(&mut self, of: &Open) {
        let earlier = self.open.iter_mut().filter(|open| open.request == of.request && open.call < of.call);
        earlier.for_each(|open| open.turn = None);
    }

    fn keep(&mut self, open: &Open, n: u64, ttl: i64, is_public: bool) {
        let newer = |kept: &Kept| kept.request == open.request && kept.call > open.call;
        let Some(turn) = open.turn.filter(|_| !self.kept.iter().any(newer)) else { return };
        self.kept.retain(|kept| kept.request != open.request);
        if ttl <= 0 {
            return self.forget_earlier(open);
        }
        if !is_public && turn != self.turn {
            return;
        }
        if self.kept.len() == MAX {
            self.kept.remove(0);
            self.evicted += 1;
        }
        let until = self.now + ttl as u64;
        self.kept.push(Kept { request: open.request, n, until, is_public, call: open.call });
    }
}

fn call(request: usize) -> Call<Custom<Value>> {
    let (method, param, _) = REQUESTS[request];
    let call = custom::<Value>(method, &Object::new());
    match param {
        Some((name, value)) => call.param(name, Ok(value.into())),
        None => call,
    }
}

proptest! {
    // covers: CACHE-C-003, CACHE-C-007, CACHE-C-008, CACHE-C-015, CACHE-C-017, CACHE-C-018,
    // CACHE-C-021
    #[test]
    fn cache_is_as_its_model(steps in vec(step(), 1..120)) {
        let mut rig = ready(NEWEST, |cache| cache.entries = MAX);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Call { request, fresh } => {
                    let call = if fresh { call(request).fresh() } else { call(request) };
                    let known = if fresh { None } else { model.find(request) };
                    let call = rig.call(call);
                    match known {
                        Some(kept) => {
                            let (n, age) = told_by(&rig, call);
                            prop_assert_eq!(n, kept.n);
                            prop_assert!(age.is_some());
                            let (turn, is_public) = model.fetched[n as usize];
                            prop_assert!(is_public || turn == model.turn, "it is another principal's");
                        }
                        None => {
                            prop_assert!(!rig.has_ended(call));
                            let turn = Some(model.turn);
                            model.open.push(Open { id: rig.last_id(), call, request, turn });
                        }
                    }
                }
                Step::Answer { which, ttl, is_public } if which < model.open.len() => {
                    let open = model.open.remove(which);
                    let n = model.fetched.len() as u64;
                    model.fetched.push((model.turn, is_public));
                    let scope = if is_public { "public" } else { "private" };
                    let result = json!({"resultType": "complete", "n": n, "ttlMs": ttl, "cacheScope": scope});
                    rig.answer(&open.id, result);
                    prop_assert_eq!(told_by(&rig, open.call), (n, None));
                    model.keep(&open, n, ttl, is_public);
                }
                Step::Refuse { which } if which < model.open.len() => {
                    let open = model.open.remove(which);
                    rig.say(error(&open.id, -32602));
                    prop_assert!(rig.outcome(open.call).is_err());
                    let (method, ..) = REQUESTS[open.request];
                    // Its result was of no use any more.
                    if open.turn.is_none() {
                        continue;
                    }
                    if method.ends_with("/list") {
                        model.drop_where(|other| REQUESTS[other].0 == method);
                    } else {
                        model.kept.retain(|kept| kept.request != open.request);
                        model.forget_earlier(&open);
                    }
                }
                Step::Answer { .. } | Step::Refuse { .. } => {}
                Step::Wait(time) => {
                    model.now += time;
                    rig.tick(ms(time));
                }
                Step::Turn => {
                    model.turn += 1;
                    model.kept.retain(|kept| kept.is_public);
                    rig.client.credentials_changed(rig.now);
                }
                Step::Change(change) => {
                    model.drop_where(|request| REQUESTS[request].2.contains(&change));
                    let (method, params) = match change {
                        0 => ("tools/list_changed", json!({})),
                        1 => ("resources/list_changed", json!({})),
                        2 => ("resources/updated", json!({"uri": "x:a"})),
                        _ => ("resources/updated", json!({"uri": "x:b"})),
                    };
                    notify(&mut rig, &format!("notifications/{method}"), &params);
                }
            }
            let stats = rig.client.cache_stats();
            prop_assert_eq!((stats.entries, stats.evicted), (model.kept.len(), model.evicted));
        }
    }
}
