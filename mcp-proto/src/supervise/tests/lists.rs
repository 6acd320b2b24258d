//! Catalogues: when lists are loaded, and how far they can be relied on.

use super::*;
use crate::input::Watch;
use crate::model::prompts::Prompt;
use crate::rpc::{Object, RawJson};

fn prompts(names: &[&str]) -> Listing {
    let prompt = |name: &&str| Prompt::read(&Object::new().with("name", *name).into()).unwrap();
    Listing::Prompts(names.iter().map(prompt).collect())
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
        self.supervisor.loaded(self.now, client, listing.kind(), Some(listing));
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
        rig.supervisor.loaded(rig.now, client, ListKind::Resources, None);
        assert_eq!(rig.fresh(ListKind::Resources), Freshness::Stale);
        rig.pass(ms(1000 * seconds - 1));
        assert_eq!(rig.loads(), [], "{seconds}");
        rig.pass(ms(1));
        assert_eq!(rig.loads(), [ListKind::Resources], "{seconds}");
    }
    // A list of another kind is none.
    rig.supervisor.loaded(rig.now, client, ListKind::Resources, Some(Listing::none(ListKind::Tools)));
    assert_eq!(rig.fresh(ListKind::Resources), Freshness::Stale);
    rig.end(client);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.loads(), ListKind::ALL);
    // What the old client loads belongs to the past.
    rig.supervisor.loaded(rig.now, client, ListKind::Prompts, Some(prompts(&["old"])));
    assert_eq!(rig.supervisor.catalogue(&"a").unwrap().prompts.as_deref().unwrap_or_default(), []);
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
    let only_tools = ServerCapabilities { prompts: None, ..everything() };
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
