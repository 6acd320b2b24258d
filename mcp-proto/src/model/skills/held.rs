//! A skill that a client holds: what it may read of it, and the check of what it reads.

use super::{
    GetSkill, GetSkillResult, MAX_BYTES, MAX_FILES, Skill, SkillFile, SkillResources, front_matter, get_unchecked,
    hash, name_in, path_in,
};
use crate::call::Call;
use crate::error::CallError;
use crate::model::resources::{self, Read, ReadResult};
use crate::peer_text::Visible;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// What identifies a skill: the server that has it, and its URI there. Keep skills, approvals and
/// caches under it, never under the URI or the name alone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SkillKey {
    /// The name that the host gave to the server, never the one that the server has for itself.
    pub server: String,
    /// The URI of its `SKILL.md`.
    pub uri: String,
}

/// A skill that a client holds while it acts on it (extension skills, the acting window and the
/// held entry). It reads nothing ahead, reads only files that the entry lists, and returns only
/// bytes that match the entry.
///
/// ```no_run
/// # fn f<C: mcp_proto::skills::SkillReader>(client: &C, entry: mcp_proto::skills::Skill)
/// # -> Result<(), mcp_proto::skills::SkillError> {
/// use mcp_proto::skills::Held;
///
/// // `docs` is what this host calls the server.
/// let held = Held::new("docs", entry)?;
/// let instructions = held.read(client, &held.skill().uri); // `.await` it on an executor
/// # drop(instructions);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Held {
    key: SkillKey,
    skill: Skill,
}

/// A client that reads files of skills. The clients of the adapters do.
pub trait SkillReader {
    /// What it returns: the bytes or the error, or a future of them.
    type Output<'a>
    where
        Self: 'a;

    /// Reads a file of a skill: see [`Held::read`].
    fn read_skill<'a>(&'a self, held: &'a Held, uri: &'a str) -> Self::Output<'a>;
}

