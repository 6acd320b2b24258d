//! Names for the tools of several servers.

use super::*;
use alloc::collections::BTreeSet;
use alloc::string::String;
use mcp_proto::model::page::ListElement;
use mcp_proto::model::tools::Tool;
use proptest::prelude::*;

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn named(tools: Pairs<'_>, rules: NameRules, prefix: Prefix) -> Vec<String> {
    let tools = tools.iter().map(|(server, tool)| (*server, String::from(*tool)));
    let names = ToolNames::new(tools, rules, prefix, |_, _| None);
    names.iter().map(|tool| tool.name.clone()).collect()
}

// covers: TOOL-C-012, TOOL-C-013
#[test]
fn tools_of_two_servers_have_different_names() {
    let tools = [("github", "search"), ("files", "search"), ("files", "read")];
    assert_eq!(named(&tools, NameRules::COMMON, Prefix::Always), ["github__search", "files__search", "files__read"]);
    assert_eq!(named(&tools, NameRules::COMMON, Prefix::Colliding), ["github__search", "files__search", "read"]);
    let names = ToolNames::new(
        tools.map(|(server, tool)| (server, String::from(tool))),
        NameRules::COMMON,
        Prefix::Always,
        |_, _| None,
    );
    let found = names.find("files__search").unwrap();
    assert_eq!((found.server, &*found.tool), ("files", "search"));
    assert_eq!(names.find("search"), None);
}

// covers: TOOL-C-012
#[test]
fn named_tool_has_the_definition_of_its_server() {
    let described = |name: &str, about: &str| {
        let mut tool = Tool::new(name);
        tool.description = Some(about.into());
        tool
    };
    let tools = [
        ("github", described("search", "searches code")),
        ("files", described("search", "searches files")),
        ("files", described("search", "is listed twice")),
    ];
    let names = ToolNames::new(tools, NameRules::COMMON, Prefix::Always, |_, _| None);
    let all: Vec<_> = names.iter().map(|tool| (&*tool.tool, tool.definition.description.as_deref().unwrap())).collect();
    assert_eq!(all, [("search", "searches code"), ("search", "searches files")]);
    let found = names.find("files__search").unwrap();
    assert_eq!((&*found.definition.name, found.definition.description.as_deref()), ("search", Some("searches files")));
}

// covers: TOOL-C-012
#[test]
fn names_are_legal_for_each_provider() {
    let tools = [("my server", "größe.de"), ("1st", "a:b"), ("", "")];
    assert_eq!(named(&tools, NameRules::COMMON, Prefix::Always), ["my_server__gr__e_de", "_1st__a_b", "__"]);
    assert_eq!(named(&tools, NameRules::GEMINI, Prefix::Always), ["my_server__gr__e.de", "_1st__a:b", "__"]);
    assert_eq!(named(&tools, NameRules::OPENAI, Prefix::Always)[1], "1st__a_b");
    let long = "t".repeat(200);
    for rules in [NameRules::COMMON, NameRules::OPENAI, NameRules::ANTHROPIC, NameRules::GEMINI] {
        let names = named(&[("s", &long), ("s2", &long)], rules, Prefix::Always);
        assert!(names.iter().all(|name| name.len() == rules.max_len && rules.is_legal(name)), "{names:?}");
        assert_ne!(names[0], names[1]);
    }
}

// covers: TOOL-C-012, TOOL-C-013
#[test]
fn no_tool_can_take_the_name_of_another_one() {
    // The tool of a bad server looks like one of the good server.
    let names = named(&[("a", "b__c"), ("a__b", "c"), ("d", "e")], NameRules::COMMON, Prefix::Always);
    assert!(names[0].starts_with("a__b__c_") && names[1].starts_with("a__b__c_") && names[0] != names[1], "{names:?}");
    // The name with digits can be known before, and taken.
    let again = named(&[("a", "b__c"), ("a__b", "c"), ("", &names[0][2..])], NameRules::COMMON, Prefix::Always);
    assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), 3, "{again:?}");
    // The order does not matter.
    let turned = named(&[("d", "e"), ("a__b", "c"), ("a", "b__c")], NameRules::COMMON, Prefix::Always);
    assert_eq!([&turned[2], &turned[1], &turned[0]], [&names[0], &names[1], &names[2]]);
}

