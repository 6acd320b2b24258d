//! The client's knowledge of the tools of its server: which arguments of a tool it mirrors into
//! header fields (2026-07-28 transports, custom headers from tool parameters), which tools may run
//! twice, and which schema their results promise to match. The client learns from every
//! `tools/list` response, whichever part of it sent the request. It forgets everything with the
//! connection.

#[cfg(test)]
mod tests;

use super::call_table::CallState;
use super::env::ClientEnv;
use crate::call::RawCall;
use crate::error::DiagnosticKind;
use crate::model::headers::{PARAM, encode};
use crate::model::mirror::{self, Mirror};
use crate::model::tasks::TaskSupport;
use crate::rpc::{EncodeError, JsonKind, Object, RawJson};
use crate::schema::{BadSchema, Checker, Validator};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The method with the results from which the client learns.
const LIST: &str = "tools/list";
/// The method with the requests that carry the fields.
pub(super) const CALL: &str = "tools/call";
/// Characters of a tool's name in a diagnostic.
pub(super) const SHOWN: usize = 200;
/// Bytes of names and schemas that count as one more tool.
const WEIGHT: usize = 1 << 10;

/// The tools of one connection with a mirrored argument, a hint or an output schema.
#[derive(Debug, Default)]
pub(super) struct ToolIndex {
    known: BTreeMap<String, Known>,
    /// Their names, in the order in which they were last listed.
    order: BTreeMap<u64, String>,
    listed: u64,
    /// How often the client forgot a tool, or learned something else of it.
    changes: u64,
    weight: usize,
    /// The names of the tools whose schema is compiled, in the order of compilation.
    compiled: VecDeque<String>,
}

/// The names and values of the header fields that mirror arguments.
type MirrorFields = Vec<(String, String)>;

#[derive(Debug)]
struct Known {
    /// The place in `order`.
    place: u64,
    weight: usize,
    uses: Uses,
    /// What the schema in `uses` was compiled to.
    compiled: Option<Result<Checker, BadSchema>>,
}

/// What the client uses of a tool.
#[derive(PartialEq, Debug, Default)]
struct Uses {
    repeatable: bool,
    mirror: Mirror,
    output: Option<RawJson>,
    /// Whether its calls may be tasks, if the client has tasks (2025-11-25).
    task: Option<TaskSupport>,
}

/// What the client learns from a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lesson {
    /// Whether calls mirror arguments.
    pub(super) mirrored: bool,
    /// Whether calls may be repeated.
    pub(super) hints: bool,
    /// Whether results are validated.
    pub(super) schemas: bool,
    /// Whether calls may be tasks.
    pub(super) tasks: bool,
    /// Maximum number of tools.
    pub(super) max: usize,
}

impl Lesson {
    /// Returns what the client uses of tools. `None`: nothing. On a duplex connection the engine
    /// only uses the output schemas, and only if it validates results.
    fn of(env: &ClientEnv) -> Option<Self> {
        let lesson = Self {
            mirrored: !env.is_duplex() && env.is_modern(),
            hints: !env.is_duplex(),
            schemas: env.config.validator().is_some(),
            tasks: env.has_legacy_tasks(),
            max: env.config.limits.client.max_tools,
        };
        (lesson.hints || lesson.schemas || lesson.tasks).then_some(lesson)
    }
}

/// The result of reading one page of `tools/list`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct LearnedPage {
    /// The page without the tools that are left out. `None` if no tool is left out.
    pub(super) without: Option<RawJson>,
    /// The tools that are left out, and the reasons.
    pub(super) invalid: Vec<(String, String)>,
}

