//! How Podman is told what a container is to be: a pure function from the plan to arguments,
//! so that what isolates a server by default can be read in one place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::choice::RuntimeChoice;
use super::client::is_read_by_client;
use super::hardening::{isolation_arguments, layer_size_argument, limit_arguments};
use super::info::Info;
use super::label;
use super::plan::{ContainerPlan, volume_name};

/// One start of a container.
pub(crate) struct Launch<'a> {
    pub(crate) plan: &'a ContainerPlan,
    pub(crate) info: &'a Info,
    pub(crate) runtime: &'a RuntimeChoice,
    pub(crate) owner: &'a str,
    pub(crate) daemon: &'a str,
    pub(crate) run: &'a str,
    /// Where the container's id, its pid and its environment are written.
    pub(crate) files: &'a Path,
    /// Whether a first process that collects orphans and heeds signals can be put in.
    pub(crate) init: bool,
}

impl Launch<'_> {
    /// The arguments of `podman run`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let plan = self.plan;
        let mut args = self.runtime.global_flags(plan.network);
        args.extend(["run".to_owned(), "--detach".to_owned()]);
        args.extend(self.identity());
        args.extend(isolation_arguments(&plan.openings, plan.network));
        args.extend(limit_arguments(&plan.limits, self.info));
        args.extend(self.storage());
        args.extend(plan.ports.iter().map(|port| {
            let address = match port.address() {
                std::net::IpAddr::V4(address) => address.to_string(),
                std::net::IpAddr::V6(address) => format!("[{address}]"),
            };
            let host = if port.host == 0 { String::new() } else { port.host.to_string() };
            format!("--publish={address}:{host}:{}/tcp", port.container)
        }));
        args.extend(self.process());
        args.push(plan.image.clone());
        args.extend(plan.args.iter().cloned());
        args
    }

    fn identity(&self) -> Vec<String> {
        let plan = self.plan;
        let file = |name: &str| self.files.join(name).display().to_string();
        let mut args = vec![
            format!("--name={}", plan.container_name()),
            format!("--hostname={}", plan.hostname()),
            format!("--cidfile={}", file(ID_FILE)),
            format!("--pidfile={}", file(PID_FILE)),
            // The daemon is the only supervisor, and what is not here is pulled before.
            "--pull=never".to_owned(),
            "--restart=no".to_owned(),
            "--no-healthcheck".to_owned(),
            "--log-driver=passthrough".to_owned(),
        ];
        for (key, value) in [
            (label::OWNER, self.owner),
            (label::DAEMON, self.daemon),
            (label::RUN, self.run),
            (label::SERVER, &plan.server.to_string()),
            (label::NAME, &plan.name),
        ] {
            args.push(format!("--label={key}={value}"));
        }
        args
    }

    fn storage(&self) -> Vec<String> {
        let plan = self.plan;
        let mut args = Vec::new();
        let is_kept = |path: &str| plan.volumes.iter().any(|volume| trimmed(volume) == path);
        if !is_kept("/tmp") {
            args.push(format!(
                "--tmpfs=/tmp:rw,nosuid,nodev,exec,mode=1777,size={}",
                self.tmp_size()
            ));
        }
        if plan.openings.writable_root {
            args.extend(layer_size_argument(&plan.limits, self.info));
        }
        for path in &plan.volumes {
            let name = volume_name(plan.server, path);
            args.push(format!("--volume={name}:{}:rw,nosuid,nodev", trimmed(path)));
        }
        for mount in &plan.openings.mounts {
            let mode = if mount.writable { "rw" } else { "ro" };
            args.push(format!("--volume={}:{}:{mode}", mount.host, mount.container));
        }
        args
    }

    /// What is in `/tmp` lies in memory and counts as such: half of it at most.
    fn tmp_size(&self) -> u64 {
        let limits = &self.plan.limits;
        let half = limits.memory_bytes().unwrap_or(u64::MAX) / 2;
        half.min(limits.disk_bytes().unwrap_or(u64::MAX)).max(64 * 1024)
    }

    fn process(&self) -> Vec<String> {
        let plan = self.plan;
        let mut args = Vec::new();
        if plan.stdio {
            args.push("--interactive".to_owned());
        }
        if self.init && self.runtime.allows_init() {
            args.push("--init".to_owned());
        }
        args.extend(plan.user.iter().map(|user| format!("--user={user}")));
        args.extend(plan.cwd.iter().map(|cwd| format!("--workdir={cwd}")));
        if let Some(command) = &plan.command {
            // As a list, so that nothing in it is split.
            args.push(format!("--entrypoint={}", serde_json::json!([command])));
        }
        let mut by_file = false;
        for key in plan.environment.keys() {
            if is_read_by_client(key) {
                by_file = true;
            } else {
                args.push(format!("--env={key}"));
            }
        }
        if by_file {
            args.push(format!("--env-file={}", self.files.join(ENVIRONMENT_FILE).display()));
        }
        args
    }

    /// The client's environment: its own, and the server's variables that it only hands on.
    pub(crate) fn environment(
        &self,
        own: &BTreeMap<OsString, OsString>,
    ) -> BTreeMap<OsString, OsString> {
        let mut environment = own.clone();
        let handed_on = self.plan.environment.iter().filter(|(key, _)| !is_read_by_client(key));
        environment.extend(handed_on.map(|(key, value)| (key.into(), value.into())));
        environment
    }

    /// The server's variables that the client would read itself, for a file.
    pub(crate) fn environment_file(&self) -> Option<String> {
        let kept = self.plan.environment.iter().filter(|(key, _)| is_read_by_client(key));
        let lines: String = kept.map(|(key, value)| format!("{key}={value}\n")).collect();
        (!lines.is_empty()).then_some(lines)
    }
}

