//! The server: the HTTP codec of the core, a thread for each connection, and a history of events
//! from which a client resumes.

use mcp_proto::exchange::{Body, Inbound, Outbound, RequestHead, ResponseHead};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::rpc::{Message, result_response};
use mcp_proto::{Headers, Limits, Object, RawJson};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time without an event after which a comment keeps a stream alive.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The events that a session keeps for a client that resumes its stream.
const HISTORY: usize = 1000;

const SESSION: &str = "mcp-session-id";

#[derive(Clone)]
struct Event {
    number: u64,
    kind: &'static str,
    data: RawJson,
}

#[derive(Default)]
struct Session {
    stream: Option<Sender<Event>>,
    history: VecDeque<Event>,
    last: u64,
}

impl Session {
    /// Keeps an event, then sends it if the stream is open.
    fn tell(&mut self, kind: &'static str, data: Object) {
        self.last += 1;
        let event = Event { number: self.last, kind, data: data.to_json() };
        self.history.push_back(event.clone());
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        if let Some(stream) = &self.stream {
            stream.send(event).ok();
        }
    }
}

#[derive(Default)]
struct Shared {
    sessions: Mutex<BTreeMap<String, Session>>,
    last: AtomicU64,
}

impl Shared {
    /// Uses a session. `None` if it does not exist.
    fn with<R>(&self, id: &str, f: impl FnOnce(&mut Session) -> R) -> Option<R> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id).map(f)
    }

    fn open(&self) -> String {
        // A server for more than an example draws its ids at random.
        let id = format!("sample-{}", self.last.fetch_add(1, Ordering::Relaxed));
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), Session::default());
        id
    }

    fn close(&self, id: &str) -> bool {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(id).is_some()
    }
}

/// Serves until the listener fails.
pub(crate) fn serve(listener: &TcpListener) {
    let shared = Arc::new(Shared::default());
    while let Ok((stream, _)) = listener.accept() {
        let shared = Arc::clone(&shared);
        // A client that disconnects ends its thread.
        std::thread::spawn(move || Connection::new(stream).serve(&shared));
    }
}

struct Connection {
    stream: TcpStream,
    codec: Conn,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, codec: Conn::new(Kind::HttpServer, &Limits::default().frame) }
    }

    fn serve(mut self, shared: &Shared) -> io::Result<()> {
        let (mut head, mut message) = (None, None);
        let mut buffer = [0; 8 << 10];
        loop {
            match self.codec.poll_item() {
                Some(Inbound::Request(of)) => (head, message) = (Some(of), None),
                Some(Inbound::Message(of)) => message = Some(of),
                Some(Inbound::End) => {
                    if let Some(head) = head.take() {
                        self.answer(shared, &head, message.take())?;
                    }
                }
                Some(Inbound::Reject(defect)) => return self.send(defect.status, Headers::new(), &Object::new()),
                Some(_) => {}
                None => match self.stream.read(&mut buffer)? {
                    0 => return Ok(()),
                    n => self.codec.bytes(buffer[..n].to_vec().into()),
                },
            }
        }
    }

    fn answer(&mut self, shared: &Shared, head: &RequestHead, message: Option<Message>) -> io::Result<()> {
        let session = head.headers.get(SESSION).unwrap_or_default();
        let no_session = Object::new().with("error", "Client not connected");
        match (&*head.method, message) {
            ("GET", _) => {
                let after = head.headers.get("last-event-id").and_then(|id| id.parse().ok());
                match shared.with(session, |session| subscribe(session, after)) {
                    Some(events) => self.stream(events),
                    None => self.send(404, Headers::new(), &no_session),
                }
            }
            ("POST", Some(Message::Request(request))) if request.method == "initialize" => {
                let info = Object::new().with("name", "sample").with("version", "1");
                let result = Object::new().with("protocolVersion", "2025-03-26").with("serverInfo", info);
                let result = result.with("capabilities", Object::new().with("tools", Object::new()));
                let headers = Headers::new().with("Mcp-Session-Id", shared.open());
                self.send_raw(200, headers, result_response(&request.id, &result))
            }
            ("POST", Some(Message::Notification(note))) if note.method == "tools/call" => {
                let params = Object::read_opt(note.params.as_ref()).unwrap_or_default();
                let id = shared.last.fetch_add(1, Ordering::Relaxed).to_string();
                match shared.with(session, |session| run(session, &id, &params)) {
                    Some(()) => {
                        let accepted = Object::new().with("success", true).with("requestId", id.as_str());
                        self.send(200, Headers::new(), &accepted)
                    }
                    None => self.send(404, Headers::new(), &no_session),
                }
            }
            ("POST", Some(_)) => self.send(202, Headers::new(), &Object::new()),
            ("DELETE", _) => {
                let status = if shared.close(session) { 200 } else { 404 };
                self.send(status, Headers::new(), &Object::new().with("success", status == 200))
            }
            _ => self.send(400, Headers::new(), &Object::new().with("error", "not served")),
        }
    }

    /// Sends events until the client has left, or the session has ended.
    fn stream(&mut self, events: mpsc::Receiver<Event>) -> io::Result<()> {
        let headers = Headers::new().with("Content-Type", "text/event-stream").with("Cache-Control", "no-cache");
        self.write(Outbound::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream })?;
        loop {
            self.write(match events.recv_timeout(KEEP_ALIVE) {
                Ok(Event { number, kind, data }) => Outbound::Event {
                    event: Some(kind),
                    id: Some(number.to_string()),
                    retry: None,
                    data: data.to_bytes(),
                },
                Err(RecvTimeoutError::Timeout) => Outbound::Comment("keepalive".into()),
                Err(RecvTimeoutError::Disconnected) => return self.write(Outbound::End),
            })?;
        }
    }

    fn send(&mut self, status: u16, headers: Headers, body: &Object) -> io::Result<()> {
        self.send_raw(status, headers, body.to_json().to_bytes())
    }

    fn send_raw(&mut self, status: u16, headers: Headers, body: impl Into<bytes::Bytes>) -> io::Result<()> {
        let headers = headers.with("Content-Type", "application/json");
        self.write(Outbound::Response { head: ResponseHead { status, headers }, body: Body::Full(body.into()) })
    }

    fn write(&mut self, part: Outbound) -> io::Result<()> {
        self.codec.encode(part);
        while let Some(bytes) = self.codec.poll_write() {
            self.stream.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Opens the stream of a session, with the events after one that the client has. Numbers are
/// compared as numbers: as text, 10 comes before 9.
fn subscribe(session: &mut Session, after: Option<u64>) -> mpsc::Receiver<Event> {
    let (stream, events) = mpsc::channel();
    let missed = session.history.iter().filter(|event| after.is_some_and(|after| event.number > after));
    missed.for_each(|event| drop(stream.send(event.clone())));
    session.stream = Some(stream);
    session.tell("connected", Object::new());
    events
}

/// Runs a tool. Its result is a sequence of events.
fn run(session: &mut Session, id: &str, params: &Object) {
    let about = || Object::new().with("requestId", id);
    if params.str("name").as_deref() != Some("count") {
        return session.tell("error", about().with("error", "there is no such tool"));
    }
    let to = params.object("arguments").and_then(|arguments| arguments.required("to")).unwrap_or(0_u32);
    (1..=to.min(100)).for_each(|n| session.tell("content", about().with("content", n.to_string().as_str())));
    session.tell("end", about());
}
