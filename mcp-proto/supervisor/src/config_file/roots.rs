//! Finds the list of servers in a configuration file.

use super::dialect::Dialect;
use super::error::{ConfigError, ConfigErrorKind};
use super::reader::Reader;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::rpc::{JsonKind, LocatedMember, LocatedValue};

/// The members of the root that have a meaning in some dialect, in the order of the file.
pub(super) struct Roots<'v>(Vec<LocatedMember<'v>>);

/// The list of servers.
pub(super) struct List<'v> {
    pub(super) dialect: Dialect,
    /// The path of the list.
    pub(super) path: String,
    pub(super) servers: LocatedValue<'v>,
    /// The list of inputs, with its path.
    pub(super) inputs: Option<(String, LocatedValue<'v>)>,
}

/// Returns the root as the list, if the file has nothing else: each member is a server, which has a
/// `command` or an address that is a text. No list of servers has such members, whatever its key.
pub(super) fn flat(dialect: Option<Dialect>, root: LocatedValue<'_>) -> Option<List<'_>> {
    const ADDRESSES: [&str; 4] = ["command", "url", "serverUrl", "httpUrl"];
    let is_server = |value: LocatedValue<'_>| {
        let is_address = |member: LocatedMember<'_>| {
            ADDRESSES.iter().any(|key| member.is(key)) && member.value.kind() == JsonKind::String
        };
        value.kind() == JsonKind::Object && value.members().any(is_address)
    };
    let is_flat = root.kind() == JsonKind::Object
        && root.members().any(|member| is_server(member.value))
        && root.members().all(|member| is_remark(&member) || is_server(member.value));
    let dialect = dialect.unwrap_or(Dialect::McpServers);
    is_flat.then(|| List { dialect, path: String::new(), servers: root, inputs: None })
}

/// Returns whether a member is no server beside others: `$schema`, or a remark such as `_comment`
/// or `//`.
pub(super) fn is_remark(member: &LocatedMember<'_>) -> bool {
    let is_mark = |key: &str| key.starts_with(['$', '_', '/']);
    member.key.as_deref().is_some_and(is_mark) && member.value.kind() == JsonKind::String
}

impl<'v> Roots<'v> {
    pub(super) fn read(reader: &mut Reader<'_>, root: LocatedValue<'v>) -> Result<Self, ConfigError> {
        const ROOTS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp", "inputs"];
        let known = reader.known(root, "", |key| ROOTS.contains(&key))?;
        let mut members: Vec<_> = known.into_values().collect();
        members.sort_by_key(|member| member.at);
        Ok(Self(members))
    }

    fn take(&mut self, key: &str) -> Option<LocatedMember<'v>> {
        let index = self.0.iter().position(|member| member.key.as_deref() == Some(key))?;
        Some(self.0.remove(index))
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|member| member.key.as_deref() == Some(key))
    }

    /// Finds the list of servers. The other members have no effect.
    pub(super) fn list(
        mut self,
        reader: &mut Reader<'_>,
        dialect: Option<Dialect>,
        root: LocatedValue<'v>,
    ) -> Result<List<'v>, ConfigError> {
        const LISTS: [(&str, Dialect); 3] =
            [("mcpServers", Dialect::McpServers), ("servers", Dialect::VsCode), ("context_servers", Dialect::Zed)];
        if dialect.is_none() {
            let mut lists = self.0.iter().filter(|member| LISTS.iter().any(|(key, _)| member.is(key)));
            if let (Some(_), Some(second)) = (lists.next(), lists.next()) {
                let names = LISTS.map(|(key, _)| key).map(|key| self.has(key).then_some(key));
                let mut names = names.into_iter().flatten();
                let both = [names.next(), names.next()].map(Option::unwrap_or_default);
                return Err(reader.error(second.at, "", ConfigErrorKind::Conflict(both[0], both[1])));
            }
        }
        let is_wanted = |found: Dialect| match dialect {
            Some(Dialect::GeminiCli) => found == Dialect::McpServers,
            dialect => dialect.is_none_or(|dialect| dialect == found),
        };
        let flat = LISTS.into_iter().find(|(key, found)| is_wanted(*found) && self.has(key));
        let mut list = match flat.and_then(|(key, found)| Some((self.take(key)?, key, found))) {
            Some((member, key, found)) => {
                let dialect = dialect.unwrap_or(found);
                List { dialect, path: key.into(), servers: member.value, inputs: None }
            }
            None => {
                let missing = || {
                    let keys = dialect.map_or("`mcpServers`, `servers`, `context_servers` or `mcp`", Dialect::roots);
                    reader.error(root.at(), "", ConfigErrorKind::NoServers(keys))
                };
                let is_nested = is_wanted(Dialect::VsCode) || is_wanted(Dialect::OpenCode);
                let member = self.take("mcp").filter(|_| is_nested).ok_or_else(missing)?;
                nested(reader, dialect, member.value)?
            }
        };
        if list.dialect == Dialect::VsCode && list.inputs.is_none() && list.path == "servers" {
            list.inputs = self.take("inputs").map(|member| ("inputs".into(), member.value));
        }
        self.0.iter().for_each(|member| reader.ignore(member, ""));
        Ok(list)
    }
}

/// Finds the list of servers in the member `mcp`: opencode, or older settings of VS Code.
fn nested<'v>(
    reader: &mut Reader<'_>,
    dialect: Option<Dialect>,
    mcp: LocatedValue<'v>,
) -> Result<List<'v>, ConfigError> {
    reader.check(mcp, "mcp", JsonKind::Object, "an object")?;
    // A server of opencode that is called `servers` has a member that is no object, such as its
    // type.
    let is_list = |list: LocatedValue<'_>| {
        list.kind() == JsonKind::Object && list.members().all(|member| member.value.kind() == JsonKind::Object)
    };
    let list = mcp.members().find(|member| member.is("servers") && is_list(member.value));
    let dialect = match (dialect, &list) {
        (Some(dialect), _) => dialect,
        (None, Some(list)) if !list.value.members().any(|server| is_of_open_code(server.value)) => Dialect::VsCode,
        (None, _) => Dialect::OpenCode,
    };
    if dialect == Dialect::OpenCode && list.is_none() {
        return Ok(List { dialect, path: "mcp".into(), servers: mcp, inputs: None });
    }
    let has_inputs = dialect == Dialect::VsCode;
    let mut members = reader.known(mcp, "mcp", |key| key == "servers" || has_inputs && key == "inputs")?;
    let Some(servers) = members.remove("servers") else {
        return Err(reader.error(mcp.at(), "mcp", ConfigErrorKind::NoServers("`servers`")));
    };
    let inputs = members.remove("inputs").map(|member| ("mcp.inputs".into(), member.value));
    Ok(List { dialect, path: "mcp.servers".into(), servers: servers.value, inputs })
}

/// Returns whether a server has a type that only opencode knows.
fn is_of_open_code(server: LocatedValue<'_>) -> bool {
    let is_type = |name: &str| matches!(name, "local" | "remote");
    server.members().any(|member| member.is("type") && member.value.text().is_some_and(|name| is_type(&name)))
}