impl Held {
    /// Holds a skill of a server. `server` is the name that the host gave to it.
    ///
    /// # Errors
    /// [`SkillError::Dynamic`] if nothing of it can be checked; [`SkillError::Limits`] if it has
    /// more than [`MAX_FILES`] files or [`MAX_BYTES`] bytes; [`SkillError::Uri`] if its URI does
    /// not end with its name and `SKILL.md`, or if a file lies outside of its directory, is listed
    /// twice, or hides another path in its encoding.
    pub fn new(server: impl Into<String>, skill: Skill) -> Result<Self, SkillError> {
        let SkillResources::Files(files) = &skill.resources else { return Err(SkillError::Dynamic) };
        let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Err(SkillError::Limits { files: files.len(), bytes });
        }
        let bad = |uri: &str, why| SkillError::Uri { uri: uri.to_string(), why };
        let root = skill.root().ok_or_else(|| bad(&skill.uri, "it is not that of a `SKILL.md`"))?;
        if name_in(root).map_err(|why| bad(&skill.uri, why))? != skill.name() {
            return Err(bad(&skill.uri, "the segment before `SKILL.md` is not the name of the skill"));
        }
        let mut paths = BTreeSet::new();
        for SkillFile { uri, .. } in files {
            if !paths.insert(path_in(root, uri).map_err(|why| bad(uri, why))?) {
                return Err(bad(uri, "its file is listed twice"));
            }
        }
        if !files.iter().any(|file| file.uri == skill.uri) {
            return Err(bad(&skill.uri, "it is not among the files of the skill"));
        }
        Ok(Self { key: SkillKey { server: server.into(), uri: skill.uri.clone() }, skill })
    }

    /// Returns what identifies it.
    pub const fn key(&self) -> &SkillKey {
        &self.key
    }

    /// Returns its entry.
    pub const fn skill(&self) -> &Skill {
        &self.skill
    }

    /// Returns a hash of the server, the URI of the skill, and the URIs and digests of all files in
    /// any order: what an approval of the user is bound to. A stored approval has lapsed if this
    /// has another value.
    pub fn approval(&self) -> [u8; 32] {
        let mut hash = hmac_sha256::Hash::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        add(self.key.server.as_bytes());
        add(self.key.uri.as_bytes());
        let files: BTreeSet<_> = self.skill.files().iter().map(|file| (&file.uri, &file.digest)).collect();
        for (uri, digest) in files {
            add(uri.as_bytes());
            add(digest);
        }
        hash.finalize()
    }

    /// Returns the file at a path below the directory of the skill, such as `references/FORMS.md`:
    /// what a relative reference in a file of the skill means.
    pub fn file(&self, path: &str) -> Option<&SkillFile> {
        let path = path.strip_prefix("./").unwrap_or(path);
        self.skill.files().iter().find(|file| self.path(&file.uri).as_deref() == Some(path))
    }

    /// Returns the path of a listed file below the directory of the skill, decoded. Joined to a
    /// directory it stays below that: it is relative, and has no segment `.` or `..`, no `\` and no
    /// NUL. If the files of skills are kept on a disk, the directory must name the server too.
    pub fn path(&self, uri: &str) -> Option<String> {
        self.listed(uri).and_then(|file| path_in(self.skill.root()?, &file.uri).ok())
    }

    fn listed(&self, uri: &str) -> Option<&SkillFile> {
        self.skill.files().iter().find(|file| file.uri == uri)
    }

    /// Reads a listed file, and checks it. If it does not match the entry, the skill may have
    /// changed: the client asks for its entry once more, with `skills/get`.
    ///
    /// # Errors
    /// [`SkillError`]. None of the bytes is to be used then. [`SkillError::Changed`] has the new
    /// entry, which the user has not approved. After [`SkillError::FrontMatter`] the skill must not
    /// be loaded.
    pub fn read<'a, C: SkillReader>(&'a self, client: &'a C, uri: &'a str) -> C::Output<'a> {
        client.read_skill(self, uri)
    }

    /// For a driver: creates the call that reads a file.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`]. Nothing is sent then.
    pub fn request(&self, uri: &str) -> Result<Call<Read>, SkillError> {
        match self.listed(uri) {
            // A cached file may be that of an earlier entry.
            Some(_) => Ok(resources::read(uri).fresh()),
            None => Err(SkillError::Unlisted { uri: uri.into() }),
        }
    }

    /// For a driver: returns the bytes of the file in the result of [`request`](Self::request).
    ///
    /// # Errors
    /// As [`verify`](Self::verify); [`SkillError::Contents`] if the result is not one file.
    pub fn accept(&self, uri: &str, result: &ReadResult) -> Result<Vec<u8>, SkillError> {
        let [contents] = &result.contents[..] else { return Err(SkillError::Contents { uri: uri.into() }) };
        let bytes = contents.to_bytes().map_err(|_| SkillError::Contents { uri: uri.into() })?;
        self.verify(uri, &bytes).map(|()| bytes)
    }

    /// Checks the bytes of a file, for one that the application kept.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`], [`SkillError::Size`], [`SkillError::Digest`], and for `SKILL.md`
    /// also [`SkillError::FrontMatter`].
    pub fn verify(&self, uri: &str, bytes: &[u8]) -> Result<(), SkillError> {
        let file = self.listed(uri).ok_or_else(|| SkillError::Unlisted { uri: uri.into() })?;
        let size = bytes.len() as u64;
        if size != file.size {
            return Err(SkillError::Size { uri: uri.into(), listed: file.size, size });
        }
        if hash(bytes) != file.digest {
            return Err(SkillError::Digest { uri: uri.into() });
        }
        // The `SKILL.md` of a nested skill is a file as any other.
        if file.uri != self.skill.uri {
            return Ok(());
        }
        let bad = |why: String| SkillError::FrontMatter { uri: uri.into(), why };
        let read = front_matter::read(bytes).map_err(bad)?;
        match front_matter::same_objects(&read, &self.skill.frontmatter) {
            true => Ok(()),
            false => Err(bad("its front matter is not that of the entry".into())),
        }
    }

    /// For a driver: creates the call that asks for the entry once more, after an error that
    /// [is a mismatch](SkillError::is_mismatch).
    pub fn refresh(&self) -> Call<GetSkill> {
        get_unchecked(&self.skill.uri)
    }

    /// For a driver: returns the error of the application after [`refresh`](Self::refresh): that
    /// the skill has changed, or else the error that was found.
    pub fn refreshed(&self, found: SkillError, outcome: Result<GetSkillResult, CallError>) -> SkillError {
        match outcome {
            Ok(GetSkillResult { skill, .. })
                if skill.uri == self.skill.uri
                    && (skill.resources != self.skill.resources
                        || !front_matter::same_objects(&skill.frontmatter, &self.skill.frontmatter)) =>
            {
                SkillError::Changed { skill: Box::new(skill) }
            }
            _ => found,
        }
    }
}

