//! Catalogues: when lists are loaded, and how far they can be relied on.

use super::*;
use alloc::boxed::Box;
use mcp_proto::call::SkippedList;
use mcp_proto::error::{HttpError, Refusal};
use mcp_proto::input::Watch;
use mcp_proto::model::page::ListElement;
use mcp_proto::model::prompts::Prompt;
use mcp_proto::rpc::{DecodeError, ErrorObject, Object, RawJson};

fn prompts(names: &[&str]) -> Listing {
    let prompt = |name: &&str| Prompt::read(&Object::new().with("name", *name).into()).unwrap();
    Listing::Prompts(names.iter().map(prompt).collect())
}

/// A list that has another shape.
fn broken() -> CallError {
    CallError::Decode(DecodeError::new("`resources` is missing"))
}

fn absent() -> CallError {
    CallError::Rpc(ErrorObject::new(-32601, "Method not found"))
}

impl Rig {
    /// Takes the outputs, and returns the lists that they load.
    fn loads(&mut self) -> Vec<ListKind> {
        let loads = |output| match output {
            Output::Load { list, .. } => Some(list),
            _ => None,
        };
        self.take().into_iter().filter_map(loads).collect()
    }

    fn fresh(&self, list: ListKind) -> Freshness {
        self.supervisor.freshness(&"a", list)
    }

    fn load(&mut self, client: Generation, listing: Listing) {
        self.supervisor.loaded(self.now, client, listing.kind(), Ok(listing.into()));
    }
}

/// A server that is connected, with empty lists.
fn loaded() -> (Rig, Generation) {
    let (mut rig, client) = Rig::ready(program());
    for list in ListKind::ALL {
        rig.load(client, Listing::none(list));
    }
    rig.take();
    // The lists may be loaded again at once.
    rig.pass(ms(1000));
    (rig, client)
}

// covers: S0-61
#[test]
fn lists_are_loaded_at_each_connection_and_stay_usable() {
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", program()).unwrap();
    let client = rig.connects();
    rig.up(client);
    assert_eq!(rig.loads(), ListKind::ALL);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Unknown);
    rig.load(client, prompts(&["one"]));
    let event = Event::Listed { key: "a", list: ListKind::Prompts };
    assert_eq!(rig.take(), [Output::Event(event.clone())]);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Fresh);
    rig.end(client);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Stale);
    let names = |rig: &Rig| -> Vec<_> {
        let prompts = rig.supervisor.catalogue(&"a").unwrap().prompts.clone().unwrap_or_default();
        prompts.iter().map(|prompt| prompt.name.clone()).collect()
    };
    assert_eq!(names(&rig), ["one"]);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Stale);
    assert_eq!(rig.loads(), ListKind::ALL);
    // The same elements are no change.
    rig.load(next, prompts(&["one"]));
    assert_eq!((rig.take(), rig.fresh(ListKind::Prompts)), (vec![], Freshness::Fresh));
    rig.supervisor.changed(rig.now, next, &Change::Prompts);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Stale);
    rig.pass(ms(250));
    assert_eq!(rig.loads(), [ListKind::Prompts]);
    rig.load(next, prompts(&["two"]));
    assert_eq!((rig.take(), names(&rig)), (vec![Output::Event(event)], vec!["two".to_string()]));
}

// covers: S0-61, S0-23
#[test]
fn change_during_a_load_causes_another_one() {
    let (mut rig, client) = loaded();
    rig.supervisor.changed(rig.now, client, &Change::Tools);
    assert_eq!(rig.loads(), [ListKind::Tools]);
    for _ in 0..1000 {
        rig.supervisor.changed(rig.now, client, &Change::Tools);
    }
    assert_eq!(rig.loads(), [], "one load of a list at a time");
    rig.load(client, Listing::none(ListKind::Tools));
    assert_eq!(rig.fresh(ListKind::Tools), Freshness::Stale, "the change may not be in the result");
    assert_eq!(rig.loads(), [], "a server cannot cause loads without a pause");
    rig.pass(ms(250));
    assert_eq!(rig.loads(), [ListKind::Tools]);
    rig.load(client, Listing::none(ListKind::Tools));
    assert_eq!((rig.fresh(ListKind::Tools), rig.supervisor.poll_timeout()), (Freshness::Fresh, None));
}

