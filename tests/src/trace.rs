//! Finds which requirements have tests, by comparing marks in the sources with the kept lists.
//!
//! A mark is a comment `covers: ID, ID` directly above a test. `tests/trace/ids.tsv` has the ids in
//! scope, `tests/trace/waived.tsv` those that no test can or should prove now, each with its
//! reason, and `tests/trace/areas.tsv` how many requirements each area has. A mark may also name an
//! existing id that is out of scope: see `PARTIAL`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::sources::Source;

/// The lists and the marks, checked against each other.
#[derive(Debug, Default)]
pub struct Trace {
    /// The ids in scope, in the order of the list.
    pub wanted: Vec<Wanted>,
    /// The waivers by id.
    pub waived: BTreeMap<String, Waiver>,
    /// The areas with the number of their requirements, in the order of the list.
    pub areas: Vec<(String, usize)>,
    /// The positions of the marks, by id.
    pub marks: BTreeMap<String, Vec<String>>,
    /// The faults of the lists and the marks themselves.
    pub defects: Vec<String>,
}

/// One id in scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The id, for example `TOOL-S-022`.
    pub id: String,
    /// The strength in the source, or `ROW` for lists without strengths.
    pub strength: String,
    /// A short description of the requirement.
    pub gist: String,
}

/// Why an id needs no test now.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiver {
    /// `host`, `later` or `n/a`.
    pub class: String,
    /// The reason. For `later` it begins with the feature and a colon.
    pub reason: String,
}

const CLASSES: [&str; 3] = ["host", "later", "n/a"];

/// Areas with only some rows in the list, or none as for the decisions `X`, with the number of the
/// last row of each. A mark may name any row up to that. For other areas, the list has all
/// ids that a mark may name.
const PARTIAL: [(&str, u32); 6] = [("S0", 65), ("S2", 45), ("S3", 50), ("B", 292), ("R", 34), ("X", 74)];

impl Wanted {
    /// Returns whether it must be covered or waived. A row without a strength must.
    pub fn binds(&self) -> bool {
        matches!(self.strength.as_str(), "MUST" | "MUST NOT" | "(must)" | "(must not)" | "SCHEMA" | "ROW")
    }

    /// Returns the area, for example `TOOL`.
    pub fn area(&self) -> &str {
        area(&self.id)
    }
}