/// Why a skill, or a file of one, is not used. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SkillError {
    /// The server did not declare the extension, or not what the method needs. Nothing was sent.
    Undeclared,
    /// The server makes the files of the skill when they are read: nothing can be checked.
    Dynamic,
    /// The skill is larger than [`MAX_FILES`] or [`MAX_BYTES`].
    Limits {
        /// Its files.
        files: usize,
        /// The bytes of all of them.
        bytes: u64,
    },
    /// A URI of the entry is not valid.
    Uri {
        /// The URI.
        uri: String,
        /// The violated rule, for people.
        why: &'static str,
    },
    /// The entry does not list the file. Nothing was sent.
    Unlisted {
        /// The URI.
        uri: String,
    },
    /// The file has another size than the entry says.
    Size {
        /// The URI.
        uri: String,
        /// The size in the entry.
        listed: u64,
        /// The size of what was read.
        size: u64,
    },
    /// The file has another SHA-256 than the entry says.
    Digest {
        /// The URI.
        uri: String,
    },
    /// The front matter of `SKILL.md` is not valid, or not that of the entry. The skill must not be
    /// loaded.
    FrontMatter {
        /// The URI.
        uri: String,
        /// Why, for people.
        why: String,
    },
    /// The result is not one file: none, several, or no base64.
    Contents {
        /// The URI.
        uri: String,
    },
    /// What was read did not match the entry that is held, and the server now has another one. An
    /// approval of the old one does not count for it.
    Changed {
        /// The new entry.
        skill: Box<Skill>,
    },
    /// The call failed.
    Call(CallError),
}

impl SkillError {
    /// Returns whether what was read did not match the entry.
    pub const fn is_mismatch(&self) -> bool {
        match self {
            Self::Size { .. } | Self::Digest { .. } | Self::FrontMatter { .. } | Self::Contents { .. } => true,
            Self::Undeclared
            | Self::Dynamic
            | Self::Limits { .. }
            | Self::Uri { .. }
            | Self::Unlisted { .. }
            | Self::Changed { .. }
            | Self::Call(_) => false,
        }
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared => f.write_str("the server did not declare it"),
            Self::Dynamic => f.write_str("the server makes the files of the skill when they are read"),
            Self::Limits { files, bytes } => write!(f, "the skill has {files} files of {bytes} bytes"),
            Self::Uri { uri, why } => write!(f, "the entry of the skill has the URI `{}`: {why}", Visible(uri)),
            Self::Unlisted { uri } => write!(f, "the skill does not list `{}`", Visible(uri)),
            Self::Size { uri, listed, size } => {
                write!(f, "`{}` has {size} bytes, and the skill lists {listed}", Visible(uri))
            }
            Self::Digest { uri } => write!(f, "`{}` has another digest than the skill lists", Visible(uri)),
            Self::FrontMatter { uri, why } => write!(f, "`{}`: {}", Visible(uri), Visible(why)),
            Self::Contents { uri } => write!(f, "the contents of `{}` are not one file", Visible(uri)),
            Self::Changed { skill } => write!(f, "the skill `{}` has changed", Visible(&skill.uri)),
            Self::Call(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for SkillError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Call(e) => Some(e),
            _ => None,
        }
    }
}

impl From<CallError> for SkillError {
    fn from(e: CallError) -> Self {
        Self::Call(e)
    }
}