// covers: S0-61
#[test]
fn load_that_fails_is_tried_again_until_the_server_is_lost() {
    let (mut rig, client) = loaded();
    rig.supervisor.changed(rig.now, client, &Change::Resources);
    assert_eq!(rig.loads(), [ListKind::Resources, ListKind::ResourceTemplates]);
    rig.load(client, Listing::none(ListKind::ResourceTemplates));
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        rig.supervisor.loaded(rig.now, client, ListKind::Resources, Err(broken()));
        assert_eq!(rig.fresh(ListKind::Resources), Freshness::Stale);
        rig.pass(ms(1000 * seconds - 1));
        assert_eq!(rig.loads(), [], "{seconds}");
        rig.pass(ms(1));
        assert_eq!(rig.loads(), [ListKind::Resources], "{seconds}");
    }
    // A list of another kind is none.
    rig.supervisor.loaded(rig.now, client, ListKind::Resources, Ok(Listing::none(ListKind::Tools).into()));
    assert_eq!(rig.fresh(ListKind::Resources), Freshness::Stale);
    rig.end(client);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.loads(), ListKind::ALL);
    // What the old client loads belongs to the past.
    rig.supervisor.loaded(rig.now, client, ListKind::Prompts, Ok(prompts(&["old"]).into()));
    assert_eq!(rig.supervisor.catalogue(&"a").unwrap().prompts.as_deref().unwrap_or_default(), []);
}

/// The load of a list that the server refuses for this number of seconds.
fn put_off(seconds: u64) -> CallError {
    let mut error = HttpError::new(429);
    error.retry_after = Some(Duration::from_secs(seconds));
    CallError::Http(Box::new(error))
}

// covers: S0-61
#[test]
fn list_is_not_loaded_before_the_time_the_server_asks_for() {
    for (asked, expected) in [(0, 1000), (60, 60_000), (86_400, 300_000)] {
        let (mut rig, client) = Rig::ready(program());
        for list in [ListKind::Resources, ListKind::ResourceTemplates, ListKind::Prompts] {
            rig.load(client, Listing::none(list));
        }
        rig.supervisor.loaded(rig.now, client, ListKind::Tools, Err(put_off(asked)));
        rig.take();
        let cause = rig.supervisor.health(&"a").unwrap().cause.unwrap();
        assert_eq!(cause.retry_after(), Some(Duration::from_secs(asked)));
        assert!(rig.supervisor.is_settled());
        // A change is not a permission.
        rig.supervisor.changed(rig.now, client, &Change::Tools);
        rig.pass(ms(expected - 1));
        assert_eq!(rig.loads(), [], "{asked}");
        rig.pass(ms(1));
        assert_eq!(rig.loads(), [ListKind::Tools], "{asked}");
        // Without it, the usual delay follows.
        rig.supervisor.loaded(rig.now, client, ListKind::Tools, Err(broken()));
        rig.pass(ms(1999));
        assert_eq!(rig.loads(), []);
        rig.pass(ms(1));
        assert_eq!(rig.loads(), [ListKind::Tools]);
    }
}

// covers: S0-61
#[test]
fn new_session_does_not_load_a_list_before_its_time() {
    let others = [ListKind::Resources, ListKind::ResourceTemplates, ListKind::Prompts];
    for replaced in [false, true] {
        let (mut rig, mut client) = Rig::ready(program());
        rig.supervisor.loaded(rig.now, client, ListKind::Tools, Err(put_off(60)));
        let mut left = ms(60_000);
        if replaced {
            rig.end(client);
            let (wait, next) = rig.next_attempt();
            (client, left) = (next, left - wait);
        }
        rig.take();
        rig.up(client);
        assert_eq!(rig.loads(), others);
        for list in others {
            rig.load(client, Listing::none(list));
        }
        assert!(rig.supervisor.is_settled(), "the application does not wait for it");
        rig.pass(left - ms(1));
        assert_eq!(rig.loads(), []);
        rig.pass(ms(1));
        assert_eq!(rig.loads(), [ListKind::Tools]);
    }
    // The application may know better, and a time that is over is over.
    for asked in [false, true] {
        let (mut rig, client) = Rig::ready(program());
        rig.supervisor.loaded(rig.now, client, ListKind::Tools, Err(put_off(if asked { 60 } else { 0 })));
        if asked {
            assert!(rig.supervisor.reconnect(rig.now, &"a"));
        }
        rig.end(client);
        let next = if asked { rig.connects() } else { rig.next_attempt().1 };
        rig.up(next);
        assert_eq!(rig.loads(), ListKind::ALL);
    }
}

