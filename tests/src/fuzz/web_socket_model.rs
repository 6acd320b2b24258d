//! Another reader of WebSocket frames (RFC 6455): it has all bytes from the start, and descends
//! from the connection to its messages, and from those to their frames. It keeps no state between
//! reads.

/// What a peer sent, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// A whole text message.
    Text(Vec<u8>),
    /// A ping.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
}

/// What ends the input.
#[derive(Clone, PartialEq, Debug)]
pub enum Last {
    /// The end of the bytes. `whole` if neither a frame nor a message is begun there.
    Cut {
        /// Whether nothing is begun.
        whole: bool,
    },
    /// A close, with its code and reason.
    Close(Option<u16>, String),
    /// A violation. The codes are those of all faults that show at the first faulty byte: the
    /// standard does not say which of them counts.
    Fail(Vec<u16>),
}

/// The bytes of a peer that were not read.
pub struct Model<'a> {
    /// The rest.
    pub rest: &'a [u8],
    /// Whether the peer is a client, which masks its frames.
    pub masked: bool,
    /// The maximum length of a message.
    pub max: usize,
}

/// A frame up to its payload.
struct Head {
    fin: bool,
    opcode: u8,
    length: usize,
    key: [u8; 4],
}

const PROTOCOL: u16 = 1002;
const UNSUPPORTED: u16 = 1003;
const NOT_TEXT: u16 = 1007;
const TOO_BIG: u16 = 1009;

impl Model<'_> {
    /// Reads everything. What remains after it is what follows the last part.
    pub fn read(&mut self) -> (Vec<Part>, Last) {
        let mut parts = Vec::new();
        loop {
            if let Err(last) = self.message(&mut parts) {
                return (parts, last);
            }
        }
    }

    /// Reads a message and the control frames between its fragments, or one control frame.
    fn message(&mut self, parts: &mut Vec<Part>) -> Result<(), Last> {
        let mut text: Option<Vec<u8>> = None;
        loop {
            let head = self.head(text.as_deref())?;
            if head.opcode < 8 {
                let text = text.get_or_insert_default();
                let whole = self.payload(&head, text);
                let is_last = whole && head.fin;
                match utf8(text) {
                    Utf8::Bad => return Err(Last::Fail(vec![NOT_TEXT])),
                    Utf8::Cut if is_last => return Err(Last::Fail(vec![NOT_TEXT])),
                    _ if !whole => return Err(Last::Cut { whole: false }),
                    Utf8::Cut | Utf8::Whole => {}
                }
                if is_last {
                    parts.push(Part::Text(std::mem::take(text)));
                    return Ok(());
                }
                continue;
            }
            let mut payload = Vec::new();
            if !self.payload(&head, &mut payload) {
                return Err(Last::Cut { whole: false });
            }
            match head.opcode {
                8 => return Err(close(&payload)),
                9 => parts.push(Part::Ping(payload)),
                _ => parts.push(Part::Pong(payload)),
            }
            if text.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads the head of a frame inside a message that has begun with `text`, or outside of any.
    fn head(&mut self, text: Option<&[u8]>) -> Result<Head, Last> {
        let &[first, second, ref rest @ ..] = self.rest else {
            return Err(Last::Cut { whole: self.rest.is_empty() && text.is_none() });
        };
        let (fin, opcode, masked, short) = (first & 128 != 0, first & 15, second & 128 != 0, second & 127);
        let is_control = opcode >= 8;
        let faults = [
            (PROTOCOL, first & 0b0111_0000 != 0),
            (PROTOCOL, (3..8).contains(&opcode) || opcode > 10),
            (PROTOCOL, masked != self.masked),
            (PROTOCOL, is_control && (!fin || short > 125)),
            (PROTOCOL, opcode == 0 && text.is_none()),
            (PROTOCOL, (opcode == 1 || opcode == 2) && text.is_some()),
            (UNSUPPORTED, opcode == 2),
        ];
        fail_with(faults)?;
        let (count, least) = match short {
            126 => (2, 126),
            127 => (8, 1 << 16),
            _ => (0, 0),
        };
        let (digits, rest) = rest.split_at_checked(count).ok_or(Last::Cut { whole: false })?;
        let (key, rest) = rest.split_at_checked(if masked { 4 } else { 0 }).ok_or(Last::Cut { whole: false })?;
        let length = match count {
            0 => u64::from(short),
            _ => digits.iter().fold(0, |length, digit| length * 256 + u64::from(*digit)),
        };
        let room = (self.max - text.map_or(0, <[u8]>::len)) as u64;
        fail_with([(PROTOCOL, length < least || length > i64::MAX as u64), (TOO_BIG, !is_control && length > room)])?;
        self.rest = rest;
        let key = key.try_into().unwrap_or_default();
        Ok(Head { fin, opcode, length: usize::try_from(length).expect("it is within the limit"), key })
    }

    /// Appends the payload, as far as it is there. Returns whether all of it is.
    fn payload(&mut self, head: &Head, to: &mut Vec<u8>) -> bool {
        let (payload, rest) = self.rest.split_at(head.length.min(self.rest.len()));
        to.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ head.key[at % 4]));
        self.rest = rest;
        payload.len() == head.length
    }
}

