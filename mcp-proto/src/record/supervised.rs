//! A recorded supervisor: its policy, its seed, every input with its time, and every output.

use super::mask::Mask;
use super::read::{Lines, ReadError, ReadProblem};
use super::replay::{Difference, Summary};
use super::value::EVERY_CAPABILITY;
use super::writer::{Sink, Writer};
use super::{Redaction, bare};
use crate::client::{ClientConfig, Target};
use crate::exchange::Endpoint;
use crate::input::Change;
use crate::model::capabilities::ServerCapabilities;
use crate::record::Observer;
use crate::rpc::{EncodeError, Object, RawJson};
use crate::supervise::{
    CallRefusal, CallVerdict, Catalogue, Event, Generation, Input, ListKind, Listing, Output, Returned, ServerSpec,
    Supervision, Supervisor, Ticket,
};
use crate::time::Instant;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u64 = 1;

/// The beginning of the first line.
const MAGIC: &[u8] = b"{\"mcp-supervisor-recording\":";

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "mcp-supervisor-recording")]
    format: u64,
    version: String,
    redaction: Redaction,
    seed: [u8; 32],
    policy: Supervision,
}

/// A line after the first, with outputs of the type `O`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Line<K, O> {
    Input(#[serde(with = "crate::record::value")] Instant, Input<K>),
    /// What the input before it returned.
    Returned(O),
    Output(O),
    End {
        inputs: u64,
        outputs: u64,
    },
}

