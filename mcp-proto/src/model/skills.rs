//! Skills: directories of files that instruct an agent, served as resources (extension
//! `io.modelcontextprotocol/skills`). `skills/list`, `skills/get` and `resources/directory/read`.
//!
//! A client reads the files of a skill through [`Held`] only, which checks each of them. A server
//! offers a [`ServedSkill`]. [`front_matter`] says how YAML is read.

pub mod front_matter;
mod held;
mod served;

pub use held::{Held, SkillError, SkillKey, SkillReader};
pub(crate) use served::ServedFile;
pub use served::{BadSkill, ServedSkill};

use super::lifecycle::{CacheHints, ServerInfo, meta};
use super::page::{List, ListElement, Page};
use super::resources::Resource;
use super::skipped::SkippedList;
use super::uri_template::{decode, is_plain_segment, is_uri};
use crate::auth::Scopes;
use crate::call::{Call, Method, PagedMethod, RawResult};
use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The identifier of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Number of files of a skill that every client accepts, and that no skill exceeds here.
pub const MAX_FILES: usize = 512;

/// Bytes of all files of a skill that every client accepts, and that no skill exceeds here: 16 MiB.
pub const MAX_BYTES: u64 = 16 << 20;

/// The name of the file that makes a directory a skill.
const SKILL_MD: &str = "SKILL.md";

/// The media type of a directory.
pub(crate) const DIRECTORY: &str = "inode/directory";

/// Creates a call of `skills/list`, which returns one page. [`Pages`](crate::Pages) fetches all of
/// them. A list may lack skills that the server has: [`get`] finds them by their URI.
///
/// # Errors
/// [`SkillError::Undeclared`] if the server did not declare the extension: then the method must not
/// be sent (extension skills, capability negotiation).
pub fn list(server: &ServerInfo) -> Result<Call<List<Skill>>, SkillError> {
    declared(server).map(|_| List::call())
}

/// Creates a call of `skills/get`, which returns the entry of the skill whose `SKILL.md` has this
/// URI. The server responds with the error `-32602` if it has no such skill.
///
/// # Errors
/// [`SkillError::Undeclared`], as for [`list`].
pub fn get(server: &ServerInfo, uri: &str) -> Result<Call<GetSkill>, SkillError> {
    declared(server).map(|_| get_unchecked(uri))
}

fn get_unchecked(uri: &str) -> Call<GetSkill> {
    Call::new("skills/get", Ok(Object::new().with("uri", uri))).repeatable()
}

/// Creates a call of `resources/directory/read`, which returns the direct children of a directory:
/// one page of them. It shows what the server has now. It adds nothing to what may be read of a
/// skill, which its entry lists.
///
/// # Errors
/// [`SkillError::Undeclared`] if the server did not declare the extension with `directoryRead`.
pub fn directory(server: &ServerInfo, uri: &str) -> Result<Call<ReadDirectory>, SkillError> {
    match declared(server)?.optional("directoryRead") {
        Ok(Some(true)) => Ok(Call::new(ReadDirectory::METHOD, Ok(Object::new().with("uri", uri))).repeatable()),
        Ok(_) | Err(_) => Err(SkillError::Undeclared),
    }
}

/// Returns the settings with which a server declared the extension.
fn declared(server: &ServerInfo) -> Result<Object, SkillError> {
    server.capabilities.extensions.get(EXTENSION).ok_or(SkillError::Undeclared)
}

/// The method `skills/get`.
#[derive(Clone, Copy, Debug)]
pub struct GetSkill;

impl Method for GetSkill {
    type Output = GetSkillResult;

    fn decode(result: RawResult) -> Result<GetSkillResult, DecodeError> {
        let object = Object::read(&result.json)?;
        let skill = object.get("skill").ok_or_else(|| DecodeError::new("`skill` is missing"))?;
        Ok(GetSkillResult { skill: Skill::read(&skill)?, cache: CacheHints::read(&object) })
    }
}

/// The result of `skills/get`.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The entry of the skill, as it is now.
    pub skill: Skill,
    /// How long it may be cached. Stale at once if the server did not specify it.
    pub cache: CacheHints,
}

/// The method `resources/directory/read`.
#[derive(Clone, Copy, Debug)]
pub struct ReadDirectory;

impl ReadDirectory {
    const METHOD: &'static str = "resources/directory/read";
}

