//! The bound of the work in one turn. A peer decides how many bytes become a message, and how many
//! decoded bytes a received one becomes, so neither bounds the time that a codec takes.

/// Maximum number of bytes without an event of a stream, or without a message of a connection:
/// blank lines, comments, unknown fields, control frames. No honest peer sends that many, and
/// nothing else ends a peer that does.
pub(crate) const MAX_IDLE: usize = 16 << 20;

/// The work that a codec may still do before others are served. Bytes measure it, after the content
/// coding is decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Every connection holds it. [`u32::MAX`] has no end.
    left: u32,
    is_stopped: bool,
}

impl Work {
    /// The work of one turn: about half a millisecond.
    pub(crate) const AT_ONCE: usize = 256 << 10;

    /// The cost of a line, a frame, a chunk or an item beyond its bytes. A short one costs more
    /// than its bytes.
    pub(crate) const UNIT: usize = 64;

    pub(crate) const fn of_turn() -> Self {
        Self { left: Self::AT_ONCE as u32, is_stopped: false }
    }

    /// For a caller that has nothing else to do.
    pub(crate) const fn unlimited() -> Self {
        Self { left: u32::MAX, is_stopped: false }
    }

    pub(crate) fn spend(&mut self, n: usize) {
        if self.left != u32::MAX {
            self.left = self.left.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX));
        }
    }

    /// Returns whether to stop here. Call it only if there is more to do.
    pub(super) const fn stops(&mut self) -> bool {
        self.is_stopped |= self.left == 0;
        self.is_stopped
    }

    /// Returns whether the codec has stopped although there is more to do.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}
