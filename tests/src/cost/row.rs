//! A number with its goal, as `cost` prints it.

use serde::Serialize;
use std::fmt;

/// A measured number.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What it is, with its unit.
    pub row: String,
    /// The number, with at most four digits that count.
    pub value: f64,
    /// What it should be.
    pub goal: Option<Goal>,
}

/// What a number should be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// At most this.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// At least this.
    AtLeast(f64),
    /// More than this.
    Above(f64),
}

impl Row {
    /// Creates a row.
    pub fn new(row: impl Into<String>, value: f64, goal: impl Into<Option<Goal>>) -> Self {
        let digits = if value == 0.0 { 0 } else { 3 - value.abs().log10().floor() as i32 };
        let unit = 10_f64.powi(digits.max(0));
        Self { row: row.into(), value: (value * unit).round() / unit, goal: goal.into() }
    }
}

/// One line of JSON.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "<= {bound}"),
            Self::Below(bound) => write!(f, "< {bound}"),
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::Above(bound) => write!(f, "> {bound}"),
        }
    }
}

impl Serialize for Goal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
