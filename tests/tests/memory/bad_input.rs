//! The memory of a client whose server sends lists without end, completions and log messages in
//! floods, and resources of any size, measured by a counting allocator.

use bytes::Bytes;
use mcp_proto::call::PagedMethod;
use mcp_proto::client::{Client, ClientCommands, ClientConfig, Event, Output, Policy};
use mcp_proto::exchange::{Action, ConnectionId, ExchangeEvent, ExchangeId, IoEvent, Outbound, Peer};
use mcp_proto::input::Watch;
use mcp_proto::limits::Limits;
use mcp_proto::rpc::parse_batch_or_message;
use mcp_proto::wired::WiredClient;
use mcp_proto::{Call, CallError, Instant, LogLevel, Method, Pages, Refusal, completion, resources};
use mcp_tests::heap::used;
use std::iter;
use std::sync::Arc;

const NOW: Instant = Instant::ZERO;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#;

fn config() -> ClientConfig {
    let mut config = ClientConfig::given();
    config.policy = Policy::Legacy;
    config
}

/// A client after negotiation, and its connection.
struct Rig {
    client: Client,
    exchange: ExchangeId,
}

impl Rig {
    fn new() -> Self {
        let mut client = Client::new(Arc::new(config()), [7; 32], NOW);
        let Some(Output::Start(exchange, _)) = client.poll_output() else { panic!("it starts") };
        client.handle_event(NOW, exchange, ExchangeEvent::Opened(Peer::default()));
        let mut rig = Self { client, exchange };
        rig.hear(HELLO.into());
        rig.outputs();
        rig
    }

    fn hear(&mut self, text: String) {
        let item = parse_batch_or_message(Bytes::from(text), &Limits::default().frame).into();
        self.client.handle_event(NOW, self.exchange, ExchangeEvent::Inbound(item));
    }

    fn outputs(&mut self) -> Vec<Output> {
        iter::from_fn(|| self.client.poll_output()).collect()
    }

    /// Makes a call that the server answers with this result.
    fn call<M: Method>(&mut self, call: Call<M>, result: &str) -> Result<M::Output, CallError> {
        let calling = self.client.call(NOW, call).expect("it is accepted");
        let id = self.outputs().iter().find_map(|output| match output {
            Output::Send(_, Outbound::Message(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                text.split_once("\"id\":")?.1.split([',', '}']).next().map(str::to_owned)
            }
            _ => None,
        });
        self.hear(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.expect("it is sent")));
        self.outputs()
            .into_iter()
            .find_map(|output| match output {
                Output::Event(Event::Ended { call, outcome }) if call == calling.id() => Some(outcome),
                _ => None,
            })
            .map(|outcome| calling.finish(outcome))
            .expect("it ends")
    }

    /// Fetches a list of pages that `page` makes of their numbers. Returns its end and the number
    /// of fetched pages.
    fn list<M: PagedMethod>(&mut self, list: Call<M>, page: impl Fn(u32) -> String) -> (Result<(), CallError>, u32) {
        let (mut pages, mut fetched) = (Pages::new(list, Limits::default().client.max_pages), 0);
        while let Some(call) = pages.next() {
            let outcome = self.call(call, &page(fetched));
            fetched += 1;
            if let Err(e) = pages.fetched(outcome) {
                return (Err(e), fetched);
            }
            while pages.pop().is_some() {}
            let held = used();
            assert!(held < 4 << 20, "{held} bytes are held after page {fetched}");
        }
        (Ok(()), fetched)
    }
}

