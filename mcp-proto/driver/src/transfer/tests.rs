use super::super::ending::{DRAIN, VANISH};
use super::*;
use alloc::vec::Vec;
use mcp_proto::exchange::{Origin, Program};
use mcp_proto::limits::Limits;

const START: Instant = Instant::from_millis(0);

fn failed(kind: ErrorKind) -> io::Error {
    kind.into()
}

fn outputs(transfer: &mut Transfer, now: Instant) -> Vec<TransferOutput> {
    core::iter::from_fn(|| transfer.poll_output(now)).collect()
}

fn events(transfer: &mut Transfer) -> Vec<IoEvent> {
    let event = |output| match output {
        TransferOutput::Event(event) => event,
        TransferOutput::Signal(signal) => panic!("{signal:?} to a socket"),
    };
    outputs(transfer, START).into_iter().map(event).collect()
}

fn socket() -> Transfer {
    let origin = Origin::new(false, "localhost", 80);
    opened(Transfer::opening(&Endpoint::Origin(origin)), false)
}

fn program(stderr: bool) -> Transfer {
    opened(Transfer::opening(&Endpoint::Program(Program::new("p"))), stderr)
}

fn opened(mut transfer: Transfer, stderr: bool) -> Transfer {
    assert!(transfer.opened(START, Peer::default(), stderr));
    let first = TransferOutput::Event(IoEvent::Opened(Peer::default()));
    assert_eq!(outputs(&mut transfer, START), [first]);
    transfer
}

fn write(transfer: &mut Transfer, text: &'static str) {
    transfer.act(START, ConnectionOutput::Write(text.into()));
}

fn close(transfer: &mut Transfer, how: Shutdown) {
    transfer.act(START, ConnectionOutput::Close(how));
}

/// Carries out the steps that are left, each at once.
fn write_all(transfer: &mut Transfer) {
    while let Some(step) = transfer.step() {
        let n = match step {
            Step::Write(pieces) => pieces.slices().iter().map(|slice| slice.len()).sum(),
            Step::Flush | Step::End => 0,
        };
        transfer.wrote(Ok(n));
    }
}

fn exit(code: i32, stderr: &str) -> TransferOutput {
    TransferOutput::Event(IoEvent::Closed(Closed::Exited(ExitStatus::exited(code).with_stderr(stderr))))
}

// covers: S2-09
#[test]
fn rest_of_a_step_is_taken_elsewhere_and_stays_in_order() {
    let mut transfer = socket();
    let text = |step: Option<Step>| match step {
        Some(Step::Write(pieces)) => pieces.iter().map(|piece| piece.to_vec()).collect::<Vec<_>>().concat(),
        other => panic!("{other:?}"),
    };
    write(&mut transfer, "first");
    assert!(matches!(transfer.step(), Some(Step::Write(_))));
    transfer.wrote(Ok(2));
    write(&mut transfer, "second");
    assert_eq!(text(transfer.take_step()), b"rst");
    assert!(transfer.step().is_none() && transfer.is_writing(), "the step is elsewhere");
    transfer.wrote(Ok(3));
    assert!(transfer.step().is_none(), "nobody has said that it is complete");
    assert_eq!(text(transfer.take_step()), b"second");
    transfer.wrote(Ok(6));
    assert!(matches!(transfer.take_step(), Some(Step::Flush)));
    transfer.wrote(Ok(0));
    assert!(transfer.take_step().is_none());
    // From here on, either may go on.
    write(&mut transfer, "third");
    assert!(matches!(transfer.step(), Some(Step::Write(_))));
    close(&mut transfer, Shutdown::WriteHalf);
    write_all(&mut transfer);
    assert!(!transfer.writes());
}

#[test]
fn socket_closes_once_both_directions_have_ended() {
    for reads_first in [true, false] {
        let mut transfer = socket();
        write(&mut transfer, "last");
        close(&mut transfer, Shutdown::WriteHalf);
        if reads_first {
            transfer.read(Ok(Bytes::new()));
            assert_eq!(events(&mut transfer), [IoEvent::ReadClosed]);
            write_all(&mut transfer);
            assert_eq!(events(&mut transfer), [IoEvent::Written(4), IoEvent::Closed(Closed::Eof)]);
        } else {
            write_all(&mut transfer);
            assert_eq!(events(&mut transfer), [IoEvent::Written(4)]);
            assert!(transfer.wants_read() && !transfer.writes());
            transfer.read(Ok(Bytes::new()));
            assert_eq!(events(&mut transfer), [IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)]);
        }
        assert!(transfer.is_closed() && transfer.poll_output(START).is_none());
    }
}

