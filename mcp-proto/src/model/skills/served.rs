//! A skill that a server offers.

use super::{
    MAX_BYTES, MAX_FILES, SKILL_MD, Skill, SkillFile, SkillResources, encode, front_matter, hash, is_file_name, name_in,
};
use crate::auth::Scopes;
use crate::model::resources::{Resource, ResourceContents};
use crate::peer_text::Visible;
use crate::rpc::{JsonValue, Object};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Keys of the member `metadata` of a front matter that only extensions of MCP may define.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Maximum number of characters of a description (Agent Skills).
const MAX_DESCRIPTION: usize = 1024;

/// A skill that a server offers, with its files in memory. Add it to a router with
/// [`Router::skill`](crate::Router::skill).
#[derive(Clone, PartialEq, Debug)]
pub struct ServedSkill {
    pub(crate) entry: Skill,
    pub(crate) files: Vec<ServedFile>,
}

/// A file of a skill, as it is sent.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ServedFile {
    pub(crate) listed: SkillFile,
    pub(crate) resource: Resource,
    pub(crate) contents: ResourceContents,
}

impl Skill {
    /// Creates a skill that a server offers, of these files: the path of each below the directory
    /// of the skill, such as `references/FORMS.md`, and its bytes. `path` is the place of the
    /// directory among the skills of the server, such as `acme/billing/refunds`, or its URI in
    /// another scheme than `skill`.
    ///
    /// A file is sent as text if it is UTF-8 without NUL, and otherwise as bytes. Its media type
    /// follows from the end of its name.
    ///
    /// ```
    /// use mcp_proto::Router;
    /// use mcp_proto::skills::Skill;
    ///
    /// let text = "---\nname: refunds\ndescription: Refunds money.\n---\nAsk first.\n";
    /// let skill = Skill::from_files("billing/refunds", [("SKILL.md", text)])?;
    /// assert_eq!(skill.entry().uri, "skill://billing/refunds/SKILL.md");
    /// let router = Router::new("shop", "1.0").skill(skill);
    /// # drop(router);
    /// # Ok::<(), mcp_proto::skills::BadSkill>(())
    /// ```
    ///
    /// # Errors
    /// [`BadSkill`]. A file `SKILL.md` begins with [front matter](super::front_matter) with a
    /// `name` and a `description`; the name is the last segment of the path, and 1 to 64 lower-case
    /// letters, digits and single inner hyphens; the description has 1 to 1024 characters. No key
    /// of `metadata` begins with `io.modelcontextprotocol/`. Paths of files are relative, and have
    /// no segment that is empty, `.` or `..`, no `\` and no NUL; none occurs twice, and none lies
    /// below another. There are at most 512 files with 16 MiB.
    pub fn from_files<N: AsRef<str>, B: AsRef<[u8]>>(
        path: &str,
        files: impl IntoIterator<Item = (N, B)>,
    ) -> Result<ServedSkill, BadSkill> {
        let files = files.into_iter().map(|(name, bytes)| (name.as_ref().to_string(), bytes.as_ref().to_vec()));
        ServedSkill::new(path, files.take(MAX_FILES + 1).collect()).map_err(|why| BadSkill { path: path.into(), why })
    }

    /// Creates a skill whose files are made when they are read, with the front matter of its
    /// `SKILL.md`. Clients may refuse it, since they cannot check anything. Its files are resources
    /// and templates that the application adds: `skill://PATH/SKILL.md` at least.
    ///
    /// # Errors
    /// [`BadSkill`] for the path and the front matter, as for [`from_files`](Self::from_files).
    pub fn dynamic(path: &str, frontmatter: Object) -> Result<ServedSkill, BadSkill> {
        let root = root_of(path);
        let checked = root.and_then(|root| check_front_matter(&root, &frontmatter).map(|()| root));
        let root = checked.map_err(|why| BadSkill { path: path.into(), why })?;
        let entry = Self::new(format!("{root}/{SKILL_MD}"), frontmatter, SkillResources::Dynamic);
        Ok(ServedSkill { entry, files: Vec::new() })
    }
}

impl ServedSkill {
    fn new(path: &str, files: Vec<(String, Vec<u8>)>) -> Result<Self, String> {
        let root = root_of(path)?;
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Err(format!("it has more than {MAX_FILES} files or {MAX_BYTES} bytes"));
        }
        check_names(files.iter().map(|(name, _)| name.as_str()))?;
        let main = files.iter().find(|(name, _)| name == SKILL_MD).ok_or("it has no file `SKILL.md`")?;
        let frontmatter = front_matter::read(&main.1).map_err(|why| format!("`SKILL.md`: {why}"))?;
        check_front_matter(&root, &frontmatter)?;
        let entry = Skill::new(format!("{root}/{SKILL_MD}"), frontmatter, SkillResources::Dynamic);
        let sorted: BTreeMap<String, Vec<u8>> = files.into_iter().collect();
        let files: Vec<ServedFile> = sorted.iter().map(|(name, bytes)| file(&entry, &root, name, bytes)).collect();
        let listed = files.iter().map(|file| file.listed.clone()).collect();
        Ok(Self { entry: Skill { resources: SkillResources::Files(listed), ..entry }, files })
    }

    /// Returns the entry that clients receive.
    pub const fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Leaves it out of `skills/list` and `resources/list`. Clients that know its URI find it with
    /// `skills/get`, and read it.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.entry.hidden = true;
        self.files.iter_mut().for_each(|file| file.resource.hidden = true);
        self
    }

    /// Sets the scopes of OAuth that a client needs to use it: see
    /// [`Resource::scopes`](crate::Resource::scopes).
    ///
    /// # Panics
    /// If one is no scope token (RFC 6749 section 3.3), or they are more than 64.
    #[must_use]
    pub fn scopes<'a>(mut self, scopes: impl IntoIterator<Item = &'a str>) -> Self {
        self.entry.scopes = Scopes::demanded(scopes);
        self.files.iter_mut().for_each(|file| file.resource.scopes = self.entry.scopes.clone());
        self
    }

    /// Sets a member of the `_meta` of its entry. Keys of the extension begin with
    /// `io.modelcontextprotocol.skills/`. Not sent before 2025-06-18.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        self.entry.meta.set(key, value);
        self
    }
}

