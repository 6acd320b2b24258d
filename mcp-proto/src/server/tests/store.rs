//! Nodes of a store: what one says reaches the others, also after the store has failed.

use super::elicitations::URLS;
use super::watching::{announces, subscribe, update};
use super::*;
use crate::exchange::PeerKind;
use crate::input::{Admission, Change, Principal, ServerCommand};
use crate::model::elicitation::UrlRequest;
use crate::server::store::{Incarnation, Memory, News, NodeItem, StoreError, StoreReply, StoreRequest, StoreToken};

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Servers that share a store, each with a client on the exchange `A`.
struct Nodes {
    nodes: Vec<Node>,
    store: Memory,
    /// Requests are not carried out, and have no reply.
    is_away: bool,
}

struct Node {
    bench: Bench,
    own: Option<Incarnation>,
    /// What the engine has sent on `A`, and what it has emitted beside requests to the store.
    said: Vec<String>,
    codes: Vec<&'static str>,
    asked: Vec<(StoreToken, StoreRequest)>,
}

impl Nodes {
    fn new(count: u8, change: impl Fn(&mut ServerConfig)) -> Self {
        let node = |seed: u8| {
            let bench = Bench::seeded([seed; 32], |config| {
                announces(config);
                config.state_keys = Some([1; 32].into());
                config.store = Some(Memory::SERVES);
                change(config);
            });
            Node { bench, own: None, said: Vec::new(), codes: Vec::new(), asked: Vec::new() }
        };
        let mut nodes = Self { nodes: (1..=count).map(node).collect(), store: Memory::new(), is_away: false };
        nodes.settle();
        nodes
    }

    /// Nodes whose clients are initialized and watch a resource.
    fn watching(count: u8) -> Self {
        let mut nodes = Self::new(count, |_| {});
        for node in &mut nodes.nodes {
            node.bench.handle_event(A, ExchangeEvent::Opened(Peer::default()));
            for line in [&*initialize("2025-11-25", "{}"), READY, &subscribe(1, "a:1")] {
                node.bench.item(A, read(line));
            }
        }
        nodes.settle();
        nodes.nodes.iter_mut().for_each(|node| node.said.clear());
        nodes
    }

    fn now(&self) -> Duration {
        self.nodes[0].bench.now.since_origin()
    }