impl Method for ReadDirectory {
    type Output = Page<Resource>;

    fn decode(result: RawResult) -> Result<Page<Resource>, DecodeError> {
        List::<Resource>::decode(result)
    }
}

impl PagedMethod for ReadDirectory {
    type Element = Resource;

    fn page(output: Page<Resource>) -> (Vec<Resource>, Option<String>) {
        List::<Resource>::page(output)
    }

    fn skipped(output: &Page<Resource>) -> Option<&SkippedList> {
        List::<Resource>::skipped(output)
    }
}

/// The entry of a skill. Its members come from the server: show them with
/// [`escaped`](crate::error::escaped), and the model where they come from. Never grant what the
/// front matter asks for, such as `allowed-tools`, without the user.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of its `SKILL.md`. It identifies the skill only together with the server: see
    /// [`SkillKey`]. Never look its authority up in a network.
    pub uri: String,
    /// The front matter of its `SKILL.md` as JSON, with every field. `name` and `description` are
    /// texts.
    pub frontmatter: Object,
    /// Its files.
    pub resources: SkillResources,
    /// Its `_meta`.
    pub meta: Object,
    /// The scopes that a client needs to use it. Never sent, and empty if a server describes it.
    pub scopes: Scopes,
    /// Whether `skills/list` leaves it out. Never sent, and false if a server describes it.
    pub hidden: bool,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

/// The files of a skill (`resources`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkillResources {
    /// All of them, `SKILL.md` and the files of nested skills included.
    Files(Vec<SkillFile>),
    /// They are made when they are read, so that nothing can be checked.
    Dynamic,
}

/// A file of a skill.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SkillFile {
    /// Its URI.
    pub uri: String,
    /// The SHA-256 of its bytes.
    pub digest: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
}

impl Skill {
    const KEYS: [&str; 4] = ["uri", "frontmatter", "resources", meta::META];

    fn new(uri: String, frontmatter: Object, resources: SkillResources) -> Self {
        Self {
            uri,
            frontmatter,
            resources,
            meta: Object::new(),
            scopes: Scopes::new(),
            hidden: false,
            other: Object::new(),
        }
    }

    /// Returns its name: a label for people and models, that several skills may have.
    pub fn name(&self) -> String {
        self.text("name")
    }

    /// Returns what it is for.
    pub fn description(&self) -> String {
        self.text("description")
    }

    fn text(&self, key: &str) -> String {
        self.frontmatter.str(key).map(|text| text.into_owned()).unwrap_or_default()
    }

    /// Returns its files. Empty if it is dynamic.
    pub fn files(&self) -> &[SkillFile] {
        match &self.resources {
            SkillResources::Files(files) => files,
            SkillResources::Dynamic => &[],
        }
    }

    /// Returns the URI of its directory, without a slash at its end. `None` if its URI is not that
    /// of a `SKILL.md`.
    pub fn root(&self) -> Option<&str> {
        self.uri.strip_suffix(SKILL_MD)?.strip_suffix('/')
    }
}

impl ListElement for Skill {
    const METHOD: &'static str = "skills/list";
    const MEMBER: &'static str = "skills";

