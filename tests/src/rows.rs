//! Rows of a table: what a program runs one after another, with a line for each.

use std::time::Instant;

use crate::adapters::Adapter;

/// A row that runs with each of our adapters on what `G` has. It returns what it saw.
#[derive(Debug)]
pub struct Row<G> {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&G, Adapter) -> Result<String, String>,
}

/// Runs the rows whose name contains these words, and returns whether all of them passed, and one
/// did.
pub fn run_all<G>(program: &str, ground: &G, rows: &[Row<G>], words: &str) -> bool {
    let chosen = rows.iter().filter(|row| row.name.contains(words));
    let passed =
        chosen.flat_map(|row| Adapter::ALL.map(|adapter| run(row.name, adapter, || (row.run)(ground, adapter))));
    close(program, passed)
}

/// Runs a row with an adapter, prints a line for it, and returns whether it passed.
pub fn run(name: &str, adapter: Adapter, row: impl FnOnce() -> Result<String, String>) -> bool {
    run_named(&format!("{name:<32} {:<9}", adapter.name()), row)
}

/// Does the same with a name that has the width of its column.
pub fn run_named(name: &str, row: impl FnOnce() -> Result<String, String>) -> bool {
    let began = Instant::now();
    let result = row();
    let (mark, shown) = match &result {
        Ok(shown) => ("ok  ", shown),
        Err(why) => ("FAIL", why),
    };
    println!("{mark} {name} {:>5.1} s  {shown}", began.elapsed().as_secs_f64());
    result.is_ok()
}

/// Prints the closing line of a program, and returns whether all rows passed, and one did.
pub fn close(program: &str, passed: impl IntoIterator<Item = bool>) -> bool {
    let passed: Vec<bool> = passed.into_iter().collect();
    let failed = passed.iter().filter(|passed| !**passed).count();
    println!("{program}: {} passed, {failed} failed", passed.len() - failed);
    failed == 0 && !passed.is_empty()
}