fn area(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

impl Trace {
    /// Reads the lists and collects the marks of `sources`.
    pub fn new(ids: &str, waived: &str, areas: &str, sources: &[Source]) -> Self {
        let mut trace = Self::default();
        trace.read_ids(ids);
        trace.read_waived(waived);
        trace.read_areas(areas);
        for source in sources {
            trace.read_marks(source);
        }
        trace
    }

    /// Returns binding ids with neither a test nor a waiver.
    pub fn uncovered(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted
            .iter()
            .filter(|wanted| wanted.binds() && !self.tested(wanted) && !self.waived.contains_key(&wanted.id))
    }

    /// Returns ids with both a test and a waiver: one of the two is wrong, or the waiver is
    /// obsolete.
    pub fn both(&self) -> impl Iterator<Item = &str> {
        self.waived.keys().filter(|id| self.marks.contains_key(*id)).map(String::as_str)
    }

    /// Returns the areas with requirements that are not in the list, and how many they are.
    pub fn unlisted(&self) -> impl Iterator<Item = (&str, usize)> {
        self.areas.iter().filter_map(|(name, all)| {
            let listed = self.wanted.iter().filter(|wanted| wanted.area() == name).count();
            let left = all.saturating_sub(listed);
            (left > 0).then_some((name.as_str(), left))
        })
    }

    /// Returns the number of ids outside of the list that are named.
    pub fn outside(&self) -> usize {
        let known: BTreeSet<_> = self.wanted.iter().map(|wanted| &wanted.id).collect();
        self.marks.keys().filter(|id| !known.contains(id)).count()
    }

    /// Returns the table of areas, the notices and the result.
    pub fn report(&self) -> String {
        let mut out = String::new();
        let mut row = |name: &str, rows: &[&Wanted]| {
            let (must, other): (Vec<&&Wanted>, Vec<&&Wanted>) = rows.iter().partition(|wanted| wanted.binds());
            let tested = |rows: &[&&Wanted]| rows.iter().filter(|wanted| self.tested(wanted)).count();
            let [host, later, not] =
                CLASSES.map(|class| must.iter().filter(|wanted| self.waived_as(wanted, class)).count());
            let open =
                must.iter().filter(|wanted| !self.tested(wanted) && !self.waived.contains_key(&wanted.id)).count();
            let more = format!("{} of {}", tested(&other), other.len());
            let _ = writeln!(
                out,
                "{name:<6}{:>6}{:>8}{host:>6}{later:>7}{not:>5}{open:>6}{more:>14}",
                must.len(),
                tested(&must)
            );
        };
        let areas = self.wanted.iter().fold(Vec::<&str>::new(), |mut areas, wanted| {
            if areas.last() != Some(&wanted.area()) {
                areas.push(wanted.area());
            }
            areas
        });
        for name in areas {
            row(name, &self.wanted.iter().filter(|wanted| wanted.area() == name).collect::<Vec<_>>());
        }
        row("all", &self.wanted.iter().collect::<Vec<_>>());
        let head = format!(
            "{:<6}{:>6}{:>8}{:>6}{:>7}{:>5}{:>6}{:>14}\n",
            "area", "MUSTs", "tested", "host", "later", "n/a", "open", "other tested"
        );
        let mut out = head + &out;
        let must = self.wanted.iter().filter(|wanted| wanted.binds()).count();
        let waived = self.wanted.iter().filter(|wanted| CLASSES.iter().any(|class| self.waived_as(wanted, class)));
        let waived = waived.filter(|wanted| wanted.binds()).count();
        let share = if must == 0 { 0.0 } else { 100.0 * waived as f64 / must as f64 };
        let _ = writeln!(
            out,
            "\nwaived: {waived} of {must} MUSTs ({share:.1} %); ids named outside the list: {}",
            self.outside()
        );
        let all: usize = self.areas.iter().map(|(_, all)| all).sum();
        let left: usize = self.unlisted().map(|(_, left)| left).sum();
        let areas: Vec<_> = self.unlisted().map(|(name, left)| format!("{name} {left}")).collect();
        let _ = writeln!(out, "not in the list: {left} of {all} requirements ({})", areas.join(", "));
        for id in self.both() {
            let _ = writeln!(out, "notice: {id} is waived and has a test ({})", self.marks[id].join(", "));
        }
        for defect in &self.defects {
            let _ = writeln!(out, "defect: {defect}");
        }
        for wanted in self.uncovered() {
            let _ = writeln!(out, "open: {} {} ({})", wanted.id, wanted.gist, wanted.strength);
        }
        out
    }

    fn tested(&self, wanted: &Wanted) -> bool {
        self.marks.contains_key(&wanted.id)
    }

    /// Returns whether an id is waived and not tested, so that each id counts once.
    fn waived_as(&self, wanted: &Wanted, class: &str) -> bool {
        !self.tested(wanted) && self.waived.get(&wanted.id).is_some_and(|waiver| waiver.class == class)
    }

    fn read_ids(&mut self, list: &str) {
        for (number, [id, strength, gist]) in rows(list, "ids.tsv", &mut self.defects) {
            if self.wanted.iter().any(|wanted| wanted.id == id) {
                self.defects.push(format!("ids.tsv:{number}: {id} occurs twice"));
            }
            self.wanted.push(Wanted { id, strength, gist });
        }
    }

    fn read_waived(&mut self, list: &str) {
        for (number, [id, class, reason]) in rows(list, "waived.tsv", &mut self.defects) {
            let fault = if !self.wanted.iter().any(|wanted| wanted.id == id) {
                "is not in scope"
            } else if !CLASSES.contains(&class.as_str()) {
                "has a class other than host, later, n/a"
            } else if reason.is_empty() || class == "later" && !reason.contains(": ") {
                "has no reason, or is later without naming the feature"
            } else if self.waived.insert(id.clone(), Waiver { class, reason }).is_some() {
                "occurs twice"
            } else {
                continue;
            };
            self.defects.push(format!("waived.tsv:{number}: {id} {fault}"));
        }
    }

    fn read_areas(&mut self, list: &str) {
        for (number, [area, requirements]) in rows(list, "areas.tsv", &mut self.defects) {
            match requirements.parse() {
                Ok(requirements) => self.areas.push((area, requirements)),
                Err(_) => self.defects.push(format!("areas.tsv:{number}: {area} has no number")),
            }
        }
    }

    /// Reads the marks of one file. A list of ids that ends in a comma continues in the next
    /// comment line.
    fn read_marks(&mut self, source: &Source) {
        let mut open = false;
        for (number, line) in source.numbered() {
            let text = line.comment.as_deref().map(str::trim);
            let list = match text.and_then(|text| text.strip_prefix("covers:")) {
                Some(list) => list,
                None if open => text.unwrap_or_default(),
                None => continue,
            };
            open = list.trim_end().ends_with(',');
            let at = source.at(number);
            if !line.test && !source.path.starts_with("tests/") {
                self.defects.push(format!("{at}: a mark outside test code"));
            }
            for id in list.split(',').map(|id| id.trim().trim_end_matches('.')).filter(|id| !id.is_empty()) {
                self.mark(id, &at);
            }
        }
    }

    fn mark(&mut self, id: &str, at: &str) {
        if !well_formed(id) {
            self.defects.push(format!("{at}: {id:?} is no id"));
        } else if !outside_the_list(id) && !self.wanted.iter().any(|wanted| wanted.id == id) {
            self.defects.push(format!("{at}: {id} does not exist"));
        } else {
            self.marks.entry(id.to_owned()).or_default().push(at.to_owned());
        }
    }
}

/// Returns whether an id is `AREA-R-nnn`, `S0-nn`, `B-nnn`, or the number of a decision: `R-nn`,
/// `X-nn`.
fn well_formed(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    match parts[..] {
        [area, role, number] => {
            area.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
                && matches!(role, "A" | "B" | "C" | "I" | "P" | "S")
                && digits(number, 3)
        }
        ["B", number] => digits(number, 3),
        ["R" | "X" | "S0" | "S1" | "S2" | "S3" | "S4", number] => digits(number, 2),
        _ => false,
    }
}

/// Returns whether a row with this id exists regardless of the list.
fn outside_the_list(id: &str) -> bool {
    let number = id.split_once('-').and_then(|(_, number)| number.parse::<u32>().ok());
    let last = PARTIAL.iter().find(|(name, _)| *name == area(id)).map(|(_, last)| *last);
    number.zip(last).is_some_and(|(number, last)| (1..=last).contains(&number))
}

/// Returns the rows of a table with three columns. Skips empty lines and lines that begin with `#`.
fn rows<const N: usize>(list: &str, name: &str, defects: &mut Vec<String>) -> Vec<(usize, [String; N])> {
    let mut found = Vec::new();
    for (at, line) in list.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<String> = line.split('\t').map(|column| column.trim().to_owned()).collect();
        match <[String; N]>::try_from(columns) {
            Ok(columns) => found.push((at + 1, columns)),
            Err(columns) => defects.push(format!("{name}:{}: {} columns in place of {N}", at + 1, columns.len())),
        }
    }
    found
}
