//! What a driver is told, and what each order means in each state. Pure: the driver does it.
#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use cofer_model::{Failure, ServerSpec};
use tokio::sync::oneshot;

use super::driver::Beginning;

/// What a driver is told to do. It is acknowledged as soon as its effect can be seen.
#[derive(Debug)]
pub(crate) enum Order {
    /// Be what `spec` says. `forgive` means that a person used the switch: an error is
    /// taken off a server that stays off, and one that stays on is tried again.
    Configure { spec: Arc<ServerSpec>, forgive: bool, ack: oneshot::Sender<()> },
    /// Run anew; acknowledged with whether it will.
    Restart { ack: oneshot::Sender<bool> },
    /// The fence is raised: stop, and wait for `Resume`. Dropping `done` acknowledges that nothing
    /// of the server runs.
    Suspend { done: oneshot::Sender<()> },
    /// The fence is lowered: begin as after a start of the daemon, with the `failure` in which
    /// the server was left.
    Resume { beginning: Beginning, failure: Option<Failure> },
    /// The daemon ends: stop, and do not come back.
    ShutDown,
    /// The server is removed: stop, take the log away, and do not come back.
    Remove,
}

/// What is known of a server that is being started, which decides what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A person switched it on or changed it. A failure switches it off again.
    Unproven,
    /// It had been ready. A failure is a crash.
    Proven,
}

/// The state in which an order comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Idle,
    Failed,
    Starting(Standing),
    Ready,
    BackingOff,
    /// What it runs on is not there.
    Waiting(Standing),
}

impl Place {
    /// Whether something may run that has to be stopped before the state is left.
    pub(super) fn has_process(self) -> bool {
        match self {
            Self::Starting(_) | Self::Ready => true,
            Self::Idle | Self::Failed | Self::BackingOff | Self::Waiting(_) => false,
        }
    }
}

/// What a new configuration changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) was_enabled: bool,
    pub(super) enabled: bool,
    /// Whether a process of the old configuration fits the new one.
    pub(super) same: bool,
    pub(super) forgive: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Go on as before.
    Stay,
    /// Start, what runs being stopped first.
    Start(Standing),
    /// Stop.
    Stop,
    /// Stop until the fence is lowered.
    Suspend,
    /// Stop for good.
    End { remove: bool },
}

/// What a new configuration means.
pub(super) fn configured(place: Place, change: Change) -> Step {
    let renewed = change.forgive || !change.same;
    match (place, change.enabled) {
        // A server that is on and does not run was left so by its restart policy: a change
        // of its description is no reason to run it.
        (Place::Idle | Place::Failed, true) if renewed || !change.was_enabled => {
            Step::Start(Standing::Unproven)
        }
        (Place::Failed, false) if renewed => Step::Stop,
        (Place::Idle | Place::Failed, _) => Step::Stay,
        // It shows an error, so that whoever uses the switch means: now.
        (Place::Waiting(_), true) if renewed => Step::Start(Standing::Unproven),
        (Place::Waiting(_), true) => Step::Stay,
        (Place::Waiting(_), false) => Step::Stop,
        (Place::Starting(_) | Place::Ready | Place::BackingOff, true) => match change.same {
            true => Step::Stay,
            false => Step::Start(Standing::Unproven),
        },
        (Place::Starting(_) | Place::Ready | Place::BackingOff, false) => Step::Stop,
    }
}

/// What a person's wish for a restart means.
pub(super) fn restarted(place: Place, enabled: bool) -> Step {
    match place {
        Place::Idle | Place::Failed if !enabled => Step::Stay,
        // What has not been ready yet is not made a proven server by impatience.
        Place::Starting(standing) | Place::Waiting(standing) => Step::Start(standing),
        Place::Idle | Place::Failed | Place::Ready | Place::BackingOff => {
            Step::Start(Standing::Proven)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 7] = [
        Place::Idle,
        Place::Failed,
        Place::Starting(Standing::Unproven),
        Place::Starting(Standing::Proven),
        Place::Ready,
        Place::BackingOff,
        Place::Waiting(Standing::Proven),
    ];
    const START: Step = Step::Start(Standing::Unproven);

    /// What a change means in each of `PLACES`.
    fn check(change: Change, expected: [Step; 7]) {
        assert_eq!(PLACES.map(|place| configured(place, change)), expected, "{change:?}");
    }

    fn change(was_enabled: bool, enabled: bool) -> Change {
        Change { was_enabled, enabled, same: true, forgive: false }
    }

    #[test]
    fn who_is_switched_on_starts_and_who_is_on_its_way_goes_on() {
        // covers: MGR-19
        use Step::Stay;
        check(change(false, true), [START, START, Stay, Stay, Stay, Stay, Stay]);
        let switch = Change { forgive: true, ..change(true, true) };
        check(switch, [START, START, Stay, Stay, Stay, Stay, START]);
    }

    #[test]
    fn who_is_switched_off_stops_and_keeps_its_error_unless_forgiven() {
        // covers: MGR-23
        use Step::{Stay, Stop};
        check(change(true, false), [Stay, Stay, Stop, Stop, Stop, Stop, Stop]);
        check(change(false, false), [Stay, Stay, Stop, Stop, Stop, Stop, Stop]);
        let switch = Change { forgive: true, ..change(false, false) };
        check(switch, [Stay, Stop, Stop, Stop, Stop, Stop, Stop]);
        let mended = Change { same: false, ..change(false, false) };
        check(mended, [Stay, Stop, Stop, Stop, Stop, Stop, Stop]);
    }

    #[test]
    fn a_changed_run_configuration_starts_whatever_is_on() {
        let change = Change { same: false, ..change(true, true) };
        check(change, [START; 7]);
    }

    #[test]
    fn a_change_of_words_changes_nothing_else() {
        check(change(true, true), [Step::Stay; 7]);
    }

    #[test]
    fn a_restart_runs_anew_what_is_switched_on() {
        // covers: HST-3.5
        let again = Step::Start(Standing::Proven);
        let on = PLACES.map(|place| restarted(place, true));
        assert_eq!(on, [again, again, START, again, again, again, again]);
        let off = PLACES.map(|place| restarted(place, false));
        assert_eq!(off[..2], [Step::Stay; 2]);
    }
}
