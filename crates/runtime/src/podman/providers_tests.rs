//! Providers against a Podman that is a script: which trial passes is the test's choice.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::podman::plan::tests::plan;

/// A machine whose `/dev/kvm` is a file, with the programs `runtimes` and a Podman whose
/// containers report the kernel `kernel`.
struct Bench {
    folder: tempfile::TempDir,
    podman: Podman,
}

impl Bench {
    fn new(runtimes: &[&str], kernel: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(bin.join(name), text).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        let info = r#"{"version": {"Version": "5.0.0"}, "host": {"ociRuntime": {"name": "crun"}}}"#;
        let log = folder.path().join("calls");
        write(
            "podman",
            &format!(
                "#!/bin/sh\necho \"$*\" >> {}\ncase \"$1\" in\ninfo) echo '{info}' ;;\n\
                 *) printf '%s\\0' '{kernel}'; exit 42 ;;\nesac\n",
                log.display()
            ),
        );
        for runtime in runtimes {
            write(runtime, "#!/bin/sh\n");
        }
        fs::write(folder.path().join("kvm"), "").unwrap();
        let path = std::env::var("PATH").unwrap();
        let base = BTreeMap::from([("PATH".into(), format!("{}:{path}", bin.display()).into())]);
        let program = bin.join("podman");
        let state = folder.path().join("state");
        let mut podman =
            Podman::with_environment(program, "o".to_owned(), state, "/no/shim".into(), base);
        Arc::get_mut(&mut podman.inner).unwrap().providers.kvm = folder.path().join("kvm");
        Self { folder, podman }
    }

    /// The arguments of all calls so far.
    fn calls(&self) -> String {
        fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default()
    }

    async fn report(&self, name: &str) -> ProviderReport {
        let reports = self.podman.providers().await;
        reports.into_iter().find(|report| report.provider == name).unwrap()
    }
}

fn named(provider: Provider) -> ContainerPlan {
    ContainerPlan { provider: Some(provider), require: None, ..plan() }
}

fn host_kernel() -> String {
    probe::host_kernel().unwrap()
}

#[tokio::test]
async fn krun_with_a_kernel_of_its_own_is_used_if_it_is_named_and_never_otherwise() {
    let bench = Bench::new(&["krun"], "6.12.91");
    let report = bench.report("krun").await;
    assert!(report.installed && report.available, "{report:?}");
    assert!(report.runtime.unwrap().ends_with("/krun"));
    let choice = bench.podman.choose(&named(Provider::Krun)).await.unwrap();
    assert_eq!(choice.provider, "krun");
    assert!(!choice.allows_init());
    assert!(!bench.calls().contains("--init"), "{}", bench.calls());
    // gVisor of the machine that runs this test is not of interest.
    let unnamed = ContainerPlan { provider: None, require: None, ..plan() };
    assert_ne!(bench.podman.choose(&unnamed).await.unwrap().provider, "krun");
    let firecracker = bench.report("firecracker").await;
    assert!(!firecracker.available && !firecracker.installed, "{firecracker:?}");
}

#[tokio::test]
async fn krun_whose_guest_has_this_machines_kernel_is_not_a_microvm() {
    let bench = Bench::new(&["krun"], &host_kernel());
    let report = bench.report("krun").await;
    assert!(report.installed && !report.available, "{report:?}");
    assert!(report.reason.unwrap().contains("not a microVM"));
    let error = bench.podman.choose(&named(Provider::Krun)).await.unwrap_err();
    let is_it = matches!(&error, PodmanError::ProviderUnavailable { provider: "krun", reason }
        if reason.contains(&host_kernel()));
    assert!(is_it, "{error:?}");
}

