//! The server of a run, and how its links suffer. On lines, messages suffer as well, and the
//! program exits.

use super::super::accept;
use super::super::app::Application;
use super::super::client::Client;
use super::super::digest::log::{Engine, Op};
use super::super::fault::Fault;
use super::super::net::Odds;
use super::super::world::Ends;
use super::{Scenario, Side, Transport, World};
use bytes::Bytes;
use mcp_proto::client::{Event, State, Termination, Timer};
use mcp_proto::exchange::{Action, Closed, ConnectionId, ExitStatus, IoEvent, Shutdown};
use mcp_proto::input::{Change, Input, RequestKey, ServerCommand};
use mcp_proto::wired::{WiredServer, WiredTimer};
use mcp_proto::{CallError, Instant, ServerCommands, server};
use std::time::Duration;

/// A step of the server or of an application.
pub enum Step {
    /// The application of a client does something.
    Operation,
    /// The timer of the server fires.
    Tick,
    /// A task of the server does the next thing.
    Task(RequestKey),
}

/// The server and its application.
pub struct Duplex {
    pub(super) scenario: Scenario,
    pub(super) server: WiredServer,
    pub(super) app: Application,
    /// Whether it has ended.
    pub(super) is_over: bool,
}

impl Ends for Duplex {
    type Client = Side;
    type Step = Step;
    const ODDS: Odds = Odds {
        connect: (&[Fault::Connect], 400),
        opening: 50,
        stall: ([Fault::Stall; 2], 100, 40_000),
        cut: 400,
        delay: 100,
        half_close: (Fault::HalfClose, 16),
        reset: ([Fault::Reset; 2], 16),
    };

    fn steps(world: &World) -> [Vec<(Instant, Step)>; 2] {
        let first = world.has_operations().then_some((world.next_operation, Step::Operation));
        let tick = world.end.server.poll_timeout().map(|at| (at, Step::Tick));
        let tasks = world.end.app.tasks.iter().map(|(key, task)| (task.next, Step::Task(*key)));
        [first.into_iter().collect(), tick.into_iter().chain(tasks).collect()]
    }

    fn step(world: &mut World, step: Step) {
        match step {
            Step::Operation => world.operate(),
            Step::Tick => {
                world.net.chaos.steps += 1;
                world.trace(|| "server tick".into());
                world.log.push(Engine::Server, world.net.now, || Op::Tick);
                world.end.server.handle_timeout(world.net.now);
                world.drain_server();
            }
            Step::Task(key) => {
                world.log.push(Engine::Server, world.net.now, || Op::Act(key.number()));
                let command = world.end.app.act(key, world.net.now);
                world.command(command);
                world.drain_server();
            }
        }
    }

    fn accept(world: &mut World, _owner: u64, _at_client: ConnectionId) -> Option<ConnectionId> {
        world.log.push(Engine::Server, world.net.now, || Op::Accept);
        accept(&mut world.end.server, world.net.now, world.end.scenario.settings.kind())
    }

    fn at_server(world: &mut World, at_server: ConnectionId, event: IoEvent) {
        let input = Input::Event(at_server, event);
        world.log.server(world.net.now, &input);
        let _ = world.end.server.apply(world.net.now, input);
        world.drain_server();
    }

    fn opened(world: &mut World) {
        world.drain_server();
    }

    /// Pings never end, but a run does.
    fn timer(world: &World, client: &Client<Side>) -> Option<Instant> {
        let is_ping = client.engine.timeout_reason() == Some(WiredTimer::Engine(Timer::Ping));
        client.engine.poll_timeout().filter(|_| world.has_operations() || !is_ping)
    }

    fn event(world: &mut World, n: usize, event: Event) {
        let (client, scenario) = (&world.clients[n], &world.end.scenario);
        match event {
            Event::Ended { call, outcome } => {
                let tag = client.made[&call].tag;
                if let (Ok(result), Some(tag)) = (&outcome, tag) {
                    let text = result.json.as_str();
                    let right = text.contains(&format!("\"text\":\"{tag}:")) || text.contains("\"isError\":true");
                    assert!(right, "{call:?} with tag {tag} got {text}");
                }
                // Without errors and delays, a slow response is never lost.
                let is_clean = scenario.faults == 0 && world.is_lines() && scenario.capacity >= 1024;
                if is_clean && tag.is_none_or(|tag| client.own.brief.contains(&tag)) {
                    assert!(!matches!(outcome, Err(CallError::Timeout { .. })), "{call:?} was never answered");
                }
            }
            Event::PingMissed { .. } => {
                world.report.pings_missed += 1;
                assert!(scenario.faults > 0 || scenario.capacity < 1024, "a server that is there is heard");
            }
            Event::Terminated(Termination::Closed(Closed::Broken(what))) => {
                panic!("client {n} ended by what it read: {what}");
            }
            _ => {}
        }
    }

    fn moved(_world: &mut World, _n: usize, [before, after]: [State; 2]) {
        let probes_again = (before, after) == (State::Initializing, State::Probing);
        assert!(after >= before || probes_again, "{before:?} -> {after:?}");
    }

    fn write(world: &mut World, link: usize, bytes: Bytes) {
        world.write(link, true, bytes);
    }

    fn close(world: &mut World, n: usize, how: Shutdown) {
        match how {
            Shutdown::WriteHalf => world.net.links[n].pipe(true).end(),
            Shutdown::Terminate if world.per_mille(500) => {
                world.cut(n, Closed::Exited(ExitStatus::killed(15)), Closed::Reset);
            }
            Shutdown::Terminate => {}
            Shutdown::Abort => world.cut(n, Closed::Aborted, Closed::Reset),
        }
    }