impl ToolIndex {
    /// Learns from a page of `tools/list`. Keeps at most `max` tools, and first evicts the one that
    /// was listed longest ago. If the connection mirrors arguments, the page loses the tools with
    /// an invalid annotation. Elements that are not tools stay in the page for its reader.
    pub(super) fn learn(&mut self, result: &RawJson, lesson: &Lesson) -> LearnedPage {
        let mut page = LearnedPage::default();
        let Ok(mut object) = Object::read(result) else { return page };
        let Ok(Some(tools)) = object.optional_array("tools") else { return page };
        let count = tools.len();
        let mut kept = Vec::with_capacity(count);
        for json in tools {
            let valid = Object::read(&json).ok().and_then(|tool| {
                let name: String = tool.optional("name").ok().flatten()?;
                let mirror = match tool.get("inputSchema").filter(|_| lesson.mirrored) {
                    Some(schema) => mirror::read(&schema),
                    None => Ok(Mirror::default()),
                };
                let output = tool.get("outputSchema").filter(|json| lesson.schemas && json.kind() != JsonKind::Null);
                let repeatable = lesson.hints && is_repeatable(&tool);
                let execution = tool.optional_object("execution").ok().flatten();
                let task = lesson.tasks.then(|| TaskSupport::read(execution.as_ref()));
                Some((name, mirror.map(|mirror| Uses { repeatable, mirror, output, task })))
            });
            match valid {
                Some((name, Err(why))) => {
                    self.forget(&name);
                    page.invalid.push((name, why));
                    continue;
                }
                Some((name, Ok(uses))) => self.keep(name, uses, lesson.max),
                None => {}
            }
            kept.push(json);
        }
        if kept.len() < count {
            object.set("tools", kept);
            page.without = Some(object.to_json());
        }
        page
    }

    /// Returns whether the server declares that the tool in these params of `tools/call` may run
    /// twice: it only reads, or a second run has no further effect.
    pub(super) fn is_repeatable(&self, params: &Object) -> bool {
        self.called(params).is_some_and(|known| known.uses.repeatable)
    }

    /// Returns the fields that mirror arguments of these params of `tools/call`. Returns none for a
    /// tool that was not listed.
    ///
    /// # Errors
    /// [`EncodeError`] if an argument that must be mirrored cannot be. It is not a string, boolean
    /// or integer, or it is an integer beyond the range of a field. A server must refuse such a
    /// call, since the field is missing.
    pub(super) fn headers(&self, params: &Object) -> Result<MirrorFields, EncodeError> {
        let mut fields = Vec::new();
        if let Some(known) = self.called(params)
            && let Ok(Some(arguments)) = params.optional_object("arguments")
        {
            known.uses.mirror.visit(&arguments, &mut |place| {
                let Some(value) = place.value else { return Ok(()) };
                let (argument, field) = (place.argument, format!("{PARAM}{}", place.header));
                let text = mirror::text_of(value).ok_or_else(|| {
                    let why = "is no string, boolean or safe integer, and the server wants it in the header";
                    EncodeError::new(format!("the argument `{argument}` {why} {field}"))
                })?;
                fields.push((field, encode(&text).into_owned()));
                Ok(())
            })?;
        }
        Ok(fields)
    }

    /// Returns what checks the structured results of the tool in these params of `tools/call`.
    /// `None` if it declared no output schema, or was not listed. At most `max` schemas
    /// stay compiled.
    pub(super) fn checker(
        &mut self,
        validator: &Validator,
        params: &Object,
        max: usize,
    ) -> Option<Result<Checker, BadSchema>> {
        let name = params.str("name")?;
        let known = self.known.get_mut(&*name)?;
        let schema = known.uses.output.as_ref()?;
        if let Some(compiled) = &known.compiled {
            return Some(compiled.clone());
        }
        let compiled = validator.compile(schema);
        known.compiled = Some(compiled.clone());
        self.compiled.push_back(name.into_owned());
        while self.compiled.len() > max
            && let Some(first) = self.compiled.pop_front()
        {
            if let Some(known) = self.known.get_mut(&first) {
                known.compiled = None;
            }
        }
        Some(compiled)
    }

    /// Returns whether a call may run twice: the application permits it, or the server calls the
    /// tool read-only or idempotent.
    pub(super) fn may_run_twice(&self, call: &RawCall) -> bool {
        let is_safe = |params| self.is_repeatable(params);
        call.options.repeatable || call.method == CALL && call.params.as_ref().is_ok_and(is_safe)
    }

