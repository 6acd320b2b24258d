//! What a replay found: a summary, or the first difference.

use crate::peer_text::Visible;
use crate::rpc::RawJson;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// The contents of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of outputs, which were all reproduced.
    pub outputs: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
    /// Number of bytes to write.
    pub bytes_written: u64,
    /// The duration by the clock of the driver.
    pub time: Duration,
    /// Whether it extends to the end of the client.
    pub complete: bool,
}

/// Where a replay differs from the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the recording, from 1.
    pub line: usize,
    /// The recorded output, as its line. `None` if there is none.
    pub recorded: Option<String>,
    /// The output of the replay. `None` if there is none.
    pub replayed: Option<String>,
}

impl Difference {
    /// Maximum number of characters of an output that `Display` shows.
    const SHOWN: usize = 400;

    /// Compares outputs. `number` is that of the line after the header, from 0.
    pub(super) fn check(number: usize, recorded: Option<&RawJson>, replayed: Option<&RawJson>) -> Result<(), Self> {
        let text = |json: &RawJson| json.as_str().into();
        let (recorded, replayed) = (recorded.map(text), replayed.map(text));
        if recorded == replayed { Ok(()) } else { Err(Self { line: number + 2, recorded, replayed }) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (recorded, replayed) = (self.recorded.as_deref(), self.replayed.as_deref());
        let same = recorded.unwrap_or_default().chars().zip(replayed.unwrap_or_default().chars());
        let from = same.take_while(|(a, b)| a == b).count().saturating_sub(Self::SHOWN / 2);
        let mut show = |what: &str, text: Option<&str>| match text {
            None => write!(f, "\n{what}: nothing"),
            Some(text) => {
                let shown: String = text.chars().skip(from).take(Self::SHOWN).collect();
                let (before, after) = (from > 0, text.chars().count() > from + Self::SHOWN);
                let dots = |there| if there { "…" } else { "" };
                write!(f, "\n{what}: {}{}{}", dots(before), Visible(&shown), dots(after))
            }
        };
        show("recorded", recorded)?;
        show("replayed", replayed)?;
        Ok(())
    }
}

impl core::error::Error for Difference {}