    fn obstacle(world: &mut World) -> Result<(), Option<Closed>> {
        let (faults, chance) = Self::ODDS.connect;
        match world.net.chaos.hit(faults[0], chance) {
            true if world.per_mille(300) => Err(None),
            true => Err(Some(Closed::Refused)),
            false => Ok(()),
        }
    }

    fn mishap(world: &mut World, n: usize, up: bool) -> Option<bool> {
        let ((resets, reset), (half_close, ending)) = (Self::ODDS.reset, Self::ODDS.half_close);
        if world.net.chaos.hit(resets[0], reset) {
            world.cut(n, Closed::Reset, Closed::Reset);
            return None;
        }
        if world.is_lines() && world.net.chaos.hit(Fault::Exit, 25) {
            // Its output ends at once, and its exit status follows a little later.
            let at = world.net.now + world.net.random(1_000);
            let link = &mut world.net.links[n];
            link.until = Some((at, Closed::Exited(ExitStatus::exited(1))));
            link.pipe(false).truncate();
            return None;
        }
        if world.delays(n, up) {
            return None;
        }
        if world.net.chaos.hit(half_close, ending) {
            world.net.links[n].pipe(up).truncate();
        }
        Some(false)
    }

    fn hung_up(world: &mut World, owner: u64, at_client: ConnectionId) {
        world.burst(owner, at_client, 6);
    }

    fn ended(world: &World) -> Closed {
        if world.is_lines() { Closed::Exited(ExitStatus::exited(0)) } else { Closed::Eof }
    }

    fn lost(world: &mut World, owner: u64, at_client: ConnectionId, why: Closed, _was_open: bool) {
        world.at_client(owner, at_client, IoEvent::Closed(why));
    }
}

impl World {
    pub(super) fn is_lines(&self) -> bool {
        self.end.scenario.settings.transport == Transport::Lines
    }

    /// Bytes of an engine. On lines, whole messages may suffer.
    fn write(&mut self, n: usize, up: bool, bytes: Bytes) {
        let is_whole = self.net.links[n].boundary[usize::from(up)] && bytes.ends_with(b"\n");
        let mut pieces = vec![bytes.clone()];
        let mut truncate = false;
        if self.is_lines() && is_whole {
            let chaos = &mut self.net.chaos;
            if chaos.hit(Fault::Garbage, 100) {
                pieces.insert(0, Bytes::from_static(b"[debug] {\"jsonrpc\": oops\n"));
            }
            let last = pieces.len() - 1;
            if chaos.hit(Fault::Drop, 100) {
                pieces.pop();
            } else if chaos.hit(Fault::Duplicate, 100) {
                pieces.push(bytes);
            } else if let (false, Some(text)) = (up, text_id(&bytes))
                && chaos.hit(Fault::TextId, 200)
            {
                pieces[last] = text;
            } else if chaos.hit(Fault::Truncate, 50) {
                pieces[last].truncate(bytes.len() / 2);
                truncate = true;
            }
        }
        let link = &mut self.net.links[n];
        link.boundary[usize::from(up)] = pieces.last().is_none_or(|last| last.ends_with(b"\n"));
        pieces.into_iter().for_each(|piece| link.pipe(up).write(piece));
        if truncate {
            link.pipe(up).end();
        }
    }

    fn command(&mut self, command: Option<ServerCommand>) {
        if let Some(command) = command {
            let _ = self.end.server.act(self.net.now, command);
        }
    }

    /// Announces a change to the clients that watch it.
    pub(super) fn announce(&mut self, change: Change) {
        let input = Input::Command(ServerCommand::Publish(change));
        self.log.server(self.net.now, &input);
        let _ = self.end.server.apply(self.net.now, input);
        self.drain_server();
    }

    /// Ends the server within a second.
    pub(super) fn shut_down(&mut self) {
        self.log.push(Engine::Server, self.net.now, || Op::Shutdown(1_000));
        self.end.server.shutdown(self.net.now, Duration::from_secs(1));
        self.drain_server();
    }

    fn drain_server(&mut self) {
        while let Some(action) = self.end.server.poll_output() {
            self.trace(|| format!("server -> {action:?}"));
            assert!(!self.end.is_over, "nothing follows the end of the server");
            match action {
                Action::Open(..) | Action::Secure(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
                Action::Read(channel, reads) => self.read_at_server(channel, reads),
                Action::Write(channel, bytes) => {
                    if let Some(link) = self.net.link_at(channel) {
                        self.write(link, false, bytes);
                    }
                }
                Action::Close(channel, how) => self.close_at_server(channel, how),
                Action::Event(server::Event::Request(responder, incoming)) => {
                    let answer = self.end.app.request(responder, incoming, self.net.now);
                    self.command(answer);
                }
                Action::Event(server::Event::Cancelled(key)) => drop(self.end.app.tasks.remove(&key)),
                Action::Event(server::Event::Terminated) => self.end.is_over = true,
                Action::Event(_) => {}
            }
        }
    }
}

/// The line with its numeric id turned into a string, if it is an answer.
fn text_id(line: &Bytes) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    let (before, rest) = text.split_once("\"id\":")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let answer = digits > 0 && !rest.contains("\"method\"");
    answer.then(|| Bytes::from(format!("{before}\"id\":\"{}\"{}", &rest[..digits], &rest[digits..])))
}