    /// Returns whether a call asks for a task as the response (2025-11-25): the application or the
    /// tool wants one, and the tool allows it as far as the client knows.
    pub(super) fn calls_as_task(&self, env: &ClientEnv, call: &CallState) -> bool {
        if call.raw.method != CALL || !env.has_legacy_tasks() {
            return false;
        }
        let known = call.raw.params.as_ref().ok().and_then(|params| self.called(params)?.uses.task);
        match known {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) | None => call.raw.options.as_task,
            Some(TaskSupport::Never) => false,
        }
    }

    /// Learns from the result of a call. Returns the result for the application.
    pub(super) fn learn_from(&mut self, env: &mut ClientEnv, call: Option<&CallState>, result: RawJson) -> RawJson {
        let is_list = call.is_some_and(|call| call.raw.method == LIST);
        let Some(lesson) = Lesson::of(env).filter(|_| is_list) else { return result };
        let page = self.learn(&result, &lesson);
        for (name, why) in page.invalid {
            let name: String = name.chars().take(SHOWN).collect();
            env.diagnose(DiagnosticKind::InvalidTool, format!("{name}: {why}"));
        }
        page.without.unwrap_or(result)
    }

    /// Learns from a page of `tools/list` once more.
    pub(super) fn learn_again(&mut self, env: &ClientEnv, result: &RawJson) {
        if let Some(lesson) = Lesson::of(env) {
            self.learn(result, &lesson);
        }
    }

    /// Returns a number that rises whenever the client forgets something that it has learned from a
    /// page.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the header fields that mirror arguments of a request.
    ///
    /// # Errors
    /// As [`headers`](Self::headers).
    pub(super) fn mirrored(&self, env: &ClientEnv, method: &str, params: &Object) -> Result<MirrorFields, EncodeError> {
        let mirrors = method == CALL && env.is_modern() && !env.is_duplex();
        if mirrors { self.headers(params) } else { Ok(Vec::new()) }
    }

    /// Forgets all tools, since the connection is another one.
    pub(super) fn clear(&mut self) {
        *self = Self { changes: self.changes + 1, ..Self::default() };
    }

    fn called(&self, params: &Object) -> Option<&Known> {
        self.known.get(&*params.str("name")?)
    }

    fn keep(&mut self, name: String, mut uses: Uses, max: usize) {
        // To learn the same again changes only the order.
        let before = self.changes;
        let is_same = self.known.get(&name).is_some_and(|known| known.uses == uses);
        self.forget(&name);
        if is_same {
            self.changes = before;
        }
        // Most tools have neither a mirrored argument nor a hint.
        if uses.mirror.is_empty() && !uses.repeatable && uses.output.is_none() && uses.task.is_none() {
            return;
        }
        // Not the whole page.
        uses.output = uses.output.map(|schema| schema.detached());
        let schema = uses.output.as_ref().map_or(0, |schema| schema.as_bytes().len());
        let weight = 1 + (2 * name.len() + weigh(&uses.mirror) + schema) / WEIGHT;
        self.listed += 1;
        let place = self.listed;
        self.weight += weight;
        self.order.insert(place, name.clone());
        self.known.insert(name, Known { place, weight, uses, compiled: None });
        while self.weight > max
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            self.forget(&oldest.clone());
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            self.order.remove(&known.place);
            self.weight -= known.weight;
            self.changes += 1;
            self.compiled.retain(|compiled| compiled != name);
        }
    }
}

fn is_repeatable(tool: &Object) -> bool {
    let annotations = tool.optional_object("annotations").ok().flatten().unwrap_or_default();
    ["readOnlyHint", "idempotentHint"].iter().any(|hint| annotations.get(hint) == Some(true.into()))
}

/// Returns the bytes of the names in a mirror, and of the tables that hold them.
fn weigh(mirror: &Mirror) -> usize {
    let inner: usize = mirror.inner.iter().map(|(name, inner)| name.len() + weigh(inner)).sum();
    size_of::<Mirror>() + mirror.header.as_ref().map_or(0, String::len) + inner
}
