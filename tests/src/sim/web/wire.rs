//! A second, minimal implementation of HTTP/1.1 and server-sent events, which judges the input and
//! output of the engine. It copies freely, has no limits, and uses nothing of the engine.

use bytes::Bytes;
use serde_json::Value;

/// A request as a server reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The target.
    pub target: String,
    /// The fields, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a field; the name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns the number of occurrences of a field.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(n, _)| n == name).count()
    }

    /// The body as JSON; `null` if there is none.
    pub fn json(&self) -> Value {
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).expect("a body is JSON") }
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// Reads requests. Panics where a client breaks the framing: none may.
#[derive(Debug, Default)]
pub struct Requests {
    text: Vec<u8>,
}

impl Requests {
    /// Returns the items that are complete with these bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Request> {
        self.text.extend_from_slice(bytes);
        let mut all = Vec::new();
        while let Some((mut request, head)) = head(&self.text).map(|(lines, n)| (request(&lines), n)) {
            let length = request.header("content-length").map_or(0, |n| n.parse().expect("a length"));
            if self.text.len() < head + length {
                break;
            }
            request.body = self.text[head..head + length].to_vec();
            self.text.drain(..head + length);
            all.push(request);
        }
        all
    }

    /// Whether a request has begun and is not complete.
    pub fn is_partial(&self) -> bool {
        !self.text.is_empty()
    }
}

/// The lines of a head, and how long it is with the empty line.
fn head(text: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut lines = Vec::new();
    let mut at = 0;
    loop {
        let end = at + line_end(&text[at..])?;
        if end == at && at > 0 {
            return Some((lines, end + 2));
        }
        lines.push(String::from_utf8_lossy(&text[at..end]).into_owned());
        at = end + 2;
    }
}

/// Where the first line ends.
fn line_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == b'\r')?;
        if text.get(at + 1) == Some(&b'\n') {
            return Some(at);
        }
        at += 1;
    }
}

fn fields(lines: &[String]) -> Vec<(String, String)> {
    let field = |line: &String| {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("a field without a colon: {line:?}"));
        (name.to_ascii_lowercase(), value.trim().to_string())
    };
    lines.iter().map(field).collect()
}

fn request(lines: &[String]) -> Request {
    let parts: Vec<&str> = lines[0].split(' ').collect();
    assert!(parts.len() == 3 && parts[2] == "HTTP/1.1", "a request line: {:?}", lines[0]);
    let headers = fields(&lines[1..]);
    assert!(headers.iter().all(|(name, _)| name != "transfer-encoding"), "a request has a length");
    Request { method: parts[0].into(), target: parts[1].into(), headers, body: Vec::new() }
}

/// The items of a response for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Its head.
    Head(Head),
    /// A server-sent event, also one without data.
    Event(Event),
    /// The whole of a body that is no event stream.
    Body(Vec<u8>),
    /// The response is complete.
    End,
    /// It cannot be understood from here on, or it was cut short.
    Broken,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The fields, their names in small letters.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a field; the name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Whether events follow.
    pub fn is_event_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns whether it is a success.
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Its `id`, if it has one.
    pub id: Option<String>,
    /// Its `retry`, if it has a valid one.
    pub retry: Option<u64>,
    /// Its type.
    pub kind: String,
    /// Its data.
    pub data: String,
}

/// Reads responses, one after the other.
#[derive(Debug, Default)]
pub struct Responses {
    text: Vec<u8>,
    state: State,
    events: Option<Events>,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Head,
    Length(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    UntilClose,
    Broken,
}

impl Responses {
    /// Returns the items of these bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Heard> {
        self.text.extend_from_slice(bytes);
        let mut heard = Vec::new();
        while self.step(&mut heard) {}
        heard
    }

    /// Returns the items at the end of the connection: none between two responses.
    pub fn end(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        match self.state {
            State::UntilClose => self.finish(&mut heard),
            State::Head if self.text.is_empty() => {}
            State::Broken => {}
            _ => heard.push(Heard::Broken),
        }
        self.state = State::Broken;
        heard
    }

    /// The `retry` of an event that is not complete.
    pub fn half_read_retry(&self) -> Option<u64> {
        self.events.as_ref().and_then(|events| events.event.retry)
    }