/// What an input returned, as it is written.
#[derive(Serialize)]
enum ReturnedLine {
    Done(bool),
    Begun(Ticket),
    Refused(String),
    Verdict(&'static str),
}

/// An output, as it is written.
#[derive(Serialize)]
enum OutputLine<'a, K> {
    Resolve(&'a K, Generation, Target),
    Connect(&'a K, Generation, Target),
    Close(Generation),
    Load(Generation, ListKind),
    Run(Ticket, Generation, Option<Duration>),
    Refuse(Ticket, String),
    Event(String),
}

/// Masks the inputs of a supervisor, and writes its outputs.
#[derive(Debug)]
struct SupervisorMask(Mask);

impl SupervisorMask {
    fn new(redaction: Redaction) -> Self {
        // Nothing here belongs to one connection.
        Self(Mask::new(redaction, &Target::Duplex(Endpoint::Given)))
    }

    /// Returns the line of what an input returned. `None` if nothing.
    fn returned<K: Serialize>(&self, returned: &Returned) -> Option<Result<RawJson, EncodeError>> {
        let line = match returned {
            Returned::Nothing => return None,
            Returned::Done(done) => ReturnedLine::Done(*done),
            Returned::Call(Ok(ticket)) => ReturnedLine::Begun(*ticket),
            Returned::Call(Err(why)) => ReturnedLine::Refused(self.refusal(why)),
            Returned::Verdict(CallVerdict::Final) => ReturnedLine::Verdict("final"),
            Returned::Verdict(CallVerdict::Again) => ReturnedLine::Verdict("again"),
            Returned::Verdict(CallVerdict::Ignore) => ReturnedLine::Verdict("ignore"),
        };
        Some(RawJson::encode(&Line::<K, _>::Returned(line)))
    }

    fn output<K: Clone + Serialize + fmt::Debug>(&self, output: &Output<K>) -> Result<RawJson, EncodeError> {
        let target = |config: &ClientConfig| self.0.target(&config.target);
        let line = match output {
            Output::Resolve { key, generation, config } => OutputLine::Resolve(key, *generation, target(config)),
            Output::Connect { key, generation, config } => OutputLine::Connect(key, *generation, target(config)),
            Output::Close(generation) => OutputLine::Close(*generation),
            Output::Load { generation, list } => OutputLine::Load(*generation, *list),
            Output::Run { ticket, generation, timeout } => OutputLine::Run(*ticket, *generation, *timeout),
            Output::Refuse { ticket, why } => OutputLine::Refuse(*ticket, self.refusal(why)),
            Output::Event(event) if self.0.is_on() => OutputLine::Event(format!("{:?}", bare::event(event))),
            Output::Event(event) => OutputLine::Event(format!("{event:?}")),
        };
        RawJson::encode(&Line::<K, _>::Output(line))
    }

    fn refusal(&self, why: &CallRefusal) -> String {
        if self.0.is_on() { format!("{:?}", bare::refusal(why)) } else { format!("{why:?}") }
    }

    fn input<K>(&self, input: Input<K>) -> Input<K> {
        if !self.0.is_on() {
            return input;
        }
        match input {
            Input::Add(key, spec) => Input::Add(key, self.spec(spec)),
            Input::Replace(key, spec) => Input::Replace(key, self.spec(spec)),
            Input::Resolved(generation, Ok(config)) => {
                Input::Resolved(generation, Ok(Arc::new(self.0.config(&config))))
            }
            Input::Resolved(generation, Err(why)) => Input::Resolved(generation, Err(self.0.text(&why))),
            Input::Ready(generation, capabilities) => {
                let masked = self.0.object(&capabilities.write(EVERY_CAPABILITY));
                Input::Ready(generation, ServerCapabilities::read(masked))
            }
            Input::Ended(generation, why) => Input::Ended(generation, bare::termination(&why)),
            Input::SessionLost(generation, cause) => Input::SessionLost(generation, bare::stream_end(&cause)),
            Input::Changed(generation, Change::Resource(uri)) => {
                Input::Changed(generation, Change::Resource(self.0.uri(&uri)))
            }
            Input::Loaded(generation, list, Ok(loaded)) => {
                Input::Loaded(generation, list, Ok(self.listing(loaded.listing).into()))
            }
            Input::Loaded(generation, list, Err(error)) => Input::Loaded(generation, list, Err(bare::call(&error))),
            Input::Finished(ticket, Err(error)) => Input::Finished(ticket, Err(bare::call(&error))),
            Input::Remove(_)
            | Input::Reconnect(_)
            | Input::Changed(..)
            | Input::PingMissed(..)
            | Input::Call(..)
            | Input::Finished(_, Ok(()))
            | Input::Cancel(_)
            | Input::Close
            | Input::Tick => input,
        }
    }

    fn spec(&self, mut spec: ServerSpec) -> ServerSpec {
        spec.config = Arc::new(self.0.config(&spec.config));
        spec.catalogue = self.catalogue(&spec.catalogue);
        spec
    }

    fn listing(&self, listing: Listing) -> Listing {
        let list = listing.kind();
        let mut catalogue = Catalogue::default();
        catalogue.set(listing);
        self.catalogue(&catalogue).get(list).unwrap_or_else(|| Listing::none(list))
    }

    /// Masking changes no member that a list needs.
    fn catalogue(&self, catalogue: &Catalogue) -> Catalogue {
        Catalogue::read(&self.0.object(&catalogue.write()).into()).unwrap_or_default()
    }
}

/// A recording in progress.
#[derive(Debug)]
pub(super) struct Recorded {
    mask: SupervisorMask,
    writer: Writer,
}

impl Recorded {
    pub(super) fn new(redaction: Redaction, sink: Sink, policy: &Supervision, seed: [u8; 32]) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let mut writer = Writer::new(sink);
        writer.line(RawJson::encode(&Header { format: FORMAT, version, redaction, seed, policy: policy.clone() }));
        Self { mask: SupervisorMask::new(redaction), writer }
    }
}

impl<K: Clone + Serialize + fmt::Debug> Observer<Supervisor<K>> for Recorded {
    fn input(&mut self, now: Instant, input: &Input<K>, _: Option<Instant>) -> Result<(), String> {
        if !self.writer.is_open() {
            return Ok(());
        }
        let line = RawJson::encode(&Line::<K, ()>::Input(now, self.mask.input(input.clone())));
        // A value of the application may be nested too deeply to be read back.
        match line.map(|line| (line.decode::<Line<IgnoredAny, IgnoredAny>>(), line)) {
            Ok((Ok(_), line)) => self.writer.input(Ok(line)),
            Ok((Err(e), _)) => self.writer.fail(format!("an input cannot be recorded: {e}")),
            Err(e) => self.writer.fail(format!("an input cannot be recorded: {e}")),
        }
        Ok(())
    }

    fn returned(&mut self, returned: &Returned) -> Result<(), String> {
        if let Some(line) = self.mask.returned::<K>(returned).filter(|_| self.writer.is_open()) {
            self.writer.output(line);
        }
        self.writer.take_failure().map_or(Ok(()), Err)
    }

    fn output(&mut self, output: Option<&Output<K>>) {
        let Some(output) = output.filter(|_| self.writer.is_open()) else { return };
        self.writer.output(self.mask.output(output));
        if let Output::Event(Event::Closed { .. }) = output {
            self.writer.end(|inputs, outputs| RawJson::encode(&Line::<K, ()>::End { inputs, outputs }));
        }
    }
}

/// A recorded run of a [`Supervisor`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SupervisorRecording<K = String> {
    /// The version of this crate that wrote it. Another version may behave differently, which a
    /// replay shows.
    pub version: String,
    /// The parts that it omits.
    pub redaction: Redaction,
    /// How the supervisor treats its servers.
    pub policy: Supervision,
    /// Whether it extends to the end of the supervisor.
    pub complete: bool,
    seed: [u8; 32],
    /// An output is its whole line.
    lines: Vec<Line<K, RawJson>>,
}

