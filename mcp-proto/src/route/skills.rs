//! The skills of a router: `skills/list`, `skills/get` and `resources/directory/read`. Their files
//! are among its resources, and are found by their whole URI: no path of a file system is made of
//! what a client sends.

use super::pages;
use super::resources::{ResourceTable, reading};
use super::scopes::{RouteRefusal, ScopeDemand as _};
use super::{Handler, Resolution, Router, invalid};
use crate::model::capabilities::ServerCapabilities;
use crate::model::lifecycle::CacheHints;
use crate::model::page::ListElement as _;
use crate::model::resources::Resource;
use crate::model::skills::{DIRECTORY, EXTENSION, ServedFile, ServedSkill, Skill, child_of, directory_name};
use crate::rpc::{ErrorObject, Object};
use crate::server::{IncomingRequest, Responder};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

/// The setting of the extension for directories.
const DIRECTORY_READ: &str = "directoryRead";

/// Maximum size of a file that is written where its request is routed, in bytes.
const SMALL: u64 = 32 << 10;

/// What a router knows of skills.
#[derive(Clone, Debug, Default)]
pub(super) struct SkillTable {
    /// By URI.
    skills: BTreeMap<String, Listed<Skill>>,
    directories: bool,
    cache: CacheHints,
}

/// An element of a list that has no handler.
#[derive(Clone, Debug)]
struct Listed<T>(T);

impl<T> AsRef<T> for Listed<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

impl SkillTable {
    /// Declares the extension if there are skills, or directories that can be read.
    pub(super) fn declare(&self, capabilities: &mut ServerCapabilities) {
        if self.skills.is_empty() && !self.directories {
            return;
        }
        // Skills are read as resources, also if these are made by a function.
        capabilities.resources.get_or_insert_default();
        let settings = capabilities.extensions.get(EXTENSION).unwrap_or_default();
        let settings = settings.with_opt(DIRECTORY_READ, self.directories.then_some(true));
        let declared = capabilities.extensions.declare(EXTENSION, settings);
        debug_assert!(declared.is_ok(), "its identifier is valid");
    }

    /// Returns the result of a request about skills. `None`: it is another one, or the server has
    /// none.
    pub(super) fn look_up<'a>(
        &self,
        resources: &ResourceTable,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Option<Result<Resolution<'a>, RouteRefusal>> {
        if !matches!(&*incoming.method, "skills/list" | "skills/get" | "resources/directory/read") {
            return None;
        }
        let settings = responder.config().capabilities.extensions.get(EXTENSION)?;
        match &*incoming.method {
            "skills/list" => Some(self.list(responder, incoming, hides)),
            "skills/get" => Some(self.get(responder, incoming)),
            _ if matches!(settings.optional(DIRECTORY_READ), Ok(Some(true))) => {
                Some(self.read_directory(resources, responder, incoming, hides))
            }
            _ => None,
        }
    }

    fn list<'a>(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'a>, RouteRefusal> {
        Ok(match pages::page::<Skill>(&self.skills, None, responder, incoming, hides)? {
            Resolution::Result(page) => Resolution::Result(hinted(page, &self.cache, responder.version())),
            other => other,
        })
    }

    fn get<'a>(&self, responder: &Responder, incoming: &IncomingRequest) -> Result<Resolution<'a>, RouteRefusal> {
        let uri = uri_of(responder, incoming)?;
        let Listed(skill) = self.skills.get(&uri).ok_or_else(|| unknown("No skill is served at this URI", &uri))?;
        skill.check_scopes(&incoming.context)?;
        let version = responder.version();
        let result = Object::new().with("skill", skill.write(version));
        Ok(Resolution::Result(hinted(result, &self.cache, version)))
    }

    /// Returns a page of the direct children of a directory: what is registered below it. Above a
    /// skill are the directories that lead to it.
    fn read_directory<'a>(
        &self,
        resources: &ResourceTable,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'a>, RouteRefusal> {
        let uri = uri_of(responder, incoming)?;
        let mut exists = false;
        let mut children: BTreeMap<String, Listed<Resource>> = BTreeMap::new();
        for Listed(skill) in self.skills.values() {
            let Some(root) = skill.root() else { continue };
            let within = match root == uri || child_of(root, &uri).is_some() {
                true => &*uri,
                // Who reads a hidden skill knows where it is.
                false if child_of(&uri, root).is_some() && !skill.hidden => root,
                false => continue,
            };
            exists |= root == uri;
            let below = format!("{within}/");
            let mut next = below.clone();
            while let Some((file, entry)) = resources.registered().range(next..).next()
                && file.starts_with(&below)
            {
                let child = child_of(&uri, file);
                if let Some((child, is_directory)) = child {
                    exists = true;
                    let listed = || Listed(child_at(child, is_directory, &entry.listed));
                    children.entry(child.to_string()).or_insert_with(listed);
                }
                next = match child {
                    // The URIs of all files in a directory follow each other, and `0` follows `/`.
                    Some((directory, true)) => format!("{directory}0"),
                    _ => format!("{file}\0"),
                };
            }
        }
        if !exists {
            return Err(unknown("No directory of a skill is served at this URI", &uri).into());
        }
        Ok(match pages::page::<Resource>(&children, None, responder, incoming, hides)? {
            // It is no cacheable result, but the TypeScript SDK refuses one without hints. These
            // promise nothing.
            Resolution::Result(page) => Resolution::Result(hinted(page, &CacheHints::default(), responder.version())),
            other => other,
        })
    }

    /// Returns whether a skill other than this one lists a file.
    fn is_listed_elsewhere(&self, skill: &str, file: &str) -> bool {
        let others = self.skills.values().filter(|Listed(other)| other.uri != skill);
        others.flat_map(|Listed(other)| other.files()).any(|listed| listed.uri == file)
    }
}

