//! What Podman says of itself and of the machine, and which limits it can hold servers to.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::PodmanError;

/// The first version whose containers can be given our pipes as they are.
const OLDEST: (u64, u64) = (4, 0);

/// What Podman on this machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Its version.
    pub version: String,
    /// Whether its containers run on another machine.
    pub is_remote: bool,
    /// Whether it runs without root.
    pub rootless: bool,
    /// 1 or 2.
    pub cgroup_version: u8,
    /// What cgroups can hold a container to: `cpu`, `memory`, `pids`, …
    pub controllers: Vec<String>,
    /// The OCI runtime it uses where none is named.
    pub runtime: String,
    /// How images and containers are stored.
    pub storage_driver: String,
    /// Where.
    pub storage_root: PathBuf,
    /// Where volumes lie, each in a directory of its name.
    pub volume_root: PathBuf,
    /// Whether the storage can hold a container's root to a size.
    pub quota: bool,
    /// Whether seccomp profiles are in use.
    pub seccomp: bool,
}

impl Info {
    /// Reads the answer to `podman info --format json`, and refuses an engine that servers cannot
    /// be run by; `mounts` is `/proc/self/mounts`.
    pub(crate) fn parse(answer: &[u8], mounts: &str) -> Result<Self, PodmanError> {
        let info = Self::read(answer, mounts)?;
        if !is_new_enough(&info.version) {
            return Err(PodmanError::TooOld { version: info.version });
        }
        if info.is_remote {
            return Err(PodmanError::Remote);
        }
        Ok(info)
    }

    /// Reads the same of any version.
    pub fn read(answer: &[u8], mounts: &str) -> Result<Self, PodmanError> {
        let value: Value = serde_json::from_slice(answer).map_err(|error| {
            PodmanError::NotWorking { message: format!("`podman info` cannot be read: {error}") }
        })?;
        let text = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is = |pointer: &str| value.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let controllers = value.pointer("/host/cgroupControllers").and_then(Value::as_array);
        let controllers = controllers.into_iter().flatten().filter_map(Value::as_str);
        let storage_root = PathBuf::from(text("/store/graphRoot"));
        Ok(Self {
            rootless: is("/host/security/rootless"),
            cgroup_version: if text("/host/cgroupVersion") == "v1" { 1 } else { 2 },
            controllers: controllers.map(str::to_owned).collect(),
            runtime: text("/host/ociRuntime/name"),
            storage_driver: text("/store/graphDriverName"),
            quota: has_quota(&text("/store/graphDriverName"), &storage_root, mounts),
            storage_root,
            volume_root: PathBuf::from(text("/store/volumePath")),
            seccomp: is("/host/security/seccompEnabled"),
            is_remote: is("/host/serviceIsRemote"),
            version: text("/version/Version"),
        })
    }

    /// Whether a limit that `controller` enforces can be set.
    pub(crate) fn can_limit(&self, controller: &str) -> bool {
        // Without root, cgroups of version 1 belong to nobody but root.
        let may = !(self.rootless && self.cgroup_version == 1);
        may && self.controllers.iter().any(|name| name == controller)
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) else {
        return false;
    };
    (major, minor) >= OLDEST
}

/// The overlay driver has quotas on xfs that is mounted with them; btrfs and zfs always do.
fn has_quota(driver: &str, root: &Path, mounts: &str) -> bool {
    match driver {
        "btrfs" | "zfs" => true,
        "overlay" => {
            let holds = |line: &str| {
                let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
                let &[_, at, kind, options] = fields.as_slice() else {
                    return None;
                };
                root.starts_with(at).then(|| {
                    let quota = options.split(',').any(|o| matches!(o, "pquota" | "prjquota"));
                    (at.len(), kind == "xfs" && quota)
                })
            };
            mounts.lines().filter_map(holds).max().is_some_and(|(_, quota)| quota)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(version: &str, rootless: bool, cgroup: &str) -> Vec<u8> {
        json!({
            "host": {
                "cgroupVersion": cgroup, "cgroupControllers": ["cpu", "memory"],
                "ociRuntime": {"name": "runc"}, "serviceIsRemote": false,
                "security": {"rootless": rootless, "seccompEnabled": true},
            },
            "store": {"graphDriverName": "overlay", "graphRoot": "/var/lib/containers/storage"},
            "version": {"Version": version},
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn what_podman_says_of_itself_is_read() {
        let info = Info::parse(&answer("4.3.1", false, "v1"), "").unwrap();
        assert_eq!(
            (info.version.as_str(), info.rootless, info.cgroup_version),
            ("4.3.1", false, 1)
        );
        assert!(info.can_limit("memory") && !info.can_limit("pids"));
    }

    #[test]
    fn without_root_and_with_cgroups_of_version_1_nothing_is_limited() {
        let info = Info::parse(&answer("5.0.0-dev", true, "v1"), "").unwrap();
        assert!(!info.can_limit("memory"));
        let info = Info::parse(&answer("5.0.0-dev", true, "v2"), "").unwrap();
        assert!(info.can_limit("memory"));
    }

    #[test]
    fn what_cannot_bridge_is_refused() {
        let refused = |bytes: &[u8]| Info::parse(bytes, "").unwrap_err();
        assert!(matches!(refused(&answer("3.4.4", false, "v2")), PodmanError::TooOld { .. }));
        assert!(matches!(refused(&answer("", false, "v2")), PodmanError::TooOld { .. }));
        assert!(matches!(refused(b"no"), PodmanError::NotWorking { .. }));
    }

    #[test]
    fn a_quota_is_there_where_the_storage_itself_lies_on_a_file_system_with_one() {
        let root = Path::new("/var/lib/containers/storage");
        let xfs = "/dev/a / ext4 rw 0 0\n/dev/b /var/lib/containers xfs rw,prjquota 0 0\n";
        assert!(has_quota("overlay", root, xfs));
        assert!(!has_quota("overlay", Path::new("/home/x"), xfs));
        assert!(!has_quota("overlay", root, "/dev/b /var/lib/containers xfs rw,noquota 0 0\n"));
        assert!(has_quota("btrfs", root, ""));
        assert!(!has_quota("vfs", root, xfs));
    }
}