fn lists_without_end() {
    let mut rig = Rig::new();
    // A cursor may be as long as its message.
    let long = "c".repeat(64 << 10);
    let endless = |n| format!(r#"{{"resources":[{{"uri":"x:{n}","name":"x"}}],"nextCursor":"{long}{n}"}}"#);
    assert_eq!(rig.list(resources::list(), endless), (Err(CallError::TooManyPages(1000)), 1000));
    // A cycle of three pages.
    let cycle = |n| format!(r#"{{"resourceTemplates":[],"nextCursor":"{long}{}"}}"#, n % 3);
    let (ended, fetched) = rig.list(resources::templates(), cycle);
    assert!(matches!(&ended, Err(CallError::Decode(e)) if e.to_string().contains("repeats")), "{ended:?}");
    assert_eq!(fetched, 4);
}

fn flood_of_completions() {
    let mut rig = Rig::new();
    let flood = format!(r#"{{"completion":{{"values":["v"{}]}}}}"#, r#","""#.repeat(5 << 20));
    let call = || completion::prompt("p").argument("a", "");
    let before = used();
    let found = rig.call(call(), &flood).expect("it is answered");
    let held = used() - before;
    assert_eq!((found.values.len(), &*found.values[0], found.has_more), (100, "v", true));
    assert!(held < 64 << 10, "{held} bytes for 100 values");
}

fn flood_of_log_messages() {
    let mut rig = Rig::new();
    rig.client.log_level(NOW, Some(LogLevel::Debug));
    rig.outputs();
    let (text, junk) = ("x".repeat(1 << 10), "j".repeat(64 << 10));
    let before = used();
    for n in 0..10_000 {
        let junk = if n % 100 == 0 { &*junk } else { "" };
        rig.hear(format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}},"junk":"{junk}"}}"#));
    }
    let held = used() - before;
    assert!(held < 2 << 20, "{held} bytes for 1024 messages of 1 KiB");
    let (mut told, mut lost) = (0, 0);
    for output in rig.outputs() {
        match output {
            Output::Event(Event::Log { .. }) => told += 1,
            Output::Event(Event::Lost { notifications, .. }) => lost += notifications,
            _ => {}
        }
    }
    assert_eq!((told, told + lost), (1024, 10_000));
}

fn watched_resources() {
    let mut rig = Rig::new();
    let all = (0..100_000).fold(Watch::new(), |watch, n| watch.with_uri(format!("a:{n}")));
    let before = used();
    let refused = rig.client.watch(NOW, all.clone()).expect_err("it is refused");
    assert!(refused.why == Refusal::Full && refused.value == all);
    drop(refused);
    assert!(used() - before < 4 << 10, "{} bytes", used() - before);
}

/// Reads a resource of `size` bytes over stdio.
fn large_resource([head, tail]: [&str; 2], size: usize) -> Result<CallError, String> {
    const PART: usize = 64 << 10;
    let mut engine = WiredClient::new(Arc::new(config()), [7; 32], NOW);
    let opened = iter::from_fn(|| engine.poll_output()).find_map(|action| match action {
        Action::Open(connection, _) => Some(connection),
        _ => None,
    });
    let connection: ConnectionId = opened.expect("it opens a connection");
    engine.handle_io(NOW, connection, IoEvent::Opened(Peer::default()));
    let hear = |engine: &mut WiredClient, bytes| engine.handle_io(NOW, connection, IoEvent::Read(bytes));
    hear(&mut engine, Bytes::from(format!("{HELLO}\n")));
    while engine.poll_output().is_some() {}
    let calling = engine.call(NOW, resources::read("x:large")).expect("it is accepted");
    while engine.poll_output().is_some() {}
    let before = used();
    let part = Bytes::from(vec![b'x'; PART]);
    hear(&mut engine, Bytes::from(head.to_owned()));
    let mut ended = None;
    for n in 0..=size / PART {
        if n == size / PART {
            hear(&mut engine, Bytes::from(format!("{tail}\n")));
        } else {
            hear(&mut engine, part.clone());
        }
        // A growing line has a buffer of at most twice its maximum.
        let held = used() - before;
        assert!(held < 34 << 20, "{held} bytes are held");
        for action in iter::from_fn(|| engine.poll_output()) {
            if let Action::Event(Event::Ended { call, outcome }) = action {
                assert_eq!(call, calling.id());
                ended = Some(outcome);
            }
        }
    }
    let held = used() - before;
    assert!(held < 256 << 10, "{held} bytes are held after the end");
    match ended {
        Some(outcome) => Ok(calling.finish(outcome).expect_err("it fails")),
        None => Err("it does not end".into()),
    }
}

// covers: B-189, B-284, B-274
#[test]
fn bad_input_of_a_server_takes_bounded_memory() {
    let _alone = crate::alone();
    lists_without_end();
    flood_of_completions();
    flood_of_log_messages();
    watched_resources();
    let id_first = [r#"{"jsonrpc":"2.0","id":2,"result":{"contents":[{"uri":"x:large","text":""#, r#""}]}}"#];
    let id_last = [r#"{"result":{"contents":[{"uri":"x:large","text":""#, r#""}]},"jsonrpc":"2.0","id":2}"#];
    for message in [id_first, id_last] {
        let error = large_resource(message, 64 << 20);
        assert!(matches!(&error, Ok(CallError::Decode(e)) if e.to_string().contains("limit")), "{error:?}");
    }
}
