//! The heap of what rests on a server over real sockets: that of the adapter and of the engine.

use super::{Goal, Row};
use crate::adapters::Adapter;
use crate::interop::setup::beside;
use crate::load::{SCENES, Scale};
use crate::peer::Failure;
use std::path::Path;

/// Items in a measurement.
const COUNT: usize = 1000;

/// Streams on one server: as many as the system has descriptors for.
const MANY: [usize; 2] = [20_000, 18_000];

/// The names of scenes, and the most that one of their items should take, in bytes.
const SCENES_AT_REST: [(&str, f64); 4] = [
    ("resting connections", 3072.0),
    ("resting sessions", 1024.0),
    ("streams of sessions", 4096.0),
    ("subscriptions", 4096.0),
];

/// Returns a row for each scene and adapter, and one for very many streams.
///
/// # Errors
/// A scene fails.
pub fn rows() -> Result<Vec<Row>, Failure> {
    let load = beside("mcp-heap")?;
    let mut rows = Vec::new();
    for adapter in Adapter::ALL {
        for (name, most) in SCENES_AT_REST {
            rows.push(row(&load, adapter, name, COUNT, most)?);
        }
    }
    for count in MANY {
        match row(&load, Adapter::Smol, "subscriptions", count, 4096.0) {
            Ok(row) => {
                rows.push(row);
                break;
            }
            Err(why) => eprintln!("cost: {why}"),
        }
    }
    Ok(rows)
}

/// The goals are for tasks: a thread has a stack besides.
fn row(load: &Path, adapter: Adapter, name: &str, count: usize, most: f64) -> Result<Row, Failure> {
    let scene = SCENES.iter().find(|scene| scene.name == name).ok_or_else(|| format!("there is no scene {name}"))?;
    let scale = Scale { resting: count, half_open: 0, others: 0, ..Scale::FULL };
    let heap = scene.heap(load, adapter, &scale).map_err(|why| format!("{count} {name}: {why}"))?;
    let goal = (adapter == Adapter::Smol).then_some(Goal::AtMost(most));
    Ok(Row::new(format!("heap of each of {count} {name}, {}, bytes", adapter.name()), heap as f64, goal))
}