// covers: B-144
#[test]
fn response_is_read_after_a_failed_write() {
    for error in [Err(failed(ErrorKind::BrokenPipe)), Ok(0)] {
        let mut transfer = socket();
        write(&mut transfer, "request");
        assert!(transfer.step().is_some());
        transfer.wrote(error);
        assert!(transfer.wants_read() && !transfer.writes() && transfer.step().is_none());
        transfer.read(Ok("response".into()));
        transfer.read(Ok(Bytes::new()));
        let read = IoEvent::Read("response".into());
        assert_eq!(events(&mut transfer), [read, IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)]);
    }
}

#[test]
fn failed_write_or_flush_closes_an_accepted_socket() {
    for flushes in [false, true] {
        let mut transfer = Transfer::accepted();
        write(&mut transfer, "response");
        assert!(transfer.step().is_some());
        if flushes {
            transfer.wrote(Ok(8));
            assert!(matches!(transfer.step(), Some(Step::Flush)));
        }
        transfer.wrote(Err(failed(ErrorKind::BrokenPipe)));
        assert!(!transfer.wants_read());
        assert_eq!(events(&mut transfer).last(), Some(&IoEvent::Closed(Closed::Reset)));
    }
}

#[test]
fn reset_closes_a_socket_at_once_and_drops_what_is_queued() {
    for mut transfer in [socket(), Transfer::accepted(), Transfer::given()] {
        write(&mut transfer, "unwritten");
        transfer.read(Err(failed(ErrorKind::ConnectionReset)));
        assert!(!transfer.wants_read() && transfer.step().is_none());
        assert_eq!(events(&mut transfer), [IoEvent::Closed(Closed::Reset)]);
    }
}

#[test]
fn abort_closes_a_socket_at_once() {
    for mut transfer in [socket(), Transfer::accepted(), Transfer::given()] {
        write(&mut transfer, "unwritten");
        assert!(transfer.step().is_some() && transfer.is_writing());
        close(&mut transfer, Shutdown::Abort);
        assert!(!transfer.wants_read() && !transfer.is_writing());
        assert_eq!(events(&mut transfer), [IoEvent::Closed(Closed::Aborted)]);
        transfer.wrote(Ok(3));
        transfer.read(Ok("late".into()));
        assert!(events(&mut transfer).is_empty());
    }
}

#[test]
fn interrupted_operations_are_repeated() {
    let mut transfer = socket();
    write(&mut transfer, "four");
    for kind in [ErrorKind::WouldBlock, ErrorKind::Interrupted] {
        assert!(matches!(transfer.step(), Some(Step::Write(_))));
        transfer.wrote(Err(failed(kind)));
        transfer.read(Err(failed(kind)));
        transfer.stderr(Err(failed(kind)));
        assert!(transfer.is_writing() && transfer.wants_read() && events(&mut transfer).is_empty());
    }
    write_all(&mut transfer);
    assert_eq!(events(&mut transfer), [IoEvent::Written(4)]);
}

#[test]
fn partial_writes_are_reported_with_either_kind_of_step() {
    let mut here = socket();
    write(&mut here, "abcdef");
    for left in [6, 4, 2] {
        let Some(Step::Write(pieces)) = here.step() else { panic!("{left} bytes are left") };
        assert_eq!(pieces.slices().iter().map(|slice| slice.len()).sum::<usize>(), left);
        here.wrote(Ok(2));
    }
    assert!(matches!(here.step(), Some(Step::Flush)));
    let mut elsewhere = socket();
    write(&mut elsewhere, "abcdef");
    assert!(matches!(elsewhere.take_step(), Some(Step::Write(_))) && elsewhere.is_writing());
    (0..3).for_each(|_| elsewhere.wrote(Ok(2)));
    assert!(matches!(elsewhere.take_step(), Some(Step::Flush)));
    elsewhere.wrote(Ok(0));
    assert!(elsewhere.take_step().is_none() && !elsewhere.has_waiting_step() && !elsewhere.is_writing());
    assert_eq!(events(&mut here), events(&mut elsewhere));
    write(&mut elsewhere, "more");
    assert!(elsewhere.has_waiting_step(), "the writer has to be woken");
}

