//! Web clients that misbehave, against our own server on every driver: what they get, that a good client beside them is served meanwhile
//! and afterwards, that nothing they tried to slip in has run, and how much memory it takes.
//!
//! The server is in the same process as they are, and they hold next to nothing: a peak of memory is that of both.

mod ask;
mod bodies;
mod doors;
mod ends;
mod floods;
mod heads;
mod lengths;
mod link;
mod paces;
mod parts;
mod replays;
mod sessions;
mod shares;
mod site;
mod tools;

use super::Row;

/// The tables of rows, in their order.
pub const SERVER: &[&[Row]] = &[
    heads::ROWS,
    lengths::ROWS,
    bodies::ROWS,
    doors::ROWS,
    paces::ROWS,
    ends::ROWS,
    floods::ROWS,
    sessions::ROWS,
    replays::ROWS,
    shares::ROWS,
];

#[cfg(test)]
mod tests {
    use crate::hostile::{ROWS, SERVER, WEB};
    use std::collections::BTreeSet;

    /// A row is found by its name.
    #[test]
    fn no_two_rows_have_one_name() {
        let mut seen = BTreeSet::new();
        for row in ROWS.iter().chain(WEB.iter().chain(SERVER).copied().flatten()) {
            assert!(seen.insert(row.name), "{:?} stands twice", row.name);
        }
    }
}