/// The events of these outputs.
fn events(outputs: Vec<Output<&'static str>>) -> Vec<Event<&'static str>> {
    let event = |output| if let Output::Event(event) = output { Some(event) } else { None };
    outputs.into_iter().filter_map(event).collect()
}

#[test]
fn list_that_fails_is_an_event_and_the_cause() {
    let (mut rig, client) = Rig::ready(program());
    let fault = |list, error| ListFault { list, error };
    let not_listed = |list, error| Event::NotListed { key: "a", fault: fault(list, error) };
    let cause = |rig: &Rig| rig.supervisor.health(&"a").unwrap().cause;
    rig.load(client, Listing::none(ListKind::Tools));
    rig.take();
    assert_eq!(cause(&rig), None);
    // Once, however often it fails, and for each list.
    rig.supervisor.loaded(rig.now, client, ListKind::Resources, Err(broken()));
    assert_eq!(events(rig.take()), [not_listed(ListKind::Resources, broken())]);
    rig.pass(ms(1000));
    rig.supervisor.loaded(rig.now, client, ListKind::Resources, Err(CallError::TooManyPages(7)));
    rig.supervisor.loaded(rig.now, client, ListKind::Prompts, Err(CallError::TooManyPages(7)));
    assert_eq!(events(rig.take()), [not_listed(ListKind::Prompts, CallError::TooManyPages(7))]);
    let latest = fault(ListKind::Resources, CallError::TooManyPages(7));
    assert_eq!(cause(&rig), Some(Cause::NotListed(latest)));
    let text = cause(&rig).unwrap().to_string();
    assert_eq!(text, "resources/list failed: the list has more than 7 pages");
    // A load without an end is one that fails. The state is that of a connected server.
    rig.pass(ms(60_000));
    let lists = rig.supervisor.health(&"a").unwrap().lists;
    assert!(matches!(lists[2].error, Some(CallError::Timeout { .. })), "{lists:?}");
    assert!(matches!(rig.state(), ServerState::Ready { .. }));
    // The list is there again, and then gone again.
    rig.take();
    rig.load(client, Listing::none(ListKind::Resources));
    rig.supervisor.changed(rig.now, client, &Change::Resources);
    rig.pass(ms(250));
    rig.supervisor.loaded(rig.now, client, ListKind::Resources, Err(broken()));
    assert!(events(rig.take()).contains(&not_listed(ListKind::Resources, broken())));
    // The end of the connection is the cause from then on, and no fault of the list.
    rig.pass(ms(1000));
    rig.take();
    rig.supervisor.loaded(rig.now, client, ListKind::Prompts, Err(lost(Sent::Maybe)));
    rig.end(client);
    assert!(!events(rig.take()).iter().any(|event| matches!(event, Event::NotListed { .. })));
    assert_eq!(cause(&rig), Some(Cause::Ended(exited())));
    assert!(rig.supervisor.health(&"a").unwrap().lists.iter().all(|list| list.error.is_none()));
}

#[test]
fn list_that_a_full_client_cannot_ask_for_is_an_event() {
    let (mut rig, client) = Rig::ready(program());
    let error = CallError::Refused(Refusal::Full);
    rig.supervisor.loaded(rig.now, client, ListKind::Tools, Err(error.clone()));
    let fault = ListFault { list: ListKind::Tools, error };
    assert_eq!(events(rig.take()), [Event::NotListed { key: "a", fault }]);
}

#[test]
fn list_that_a_server_lacks_is_empty_until_it_changes() {
    let mut catalogue = Catalogue::default();
    catalogue.set(prompts(&["kept"]));
    let (mut rig, client) = Rig::ready(ServerSpec { catalogue, ..program() });
    rig.supervisor.loaded(rig.now, client, ListKind::ResourceTemplates, Err(absent()));
    rig.supervisor.loaded(rig.now, client, ListKind::Prompts, Err(absent()));
    rig.load(client, Listing::none(ListKind::Tools));
    rig.load(client, Listing::none(ListKind::Resources));
    let listed = |list| Event::Listed { key: "a", list };
    let all = events(rig.take());
    assert!(all.contains(&listed(ListKind::ResourceTemplates)) && all.contains(&listed(ListKind::Prompts)), "{all:?}");
    assert!(!all.iter().any(|event| matches!(event, Event::NotListed { .. })), "{all:?}");
    assert_eq!(rig.fresh(ListKind::ResourceTemplates), Freshness::Fresh);
    assert_eq!(rig.supervisor.catalogue(&"a").unwrap().prompts.as_deref(), Some(&[][..]));
    let health = rig.supervisor.health(&"a").unwrap();
    assert!(health.cause.is_none() && health.lists.iter().all(|list| list.error.is_none()));
    // Nothing asks again, for as long as nothing has changed.
    assert_eq!(rig.supervisor.poll_timeout(), None);
    rig.pass(ms(3_600_000));
    assert_eq!(rig.loads(), []);
    rig.supervisor.changed(rig.now, client, &Change::Resources);
    assert_eq!(rig.loads(), [ListKind::Resources, ListKind::ResourceTemplates]);
    rig.supervisor.loaded(rig.now, client, ListKind::ResourceTemplates, Err(absent()));
    rig.load(client, Listing::none(ListKind::Resources));
    assert_eq!(rig.supervisor.poll_timeout(), None);
    rig.end(client);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.loads(), ListKind::ALL);
}