/// Returns the URI of the directory of a skill.
fn root_of(path: &str) -> Result<String, String> {
    let root = if path.contains("://") { path.to_string() } else { format!("skill://{path}") };
    name_in(&root)?;
    let authority = root.strip_prefix("skill://").and_then(|path| path.split('/').next());
    match authority.is_none_or(|authority| !authority.is_empty() && !authority.contains(['@', ':'])) {
        true => Ok(root),
        false => Err("the first segment of its path is no registered name (RFC 3986)".into()),
    }
}

fn check_front_matter(root: &str, frontmatter: &Object) -> Result<(), String> {
    let text = |key: &str| {
        let text = frontmatter.str(key).filter(|text| !text.trim().is_empty());
        text.map(|text| text.into_owned()).ok_or_else(|| format!("its front matter has no text `{key}`"))
    };
    let (name, description) = (text("name")?, text("description")?);
    if name_in(root)? != name {
        return Err(format!("the last segment of its path is not its name `{name}`"));
    }
    if description.chars().count() > MAX_DESCRIPTION {
        return Err(format!("its description has more than {MAX_DESCRIPTION} characters"));
    }
    let metadata = frontmatter.optional_object("metadata").map_err(|why| why.to_string())?.unwrap_or_default();
    match metadata.iter().find(|(key, _)| key.starts_with(RESERVED)) {
        None => Ok(()),
        Some((key, _)) => Err(format!("the key `{key}` of its `metadata` is reserved")),
    }
}

/// Checks the paths of files.
fn check_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names.clone() {
        if !name.split('/').all(is_file_name) {
            return Err(format!("the path `{name}` does not stay below the directory of the skill"));
        }
        if !known.insert(name) {
            return Err(format!("the path `{name}` occurs twice"));
        }
    }
    for name in names {
        let above = name.match_indices('/').filter_map(|(end, _)| name.get(..end));
        if let Some(file) = above.into_iter().find(|above| known.contains(above)) {
            return Err(format!("the path `{name}` lies below the file `{file}`"));
        }
    }
    Ok(())
}

/// Creates a file as it is sent.
fn file(skill: &Skill, root: &str, path: &str, bytes: &[u8]) -> ServedFile {
    let uri = format!("{root}/{}", encode(path));
    let text = core::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let mime = mime_type(path, text.is_some());
    let contents = match text {
        Some(text) => ResourceContents::text(&uri, text),
        None => ResourceContents::bytes(&uri, bytes),
    };
    let is_main = uri == skill.uri;
    let name = if is_main { skill.name() } else { path.rsplit('/').next().unwrap_or(path).to_owned() };
    let resource = Resource::new(&uri).name(name).mime(mime).size(bytes.len() as u64);
    let resource = match is_main {
        true => resource.describe(skill.description()),
        // The entry of the skill lists it, and the skill says when to read it.
        false => resource.hidden(),
    };
    let listed = SkillFile { uri, digest: hash(bytes), size: bytes.len() as u64 };
    ServedFile { listed, resource, contents: contents.mime(mime) }
}

/// Returns the media type of a file by the end of its name.
fn mime_type(path: &str, is_text: bool) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    match (end.as_str(), is_text) {
        ("md" | "markdown", true) => "text/markdown",
        ("html" | "htm", true) => "text/html",
        ("css", true) => "text/css",
        ("csv", true) => "text/csv",
        ("js" | "mjs" | "cjs", true) => "text/javascript",
        ("py", true) => "text/x-python",
        ("sh" | "bash", true) => "text/x-shellscript",
        ("json", true) => "application/json",
        ("yaml" | "yml", true) => "application/yaml",
        ("toml", true) => "application/toml",
        ("xml", true) => "application/xml",
        ("svg", true) => "image/svg+xml",
        ("png", false) => "image/png",
        ("jpg" | "jpeg", false) => "image/jpeg",
        ("gif", false) => "image/gif",
        ("webp", false) => "image/webp",
        ("pdf", _) => "application/pdf",
        ("zip", false) => "application/zip",
        ("wasm", false) => "application/wasm",
        (_, true) => "text/plain",
        (_, false) => "application/octet-stream",
    }
}

/// A skill that no server may offer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadSkill {
    /// Its path.
    pub path: String,
    /// The violated rule, for people.
    pub why: String,
}

impl fmt::Display for BadSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the skill `{}` cannot be offered: {}", Visible(&self.path), Visible(&self.why))
    }
}

impl core::error::Error for BadSkill {}