    fn step(&mut self, heard: &mut Vec<Heard>) -> bool {
        match self.state {
            State::Head => {
                let Some((lines, n)) = head(&self.text) else { return false };
                self.text.drain(..n);
                let status = lines[0].split(' ').nth(1).and_then(|status| status.parse().ok());
                let Some(status) = status else { return self.broken(heard) };
                let head = Head { status, headers: fields(&lines[1..]) };
                self.events = head.is_event_stream().then(Events::default);
                self.state = match (head.header("transfer-encoding"), head.header("content-length")) {
                    (Some(_), _) => State::ChunkSize,
                    (None, Some(length)) => State::Length(length.parse().expect("a length")),
                    (None, None) => State::UntilClose,
                };
                heard.push(Heard::Head(head));
                true
            }
            State::Length(0) => {
                self.finish(heard);
                true
            }
            State::Length(n) => {
                let taken = self.take(n, heard);
                self.state = State::Length(n - taken);
                taken > 0
            }
            State::UntilClose => self.take(usize::MAX, heard) > 0,
            State::ChunkSize => {
                let Some(line) = self.line() else { return false };
                match usize::from_str_radix(&line, 16) {
                    Ok(0) => self.state = State::Trailer,
                    Ok(n) => self.state = State::Chunk(n),
                    Err(_) => return self.broken(heard),
                }
                true
            }
            State::Chunk(0) => {
                self.state = State::ChunkEnd;
                true
            }
            State::Chunk(n) => {
                let taken = self.take(n, heard);
                self.state = State::Chunk(n - taken);
                taken > 0
            }
            State::ChunkEnd => match self.line() {
                Some(line) if line.is_empty() => {
                    self.state = State::ChunkSize;
                    true
                }
                Some(_) => self.broken(heard),
                None => false,
            },
            State::Trailer => match self.line() {
                Some(line) if line.is_empty() => {
                    self.finish(heard);
                    true
                }
                Some(_) => true,
                None => false,
            },
            State::Broken => {
                self.text.clear();
                false
            }
        }
    }

    fn broken(&mut self, heard: &mut Vec<Heard>) -> bool {
        self.state = State::Broken;
        heard.push(Heard::Broken);
        false
    }

    fn finish(&mut self, heard: &mut Vec<Heard>) {
        if self.events.take().is_none() {
            heard.push(Heard::Body(std::mem::take(&mut self.body)));
        }
        heard.push(Heard::End);
        self.state = State::Head;
    }

    fn line(&mut self) -> Option<String> {
        let end = line_end(&self.text)?;
        let line = String::from_utf8_lossy(&self.text[..end]).into_owned();
        self.text.drain(..end + 2);
        Some(line)
    }

    fn take(&mut self, most: usize, heard: &mut Vec<Heard>) -> usize {
        let n = most.min(self.text.len());
        let bytes: Vec<u8> = self.text.drain(..n).collect();
        match &mut self.events {
            Some(events) => heard.extend(events.read(&bytes).into_iter().map(Heard::Event)),
            None => self.body.extend(bytes),
        }
        n
    }
}

/// Reads events.
#[derive(Debug, Default)]
struct Events {
    line: Vec<u8>,
    cr: bool,
    event: Event,
    any: bool,
}

impl Events {
    fn read(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut all = Vec::new();
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let Some((end @ (b'\r' | b'\n'), text)) = part.split_last() else {
                self.cr = false;
                self.line.extend_from_slice(part);
                continue;
            };
            let follows_cr = std::mem::replace(&mut self.cr, *end == b'\r');
            if follows_cr && part == b"\n" {
                continue;
            }
            self.line.extend_from_slice(text);
            let line = std::mem::take(&mut self.line);
            all.extend(self.field(&String::from_utf8_lossy(&line)));
        }
        all
    }

    fn field(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            event.data.pop();
            return std::mem::take(&mut self.any).then_some(event);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => self.event.data.extend([value, "\n"]),
            "event" => self.event.kind = value.into(),
            "id" => self.event.id = Some(value.into()),
            "retry" => self.event.retry = value.parse().ok(),
            _ => return None,
        }
        self.any = true;
        None
    }
}

/// A whole response with a length.
pub fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Bytes {
    let length = body.len().to_string();
    let mut all = headers.to_vec();
    all.push(("Content-Length", &length));
    (head_text(status, &all) + body).into()
}

/// The head of a response whose events follow: in chunks, or until the connection ends.
pub fn stream_head(headers: &[(&str, &str)], chunked: bool) -> Bytes {
    let mut all = vec![("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")];
    all.extend_from_slice(headers);
    all.push(if chunked { ("Transfer-Encoding", "chunked") } else { ("Connection", "close") });
    head_text(200, &all).into()
}

/// The head of any response.
pub fn head_text(status: u16, headers: &[(&str, &str)]) -> String {
    let mut text = format!("HTTP/1.1 {status} -\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text + "\r\n"
}

/// A piece of a body, as a chunk or as it is.
pub fn piece(text: &str, chunked: bool) -> Bytes {
    if chunked { format!("{:x}\r\n{text}\r\n", text.len()).into() } else { text.to_string().into() }
}

/// The chunk after the last.
pub const LAST_CHUNK: &str = "0\r\n\r\n";

/// An event as text.
pub fn event(id: Option<&str>, retry: Option<u64>, data: &str) -> String {
    let mut text = String::new();
    if let Some(id) = id {
        text.extend(["id: ", id, "\n"]);
    }
    if let Some(retry) = retry {
        text.extend(["retry: ", &retry.to_string(), "\n"]);
    }
    text + "data: " + data + "\n\n"
}
