//! The rules for a driver: their texts, and what the driver may do next with one
//! connection. No engine, no clock.

use alloc::string::{String, ToString};
use core::fmt::{self, Display};
use core::time::Duration;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Shutdown};
use mcp_proto::time::Instant;

/// Time in which a driver must do what takes no time on a working system.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A rule for drivers. The table of [`check`](super::check) explains each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    TimeBack,
    Timer,
    Outputs,
    Turn,
    Woken,
    Unknown,
    AfterClosed,
    BeforeOpened,
    OpenedTwice,
    BeforeSecured,
    NotSecuring,
    AfterReadClosed,
    EmptyRead,
    ReadOff,
    Written,
    EarlyEof,
    Aborted,
    BothEnded,
}

impl Rule {
    /// Returns the text of the panic. Each `{}` is the place of a value.
    pub(super) const fn template(self) -> &'static str {
        match self {
            Self::TimeBack => "`now` went back from {} to {}",
            Self::Timer => "a timer was due {} ago and no `handle_timeout`",
            Self::Outputs => "an input {} ago and no `poll_output`",
            Self::Turn => "an event {} ago and no turn",
            Self::Woken => "woken {} ago and no turn",
            Self::Unknown => "`{}`, and no such connection",
            Self::AfterClosed => "`{}` after `Closed`",
            Self::BeforeOpened => "`{}` before `Opened`",
            Self::OpenedTwice => "`Opened`, and it was open",
            Self::BeforeSecured => "`{}` before `Secured`",
            Self::NotSecuring => "`Secured`, and no `Secure`",
            Self::AfterReadClosed => "`{}` after `ReadClosed`",
            Self::EmptyRead => "`Read` of no bytes",
            Self::ReadOff => "read while reading was off",
            Self::Written => "{} bytes written of {}",
            Self::EarlyEof => "`Closed(Eof)`, and this side has not ended",
            Self::Aborted => "closed {} ago by us and no `Closed`",
            Self::BothEnded => "both directions ended {} ago and no `Closed`",
        }
    }
}

/// Returns the text of a rule that the driver broke, on this connection if it is a rule of one.
pub(super) fn broken(rule: Rule, connection: Option<ConnectionId>, values: &[&dyn Display]) -> Result<(), String> {
    Err(Breach { rule, connection, values }.to_string())
}

struct Breach<'a> {
    rule: Rule,
    connection: Option<ConnectionId>,
    values: &'a [&'a dyn Display],
}

impl Display for Breach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(connection) = self.connection {
            write!(f, "connection {}: ", connection.0)?;
        }
        let mut values = self.values.iter();
        for (n, part) in self.rule.template().split("{}").enumerate() {
            if n > 0 {
                values.next().map_or(Ok(()), |value| value.fmt(f))?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// A time that has passed, in seconds.
pub(super) struct Age(pub(super) Duration);

impl Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.as_secs_f64())
    }
}

/// What the driver has done with one connection.
#[derive(Debug)]
pub(super) struct ConnectionRules {
    id: ConnectionId,
    /// A program ends by its exit, and not with its two directions.
    is_program: bool,
    is_open: bool,
    /// It is open, and the driver is to secure it.
    is_securing: bool,
    /// Whether the driver took bytes to write.
    has_writes: bool,
    /// Bytes that the driver took and has not reported as written.
    unwritten: usize,
    read_closed: bool,
    /// Number of reads since reading was turned off. One may have been under way.
    reads_while_off: Option<u32>,
    write_half: bool,
    /// Since when `Closed` is due, and by which rule.
    closing: Option<(Instant, Rule)>,
}

impl ConnectionRules {
    /// Returns the rules for a connection that the driver is to open.
    pub(super) const fn opening(id: ConnectionId, is_program: bool) -> Self {
        Self {
            id,
            is_program,
            is_open: false,
            is_securing: false,
            has_writes: false,
            unwritten: 0,
            read_closed: false,
            reads_while_off: None,
            write_half: false,
            closing: None,
        }
    }

    /// Returns the rules for a connection that is open already.
    pub(super) const fn open(id: ConnectionId, is_program: bool) -> Self {
        Self { is_open: true, ..Self::opening(id, is_program) }
    }

    pub(super) const fn id(&self) -> ConnectionId {
        self.id
    }

