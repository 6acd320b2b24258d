//! A server whose standard streams are not both plain pipes of its own: other processes share them,
//! or they are sockets, or named.

use super::raw::{INITIALIZE, PING, say};
use super::served::child;
use super::*;
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat, open};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

/// The ends of a client, those of its server, and a second client-side handle of the latter.
struct Ends {
    to_server: File,
    from_server: File,
    input: OwnedFd,
    output: OwnedFd,
}

fn pipes() -> Ends {
    let ((input, to_server), (from_server, output)) =
        (std::io::pipe().expect("a pipe"), std::io::pipe().expect("a pipe"));
    let (to_server, from_server) = (OwnedFd::from(to_server).into(), OwnedFd::from(from_server).into());
    Ends { to_server, from_server, input: input.into(), output: output.into() }
}

/// One socket for both directions.
fn socket() -> Ends {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    let again = |socket: &OwnedFd| socket.try_clone().expect("a descriptor");
    Ends { to_server: again(&ours).into(), from_server: ours.into(), input: again(&theirs), output: theirs }
}

fn start(input: &OwnedFd, output: &OwnedFd) -> Child {
    let again = |end: &OwnedFd| Stdio::from(end.try_clone().expect("a descriptor"));
    child().to_command([]).stdin(again(input)).stdout(again(output)).stderr(Stdio::null()).spawn().expect("started")
}

/// Reads until the response to a request with id 1.
fn answered(from_server: &mut impl BufRead) {
    let mut line = String::new();
    while !(line.starts_with('{') && line.contains(r#""id":1"#)) {
        line.clear();
        assert!(from_server.read_line(&mut line).expect("text") > 0, "no response");
    }
}

fn does_not_block(stream: &OwnedFd) -> bool {
    fcntl_getfl(stream).expect("flags").contains(OFlags::NONBLOCK)
}

// covers: B-143
#[test]
fn shared_standard_streams_go_on_blocking() {
    let _limit = limit();
    for ends in [pipes(), socket()] {
        let Ends { mut to_server, from_server, input, output } = ends;
        let mut server = start(&input, &output);
        let mut from_server = BufReader::new(from_server);
        for _ in 0..3 {
            say(&mut to_server, PING);
            answered(&mut from_server);
            assert!(!does_not_block(&input) && !does_not_block(&output));
        }
        end(to_server.as_fd());
        drop(to_server);
        assert!(server.wait().expect("a status").success());
        assert!(!does_not_block(&input) && !does_not_block(&output));
    }
}

/// Ends the input of the server, also if it is a socket.
fn end(to_server: impl AsFd) {
    let _ = rustix::net::shutdown(to_server, rustix::net::Shutdown::Write);
}

// covers: B-143, B-147
#[test]
fn output_ends_soon_after_the_input() {
    let _limit = limit();
    for ends in [pipes, socket] {
        // A busy machine may delay the exit of a process: one of several has to be quick.
        let quick = (0..10).any(|_| {
            let Ends { mut to_server, from_server, input, output } = ends();
            let mut server = start(&input, &output);
            drop((input, output));
            let mut from_server = BufReader::new(from_server);
            say(&mut to_server, PING);
            answered(&mut from_server);
            let began = Instant::now();
            end(to_server.as_fd());
            drop(to_server);
            from_server.read_to_end(&mut Vec::new()).expect("the end");
            let took = began.elapsed();
            assert!(server.wait().expect("a status").success());
            took < Duration::from_millis(100)
        });
        assert!(quick);
    }
}

// covers: B-143
#[test]
fn server_on_a_named_pipe_without_writers_responds_and_ends() {
    let _limit = limit();
    let path = temp("named");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let input = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("a reader");
    let mut writer = File::options().write(true).open(&path).expect("a writer");
    writeln!(writer, "{INITIALIZE}").expect("written");
    drop(writer);
    fcntl_setfl(&input, OFlags::empty()).expect("it blocks");
    let Ends { from_server, output, .. } = pipes();
    let mut server = start(&input, &output);
    drop(output);
    std::fs::remove_file(path).expect("a pipe");
    let mut from_server = BufReader::new(from_server);
    answered(&mut from_server);
    from_server.read_to_end(&mut Vec::new()).expect("the end");
    assert!(server.wait().expect("a status").success());
}

// covers: B-143, B-142
#[test]
fn server_without_a_reader_ends() {
    let _limit = limit();
    let Ends { mut to_server, from_server, input, output } = pipes();
    drop(from_server);
    let mut server = start(&input, &output);
    drop((input, output));
    // The server may have ended already.
    let _ = to_server.write_all(PING.as_bytes());
    drop(to_server);
    server.wait().expect("it ends");
}