/// Fails with the codes of the faults that are there.
fn fail_with<const N: usize>(faults: [(u16, bool); N]) -> Result<(), Last> {
    let codes: Vec<u16> = faults.into_iter().filter_map(|(code, is_there)| is_there.then_some(code)).collect();
    if codes.is_empty() { Ok(()) } else { Err(Last::Fail(codes)) }
}

/// The end that the payload of a close means.
fn close(payload: &[u8]) -> Last {
    let (code, reason) = match payload {
        [] => return Last::Close(None, String::new()),
        [_] => return Last::Fail(vec![PROTOCOL]),
        [high, low, reason @ ..] => (u16::from(*high) * 256 + u16::from(*low), reason),
    };
    // RFC 6455 section 7.4 and the registry of IANA: the others are not assigned, or must not be
    // sent.
    let may = matches!(code, 1000 | 1001 | 1002 | 1003 | 1007..=1014) || (3000..5000).contains(&code);
    let faults = [(PROTOCOL, !may), (NOT_TEXT, utf8(reason) != Utf8::Whole)];
    match fail_with(faults) {
        Err(last) => last,
        Ok(()) => Last::Close(Some(code), String::from_utf8_lossy(reason).into_owned()),
    }
}

/// Whether bytes are UTF-8.
#[derive(PartialEq, Debug)]
pub enum Utf8 {
    /// They are.
    Whole,
    /// They may become UTF-8: the last character is incomplete.
    Cut,
    /// They are not, whatever follows.
    Bad,
}

/// Reads the characters as the grammar of RFC 3629 section 4 has them.
pub fn utf8(bytes: &[u8]) -> Utf8 {
    let mut rest = bytes;
    while let [lead, tail @ ..] = rest {
        let (second, more) = match lead {
            0x00..=0x7f => (0..=0, 0),
            0xc2..=0xdf => (0x80..=0xbf, 1),
            0xe0 => (0xa0..=0xbf, 2),
            0xed => (0x80..=0x9f, 2),
            0xe1..=0xef => (0x80..=0xbf, 2),
            0xf0 => (0x90..=0xbf, 3),
            0xf1..=0xf3 => (0x80..=0xbf, 3),
            0xf4 => (0x80..=0x8f, 3),
            _ => return Utf8::Bad,
        };
        let (tail, after) = tail.split_at(tail.len().min(more));
        let is_bad = |(at, byte): (usize, &u8)| !(if at == 0 { second.contains(byte) } else { byte & 0xc0 == 0x80 });
        if tail.iter().enumerate().any(is_bad) {
            return Utf8::Bad;
        }
        if tail.len() < more {
            return Utf8::Cut;
        }
        rest = after;
    }
    Utf8::Whole
}