/// Returns whether bytes begin like the recording of a supervisor.
pub fn is_supervisor_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl<K: Clone + Ord + fmt::Debug + Serialize + DeserializeOwned> SupervisorRecording<K> {
    /// Reads a recording. The memory use is proportional to `bytes`.
    ///
    /// # Errors
    /// [`ReadError`] for the first invalid line. [`replay`](Self::replay) checks whether the lines
    /// are consistent.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        if !is_supervisor_recording(bytes) {
            return Err(ReadError { line: 1, why: ReadProblem::NotARecording });
        }
        let mut lines = Lines::new(bytes);
        let mut recording = Self::header(&lines.head()?).map_err(|why| ReadError { line: 1, why })?;
        let mut read = (0, 0);
        for next in lines {
            let (line, json) = next?;
            let fail = |why| ReadError { line, why };
            if recording.complete {
                return Err(fail(ReadProblem::AfterEnd));
            }
            recording.lines.push(
                match json.decode::<Line<K, IgnoredAny>>().map_err(|e| fail(ReadProblem::Line(e)))? {
                    Line::Input(at, input) => {
                        read.0 += 1;
                        Line::Input(at, input)
                    }
                    Line::Returned(_) => {
                        read.1 += 1;
                        Line::Returned(json)
                    }
                    Line::Output(_) => {
                        read.1 += 1;
                        Line::Output(json)
                    }
                    Line::End { inputs, outputs } if (inputs, outputs) == read => {
                        recording.complete = true;
                        Line::End { inputs, outputs }
                    }
                    Line::End { .. } => return Err(fail(ReadProblem::Count)),
                },
            );
        }
        Ok(recording)
    }

    fn header(head: &RawJson) -> Result<Self, ReadProblem> {
        match Object::read(head).and_then(|head| head.required("mcp-supervisor-recording")) {
            Ok(FORMAT) => {}
            Ok(format) => return Err(ReadProblem::Format(format)),
            Err(_) => return Err(ReadProblem::NotARecording),
        }
        let Header { format: _, version, redaction, seed, policy } = head.decode().map_err(ReadProblem::Line)?;
        Ok(Self { version, redaction, policy, complete: false, seed, lines: Vec::new() })
    }

    /// Creates a supervisor with the same policy and seed, applies the same inputs at the same
    /// times, and compares what each returns and all outputs, in order. The bytes of the summary
    /// are 0. Outputs after the last one of an incomplete recording are not compared.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn replay(&self) -> Result<Summary, Difference> {
        let mut supervisor = Supervisor::new(self.policy.clone(), self.seed);
        let mask = SupervisorMask::new(self.redaction);
        let mut summary = Summary { complete: self.complete, ..Summary::default() };
        let mut latest = Instant::ZERO;
        let mut recorded = self.lines.iter().enumerate().filter_map(|(number, line)| match line {
            Line::Output(output) => Some((number, output)),
            _ => None,
        });
        // What the latest input returned.
        let mut returned = None;
        for (number, line) in self.lines.iter().enumerate() {
            let differ = |recorded: Option<&RawJson>, replayed: Option<Result<RawJson, EncodeError>>| {
                Difference::check(number, recorded, replayed.and_then(Result::ok).as_ref())
            };
            match line {
                Line::Input(now, input) => {
                    differ(None, returned.take())?;
                    summary.inputs += 1;
                    latest = latest.max(*now);
                    returned = mask.returned::<K>(&supervisor.apply(*now, input.clone()));
                    // At once, wherever they were polled: a file that never polls holds nothing.
                    while let Some(output) = supervisor.poll_output() {
                        let output = mask.output(&output).ok();
                        match recorded.next() {
                            Some((number, recorded)) => Difference::check(number, Some(recorded), output.as_ref())?,
                            None if self.complete => Difference::check(number, None, output.as_ref())?,
                            None => {}
                        }
                    }
                }
                Line::Returned(recorded) => {
                    summary.outputs += 1;
                    differ(Some(recorded), returned.take())?;
                }
                Line::Output(_) => summary.outputs += 1,
                Line::End { .. } => differ(None, returned.take())?,
            }
        }
        if let Some((number, recorded)) = recorded.next() {
            Difference::check(number, Some(recorded), None)?;
        }
        summary.time = latest.since(Instant::ZERO);
        Ok(summary)
    }
}
