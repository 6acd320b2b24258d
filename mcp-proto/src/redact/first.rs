//! The first line of an HTTP/1.1 message (RFC 9112 sections 3 and 4), by the rules of the codec.

use super::Side;

/// The first line, byte by byte.
#[derive(Clone)]
pub(super) struct FirstLine {
    /// Whether the line so far may be a status line, or a request line.
    may_be_status: bool,
    may_be_request: bool,
    len: usize,
    /// The status.
    status: u16,
    /// The first bytes of the method.
    method: [u8; Self::METHOD],
    /// Number of spaces in a request line.
    spaces: u8,
    /// Number of bytes since the last space.
    part: usize,
    /// The last byte, which is the minor version of a request.
    last: u8,
    is_old_response: bool,
    /// How much of ` HTTP/` and a version ends here, whatever precedes it.
    name: usize,
    begins_with_name: bool,
}

impl FirstLine {
    const VERSION: &[u8; 7] = b"HTTP/1.";
    const NAME: &[u8; 6] = b" HTTP/";
    const NAME_LEN: usize = Self::NAME.len();
    /// `PATCH `.
    const METHOD: usize = 6;

    /// Creates a line of one side, or of either.
    pub(super) fn new(side: Option<Side>) -> Self {
        Self {
            may_be_status: side != Some(Side::Request),
            may_be_request: side != Some(Side::Response),
            len: 0,
            status: 0,
            method: [0; Self::METHOD],
            spaces: 0,
            part: 0,
            last: 0,
            is_old_response: false,
            name: 1,
            begins_with_name: false,
        }
    }

    /// Adds a byte. Returns whether the line may still be a first line of that side.
    pub(super) fn push(&mut self, byte: u8) -> bool {
        self.may_be_status &= self.fits_status(byte);
        self.may_be_request &= self.fits_request(byte);
        self.follow_name(byte);
        self.last = byte;
        self.len = self.len.saturating_add(1);
        self.may_be_status || self.may_be_request
    }

    /// Returns whether the last byte was the space between the target and the version of a request.
    pub(super) fn ends_target(&self) -> bool {
        self.may_be_request && self.spaces == 2 && self.part == 0
    }

    /// Returns the sender of such a line. `None` if it is not a first line of HTTP/1.1 or HTTP/1.0.
    pub(super) fn side(&self) -> Option<Side> {
        let is_request = self.spaces == 2 && self.part == Self::VERSION.len() + 1;
        match (self.may_be_status && self.len >= 12, self.may_be_request && is_request) {
            (true, _) => Some(Side::Response),
            (_, true) => Some(Side::Request),
            _ => None,
        }
    }

    /// Returns whether the line has the name and a version of HTTP where a first line has it.
    pub(super) fn names_http(&self) -> bool {
        self.begins_with_name || self.name == Self::NAME_LEN
    }

    /// Returns whether it is HTTP/1.0.
    pub(super) fn is_old(&self) -> bool {
        if self.side() == Some(Side::Response) { self.is_old_response } else { self.last == b'0' }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Returns whether it is a request with a body, of any length.
    pub(super) fn wants_body(&self) -> bool {
        [&b"POST "[..], b"PUT ", b"PATCH "].iter().any(|method| self.method.starts_with(method))
    }

    /// `HTTP/1.1 200`, optionally followed by a space and text for people.
    fn fits_status(&mut self, byte: u8) -> bool {
        match self.len {
            at @ 0..7 => byte == Self::VERSION[at],
            7 => {
                self.is_old_response = byte == b'0';
                matches!(byte, b'0' | b'1')
            }
            8 | 12 => byte == b' ',
            9..12 => {
                self.status = self.status * 10 + u16::from(byte.wrapping_sub(b'0').min(9));
                byte.is_ascii_digit()
            }
            _ => byte == b'\t' || !byte.is_ascii_control(),
        }
    }

    /// Method, target and version, separated by one space. A method that is not in capital letters
    /// does not count as HTTP.
    fn fits_request(&mut self, byte: u8) -> bool {
        if let Some(slot) = self.method.get_mut(self.len) {
            *slot = byte;
        }
        if byte == b' ' {
            let ends_part = self.part > 0 && self.spaces < 2;
            self.spaces = self.spaces.saturating_add(1);
            self.part = 0;
            return ends_part;
        }
        let at = self.part;
        self.part = self.part.saturating_add(1);
        match self.spaces {
            0 => byte.is_ascii_uppercase() || byte == b'-',
            1 => byte.is_ascii_graphic(),
            _ if at == Self::VERSION.len() => matches!(byte, b'0' | b'1'),
            _ => Self::VERSION.get(at) == Some(&byte),
        }
    }

    fn follow_name(&mut self, byte: u8) {
        let goes_on = byte.is_ascii_digit() || matches!(byte, b'.' | b' ' | b'\t');
        self.name = match self.name {
            Self::NAME_LEN if goes_on => Self::NAME_LEN,
            at if Self::NAME.get(at) == Some(&byte) => at + 1,
            _ => usize::from(byte == b' '),
        };
        self.begins_with_name |= self.len + 2 == Self::NAME_LEN && self.name == Self::NAME_LEN;
    }
}
