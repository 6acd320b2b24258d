//! Newline-delimited messages (MCP transports, stdio). LF ends a line. White space around a
//! message, including CR, has no meaning. Neither have blank lines, nor one byte-order mark at the
//! start of the stream. An invalid line does not affect the others.
//!
//! How the bytes are split never changes the lines. The codec scans each byte once for LF, and
//! copies it at most once into its line (amortized). The cost of a line is therefore proportional
//! to its length, in any number of pieces. A line that is too long is reported when that is known,
//! and once more at its end if it turns out to be the response to a request.

mod skipped;

use self::skipped::MemberSkipper;
use super::input::{BOM, ByteQueue, LARGE};
use super::work::{MAX_IDLE, Work};
use crate::exchange::Inbound;
use crate::limits::FrameLimits;
use crate::rpc::{self, InvalidKind, InvalidMessage};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// Splits bytes into lines and parses them.
#[derive(Debug)]
pub(super) struct Lines {
    limits: Arc<FrameLimits>,
    input: ByteQueue,
    /// The line so far, without leading white space: empty while the line is blank. Contains no LF.
    partial: Vec<u8>,
    /// The line was too long and has been reported. The bytes up to its LF are dropped.
    skipping: bool,
    /// What is known of that line, unless its id is: it may follow.
    skipped: Option<MemberSkipper>,
    /// No line has ended yet.
    first: bool,
    /// Bytes of blank lines since the last other one.
    idle: usize,
    broken: Option<String>,
    eof: bool,
    ended: bool,
    /// Reading is paused.
    pub(super) held: bool,
    /// Number of scanned bytes. Lets a test check that none was scanned twice.
    #[cfg(test)]
    pub(super) scanned: usize,
}

impl Lines {
    pub(super) fn new(limits: Arc<FrameLimits>) -> Self {
        Self {
            limits,
            input: ByteQueue::default(),
            partial: Vec::new(),
            skipping: false,
            skipped: None,
            first: true,
            idle: 0,
            broken: None,
            eof: false,
            ended: false,
            held: false,
            #[cfg(test)]
            scanned: 0,
        }
    }

    pub(super) fn bytes(&mut self, bytes: Bytes) {
        if !self.eof && self.broken.is_none() {
            self.input.push(bytes);
        }
    }

    pub(super) fn eof(&mut self) {
        self.eof = true;
    }

    pub(super) fn buffered(&self) -> usize {
        self.input.held() + self.partial.capacity()
    }

    pub(super) fn at_boundary(&self) -> bool {
        self.input.is_empty() && self.partial.is_empty() && !self.skipping && self.skipped.is_none()
    }

