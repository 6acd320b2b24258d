//! The end of a connection: decides when a socket, a pair of streams or a program is closed, and
//! how. No stream, no clock: the driver reports what the operating system did.

use core::time::Duration;
use mcp_proto::exchange::{Closed, ExitStatus};
use mcp_proto::time::Instant;

/// Time after the exit of a program in which the rest of its output is read. A process that the
/// program started can hold the output open, but cannot delay the end of the connection. It is half
/// of the time that the engine waits for the exit after the end of the output
/// ([`exit_grace`](mcp_proto::limits::ClientLimits::exit_grace)): a busy machine must not decide
/// whether a call ends with the exit or without it.
pub const DRAIN: Duration = Duration::from_millis(250);

/// Time in which a killed program has to exit. After it, the connection ends without the program.
pub const VANISH: Duration = Duration::from_secs(1);

/// How to end a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Ask the program and its group to exit: `SIGTERM`. Without effect on Windows.
    Terminate,
    /// End the program and its group at once: `SIGKILL`, or the end of the job on Windows.
    Kill,
    /// The program has exited: end the other processes of its group, if it leads one, and then reap
    /// the program. Until it is reaped, no other process can get the id of the group.
    KillGroup,
}

/// The state of the two directions of one open connection, and of the program behind it.
///
/// * A socket that the driver opened, or a pair of streams, has closed once both directions have
///   ended. Reading continues after a failed write, since the response may have arrived already.
/// * An accepted socket has also closed once a write has failed: its client cannot receive a
///   response.
/// * A program has closed once it has exited, and its output was read to the end or for
///   [`DRAIN`]. Its group ends first.
/// * A reset closes anything but a program, whose exit status is still to come.
/// * An aborted socket has closed. An aborted program has closed once it has exited, after
///   [`VANISH`] at the latest.
///
/// [`Transfer`](super::Transfer) uses it, and most drivers use that.
#[derive(Debug)]
pub struct Ending {
    kind: EndingKind,
    reading: bool,
    writing: bool,
    cut: Option<Closed>,
}

#[derive(Debug)]
enum EndingKind {
    /// A socket that the driver opened, or a pair of streams.
    Opened,
    Accepted,
    Program {
        life: ProgramLife,
        stderr: bool,
    },
}

/// The life of a program.
#[derive(Debug)]
enum ProgramLife {
    Running,
    /// It was killed, and has not exited.
    Killed(Instant),
    Exited(Instant, ExitStatus),
}

impl Ending {
    /// Returns the state of a socket that the driver opened, or of a pair of streams.
    pub const fn opened() -> Self {
        Self::new(EndingKind::Opened)
    }

    /// Returns the state of a socket that the driver accepted.
    pub const fn accepted() -> Self {
        Self::new(EndingKind::Accepted)
    }

    /// Returns the state of a running program. `stderr` tells whether the driver reads its standard
    /// error.
    pub const fn program(stderr: bool) -> Self {
        Self::new(EndingKind::Program { life: ProgramLife::Running, stderr })
    }

    const fn new(kind: EndingKind) -> Self {
        Self { kind, reading: true, writing: true, cut: None }
    }

    /// The peer has sent everything.
    pub fn read_ended(&mut self) {
        self.reading = false;
    }

    /// A read has failed. Returns whether that is only the end of the output, as for a program.
    pub fn read_failed(&mut self) -> bool {
        self.reading = false;
        let is_program = matches!(self.kind, EndingKind::Program { .. });
        if !is_program {
            self.cut(Closed::Reset);
        }
        is_program
    }

    /// Nothing more is read. The connection closes for this reason once the driver has ended its
    /// own direction, unless it is a program.
    pub fn fail(&mut self, why: Closed) {
        self.reading = false;
        self.cut.get_or_insert(why);
    }

    /// The driver has ended its own direction.
    pub fn write_ended(&mut self) {
        self.writing = false;
    }

    /// A write has failed.
    pub fn write_failed(&mut self) {
        self.writing = false;
        if matches!(self.kind, EndingKind::Accepted) {
            self.cut(Closed::Reset);
        }
    }

    /// The standard error of the program has ended.
    pub fn stderr_ended(&mut self) {
        if let EndingKind::Program { stderr, .. } = &mut self.kind {
            *stderr = false;
        }
    }

    /// The program has exited.
    pub fn exited(&mut self, now: Instant, status: ExitStatus) {
        if let EndingKind::Program { life: life @ (ProgramLife::Running | ProgramLife::Killed(_)), .. } = &mut self.kind
        {
            *life = ProgramLife::Exited(now, status);
        }
    }

    /// The connection is to end at once. Nothing more is read or written.
    pub fn abort(&mut self, now: Instant) {
        match &mut self.kind {
            EndingKind::Program { life, .. } => {
                (self.reading, self.writing) = (false, false);
                if matches!(life, ProgramLife::Running) {
                    *life = ProgramLife::Killed(now);
                }
            }
            EndingKind::Opened | EndingKind::Accepted => self.cut(Closed::Aborted),
        }
    }

    /// Returns whether there is a program that has not exited.
    pub const fn is_running(&self) -> bool {
        matches!(self.kind, EndingKind::Program { life: ProgramLife::Running | ProgramLife::Killed(_), .. })
    }

    /// Returns whether there is something to read.
    pub const fn reads(&self) -> bool {
        self.reading
    }

    /// Returns whether the peer may still accept bytes.
    pub const fn writes(&self) -> bool {
        self.writing
    }

    /// Returns how the connection has closed, if it has.
    pub fn closed(&self, now: Instant) -> Option<Closed> {
        match &self.kind {
            EndingKind::Program { life: ProgramLife::Running, .. } => None,
            EndingKind::Program { life: ProgramLife::Killed(at), .. } => {
                (now >= *at + VANISH).then_some(Closed::Aborted)
            }
            EndingKind::Program { life: ProgramLife::Exited(at, status), stderr } => {
                let is_drained = !(self.reading || *stderr) || now >= *at + DRAIN;
                is_drained.then(|| Closed::Exited(status.clone()))
            }
            EndingKind::Opened | EndingKind::Accepted if self.reading || self.writing => None,
            EndingKind::Opened | EndingKind::Accepted => Some(self.cut.clone().unwrap_or(Closed::Eof)),
        }
    }

    /// Returns when to call [`closed`](Self::closed) again, even if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.kind {
            EndingKind::Program { life: ProgramLife::Killed(at), .. } => Some(*at + VANISH),
            EndingKind::Program { life: ProgramLife::Exited(at, _), .. } => Some(*at + DRAIN),
            EndingKind::Program { life: ProgramLife::Running, .. } | EndingKind::Opened | EndingKind::Accepted => None,
        }
    }

    fn cut(&mut self, why: Closed) {
        (self.reading, self.writing) = (false, false);
        self.cut.get_or_insert(why);
    }
}