#[test]
fn reading_follows_the_engine() {
    let mut transfer = socket();
    transfer.act(START, ConnectionOutput::Read(false));
    assert!(!transfer.wants_read() && transfer.reads());
    // A read was in progress.
    transfer.read(Ok("one".into()));
    assert_eq!(events(&mut transfer), [IoEvent::Read("one".into())]);
    transfer.act(START, ConnectionOutput::Read(true));
    assert!(transfer.wants_read());
    transfer.read(Ok(Bytes::new()));
    assert!(!transfer.wants_read() && !transfer.reads());
}

// covers: S2-13
#[test]
fn program_closes_after_its_exit_and_its_output() {
    let mut transfer = program(true);
    transfer.exited(START, ExitStatus::exited(3));
    assert!(!transfer.is_running() && transfer.wants_read());
    transfer.read(Ok("last words".into()));
    transfer.read(Err(failed(ErrorKind::ConnectionReset)));
    let read = [IoEvent::Read("last words".into()), IoEvent::ReadClosed].map(TransferOutput::Event);
    assert_eq!(outputs(&mut transfer, START), read, "its standard error is open");
    transfer.stderr(Ok(b"no such file"));
    transfer.stderr(Ok(b""));
    let end = [TransferOutput::Signal(Signal::KillGroup), exit(3, "no such file")];
    assert_eq!(outputs(&mut transfer, START), end);
    assert!(transfer.is_closed());
}

// covers: S2-13
#[test]
fn descendant_with_the_output_delays_the_end_by_250_ms() {
    for (stderr, reads) in [(true, false), (false, true)] {
        let mut transfer = program(stderr);
        if !reads {
            transfer.read(Ok(Bytes::new()));
        }
        transfer.exited(START, ExitStatus::killed(9));
        let due = transfer.poll_timeout().expect("a deadline");
        assert_eq!(due, START + DRAIN);
        assert!(DRAIN * 2 <= Limits::default().client.exit_grace, "calls end with the exit status");
        let early = outputs(&mut transfer, Instant::from_millis(249));
        assert_eq!(early.len(), usize::from(!reads));
        assert_eq!(outputs(&mut transfer, due).len(), 2);
        assert!(transfer.is_closed() && transfer.poll_timeout().is_none());
    }
}

#[test]
fn signals_reach_a_running_program_only() {
    let mut transfer = program(false);
    close(&mut transfer, Shutdown::Terminate);
    close(&mut transfer, Shutdown::Abort);
    let signals = [Signal::Terminate, Signal::Kill].map(TransferOutput::Signal);
    assert_eq!(outputs(&mut transfer, START), signals);
    assert!(!transfer.reads() && !transfer.writes() && transfer.is_running());
    transfer.exited(START, ExitStatus::killed(9));
    close(&mut transfer, Shutdown::Terminate);
    close(&mut transfer, Shutdown::Abort);
    let killed = TransferOutput::Event(IoEvent::Closed(Closed::Exited(ExitStatus::killed(9))));
    assert_eq!(outputs(&mut transfer, START), [TransferOutput::Signal(Signal::KillGroup), killed]);
}

#[test]
fn program_that_cannot_be_killed_is_left_behind_after_a_second() {
    let mut transfer = program(false);
    close(&mut transfer, Shutdown::Abort);
    assert_eq!(outputs(&mut transfer, START), [TransferOutput::Signal(Signal::Kill)]);
    assert_eq!(transfer.poll_timeout(), Some(START + VANISH));
    let left = TransferOutput::Event(IoEvent::Closed(Closed::Aborted));
    assert_eq!(outputs(&mut transfer, START + VANISH), [left]);
}

#[test]
fn socket_aborted_while_it_opens_is_closed_at_once() {
    let mut transfer = Transfer::opening(&Endpoint::Unix("/run/s".into()));
    assert!(!transfer.wants_read() && transfer.step().is_none() && outputs(&mut transfer, START).is_empty());
    close(&mut transfer, Shutdown::Abort);
    assert_eq!(events(&mut transfer), [IoEvent::Closed(Closed::Aborted)]);
    assert!(!transfer.opened(START, Peer::default(), false), "it is not wanted any more");
    transfer.not_opened(Closed::Refused);
    assert!(events(&mut transfer).is_empty() && transfer.is_closed());
}