    fn key(&self) -> &str {
        &self.uri
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let frontmatter = object.object("frontmatter")?;
        for key in ["name", "description"] {
            frontmatter.required_str(key).map_err(|why| why.within("frontmatter"))?;
        }
        let resources = SkillResources::read(&object)?;
        Ok(Self {
            meta: object.optional_object(meta::META)?.unwrap_or_default(),
            other: object.clone().without(&Self::KEYS),
            ..Self::new(object.required("uri")?, frontmatter, resources)
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let object = Object::new().with("uri", self.uri.as_str()).with("frontmatter", &self.frontmatter);
        let mut object = match &self.resources {
            SkillResources::Files(files) => {
                object.with("resources", files.iter().map(SkillFile::write).collect::<Vec<_>>())
            }
            SkillResources::Dynamic => object.with("resources", "dynamic"),
        };
        meta::add(&self.meta, version, &mut object);
        object.with_all(&self.other)
    }
}

impl SkillResources {
    fn read(entry: &Object) -> Result<Self, DecodeError> {
        match entry.kind("resources") {
            Some(JsonKind::Array) => {
                let files = entry.array("resources")?;
                let files = files.iter().map(SkillFile::read).collect::<Result<_, _>>();
                Ok(Self::Files(files.map_err(|why| why.within("resources"))?))
            }
            Some(JsonKind::String) if entry.str("resources").as_deref() == Some("dynamic") => Ok(Self::Dynamic),
            _ => Err(DecodeError::new("`resources`: expected an array or \"dynamic\"")),
        }
    }
}

impl SkillFile {
    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let digest = read_digest(&object.required_str("digest")?)
            .ok_or_else(|| DecodeError::new("`digest`: expected `sha256:` and 64 lower-case hexadecimal digits"))?;
        Ok(Self { uri: object.required("uri")?, digest, size: object.required("size")? })
    }

    fn write(&self) -> Object {
        let Self { uri, digest, size } = self;
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Object::new().with("uri", uri.as_str()).with("digest", format!("sha256:{hex}")).with("size", *size)
    }
}

/// Reads `sha256:` and 64 lower-case hexadecimal digits.
fn read_digest(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect();
    bytes.filter(|_| rest.is_empty())?.try_into().ok()
}

/// Returns whether this may name a skill: 1 to 64 lower-case letters, digits and single inner
/// hyphens.
fn is_name(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.len() <= 64 && name.split('-').all(is_word)
}

/// Checks the URI of the directory of a skill, and returns its last segment: the name of the skill.
fn name_in(root: &str) -> Result<&str, &'static str> {
    if root.contains(['?', '#']) || !is_uri(root) {
        return Err("it is not a URI (RFC 3986) without query and fragment");
    }
    let path = root.split_once(':').map_or("", |(_, path)| path);
    let path = path.strip_prefix("//").unwrap_or(path);
    // An authority may be absent or empty.
    let path = path.strip_prefix('/').unwrap_or(path);
    if !path.split('/').all(is_plain) {
        return Err("a segment of its path is empty, `.` or `..`, or hides a separator or NUL");
    }
    path.rsplit('/').next().filter(|name| is_name(name)).ok_or("the segment before `SKILL.md` is no name of a skill")
}

/// Returns the path of a file below the directory of a skill, decoded.
fn path_in(root: &str, uri: &str) -> Result<String, &'static str> {
    let path = uri.strip_prefix(root).and_then(|path| path.strip_prefix('/'));
    let path = path.ok_or("it lies outside of the directory of the skill")?;
    if path.contains(['?', '#']) || !is_uri(uri) {
        return Err("it is not a URI (RFC 3986) without query and fragment");
    }
    match path.split('/').all(is_plain) {
        true => decode(path).ok_or("its path is not UTF-8"),
        false => Err("a segment of its path is empty, `.` or `..`, or hides a separator or NUL"),
    }
}

/// Returns whether a segment of a path, decoded once, names a file or a directory and nothing else.
fn is_plain(segment: &str) -> bool {
    decode(segment).is_some_and(|name| is_file_name(&name))
}

/// Returns whether this can be the name of a file in every system: not of a drive either.
fn is_file_name(name: &str) -> bool {
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    !name.is_empty() && !has_drive && is_plain_segment(name)
}

/// Encodes a path for a URI.
fn encode(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=@/".contains(&byte) => uri.push(byte.into()),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the hash of bytes.
fn hash(bytes: &[u8]) -> [u8; 32] {
    hmac_sha256::Hash::hash(bytes)
}

/// Returns the direct child of a directory that is or contains what has this URI, and whether that
/// child is a directory itself. `None`: the directory does not contain it. The URI of a directory
/// has no slash at its end.
pub(crate) fn child_of<'a>(directory: &str, uri: &'a str) -> Option<(&'a str, bool)> {
    let is_directory = !directory.ends_with('/');
    let path = uri.strip_prefix(directory).filter(|_| is_directory)?.strip_prefix('/')?;
    let name = path.split('/').next().filter(|name| !name.is_empty())?;
    let end = uri.len() - path.len() + name.len();
    Some((uri.get(..end)?, name.len() < path.len()))
}

/// Returns the name of a directory, which is the last segment of its URI.
pub(crate) fn directory_name(uri: &str) -> String {
    let name = uri.rsplit('/').next().unwrap_or_default();
    decode(name).unwrap_or_else(|| name.to_string())
}

#[cfg(test)]
mod tests;