// covers: TOOL-C-012, TOOL-C-013
#[test]
fn no_tool_can_begin_with_the_prefix_of_another_server() {
    let tools = [
        ("github", "search"),
        ("evil", "github__search"),
        ("evil", "github__delete"),
        ("evil", "GitHub__read"),
        ("evil", "evil__x"),
        ("evil", "github_"),
        ("my server", "read"),
        ("evil", "my.server..read"),
        ("1st", "go"),
        ("evil", "1st__go"),
    ];
    let names = named(&tools, NameRules::COMMON, Prefix::Colliding);
    let expected = [
        "search",
        "evil__github__search",
        "evil__github__delete",
        "evil__GitHub__read",
        "evil__x",
        "github_",
        "read",
        "evil__my_server__read",
        "go",
        "evil__1st__go",
    ];
    assert_eq!(names, expected);
    // A server can begin a name with its own prefix, which says the truth, but not with a longer
    // one.
    let names = named(&[("a", "a__b"), ("a", "a__b__c"), ("a__b", "d")], NameRules::COMMON, Prefix::Colliding);
    assert_eq!(names, ["a__b", "a__a__b__c", "d"]);
}

/// A server that is not connected yet has no tools, and its name is reserved.
// covers: TOOL-C-012
#[test]
fn prefix_of_a_server_without_tools_is_not_free() {
    use mcp_proto::model::tools::Tool;
    use mcp_proto::rpc::Object;
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "github", program()).unwrap();
    rig.supervisor.add(rig.now, "evil", program()).unwrap();
    let client = rig.started()[1];
    rig.up(client);
    let tool = Object::new().with("name", "github__search").with("inputSchema", Object::new().with("type", "object"));
    let tools = Listing::Tools([Tool::read(&tool.into()).unwrap()].into());
    rig.supervisor.loaded(rig.now, client, ListKind::Tools, Ok(tools.into()));
    let names = rig.supervisor.tool_names(NameRules::COMMON, Prefix::Colliding);
    assert!(names.find("evil__github__search").is_some_and(|tool| tool.server == "evil"), "{names:?}");
}

// covers: TOOL-C-012
#[test]
fn tool_that_a_server_lists_several_times_has_one_name() {
    let tools = [("a", "x"), ("b", "y"), ("a", "x"), ("a", "y"), ("a", "x")];
    assert_eq!(named(&tools, NameRules::COMMON, Prefix::Always), ["a__x", "b__y", "a__y"]);
    // Only one server has `x`.
    assert_eq!(named(&tools, NameRules::COMMON, Prefix::Colliding), ["x", "b__y", "a__y"]);
    // The application is asked once.
    let mut asked = Vec::new();
    let names = ToolNames::new(
        tools.map(|(server, tool)| (server, String::from(tool))),
        NameRules::COMMON,
        Prefix::Always,
        |server, tool| {
            asked.push(format!("{server} {tool}"));
            (tool == "x").then(|| "mine".into())
        },
    );
    assert_eq!(asked, ["a x", "b y", "a y"]);
    assert_eq!(names.find("mine").map(|found| (found.server, &*found.tool)), Some(("a", "x")));
    // The parts of a pair are not mixed up.
    assert_eq!(named(&[("a", "bc"), ("ab", "c")], NameRules::COMMON, Prefix::Always), ["a__bc", "ab__c"]);
}

// covers: TOOL-C-012
#[test]
fn many_duplicates_of_a_tool_yield_one_name() {
    // Without digits, and with them.
    for tool in ["x".into(), "t".repeat(200)] {
        let tools = vec![("a", &*tool); 20_000];
        for prefix in [Prefix::Always, Prefix::Colliding] {
            assert_eq!(named(&tools, NameRules::COMMON, prefix).len(), 1);
        }
    }
}

