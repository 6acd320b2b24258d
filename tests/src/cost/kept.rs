//! Kept tables of numbers: a head, then a name and a number on each line.

use super::Row;
use crate::peer::Failure;
use crate::sources;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// A table in the folder of the tests.
pub struct Kept {
    /// The name of the file.
    pub file: &'static str,
    /// The first line. Where it is another one, the numbers cannot be compared.
    pub head: String,
    /// Which measured number agrees with a kept one.
    pub agrees: fn(now: f64, kept: f64) -> bool,
    /// The number to keep for a measured one.
    pub keep: fn(&Row) -> f64,
}

impl Kept {
    /// Compares, prints each row, and returns whether all agree. With `UPDATE` in the environment,
    /// it writes the table first.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn compare(&self, rows: &[Row]) -> Result<bool, Failure> {
        if env::var_os("UPDATE").is_some() {
            fs::write(self.path(), self.text(rows))?;
        }
        let kept = fs::read_to_string(self.path()).unwrap_or_default();
        let is_same = kept.lines().next() == Some(&self.head);
        let mut kept: BTreeMap<&str, f64> = kept.lines().skip(1).filter_map(entry).collect();
        let (mut passed, mut failed) = (0, 0);
        for row in rows {
            let then = kept.remove(row.row.as_str());
            let agrees = !is_same || then.is_some_and(|then| (self.agrees)(row.value, then));
            if agrees {
                passed += 1
            } else {
                failed += 1
            }
            let then = then.map_or("not in the table".into(), |then| format!("kept: {then}"));
            println!("{:<56}{:>10}  {then}{}", row.row, row.value, if agrees { "" } else { "  FAILED" });
        }
        for name in kept.keys().filter(|_| is_same) {
            failed += 1;
            println!("{name:<56} is not measured  FAILED");
        }
        if !is_same {
            println!("nothing is compared, since the table is not of {}", self.head.trim_start_matches("# "));
        }
        println!("{}: {passed} passed, {failed} failed; UPDATE=1 writes the table of now", self.file);
        Ok(failed == 0)
    }

    fn path(&self) -> PathBuf {
        sources::root().join("tests").join(self.file)
    }

    fn text(&self, rows: &[Row]) -> String {
        let mut text = format!("{}\n", self.head);
        for row in rows {
            _ = writeln!(text, "{:<56}{:>10}", row.row, (self.keep)(row));
        }
        text
    }
}

fn entry(line: &str) -> Option<(&str, f64)> {
    let (name, number) = line.rsplit_once(' ')?;
    Some((name.trim_end(), number.parse().ok()?))
}
