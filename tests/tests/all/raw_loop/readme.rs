use mcp_proto::exchange::{Action, Closed, IoEvent, Shutdown};
use mcp_proto::{ClientCommands, ClientConfig, Instant, Page, Tool, client, tools, wired::WiredClient};
use std::io::{ErrorKind, Read, Write};
use std::{error::Error, net, os::unix::net::UnixStream, sync::Arc, time::Duration};

fn tools_of(mut socket: UnixStream, config: ClientConfig, seed: [u8; 32]) -> Result<Page<Tool>, Box<dyn Error>> {
    let started = std::time::Instant::now();
    let now = || Instant::new(started.elapsed());
    let (mut engine, connection) = WiredClient::over(Arc::new(config), seed, now())?;
    let (list, mut outcome) = (engine.call(now(), tools::list())?, None);
    loop {
        while let Some(action) = engine.poll_output() {
            match action {
                Action::Write(_, mut bytes) => {
                    while !bytes.is_empty() {
                        let n = socket.write(&bytes)?; // perhaps a part of them
                        drop(bytes.split_to(n));
                        engine.handle_io(now(), connection, IoEvent::Written(n));
                    }
                }
                Action::Close(_, Shutdown::WriteHalf) => socket.shutdown(net::Shutdown::Write)?,
                Action::Close(..) => engine.handle_io(now(), connection, IoEvent::Closed(Closed::Aborted)),
                Action::Event(client::Event::Ended { call, outcome: ended }) if call == list.id() => {
                    outcome = Some(ended);
                    engine.close(now());
                }
                Action::Event(client::Event::Terminated(_)) => return Ok(list.finish(outcome.expect("ended"))?),
                _ => {} // notices, and what else an application may want to know
            }
        }
        let (mut buffer, wait) = ([0; 4096], engine.poll_timeout().map(|at| at - now()));
        socket.set_read_timeout(wait.map(|wait| wait.max(Duration::from_millis(1))))?;
        match socket.read(&mut buffer) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Ok(n @ 1..) => engine.handle_io(now(), connection, IoEvent::Read(buffer[..n].to_vec().into())),
            Ok(0) | Err(_) => engine.handle_io(now(), connection, IoEvent::Closed(Closed::Eof)),
        }
        engine.handle_timeout(now());
    }
}