#[test]
fn health_names_the_elements_that_were_left_out() {
    let (mut rig, client) = Rig::ready(program());
    let mut skipped = SkippedList::default();
    let why = DecodeError::new("`inputSchema` is missing");
    skipped.push(41, &Object::new().with("name", "broken").into(), &why);
    let loaded = LoadedList::new(Listing::none(ListKind::Tools), skipped.clone());
    rig.supervisor.loaded(rig.now, client, ListKind::Tools, Ok(loaded));
    let lists = |rig: &Rig| rig.supervisor.health(&"a").unwrap().lists;
    let named = |rig: &Rig| lists(rig).into_iter().map(|list| list.skipped.len()).collect::<Vec<_>>();
    assert_eq!((named(&rig), &lists(&rig)[0].skipped), (vec![1, 0, 0, 0], &skipped));
    assert_eq!(lists(&rig)[0].freshness, Freshness::Fresh);
    assert!(rig.supervisor.health(&"a").unwrap().cause.is_none(), "the others can be used");
    // It is about the elements that are kept, also while the server is away.
    rig.end(client);
    assert_eq!(named(&rig), [1, 0, 0, 0]);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    rig.load(next, Listing::none(ListKind::Tools));
    assert_eq!(named(&rig), [0, 0, 0, 0]);
}

// covers: S0-61
#[test]
fn load_without_an_end_is_tried_again() {
    let mut spec = program();
    let mut config = (*spec.config).clone();
    config.timeout = None;
    spec.config = config.into();
    let (mut rig, client) = Rig::ready(spec);
    for list in [ListKind::Tools, ListKind::Resources, ListKind::ResourceTemplates] {
        rig.load(client, Listing::none(list));
    }
    rig.pass(ms(59_999));
    assert!(!rig.supervisor.is_settled());
    rig.pass(ms(1));
    assert!(rig.supervisor.is_settled(), "the application does not wait for it");
    // Its result comes too late.
    rig.load(client, prompts(&["late"]));
    assert_eq!((rig.fresh(ListKind::Prompts), rig.loads()), (Freshness::Unknown, vec![]));
    rig.pass(ms(1000));
    assert_eq!(rig.loads(), [ListKind::Prompts]);
    rig.load(client, prompts(&["two"]));
    assert_eq!((rig.fresh(ListKind::Prompts), rig.supervisor.poll_timeout()), (Freshness::Fresh, None));
}

