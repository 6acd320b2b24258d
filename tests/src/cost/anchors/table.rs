//! The rows of a setup.

use super::contenders::{Pair, Role};
use super::{Report, Reports, Setup, row};
use crate::cost::codec::median;
use crate::cost::{Goal, Row};

/// The reports of a setup.
pub(super) struct Table<'a> {
    pub(super) setup: Setup,
    pub(super) pairs: &'a [&'a Pair],
    pub(super) reports: &'a Reports,
}

impl Table<'_> {
    /// Returns all rows, and adds the ratios to rmcp to `shares`.
    pub(super) fn rows(&self, shares: &mut Vec<f64>) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, pair) in self.pairs.iter().enumerate() {
            match pair.role {
                Role::Floor | Role::RmcpServer | Role::RmcpClient => rows.push(self.time(at, None)),
                Role::Control => rows.extend(self.noise(at)),
                Role::Server | Role::Client => {
                    self.beside_rmcp(at, Goal::Below(1.0), &mut rows, shares);
                    self.beside_floor(at, true, &mut rows);
                }
                Role::PoolServer => {
                    self.beside_rmcp(at, Goal::AtMost(1.5), &mut rows, shares);
                    self.beside_floor(at, false, &mut rows);
                }
                Role::ManyThreads => {
                    rows.push(self.time(at, None));
                    self.beside_floor(at, false, &mut rows);
                }
            }
        }
        rows
    }

    fn beside_rmcp(&self, at: usize, goal: Goal, rows: &mut Vec<Row>, shares: &mut Vec<f64>) {
        let (end, name) = self.pairs[at].end();
        let role = if end == "client" { Role::RmcpClient } else { Role::RmcpServer };
        let Some(rmcp) = self.of(role) else { return };
        let share = self.ratio(at, rmcp, |report| self.end(at, report));
        if matches!(goal, Goal::Below(_)) && share.is_finite() {
            shares.push(share);
        }
        rows.push(self.row(format!("processor time of {end} {name} beside rmcp"), share, Some(goal)));
        let is_many = !self.setup.is_http && self.setup.inflight > 1 && self.setup.payload == 64;
        rows.push(self.time(at, is_many.then_some(Goal::AtMost(5.0)).filter(|_| goal == Goal::Below(1.0))));
        if is_many {
            let ratio = self.ratio(at, rmcp, |report| report.rate);
            let goal = Some(Goal::AtLeast(3.0)).filter(|_| goal == Goal::Below(1.0));
            rows.push(self.row(format!("calls a second of {end} {name} beside rmcp"), ratio, goal));
        }
    }

    /// The processor time of both ends, one of them ours, beside that of the floor at both.
    fn beside_floor(&self, at: usize, has_goal: bool, rows: &mut Vec<Row>) {
        if self.setup.payload != 64 {
            return;
        }
        let (end, name) = self.pairs[at].end();
        let has_goal = has_goal && (self.setup.inflight == 1 || self.setup.is_http);
        let ratio = self.ratio(at, 0, Report::both);
        let goal = has_goal.then_some(Goal::AtMost(2.0));
        rows.push(self.row(format!("processor time of both with {end} {name} beside the floor"), ratio, goal));
        if self.setup.is_http && self.setup.inflight > 1 {
            let spread = self.median(at, |report| report.p99 / report.p50);
            let goal = has_goal.then_some(Goal::AtMost(10.0));
            rows.push(self.row(format!("p99 beside p50 with {end} {name}"), spread, goal));
        }
    }

    /// What differs between two runs of one program.
    fn noise(&self, at: usize) -> Option<Row> {
        let first = self.of(Role::Server)?;
        let ratio = self.ratio(at, first, |report| report.server);
        Some(self.row("processor time of a server beside itself under another name".into(), ratio, None))
    }

    /// The processor time of a call.
    fn time(&self, at: usize, goal: Option<Goal>) -> Row {
        let (end, name) = self.pairs[at].end();
        let time = self.median(at, |report| self.end(at, report));
        self.row(format!("processor time of {end} {name}, us"), time, goal)
    }

    fn end(&self, at: usize, report: &Report) -> f64 {
        if self.pairs[at].end().0 == "client" { report.client } else { report.server }
    }

    fn of(&self, role: Role) -> Option<usize> {
        self.pairs.iter().position(|pair| pair.role == role)
    }

    /// The median of what a number is in each round.
    fn median(&self, at: usize, number: impl Fn(&Report) -> f64) -> f64 {
        median(self.reports[&at].iter().flatten().map(number).collect())
    }

    /// The median of the ratio to another pair in each round in which both have ended.
    fn ratio(&self, at: usize, to: usize, number: impl Fn(&Report) -> f64) -> f64 {
        let rounds = self.reports[&at].iter().zip(&self.reports[&to]);
        median(rounds.filter_map(|(one, other)| Some(number(one.as_ref()?) / number(other.as_ref()?))).collect())
    }

    fn row(&self, what: String, value: f64, goal: Option<Goal>) -> Row {
        row(self.setup, what, value, goal)
    }
}

/// The median of all ratios to rmcp.
pub(super) fn median_share(shares: Vec<f64>) -> Row {
    Row::new("processor time beside rmcp, median of all rows", median(shares), Goal::AtMost(0.5))
}