    /// Checks an event that the driver reports.
    pub(super) fn event(&mut self, now: Instant, event: &IoEvent) -> Result<(), String> {
        match event {
            IoEvent::Opened(_) if self.is_open || self.is_securing => self.broken(Rule::OpenedTwice, &[])?,
            IoEvent::Opened(_) => self.is_open = true,
            IoEvent::Secured if !self.is_securing => self.broken(Rule::NotSecuring, &[])?,
            IoEvent::Secured => (self.is_open, self.is_securing) = (true, false),
            // It could not be opened, or not in time.
            IoEvent::Closed(_) if !self.is_open => {}
            _ if self.is_securing => self.broken(Rule::BeforeSecured, &[&name(event)])?,
            _ if !self.is_open => self.broken(Rule::BeforeOpened, &[&name(event)])?,
            IoEvent::Read(_) | IoEvent::ReadClosed if self.read_closed => {
                self.broken(Rule::AfterReadClosed, &[&name(event)])?;
            }
            IoEvent::Read(bytes) if bytes.is_empty() => self.broken(Rule::EmptyRead, &[])?,
            IoEvent::Read(_) => self.has_read()?,
            IoEvent::ReadClosed => self.read_closed = true,
            IoEvent::Written(n) if *n > self.unwritten => self.broken(Rule::Written, &[n, &self.unwritten])?,
            IoEvent::Written(n) => self.unwritten -= n,
            IoEvent::Closed(Closed::Eof) if !self.may_have_ended() => self.broken(Rule::EarlyEof, &[])?,
            IoEvent::Closed(_) => {}
        }
        self.both_ended(now);
        Ok(())
    }

    /// Notes that the driver is to secure the connection.
    pub(super) const fn secure(&mut self) {
        (self.is_open, self.is_securing) = (false, true);
    }

    /// Notes bytes that the driver is to write.
    pub(super) const fn write(&mut self, n: usize) {
        self.has_writes = true;
        self.unwritten += n;
    }

    /// Notes whether the driver is to read.
    pub(super) fn read(&mut self, reads: bool) {
        self.reads_while_off = if reads { None } else { self.reads_while_off.or(Some(0)) };
    }

    /// Notes that the driver is to end the connection in this way.
    pub(super) fn close(&mut self, now: Instant, how: Shutdown) {
        match how {
            Shutdown::WriteHalf => self.write_half = true,
            Shutdown::Terminate => {}
            Shutdown::Abort => {
                self.read(false);
                self.closing.get_or_insert((now, Rule::Aborted));
            }
        }
        self.both_ended(now);
    }

    /// Returns when the driver must have reported `Closed`, if it must.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.closing.map(|(since, _)| since + PATIENCE)
    }

    /// Checks that `Closed` is not overdue.
    pub(super) fn check(&self, now: Instant) -> Result<(), String> {
        match self.closing {
            Some((since, rule)) if now >= since + PATIENCE => self.broken(rule, &[&Age(now - since)]),
            _ => Ok(()),
        }
    }

    fn has_read(&mut self) -> Result<(), String> {
        if let Some(reads) = &mut self.reads_while_off {
            *reads += 1;
            if *reads > 1 {
                return self.broken(Rule::ReadOff, &[]);
            }
        }
        Ok(())
    }

    /// Returns whether the direction of the driver may have ended. A failed write ends it too, and
    /// the driver does not report that.
    const fn may_have_ended(&self) -> bool {
        self.is_program || self.write_half || self.has_writes || self.closing.is_some()
    }

    fn both_ended(&mut self, now: Instant) {
        let ended = self.read_closed && self.write_half && self.unwritten == 0;
        if ended && !self.is_program {
            self.closing.get_or_insert((now, Rule::BothEnded));
        }
    }

    fn broken(&self, rule: Rule, values: &[&dyn Display]) -> Result<(), String> {
        broken(rule, Some(self.id), values)
    }
}

/// Returns the name of an event.
pub(super) const fn name(event: &IoEvent) -> &'static str {
    match event {
        IoEvent::Opened(_) => "Opened",
        IoEvent::Secured => "Secured",
        IoEvent::Read(_) => "Read",
        IoEvent::ReadClosed => "ReadClosed",
        IoEvent::Written(_) => "Written",
        IoEvent::Closed(_) => "Closed",
    }
}