// covers: TOOL-C-012
#[test]
fn long_names_are_cut_between_characters() {
    // Characters of two, three and four bytes.
    let more = "é€😀";
    for max_len in 0..=40_usize {
        let rules = NameRules { max_len, more, begins_with_letter: max_len.is_multiple_of(2) };
        for part in ["é", "€", "😀", "é€😀"] {
            let (tool, shorter) = (part.repeat(50), part.repeat(49));
            for prefix in [Prefix::Always, Prefix::Colliding] {
                let names = named(&[("s", &tool), ("é", &tool), ("s", &shorter)], rules, prefix);
                assert!(names.iter().all(|name| rules.is_legal(name)), "{names:?}");
                assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3, "{names:?}");
            }
        }
    }
    // A name is cut no earlier than it has to be.
    let rules = NameRules { more, ..NameRules::COMMON };
    let name = &named(&[("s", &"é".repeat(50))], rules, Prefix::Always)[0];
    assert!(name.starts_with(&format!("s__{}_", "é".repeat(26))) && name.len() == 64, "{name}");
    let name = &named(&[("se", &"é".repeat(50))], rules, Prefix::Always)[0];
    assert!(name.starts_with(&format!("se__{}_", "é".repeat(25))) && name.len() == 63, "{name}");
}

// covers: TOOL-C-012
#[test]
fn added_server_changes_only_names_of_its_own_tools() {
    let before = [("a", "b__c"), ("a", "d")];
    assert_eq!(named(&before, NameRules::COMMON, Prefix::Always), ["a__b__c", "a__d"]);
    let after = [before[0], before[1], ("a__b", "c"), ("a__b", "d")];
    let names = named(&after, NameRules::COMMON, Prefix::Always);
    assert!(names[0].starts_with("a__b__c_") && names[2].starts_with("a__b__c_"), "{names:?}");
    assert_eq!([&*names[1], &*names[3]], ["a__d", "a__b__d"]);
}

// covers: TOOL-C-012
#[test]
fn application_may_decide_on_a_name() {
    let tools = ["one", "two", "three", "four"].map(|tool| ("a", String::from(tool)));
    let names = ToolNames::new(tools, NameRules::COMMON, Prefix::Always, |_, tool| match tool {
        "one" => Some("first".into()),
        "two" => Some("not legal".into()),
        "three" => Some("a__four".into()),
        _ => None,
    });
    let names: Vec<_> = names.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names[..2], ["first", "a__two"]);
    assert!(names[2].starts_with("a__three_") && names[3].starts_with("a__four_"), "{names:?}");
}

proptest! {
    // covers: TOOL-C-012
    #[test]
    fn names_of_any_tools_are_legal_and_different(
        tools in proptest::collection::vec(("[ab_]{0,3}", "[ab_é.]{0,4}|a{60,70}"), 0..20),
        decided in proptest::collection::vec(proptest::option::of("[ab_]{0,4}"), 20),
        colliding in any::<bool>(),
    ) {
        let prefix = if colliding { Prefix::Colliding } else { Prefix::Always };
        let mut decided = decided.into_iter();
        let names = ToolNames::new(tools.clone(), NameRules::COMMON, prefix, |_, _| decided.next().flatten());
        let all: BTreeSet<_> = names.iter().map(|tool| tool.name.clone()).collect();
        let mut seen = BTreeSet::new();
        let given: Vec<_> = tools.iter().filter(|given| seen.insert(*given)).collect();
        prop_assert_eq!((all.len(), names.iter().count()), (given.len(), given.len()));
        for (tool, given) in names.iter().zip(given) {
            prop_assert!(NameRules::COMMON.is_legal(&tool.name), "{}", tool.name);
            prop_assert_eq!((&tool.server, &tool.tool), (&given.0, &given.1));
            prop_assert_eq!(names.find(&tool.name), Some(tool));
        }
    }
}