/// The file in which Podman tells a container's id.
pub(crate) const ID_FILE: &str = "id";
/// The file in which it tells its pid.
pub(crate) const PID_FILE: &str = "pid";
/// The file from which it takes variables.
pub(crate) const ENVIRONMENT_FILE: &str = "environment";

fn trimmed(path: &str) -> &str {
    path.trim_end_matches('/')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::podman::plan::tests::plan;
    use cofer_model::{HostMount, Network, Openings, PortMapping};

    pub(crate) fn info() -> Info {
        Info {
            version: "4.3.1".to_owned(),
            is_remote: false,
            rootless: false,
            cgroup_version: 1,
            controllers: ["cpu", "memory", "pids"].map(str::to_owned).to_vec(),
            runtime: "runc".to_owned(),
            storage_driver: "overlay".to_owned(),
            storage_root: "/var/lib/containers/storage".into(),
            volume_root: "/no/such/place".into(),
            quota: true,
            seccomp: true,
        }
    }

    fn arguments(plan: &ContainerPlan, info: &Info) -> Vec<String> {
        let runtime = RuntimeChoice {
            provider: "gvisor",
            program: Some("runsc".to_owned()),
            flags: vec!["platform=ptrace".to_owned(), "network=sandbox".to_owned()],
        };
        let launch = Launch {
            plan,
            info,
            runtime: &runtime,
            owner: "o",
            daemon: "d",
            run: "r",
            files: Path::new("/state/r"),
            init: true,
        };
        launch.arguments()
    }

    #[test]
    fn a_container_is_closed_by_default() {
        let args = arguments(&plan(), &info());
        assert_eq!(
            args.join(" "),
            "--log-level=error --runtime=runsc --runtime-flag=platform=ptrace \
             --runtime-flag=network=sandbox run --detach --name=cofer-files-0123456789ab \
             --hostname=files --cidfile=/state/r/id --pidfile=/state/r/pid --pull=never \
             --restart=no --no-healthcheck --log-driver=passthrough --label=cofer.owner=o \
             --label=cofer.daemon=d --label=cofer.run=r \
             --label=cofer.server=018f0000-0000-7000-8000-0123456789ab --label=cofer.name=files \
             --cap-drop=all --ipc=private --pid=private --network=private \
             --security-opt=no-new-privileges --read-only --read-only-tmpfs=false --cpus=0.5 \
             --memory=536870912b --memory-swap=536870912b --pids-limit=256 \
             --tmpfs=/tmp:rw,nosuid,nodev,exec,mode=1777,size=268435456 --interactive --init \
             localhost/bb cat"
        );
    }

    #[test]
    fn what_is_opened_is_opened_by_name() {
        let mount =
            HostMount { host: "/etc".to_owned(), container: "/e".to_owned(), writable: false };
        let openings = Openings {
            capabilities: vec!["net_raw".to_owned()],
            new_privileges: true,
            writable_root: true,
            all_system_calls: true,
            mounts: vec![mount],
        };
        let ports = vec![PortMapping { container: 80, host: 0, address: None }];
        let opened = ContainerPlan {
            openings,
            ports,
            network: Network::Host,
            stdio: false,
            volumes: vec!["/data/".to_owned(), "/tmp".to_owned()],
            command: Some("a b".to_owned()),
            ..plan()
        };
        let args = arguments(&opened, &info());
        for expected in [
            "--cap-add=NET_RAW",
            "--security-opt=seccomp=unconfined",
            "--network=host",
            "--runtime-flag=network=host",
            "--volume=/etc:/e:ro",
            "--volume=cofer-0123456789ab-data:/data:rw,nosuid,nodev",
            "--publish=127.0.0.1::80/tcp",
            "--storage-opt=size=1073741824",
            r#"--entrypoint=["a b"]"#,
        ] {
            assert!(args.iter().any(|arg| arg == expected), "{expected} {args:?}");
        }
        for gone in ["--read-only", "--interactive", "--security-opt=no-new-privileges"] {
            assert!(!args.iter().any(|arg| arg == gone), "{gone}");
        }
        assert!(!args.iter().any(|arg| arg.starts_with("--tmpfs")), "the volume is at /tmp");
    }

    #[test]
    fn a_microvm_gets_no_init() {
        let (plan, info) = (plan(), info());
        let has_init = |provider: &'static str| {
            let program = Some(provider.to_owned());
            let runtime = RuntimeChoice { provider, program, flags: Vec::new() };
            let files = Path::new("/state/r");
            let (owner, daemon, run) = ("o", "d", "r");
            let (plan, info, runtime) = (&plan, &info, &runtime);
            let launch = Launch { plan, info, runtime, owner, daemon, run, files, init: true };
            launch.arguments().iter().any(|arg| arg == "--init")
        };
        assert!(has_init("podman") && !has_init("krun"));
    }

    #[test]
    fn limits_that_cannot_be_set_are_left_off() {
        let rootless = Info { rootless: true, ..info() };
        let args = arguments(&plan(), &rootless);
        for flag in ["--cpus", "--memory", "--pids-limit"] {
            assert!(!args.iter().any(|arg| arg.starts_with(flag)), "{flag}");
        }
    }

    #[test]
    fn no_value_of_the_environment_stands_in_an_argument() {
        let pairs = [("API_KEY", "secret-1"), ("PATH", "secret-2"), ("HOME", "secret-3")];
        let environment =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let plan = ContainerPlan { environment, ..plan() };
        let runtime = RuntimeChoice { provider: "podman", program: None, flags: Vec::new() };
        let info = info();
        let launch = Launch {
            plan: &plan,
            info: &info,
            runtime: &runtime,
            owner: "o",
            daemon: "d",
            run: "r",
            files: Path::new("/state/r"),
            init: true,
        };
        let args = launch.arguments().join(" ");
        assert!(!args.contains("secret"), "{args}");
        assert!(
            args.contains("--env=API_KEY ") && args.contains("--env-file=/state/r/environment")
        );
        let own = BTreeMap::from([("PATH".into(), "/bin".into())]);
        let environment = launch.environment(&own);
        assert_eq!(environment[&OsString::from("PATH")], "/bin");
        assert_eq!(environment[&OsString::from("API_KEY")], "secret-1");
        let file = launch.environment_file().unwrap();
        assert_eq!(file, "HOME=secret-3\nPATH=secret-2\n");
    }
}
