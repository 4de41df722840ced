//! What is wanted of the calls that were measured.

use std::time::Duration;

use crate::report::{Column, Goal, Table, Wanted};
use crate::sample::Figures;
use crate::target::{COFER, DIRECT, GATEWAY, IN_PLACE};

/// The usual message.
pub const SMALL: usize = 100;
/// The large one.
pub const MIB: usize = 1 << 20;
/// Everything that is asked of every target.
pub const COLUMNS: [Column; 7] = [
    Column { size: SMALL, callers: 1 },
    Column { size: SMALL, callers: 8 },
    Column { size: SMALL, callers: 64 },
    Column { size: 64 << 10, callers: 8 },
    Column { size: MIB, callers: 1 },
    Column { size: MIB, callers: 8 },
    Column { size: 16 * MIB, callers: 1 },
];
/// The rows that are no peers.
pub const OURS: [&str; 4] = [DIRECT, IN_PLACE, COFER, GATEWAY];

/// One of the figures.
type Part = fn(Figures) -> Duration;

/// What is wanted of calls over the API.
pub fn call_goals(table: &Table) -> Vec<Goal> {
    let [one, _, many, _, mib, _, large] = COLUMNS;
    let rate = |row: &str, column| table.figures(row, column).map(|figures| figures.per_second);
    let p50 = |row: &str| table.figures(row, one).map(|figures| figures.p50.as_secs_f64());
    let ratio = |over: Option<f64>, under: Option<f64>| Some(over? / under?);
    let limits = p50(DIRECT).zip(p50(IN_PLACE)).map(|(direct, in_place)| direct + in_place);
    let best_peer = peers(table).filter_map(|name| rate(name, many)).max_by(f64::total_cmp);
    let goal = |what: &str, is, wanted| Goal { what: what.to_owned(), is, wanted, unit: " times" };
    vec![
        goal(
            "p50 at 1 caller, 100 B: over direct plus in place",
            ratio(p50(COFER), limits),
            Wanted::AtMost(1.3),
        ),
        goal(
            "calls at 64 callers, 100 B: over in place",
            ratio(rate(COFER, many), rate(IN_PLACE, many)),
            Wanted::AtLeast(0.5),
        ),
        goal(
            "calls at 64 callers, 100 B: over the best peer",
            ratio(rate(COFER, many), best_peer),
            Wanted::AtLeast(15.0),
        ),
        goal(
            "calls of 1 MiB: over in place",
            ratio(rate(COFER, mib), rate(IN_PLACE, mib)),
            Wanted::AtLeast(0.6),
        ),
        goal(
            "calls of 16 MiB: over in place",
            ratio(rate(COFER, large), rate(IN_PLACE, large)),
            Wanted::AtLeast(0.6),
        ),
        goal(
            "time of a call of 16 MiB: over one of 1 MiB",
            ratio(rate(COFER, mib), rate(COFER, large)),
            Wanted::AtMost(20.0),
        ),
    ]
}

fn peers(table: &Table) -> impl Iterator<Item = &str> {
    table.rows.iter().map(|(name, _)| name.as_str()).filter(|name| !OURS.contains(name))
}

/// What is wanted of calls through the gateway.
pub fn gateway_goals(table: &Table) -> Vec<Goal> {
    let [one, _, many, _, mib, _, _] = COLUMNS;
    let rate = |row: &str, column| table.figures(row, column).map(|figures| figures.per_second);
    let best_rate =
        |column| peers(table).filter_map(|name| rate(name, column)).max_by(f64::total_cmp);
    let time =
        |row: &str, of: Part| table.figures(row, one).map(|figures| of(figures).as_secs_f64());
    let best_time = |of| peers(table).filter_map(|name| time(name, of)).min_by(f64::total_cmp);
    let ratio = |over: Option<f64>, under: Option<f64>| Some(over? / under?);
    let (p50, p99): (Part, Part) = (|figures| figures.p50, |figures| figures.p99);
    let goal = |what: &str, is, wanted| Goal { what: what.to_owned(), is, wanted, unit: " times" };
    vec![
        goal(
            "gateway, calls at 64 callers, 100 B: over the best peer",
            ratio(rate(GATEWAY, many), best_rate(many)),
            Wanted::AtLeast(15.0),
        ),
        goal(
            "the same: over in place",
            ratio(rate(GATEWAY, many), rate(IN_PLACE, many)),
            Wanted::AtLeast(0.4),
        ),
        goal(
            "gateway, p50 at 1 caller, 100 B: over the best peer's",
            ratio(time(GATEWAY, p50), best_time(p50)),
            Wanted::AtMost(0.25),
        ),
        goal("the same, p99", ratio(time(GATEWAY, p99), best_time(p99)), Wanted::AtMost(0.25)),
        goal(
            "gateway, calls of 1 MiB: over the best peer",
            ratio(rate(GATEWAY, mib), best_rate(mib)),
            Wanted::AtLeast(5.0),
        ),
    ]
}