    pub(super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    pub(super) fn poll_item(&mut self, work: &mut Work) -> Option<Inbound> {
        if self.held {
            return None;
        }
        if !self.skipping
            && let Some(item) = self.finish_skipped()
        {
            return Some(item);
        }
        while let Some(front) = self.input.front() {
            if work.stops() {
                return None;
            }
            let blank = if self.partial.is_empty() && !self.skipping { space(front) } else { 0 };
            if blank > 0 {
                self.look(blank);
                self.input.skip(blank);
                self.first = false;
                work.spend(blank);
                self.idle += blank;
                if self.idle > MAX_IDLE {
                    self.input.clear();
                    self.broken = Some(format!("{MAX_IDLE} bytes of blank lines without a message"));
                }
                continue;
            }
            self.idle = 0;
            let end = memchr::memchr(b'\n', front);
            let count = end.unwrap_or(front.len());
            work.spend(count + 1);
            let mut item = None;
            self.look(count + usize::from(end.is_some()));
            if self.skipping {
                if let (Some(skipped), Some(front)) = (&mut self.skipped, self.input.front()) {
                    skipped.read(&front[..count]);
                }
                self.input.skip(count);
                if end.is_some() {
                    item = self.finish_skipped();
                }
            } else if self.partial.len() + count > self.limits.max_line {
                item = Some(self.too_long(count));
                self.skipping = true;
            } else if end.is_some() && self.partial.is_empty() && !self.first {
                item = Some(self.whole(count));
            } else {
                self.extend(count);
                if end.is_some() {
                    item = self.finish();
                }
            }
            if end.is_some() {
                self.input.skip(1);
                self.skipping = false;
                self.first = false;
            }
            if item.is_some() {
                return item;
            }
        }
        self.poll_end()
    }

    /// The last line may lack its LF: a peer that exits may not have written it. A truncated line
    /// is dropped: the reason for the end of the connection is more useful than half a response.
    fn poll_end(&mut self) -> Option<Inbound> {
        if !self.eof || self.ended {
            return None;
        }
        match self.finish() {
            Some(Inbound::Invalid(defect)) if defect.kind == InvalidKind::Truncated => {
                return Some(Inbound::Invalid(InvalidMessage { id: None, ..defect }));
            }
            Some(item) => return Some(item),
            None => {}
        }
        if let Some(item) = self.finish_skipped() {
            return Some(item);
        }
        self.skipping = false;
        self.ended = true;
        Some(Inbound::End)
    }

    /// The common case, which saves a copy: one buffer contains the line with its LF and no leading
    /// white space.
    fn whole(&mut self, count: usize) -> Inbound {
        let line = self.input.front().map_or(&[][..], |front| front[..count].trim_ascii_end());
        let (trimmed, parsed) = (line.len(), (line.len() < LARGE).then(|| rpc::parse_small(line, &self.limits)));
        if let Some(parsed) = parsed {
            self.input.skip(count);
            return parsed.into();
        }
        let line = self.input.take(trimmed);
        self.input.skip(count - trimmed);
        rpc::parse_batch_or_message(line, &self.limits).into()
    }

    /// Returns the line that was assembled from pieces. `None` if it is blank.
    fn finish(&mut self) -> Option<Inbound> {
        let line = Bytes::from(mem::take(&mut self.partial));
        let text = if self.first { line.strip_prefix(BOM).unwrap_or(&line) } else { &line };
        let text = text.trim_ascii();
        if text.is_empty() {
            return None;
        }
        if text.len() < LARGE {
            return Some(rpc::parse_small(text, &self.limits).into());
        }
        // A growing buffer at most doubles, so it is proportional to the line. But the line may be
        // mostly white space.
        let shared = line.len() <= text.len() + LARGE / 2;
        let text = if shared { line.slice_ref(text) } else { Bytes::copy_from_slice(text) };
        Some(rpc::parse_batch_or_message(text, &self.limits).into())
    }

    fn extend(&mut self, count: usize) {
        if let Some(front) = self.input.front() {
            let needed = self.partial.len() + count;
            if needed > self.partial.capacity() {
                // Doubles, but never exceeds the maximum of a line.
                let target = (2 * self.partial.capacity()).min(self.limits.max_line).max(needed);
                self.partial.reserve_exact(target - self.partial.len());
            }
            self.partial.extend_from_slice(&front[..count]);
        }
        self.input.skip(count);
    }

    /// Returns what can be parsed of the part within the limit, and drops that part.
    fn too_long(&mut self, count: usize) -> Inbound {
        let room = self.limits.max_line - self.partial.len();
        self.extend(room);
        let line = Bytes::from(mem::take(&mut self.partial));
        let defect = rpc::parse(line.clone(), self.limits.max_depth).err();
        let defect = defect.unwrap_or_else(|| InvalidMessage::new(InvalidKind::TooLong, &line));
        if defect.id.is_none() && !defect.has_method {
            let mut skipped = MemberSkipper::default();
            skipped.read(&line);
            skipped.read(self.input.front().map_or(&[][..], |front| &front[..count - room]));
            self.skipped = Some(skipped);
        }
        self.input.skip(count - room);
        Inbound::Invalid(InvalidMessage { kind: InvalidKind::TooLong, ..defect })
    }

    /// Returns the end of a line that was too long, if it is a response whose id was not known yet.
    fn finish_skipped(&mut self) -> Option<Inbound> {
        self.skipped.take().and_then(MemberSkipper::finish).map(Inbound::Invalid)
    }

    fn look(&mut self, _count: usize) {
        #[cfg(test)]
        {
            self.scanned += _count;
        }
    }
}

/// Returns the number of leading white space bytes. Line ends count, so that blank lines are
/// skipped too.
fn space(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