    /// Carries out what the engines ask of the store, and delivers what arrives, until nothing is
    /// left.
    fn settle(&mut self) {
        loop {
            let now = self.now();
            let mut is_idle = true;
            for node in &mut self.nodes {
                for output in node.bench.outputs() {
                    match output {
                        Output::Event(Event::Store(token, request)) => {
                            if let StoreRequest::Join { node: incarnation, .. } = &request {
                                node.own = Some(*incarnation);
                            }
                            node.asked.push((token, request.clone()));
                            if !self.is_away {
                                let reply = self.store.apply(now, request);
                                node.bench.server.stored(node.bench.now, token, Ok(reply));
                            }
                        }
                        Output::Event(Event::Diagnostic(diagnostic)) => node.codes.push(diagnostic.kind.code()),
                        other => node.said.extend(on(A, &other)),
                    }
                    is_idle = false;
                }
            }
            for node in self.nodes.iter_mut().filter(|_| !self.is_away) {
                for item in node.own.into_iter().flat_map(|own| self.store.take_arrived(now, own)) {
                    node.bench.server.arrived(node.bench.now, item);
                    is_idle = false;
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.nodes.iter_mut().for_each(|node| node.bench.pass(time));
        self.settle();
    }

    fn publish(&mut self, at: usize, change: Change) {
        let bench = &mut self.nodes[at].bench;
        bench.server.publish(bench.now, change);
        self.settle();
    }

    /// Takes what each client was told since the last time.
    fn told(&mut self) -> Vec<Vec<String>> {
        let short = |line: &String| match line.contains("list_changed") {
            true => line.split('"').find(|part| part.contains("list_changed")).unwrap().to_string(),
            false => update(line).0,
        };
        self.nodes.iter_mut().map(|node| core::mem::take(&mut node.said).iter().map(short).collect()).collect()
    }

    fn codes(&mut self, at: usize) -> Vec<&'static str> {
        core::mem::take(&mut self.nodes[at].codes)
    }

    /// Takes the requests of a node that are not about its lease.
    fn asked(&mut self, at: usize) -> Vec<News> {
        let said = core::mem::take(&mut self.nodes[at].asked).into_iter().filter_map(|(_, request)| match request {
            StoreRequest::Publish { news, .. } => Some(news),
            _ => None,
        });
        said.collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);
const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

#[test]
fn change_at_one_node_reaches_the_clients_of_all() {
    let mut nodes = Nodes::watching(3);
    nodes.publish(1, Change::Tools);
    assert_eq!(nodes.told(), [[TOOLS], [TOOLS], [TOOLS]], "once, also where it was published");
    nodes.publish(2, Change::Resource("a:1".into()));
    assert_eq!(nodes.told(), [["a:1"], ["a:1"], ["a:1"]]);
    nodes.publish(0, Change::Resource("a:2".into()));
    assert_eq!(nodes.told(), [[""; 0]; 3], "no client watches it");
    // What comes back from the store, or comes twice, is known.
    let own = nodes.nodes[0].own.unwrap();
    let bench = &mut nodes.nodes[0].bench;
    bench.server.arrived(bench.now, NodeItem::News { from: own, news: News::Changed(Change::Tools) });
    nodes.settle();
    assert_eq!(nodes.told(), [[""; 0]; 3]);
}

#[test]
fn nothing_is_said_of_what_is_not_declared() {
    let mut nodes = Nodes::new(2, |config| config.capabilities.tools = None);
    nodes.publish(0, Change::Tools);
    assert_eq!(nodes.asked(0), []);
    nodes.publish(0, Change::Prompts);
    assert_eq!(nodes.asked(0), [News::Changed(Change::Prompts)]);
}

#[test]
fn access_that_one_node_ends_ends_at_all() {
    let mut nodes = Nodes::new(2, |config| config.admit = true);
    let peer = Peer { kind: PeerKind::Tcp, ..Peer::default() };
    for (node, name) in [(0, "ada"), (1, "ada")] {
        let bench = &mut nodes.nodes[node].bench;
        bench.handle_event(A, ExchangeEvent::Opened(peer.clone()));
        let token = bench.events().into_iter().find_map(|event| match event {
            Event::Admit(token, _) => Some(token),
            _ => None,
        });
        bench.server.admit(bench.now, token.unwrap(), Admission::Accept(Some(Principal(name.into()))));
    }
    nodes.settle();
    let bench = &mut nodes.nodes[0].bench;
    bench.server.revoke(bench.now, &Principal("bob".into()));
    nodes.settle();
    assert!(nodes.nodes.iter().all(|node| !node.said.contains(&"end".to_string())));
    let bench = &mut nodes.nodes[0].bench;
    bench.server.revoke(bench.now, &Principal("ada".into()));
    nodes.settle();
    assert!(nodes.nodes.iter().all(|node| node.said.contains(&"end".to_string())));
}

#[test]
fn completed_page_reaches_the_node_that_asked() {
    let mut nodes = Nodes::new(3, |_| {});
    let bench = &mut nodes.nodes[2].bench;
    bench.handle_event(A, ExchangeEvent::Opened(Peer::default()));
    bench.item(A, read(&initialize("2025-11-25", URLS)));
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}"#));
    let (responder, incoming) = bench.handed();
    let id = incoming.elicitation_id("pay");
    let page = UrlRequest::new("Pay", "https://pay.example/1").into();
    bench.answer(responder, Outcome::NeedInput { requests: vec![("pay".into(), page)], state: None });
    nodes.settle();
    let complete = "notifications/elicitation/complete";
    for at in [0, 0, 2] {
        let bench = &mut nodes.nodes[at].bench;
        bench.server.elicited(bench.now, &id);
        nodes.settle();
    }
    let said = nodes.nodes[2].said.iter().filter(|line| line.contains(complete) && line.contains(&id));
    assert_eq!(said.count(), 1);
    let tells = [News::Elicited(id.clone()), News::Elicited(id.clone())];
    assert_eq!(nodes.asked(0), tells, "it does not know which node has asked");
    assert_eq!(nodes.asked(2), tells[..1], "the page is not known any more");
}

#[test]
fn what_was_said_while_the_store_was_away_arrives_later() {
    let mut nodes = Nodes::watching(2);
    nodes.is_away = true;
    for _ in 0..3 {
        nodes.publish(0, Change::Tools);
        nodes.publish(0, Change::Resource("a:1".into()));
        nodes.pass(SECOND);
    }
    // The clients of the node itself do not wait for the store.
    assert_eq!(nodes.told()[0].len(), 6);
    nodes.pass(4 * SECOND);
    assert_eq!(nodes.codes(0), ["store-unreachable"], "once for the whole time");
    assert!(nodes.nodes[0].bench.server.store_stats().failures > 1);
    nodes.is_away = false;
    nodes.pass(2 * SECOND);
    nodes.pass(2 * SECOND);
    let told = nodes.told();
    assert_eq!((told[0].len(), &told[1][..]), (0, &[TOOLS.to_string(), "a:1".to_string()][..]), "merged");
    let stats = nodes.nodes[0].bench.server.store_stats();
    assert!(stats.is_member && stats.waiting == 0, "{stats:?}");
}

#[test]
fn store_that_refuses_is_tried_again() {
    let mut nodes = Nodes::watching(2);
    nodes.is_away = true;
    nodes.publish(0, Change::Tools);
    let (token, _) = nodes.nodes[0].asked.pop().unwrap();
    let bench = &mut nodes.nodes[0].bench;
    bench.server.stored(bench.now, token, Err(StoreError::Refused("out of memory".into())));
    // A reply after that one is for nothing.
    bench.server.stored(bench.now, token, Ok(StoreReply::Done));
    nodes.is_away = false;
    nodes.pass(SECOND / 2);
    assert_eq!((nodes.codes(0), nodes.told()[1].len()), (vec!["store-unreachable"], 0), "not at once");
    nodes.pass(SECOND);
    assert_eq!(nodes.told()[1], [TOOLS]);
}

#[test]
fn changes_without_room_become_one_of_everything() {
    let mut nodes = Nodes::new(2, |config| config.limits.server.max_store_requests = 3);
    nodes.is_away = true;
    // The first is on its way.
    for nth in 0..5 {
        nodes.publish(0, Change::Resource(format!("a:{nth}")));
    }
    nodes.publish(0, Change::Tools);
    let bench = &mut nodes.nodes[0].bench;
    for name in ["ada", "bob", "eve"] {
        bench.server.revoke(bench.now, &Principal(name.into()));
    }
    nodes.settle();
    assert_eq!(nodes.codes(0), ["store-unreachable"], "there is no room for one");
    nodes.asked(0);
    nodes.is_away = false;
    nodes.pass(3 * SECOND);
    nodes.pass(SECOND);
    let revoked = |name: &str| News::Revoked(Principal(name.into()));
    assert_eq!(nodes.asked(0), [revoked("ada"), revoked("bob"), News::ChangedAll], "the important ones first");
}

#[test]
fn bytes_of_what_waits_are_bounded() {
    let mut nodes = Nodes::new(1, |config| config.limits.server.max_store_bytes = 1 << 10);
    nodes.is_away = true;
    nodes.publish(0, Change::Tools);
    nodes.publish(0, Change::Resource("a".repeat(700)));
    nodes.publish(0, Change::Resource("b".repeat(700)));
    nodes.asked(0);
    nodes.is_away = false;
    nodes.pass(3 * SECOND);
    nodes.pass(SECOND);
    assert_eq!(nodes.asked(0), [News::ChangedAll]);
}

#[test]
fn everything_counts_as_changed_for_a_node_that_missed_news() {
    let mut nodes = Nodes::watching(1);
    let bench = &mut nodes.nodes[0].bench;
    bench.server.arrived(bench.now, NodeItem::Missed);
    nodes.settle();
    assert_eq!(nodes.told(), [[TOOLS, PROMPTS, RESOURCES, "a:1"]]);
}

#[test]
fn node_whose_lease_lapsed_joins_as_another() {
    let mut nodes = Nodes::watching(2);
    let before = nodes.nodes[0].own.unwrap();
    nodes.is_away = true;
    (0..20).for_each(|_| nodes.pass(SECOND));
    nodes.told();
    nodes.is_away = false;
    nodes.pass(3 * SECOND);
    nodes.pass(SECOND);
    assert_eq!(nodes.codes(0), ["store-unreachable", "node-lapsed"]);
    assert_ne!(nodes.nodes[0].own.unwrap(), before);
    // What was published in between did not reach it.
    assert_eq!(nodes.told()[0], [TOOLS, PROMPTS, RESOURCES, "a:1"]);
    nodes.publish(1, Change::Tools);
    assert_eq!(nodes.told(), [[TOOLS], [TOOLS]]);
}

#[test]
fn lease_is_renewed_in_time_under_one_number_until_confirmed() {
    let mut nodes = Nodes::new(1, |_| {});
    let beats = |nodes: &mut Nodes| {
        let asked = core::mem::take(&mut nodes.nodes[0].asked).into_iter();
        let beat = |(_, request)| if let StoreRequest::Renew { beat, .. } = request { Some(beat) } else { None };
        asked.filter_map(beat).collect::<Vec<_>>()
    };
    nodes.pass(5 * SECOND);
    nodes.pass(5 * SECOND);
    assert_eq!(beats(&mut nodes), [1, 2]);
    nodes.is_away = true;
    // The store carries it out, and the reply is lost.
    nodes.pass(5 * SECOND);
    let own = nodes.nodes[0].own.unwrap();
    nodes.store.apply(nodes.now(), StoreRequest::Renew { node: own, beat: 3, lease: 15 * SECOND });
    nodes.is_away = false;
    nodes.pass(2 * SECOND);
    nodes.pass(SECOND);
    nodes.pass(5 * SECOND);
    assert_eq!((beats(&mut nodes), nodes.codes(0)), (vec![3, 3, 4], vec!["store-unreachable"]));
    assert_eq!(nodes.nodes[0].own.unwrap(), own);
}

#[test]
fn server_that_ends_says_the_rest_and_leaves() {
    let mut nodes = Nodes::watching(2);
    nodes.is_away = true;
    nodes.publish(0, Change::Tools);
    nodes.publish(0, Change::Prompts);
    nodes.asked(0);
    nodes.is_away = false;
    let bench = &mut nodes.nodes[0].bench;
    bench.server.shutdown(bench.now, Duration::ZERO);
    let outputs = bench.outputs();
    assert_eq!(outputs.last(), Some(&Output::Event(Event::Terminated)));
    let mut requests: Vec<_> = outputs
        .into_iter()
        .filter_map(|output| match output {
            Output::Event(Event::Store(_, request)) => Some(request),
            _ => None,
        })
        .collect();
    assert!(matches!(requests.last(), Some(StoreRequest::Leave { .. })), "{requests:?}");
    let now = nodes.now();
    requests.drain(..).for_each(|request| drop(nodes.store.apply(now, request)));
    nodes.settle();
    assert_eq!(nodes.told()[1], [TOOLS, PROMPTS]);
    // Nothing arrives, and no timer runs.
    let bench = &mut nodes.nodes[0].bench;
    bench.server.arrived(bench.now, NodeItem::Missed);
    bench.server.stored(bench.now, StoreToken(1), Ok(StoreReply::Lapsed));
    assert_eq!((bench.outputs(), bench.server.poll_timeout()), (vec![], None));
}

#[test]
fn without_a_store_or_keys_nothing_is_emitted() {
    for (keys, store) in [(None, Some(Memory::SERVES)), (Some([1; 32].into()), None)] {
        let mut bench = Bench::with(|config| {
            announces(config);
            (config.state_keys, config.store) = (keys, store);
        });
        let command = ServerCommand::Arrived(NodeItem::News { from: Incarnation([3; 16]), news: News::ChangedAll });
        bench.server.act(bench.now, command).unwrap();
        bench.server.publish(bench.now, Change::Tools);
        assert_eq!((bench.outputs(), bench.server.poll_timeout()), (vec![], None));
    }
}