#[tokio::test]
async fn krun_without_a_kernel_in_its_answer_or_without_kvm_is_not_available() {
    let silent = Bench::new(&["krun"], "");
    assert!(silent.report("krun").await.reason.unwrap().contains("did not report its kernel"));
    let bench = Bench::new(&["krun"], "6.12.91");
    fs::remove_file(bench.folder.path().join("kvm")).unwrap();
    assert!(bench.report("krun").await.reason.unwrap().contains("kvm cannot be used"));
}

#[tokio::test]
async fn kata_is_not_taken_for_a_provider() {
    let bench = Bench::new(&["kata-fc", "kata-runtime"], "6.12.91");
    for report in bench.podman.providers().await {
        assert!(!report.runtime.unwrap_or_default().contains("kata"), "{}", report.provider);
    }
    assert!(!bench.calls().contains("kata"), "{}", bench.calls());
}

#[tokio::test]
async fn firecracker_and_e2b_are_answered_with_the_reason() {
    // covers: HST-5.3
    let bench = Bench::new(&[], "6.12.91");
    for provider in [Provider::Firecracker, Provider::E2b] {
        let report = bench.report(provider.name()).await;
        assert!(!report.available && !report.installed, "{report:?}");
        let error = bench.podman.choose(&named(provider)).await.unwrap_err();
        let PodmanError::ProviderUnavailable { provider: name, reason } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((*name, Some(reason)), (provider.name(), report.reason.as_ref()));
        let required = ContainerPlan { require: Some(Requirement::Gvisor), ..named(provider) };
        let error = bench.podman.choose(&required).await.unwrap_err();
        assert!(matches!(error, PodmanError::RequirementUnmet { .. }), "{error:?}");
    }
}

fn found(stamp: u64) -> Option<Found> {
    Some(Found { path: "/usr/bin/runsc".into(), stamp: (0, 0, stamp) })
}

fn remembered(result: Result<RuntimeChoice, String>) -> Remembered {
    Remembered { found: found(1), at: Instant::now(), result }
}

#[test]
fn what_worked_holds_until_the_program_changes() {
    let choice = RuntimeChoice::of_engine();
    let known = remembered(Ok(choice));
    let later = known.at + RETRY_AFTER * 10;
    assert!(known.holds_for(found(1).as_ref(), later));
    assert!(!known.holds_for(found(2).as_ref(), later));
    assert!(!known.holds_for(None, later));
}

#[test]
fn what_did_not_work_is_tried_again_later() {
    let known = remembered(Err("no".to_owned()));
    assert!(known.holds_for(found(1).as_ref(), known.at));
    assert!(!known.holds_for(found(1).as_ref(), known.at + RETRY_AFTER));
}

#[test]
fn a_runtime_is_named_as_podman_knows_it() {
    assert_eq!(program_name(Path::new("/usr/bin/runsc")), "runsc");
    assert_eq!(program_name(Path::new("/opt/bin/runsc")), "/opt/bin/runsc");
}

#[test]
fn gvisor_is_never_tried_on_kvm() {
    assert!(!GVISOR_WAYS.iter().flat_map(|way| way.iter()).any(|flag| flag.contains("kvm")));
}

#[tokio::test]
async fn a_sandbox_that_shares_sockets_gets_the_flags_of_its_trial_and_more() {
    let bench = Bench::new(&["runsc"], "4.4.0");
    let flags = bench.podman.socket_sharing_flags(Provider::Gvisor).await.unwrap();
    assert!(flags.iter().any(|flag| flag.starts_with("--runtime=")), "{flags:?}");
    for flag in ["--runtime-flag=host-uds=all", "--runtime-flag=overlay2=none"] {
        assert!(flags.iter().any(|given| given == flag), "{flags:?}");
    }
    // The flags of servers stay without them.
    let choice = bench.podman.choose(&named(Provider::Gvisor)).await.unwrap();
    assert!(!choice.flags.iter().any(|flag| flag.starts_with("host-uds")), "{choice:?}");
    bench.podman.socket_sharing_flags(Provider::Firecracker).await.unwrap_err();
}