// covers: S0-61, S0-23
#[test]
fn client_watches_the_lists_that_are_kept() {
    let watched = |lists: Lists, resolves: bool| {
        let mut rig = Rig::new(exact());
        rig.supervisor.add(rig.now, "a", ServerSpec { lists, resolve: resolves, ..program() }).unwrap();
        if let Some(Output::Resolve { generation, .. }) = rig.take().first() {
            rig.supervisor.resolved(rig.now, *generation, Ok(program().config));
        } else {
            assert!(!resolves);
            rig = Rig::new(exact());
            rig.supervisor.add(rig.now, "a", ServerSpec { lists, ..program() }).unwrap();
        }
        match &rig.take()[..] {
            [Output::Connect { config, .. }] => config.watch.clone(),
            other => panic!("{other:?}"),
        }
    };
    for resolves in [false, true] {
        assert_eq!(watched(Lists::NONE, resolves), Watch::new());
        assert_eq!(watched(Lists::ALL, resolves), Watch::new().with_tools().with_prompts().with_resources());
        let templates = Lists::NONE.with(ListKind::ResourceTemplates);
        assert_eq!(watched(templates, resolves), Watch::new().with_resources());
    }
}

// covers: S0-61
#[test]
fn lists_of_an_earlier_run_precede_the_first_connection() {
    let mut catalogue = Catalogue::default();
    catalogue.set(prompts(&["kept"]));
    let mut spec = ServerSpec { connect: ConnectWhen::OnDemand, catalogue: catalogue.clone(), ..program() };
    spec.lists = Lists::NONE.with(ListKind::Prompts).with(ListKind::Tools);
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", spec).unwrap();
    assert_eq!((rig.supervisor.catalogue(&"a"), rig.fresh(ListKind::Prompts)), (Some(&catalogue), Freshness::Stale));
    rig.call(tool_plan("x"));
    let client = rig.connects();
    // A server without prompts has none. What is not wanted is neither loaded nor known.
    let mut only_tools = everything();
    only_tools.prompts = None;
    rig.supervisor.ready(rig.now, client, &only_tools);
    let outputs = rig.take();
    assert!(outputs.contains(&Output::Event(Event::Listed { key: "a", list: ListKind::Prompts })));
    assert!(outputs.contains(&Output::Load { generation: client, list: ListKind::Tools }));
    assert_eq!(outputs.iter().filter(|output| matches!(output, Output::Load { .. })).count(), 1);
    assert_eq!(rig.fresh(ListKind::Prompts), Freshness::Fresh);
    assert_eq!(rig.fresh(ListKind::Resources), Freshness::Unknown);
    rig.supervisor.changed(rig.now, client, &Change::Resources);
    rig.supervisor.changed(rig.now, client, &Change::Resource("file:///a".into()));
    assert_eq!(rig.take(), []);
    // Another specification is another server: nothing of the old one is taken for its.
    assert!(rig.supervisor.replace(rig.now, &"a", program()));
    assert_eq!(rig.supervisor.catalogue(&"a"), Some(&Catalogue::default()));
}

// covers: S0-61
#[test]
fn new_session_of_a_server_loads_its_lists_again() {
    let (mut rig, client) = loaded();
    rig.up(client);
    assert_eq!(rig.loads(), ListKind::ALL);
    assert_eq!(rig.fresh(ListKind::Tools), Freshness::Stale);
}

// covers: S0-61
#[test]
fn catalogue_is_kept_over_runs_of_the_application() {
    let read = |text: &str| Catalogue::read(&RawJson::parse(text.to_string()).unwrap());
    let text = concat!(
        r#"{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"#,
        r#""_meta":{"x/y":1},"extra":[2]}],"resources":[{"uri":"file:///a","name":"a","size":7}],"#,
        r#""resourceTemplates":[{"uriTemplate":"file:///{x}","name":"t"}],"#,
        r#""prompts":[{"name":"p","arguments":[{"name":"q","required":true}]}]}"#
    );
    let catalogue = read(text).unwrap();
    assert!(ListKind::ALL.into_iter().all(|list| catalogue.has(list)));
    assert_eq!(read(RawJson::from(catalogue.write()).as_str()), Ok(catalogue));
    // A list that is not known is not an empty one.
    for text in ["{}", r#"{"tools":[]}"#] {
        let catalogue = read(text).unwrap();
        assert_eq!(catalogue.has(ListKind::Tools), text != "{}");
        assert_eq!(RawJson::from(catalogue.write()).as_str(), text);
    }
    assert!(read(r#"{"tools":[{}]}"#).is_err() && read("[]").is_err() && read(r#"{"prompts":{}}"#).is_err());
}