#[test]
fn program_aborted_while_it_starts_is_killed_afterwards() {
    let mut transfer = Transfer::opening(&Endpoint::Program(Program::new("p")));
    close(&mut transfer, Shutdown::Abort);
    assert!(outputs(&mut transfer, START).is_empty(), "it may have started");
    assert!(!transfer.opened(START, Peer::default(), false));
    assert_eq!(outputs(&mut transfer, START), [TransferOutput::Signal(Signal::Kill)]);
    transfer.exited(START, ExitStatus::killed(9));
    assert_eq!(outputs(&mut transfer, START).len(), 2);
    let mut missing = Transfer::opening(&Endpoint::Program(Program::new("p")));
    missing.not_opened(Closed::Unreachable("no such file".into()));
    assert_eq!(events(&mut missing), [IoEvent::Closed(Closed::Unreachable("no such file".into()))]);
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    ReadEnd,
    ReadFailed,
    Write,
    Wrote,
    WriteFailed,
    Finish,
    Terminate,
    Abort,
    Exit,
    Stderr,
    Poll,
}

/// Every sequence of five operations (four with debug assertions) on every kind of connection: at
/// most one `Closed`, nothing after it, no byte written twice, and the connection closes once
/// everything has ended.
#[test]
fn every_sequence_ends_with_one_closed() {
    use Operation::*;
    const LEN: usize = if cfg!(debug_assertions) { 4 } else { 5 };
    const ALL: [Operation; 12] =
        [Read, ReadEnd, ReadFailed, Write, Wrote, WriteFailed, Finish, Terminate, Abort, Exit, Stderr, Poll];
    let kinds: [fn() -> Transfer; 4] = [socket, Transfer::accepted, Transfer::given, || program(true)];
    for kind in kinds {
        for number in 0..ALL.len().pow(LEN as u32) {
            let sequence: [Operation; LEN] =
                core::array::from_fn(|at| ALL[number / ALL.len().pow(at as u32) % ALL.len()]);
            check(kind(), &sequence);
        }
    }
}

fn check(mut transfer: Transfer, sequence: &[Operation]) {
    let (mut seen, mut queued) = (Vec::new(), 0);
    for step in sequence {
        match step {
            Operation::Read => transfer.read(Ok("r".into())),
            Operation::ReadEnd => transfer.read(Ok(Bytes::new())),
            Operation::ReadFailed => transfer.read(Err(failed(ErrorKind::ConnectionReset))),
            Operation::Write => {
                write(&mut transfer, "ab");
                queued += 2;
            }
            Operation::Wrote => {
                if let Some(step) = transfer.step() {
                    let n = usize::from(matches!(step, Step::Write(_)));
                    transfer.wrote(Ok(n));
                }
            }
            Operation::WriteFailed => {
                transfer.step();
                transfer.wrote(Err(failed(ErrorKind::BrokenPipe)));
            }
            Operation::Finish => close(&mut transfer, Shutdown::WriteHalf),
            Operation::Terminate => close(&mut transfer, Shutdown::Terminate),
            Operation::Abort => close(&mut transfer, Shutdown::Abort),
            Operation::Exit => transfer.exited(START, ExitStatus::exited(0)),
            Operation::Stderr => transfer.stderr(Ok(b"")),
            Operation::Poll => seen.extend(outputs(&mut transfer, START)),
        }
    }
    close(&mut transfer, Shutdown::WriteHalf);
    write_all(&mut transfer);
    transfer.read(Ok(Bytes::new()));
    transfer.exited(START, ExitStatus::exited(0));
    seen.extend(outputs(&mut transfer, START + DRAIN + VANISH));
    let is_closed = |output: &TransferOutput| matches!(output, TransferOutput::Event(IoEvent::Closed(_)));
    assert_eq!(seen.iter().position(is_closed), Some(seen.len() - 1), "{sequence:?}: {seen:?}");
    let written = |output: &TransferOutput| match output {
        TransferOutput::Event(IoEvent::Written(n)) => *n,
        _ => 0,
    };
    assert!(seen.iter().map(written).sum::<usize>() <= queued, "{sequence:?}: {seen:?}");
    assert!(transfer.is_closed() && !transfer.wants_read() && transfer.step().is_none());
}
