//! What of the limits does not hold on this machine: because Podman cannot set it here, or
//! because the kernel does not have what was set.

use super::info::Info;

/// The limits that cgroups enforce, by their controllers.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// What a user can do about it.
const NOT_DELEGATED: &str = "without root they need a systemd of the user's own, as after \
    `loginctl enable-linger`, with the cgroup controllers delegated to it";

/// One sentence for each reason. `holds` says which controllers' limits the kernel has.
pub(crate) fn of_limits(info: &Info, holds: impl Fn(&str) -> bool) -> Vec<String> {
    let (possible, impossible): (Vec<&str>, Vec<&str>) =
        CONTROLLERS.into_iter().partition(|name| info.can_limit(name));
    let lost = possible.into_iter().filter(|name| !holds(name)).collect();
    let told = |names: Vec<&str>, why: &str| {
        let text = format!("limits that are not enforced: {} ({why})", names.join(", "));
        (!names.is_empty()).then_some(text)
    };
    [told(impossible, why_impossible(info)), told(lost, why_lost(info))]
        .into_iter()
        .flatten()
        .collect()
}

fn why_impossible(info: &Info) -> &'static str {
    match (info.rootless, info.cgroup_version) {
        (true, 1) => "without root, cgroups of version 1 cannot be used",
        (true, _) => NOT_DELEGATED,
        (false, _) => "Podman has no such cgroup controller here",
    }
}

fn why_lost(info: &Info) -> &'static str {
    if info.rootless { NOT_DELEGATED } else { "its cgroup does not have them" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::podman::arguments::tests::info;

    #[test]
    fn what_cannot_be_set_is_said_with_the_reason() {
        let all = |_: &str| true;
        assert_eq!(of_limits(&info(), all), Vec::<String>::new());
        let old = Info { rootless: true, ..info() };
        let told = of_limits(&old, all);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(": cpu, memory, pids (without root"), "{told:?}");
        let few = Info { controllers: vec!["memory".to_owned()], ..info() };
        assert!(of_limits(&few, all)[0].contains(": cpu, pids (Podman has no"), "{told:?}");
    }

    #[test]
    fn what_was_set_and_does_not_hold_is_said_too() {
        let rootless = Info { rootless: true, cgroup_version: 2, ..info() };
        let told = of_limits(&rootless, |name| name != "cpu");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("limits that are not enforced: cpu ("), "{told:?}");
        assert!(told[0].contains("loginctl enable-linger"), "{told:?}");
        let told = of_limits(&info(), |name| name == "pids");
        let expected = "limits that are not enforced: cpu, memory (its cgroup does not have them)";
        assert_eq!(told, [expected]);
        // Both at once are two sentences.
        let few = Info { controllers: vec!["memory".to_owned()], ..rootless };
        assert_eq!(of_limits(&few, |_| false).len(), 2);
    }
}
