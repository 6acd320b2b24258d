//! Names for the tools of several servers (2026-07-28 tools, tool names): a language model gets one
//! list, in which each name is one tool, and is legal for its provider.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::model::tools::Tool;
use mcp_proto::seed::Seed;

/// The rules of a provider of language models for the names of tools.
///
/// The constants are those that the providers document. Letters, digits, `_` and `-` of ASCII are
/// legal for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NameRules {
    /// Maximum length, in characters, at least 16.
    pub max_len: usize,
    /// The characters that are legal besides letters, digits, `_` and `-`.
    pub more: &'static str,
    /// Whether a name begins with a letter or `_`.
    pub begins_with_letter: bool,
}

impl NameRules {
    /// The names that are legal for all of these providers.
    pub const COMMON: Self = Self { max_len: 64, more: "", begins_with_letter: true };
    /// OpenAI.
    pub const OPENAI: Self = Self { begins_with_letter: false, ..Self::COMMON };
    /// Anthropic.
    pub const ANTHROPIC: Self = Self { max_len: 128, begins_with_letter: false, ..Self::COMMON };
    /// Gemini.
    pub const GEMINI: Self = Self { more: ".:", ..Self::COMMON };

    fn max(self) -> usize {
        self.max_len.max(16)
    }

    fn allows(self, character: char) -> bool {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '-') || self.more.contains(character)
    }

    /// Returns whether a name is legal.
    pub fn is_legal(self, name: &str) -> bool {
        let first = name.chars().next();
        first.is_some_and(|first| !self.begins_with_letter || first.is_ascii_alphabetic() || first == '_')
            && name.len() <= self.max()
            && name.chars().all(|character| self.allows(character))
    }

    /// Returns a name with legal characters, of any length.
    fn legal(self, name: &str) -> String {
        let mut legal: String = name.chars().map(|one| if self.allows(one) { one } else { '_' }).collect();
        let first = legal.chars().next();
        if first.is_none_or(|first| self.begins_with_letter && !first.is_ascii_alphabetic() && first != '_') {
            legal.insert(0, '_');
        }
        legal
    }
}

/// Which names begin with the key of their server: `github__search`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// All: a server that is added changes the name of a tool of another one only if one of its own
    /// tools would have that name too. Tool `b__c` of server `a` and tool `c` of server `a__b` are
    /// both `a__b__c`, so that both names end with digits.
    Always,
    /// Those that several servers have, and those that begin with the prefix of another server: no
    /// server can name a tool `github__search` and pass for the server `github`.
    Colliding,
}

/// A tool of a server, and its name for a language model.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct NamedTool<K> {
    /// The name for the model.
    pub name: String,
    /// The server.
    pub server: K,
    /// The name of the tool on the server.
    pub tool: String,
    /// The tool as the server lists it, with its description and its schemas.
    pub definition: Tool,
}

/// Names for the tools of several servers. Each one is legal for a provider, and that of one tool.
///
/// The prefix is the key that the application has given to the server: servers can choose the names
/// that they report themselves, so that one could pass for another. A character that is not legal
/// becomes `_`. A name that is too long, or that several tools would have, ends with digits that
/// depend on server and tool only. A tool that a server lists several times has one name.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolNames<K> {
    tools: Vec<NamedTool<K>>,
    places: BTreeMap<String, usize>,
}

impl<K: AsRef<str>> ToolNames<K> {
    /// Names tools, each given with its server. A second tool of the same name and server, with the
    /// text of the server as its identity, is left out. `decide` may give a name of its own. It
    /// is used if it is legal, and no other tool has it.
    pub fn new(
        tools: impl IntoIterator<Item = (K, impl Into<Tool>)>,
        rules: NameRules,
        prefix: Prefix,
        decide: impl FnMut(&K, &str) -> Option<String>,
    ) -> Self {
        Self::among(&[], tools, rules, prefix, decide)
    }

