//! The existing processes, by id.

use std::time::{Duration, Instant};
use std::{fs, process, thread};

use super::SOON;

/// Interval of the checks for an exit.
const LOOK: Duration = Duration::from_millis(10);

/// Processes that must have exited in the end.
#[derive(Clone, Debug)]
pub struct Watch(Vec<u32>);

impl Watch {
    /// Watches these processes.
    pub fn these(ids: Vec<u32>) -> Self {
        Self(ids)
    }

    /// Watches all current descendants of this process.
    pub fn children() -> Self {
        let parents = parents();
        let mut found = vec![process::id()];
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
            at += 1;
        }
        found.remove(0);
        Self(found)
    }

    /// Waits briefly until this process has no descendants.
    ///
    /// # Errors
    /// The remaining ones.
    pub fn none() -> Result<String, String> {
        wait(|| Self::children().0).map(|()| "none".to_owned())
    }

    /// Waits briefly until all of them have exited. A zombie counts as remaining.
    ///
    /// # Errors
    /// The remaining ones.
    pub fn gone(&self) -> Result<String, String> {
        if self.0.is_empty() {
            return Err("no process was seen at all".to_owned());
        }
        wait(|| self.left()).map(|()| format!("{} gone", self.0.len()))
    }

    /// Returns the existing ones.
    pub fn left(&self) -> Vec<u32> {
        parents().into_iter().map(|(id, _)| id).filter(|id| self.0.contains(id)).collect()
    }
}

fn wait(left: impl Fn() -> Vec<u32>) -> Result<(), String> {
    let until = Instant::now() + SOON;
    loop {
        let left = left();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("left are {left:?}"));
        }
        thread::sleep(LOOK);
    }
}

/// Returns every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Some((id, parent.trim().parse().ok()?))
    })
    .collect()
}