/// Adds cache hints to a result, where the revision has them.
fn hinted(mut result: Object, hints: &CacheHints, version: ProtocolVersion) -> Object {
    if version.era() == Era::Modern {
        hints.add_to(&mut result);
    }
    result
}

/// Returns the URI of the params.
fn uri_of(responder: &Responder, incoming: &IncomingRequest) -> Result<String, ErrorObject> {
    let uri = incoming.params.required_str("uri").map_err(|e| invalid(&format!("{e}")))?;
    let max = responder.config().limits.server.max_uri;
    if uri.len() > max {
        return Err(invalid(&format!("the URI is longer than {max} bytes")));
    }
    Ok(uri.into_owned())
}

/// Returns a child of a directory, as it is listed. `file` is the file that it is, or one in it.
fn child_at(uri: &str, is_directory: bool, file: &Resource) -> Resource {
    match is_directory {
        true => {
            Resource { scopes: file.scopes.clone(), ..Resource::new(uri).name(directory_name(uri)).mime(DIRECTORY) }
        }
        false => Resource { hidden: false, ..file.clone() },
    }
}

fn unknown(what: &str, uri: &str) -> ErrorObject {
    invalid(what).with_data(Object::new().with("uri", uri).into())
}

impl Router {
    /// Adds a skill. Its files become resources: `SKILL.md` is listed, and the others are only
    /// read, since the entry of the skill lists them. It replaces one with the same URI. The server
    /// declares the extension, and implements `skills/list`, whose order is that of the URIs, and
    /// `skills/get`. A nested skill is added by itself, beside the skill that contains its files.
    ///
    /// See [`Skill::from_files`]; the adapters read a skill from a directory.
    ///
    /// # Panics
    /// If another skill has a file with the same URI and other bytes, or other scopes for it.
    #[must_use]
    pub fn skill(self, skill: ServedSkill) -> Self {
        let ServedSkill { entry, files } = skill;
        let mut router = self.without_skill(&entry.uri);
        for ServedFile { listed, .. } in &files {
            for Listed(other) in router.0.skills.skills.values() {
                let Some(file) = other.files().iter().find(|file| file.uri == listed.uri) else { continue };
                assert!(file == listed, "another skill has other bytes at `{}`", listed.uri);
                assert!(other.scopes == entry.scopes, "another skill has other scopes for `{}`", listed.uri);
            }
        }
        for ServedFile { listed, resource, contents } in files {
            // The `SKILL.md` of a nested skill stays what it is for itself.
            if router.0.skills.skills.contains_key(&listed.uri) {
                continue;
            }
            let handler = match reading(move |_cx| Ok(contents.clone())) {
                Handler::Sync(f) if listed.size <= SMALL => Handler::Inline(f),
                handler => handler,
            };
            router = router.add_resource(resource, handler);
        }
        router.edit().skills.skills.insert(entry.uri.clone(), Listed(entry));
        router
    }

    /// Removes the skill with this URI, if there is one, with the files that no other skill has.
    #[must_use]
    pub fn without_skill(mut self, uri: &str) -> Self {
        let offer = self.edit();
        let Some(Listed(skill)) = offer.skills.skills.remove(uri) else { return self };
        for file in skill.files() {
            let is_kept = offer.skills.is_listed_elsewhere(uri, &file.uri);
            let registered = offer.resources.registered_mut();
            match registered.get_mut(&file.uri) {
                Some(entry) if is_kept => entry.listed.hidden |= file.uri == uri,
                _ => drop(registered.remove(&file.uri)),
            }
        }
        self
    }

    /// Sets whether clients may list the directories of skills: `resources/directory/read`, which
    /// the server then declares. Files of a [dynamic](Skill::dynamic) skill are found if they are
    /// resources, and not if a template makes them. Default off.
    #[must_use]
    pub fn skill_directories(mut self, readable: bool) -> Self {
        self.edit().skills.directories = readable;
        self
    }

    /// Sets how long clients may cache the lists and the entries of skills. Sent on 2026-07-28.
    /// Default: not at all.
    #[must_use]
    pub fn skills_cache(mut self, hints: CacheHints) -> Self {
        self.edit().skills.cache = hints;
        self
    }
}

#[cfg(test)]
mod tests;