    /// As [`new`](Self::new), for the tools of some of these servers: no tool begins with the
    /// prefix of one whose own tools are not known.
    pub(super) fn among(
        servers: &[&str],
        tools: impl IntoIterator<Item = (K, impl Into<Tool>)>,
        rules: NameRules,
        prefix: Prefix,
        mut decide: impl FnMut(&K, &str) -> Option<String>,
    ) -> Self {
        let tools = tools.into_iter().map(|(server, tool)| (server, tool.into()));
        let listed = without_duplicates(tools.collect());
        let tools: Vec<(&K, &str)> = listed.iter().map(|(server, tool)| (server, &*tool.name)).collect();
        let servers = servers.iter().copied().chain(tools.iter().map(|(server, _)| server.as_ref()));
        let prefixes: BTreeMap<&str, String> = servers.map(|server| (server, prefix_of(server, rules))).collect();
        let is_foreign = |server: &str, name: &str| {
            let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|name| name.eq_ignore_ascii_case(prefix));
            prefixes.iter().any(|(other, prefix)| *other != server && begins(prefix))
        };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        tools.iter().for_each(|(_, tool)| *counts.entry(tool).or_default() += 1);
        let usual: Vec<_> = tools
            .iter()
            .map(|(server, tool)| match prefix {
                Prefix::Colliding if counts.get(&**tool) == Some(&1) => {
                    Some(rules.legal(tool)).filter(|name| !is_foreign(server.as_ref(), name))
                }
                Prefix::Colliding | Prefix::Always => None,
            })
            .zip(&tools)
            .map(|(name, (server, tool))| {
                name.unwrap_or_else(|| rules.legal(&format!("{}{SEPARATOR}{tool}", server.as_ref())))
            })
            .collect();
        let decided: Vec<_> =
            tools.iter().map(|(server, tool)| decide(server, tool).filter(|name| rules.is_legal(name))).collect();
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for (usual, decided) in usual.iter().zip(&decided) {
            *uses.entry(decided.as_deref().unwrap_or(usual)).or_default() += 1;
        }
        let is_free = |name: &str| uses.get(name) == Some(&1) && name.len() <= rules.max();
        let mut taken = BTreeSet::new();
        let names: Vec<_> = usual
            .iter()
            .zip(&decided)
            .zip(&tools)
            .map(|((usual, decided), (server, tool))| match decided {
                Some(name) if is_free(name) => name.clone(),
                None if is_free(usual) => usual.clone(),
                _ => distinct(usual, (server.as_ref(), tool), rules, |name| {
                    uses.contains_key(name) || !taken.insert(String::from(name))
                }),
            })
            .collect();
        let places = names.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        let named = names.into_iter().zip(listed);
        let tools = named
            .map(|(name, (server, definition))| NamedTool { name, server, tool: definition.name.clone(), definition })
            .collect();
        Self { tools, places }
    }

    /// Returns the tool of a name.
    pub fn find(&self, name: &str) -> Option<&NamedTool<K>> {
        self.places.get(name).and_then(|place| self.tools.get(*place))
    }

    /// Returns all tools, in the order in which they were given first.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTool<K>> {
        self.tools.iter()
    }
}

/// Returns what the names of the tools of a server begin with.
fn prefix_of(server: &str, rules: NameRules) -> String {
    rules.legal(&format!("{server}{SEPARATOR}"))
}

/// Returns the tools without those that were given before. `distinct` has the same digits for all
/// duplicates in each round, so that n of them would cost n² / 2 hashes.
fn without_duplicates<K: AsRef<str>>(tools: Vec<(K, Tool)>) -> Vec<(K, Tool)> {
    let mut seen = BTreeSet::new();
    let first: Vec<_> = tools.iter().map(|(server, tool)| seen.insert((server.as_ref(), &*tool.name))).collect();
    tools.into_iter().zip(first).filter_map(|(tool, first)| first.then_some(tool)).collect()
}

/// Returns a name that ends with eight digits of a hash of the server and the tool, or with others
/// if that is taken.
fn distinct(
    name: &str,
    (server, tool): (&str, &str),
    rules: NameRules,
    mut is_taken: impl FnMut(&str) -> bool,
) -> String {
    let start = start(name, rules.max() - DIGITS - 1);
    let mut round = 0_u32;
    loop {
        let [a, b, c, d, ..] = Seed::new([0; 32]).derive(&format!("{round}\0{}\0{server}\0{tool}", server.len()));
        let distinct = format!("{start}_{:08x}", u32::from_be_bytes([a, b, c, d]));
        if !is_taken(&distinct) {
            return distinct;
        }
        round += 1;
    }
}

/// Returns the longest start of a text that has at most `max` bytes and ends between characters:
/// `NameRules::more` can have some of several bytes.
fn start(text: &str, max: usize) -> &str {
    // `str::floor_char_boundary` is newer than the minimum Rust version.
    (0..=max.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// What is between the server and the tool in a name.
const SEPARATOR: &str = "__";

/// Digits at the end of a name.
const DIGITS: usize = 8;
