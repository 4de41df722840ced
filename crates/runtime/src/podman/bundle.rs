//! The configuration that a container's runtime was given: Podman writes it, the runtime makes
//! it so, and conmon's arguments say where it lies.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Bundle {
    config: Value,
    /// The container's id, by which the engine's own files are known.
    id: String,
}

/// Something mounted into a container that a person would want to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    kind: &'static str,
    path: String,
    /// A volume's name, or a path of this machine.
    source: Option<String>,
    /// Where it lies on this machine.
    place: Option<PathBuf>,
    writable: bool,
    /// The bound of a tmpfs, as it was given.
    size: Option<String>,
}

impl Mount {
    pub(crate) fn to_json(&self) -> Value {
        let mut value = json!({"type": self.kind, "path": self.path, "writable": self.writable});
        for (key, text) in [("source", &self.source), ("size", &self.size)] {
            if let Some(text) = text {
                value[key] = text.as_str().into();
            }
        }
        value
    }
}

impl Bundle {
    /// Reads the configuration in `directory`.
    pub(crate) fn read(directory: &Path, id: &str) -> Option<Self> {
        let text = fs::read(directory.join("config.json")).ok()?;
        let config: Value = serde_json::from_slice(&text).ok()?;
        config.is_object().then(|| Self { config, id: id.to_owned() })
    }

    fn flag(&self, pointer: &str) -> bool {
        self.config.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
    }

    fn root(&self) -> Option<&Value> {
        self.config.get("root")
    }

    pub(crate) fn no_new_privileges(&self) -> bool {
        self.flag("/process/noNewPrivileges")
    }

    pub(crate) fn read_only_root(&self) -> bool {
        self.root().and_then(|root| root.get("readonly")?.as_bool()).unwrap_or(false)
    }

    pub(crate) fn user(&self) -> Option<u64> {
        self.config.pointer("/process/user/uid")?.as_u64()
    }

    /// Capabilities in effect, as `chown`.
    pub(crate) fn capabilities(&self) -> Vec<String> {
        let names =
            self.config.pointer("/process/capabilities/effective").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names
            .map(|name| {
                let name = name.to_ascii_lowercase();
                name.strip_prefix("cap_").unwrap_or(&name).to_owned()
            })
            .collect()
    }

    /// Volumes, paths of this machine and tmpfs. What every container has of the kernel, and
    /// files that the engine makes for it, are left out.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        let mounts = self.config.pointer("/mounts").and_then(Value::as_array);
        mounts.into_iter().flatten().filter_map(|mount| self.mount(mount)).collect()
    }

    fn mount(&self, mount: &Value) -> Option<Mount> {
        let path = mount["destination"].as_str()?.to_owned();
        let options: Vec<&str> =
            mount["options"].as_array()?.iter().filter_map(Value::as_str).collect();
        let writable = !options.contains(&"ro");
        match mount["type"].as_str()? {
            "tmpfs" if path != "/dev" => {
                let size = options.iter().find_map(|option| option.strip_prefix("size="));
                let size = size.map(str::to_owned);
                Some(Mount { kind: "tmpfs", path, source: None, place: None, writable, size })
            }
            "bind" => {
                let source = mount["source"].as_str()?;
                let of_engine = source.contains(&self.id)
                    || matches!(path.as_str(), "/run/podman-init" | "/dev/init");
                let volume = volume_name(source);
                let kind = if volume.is_some() { "volume" } else { "bind" };
                (!of_engine).then(|| Mount {
                    kind,
                    path,
                    source: Some(volume.unwrap_or(source).to_owned()),
                    place: Some(source.into()),
                    writable,
                    size: None,
                })
            }
            _ => None,
        }
    }

    /// The directories of this machine that it can fill with what is its own: its layer, where
    /// the root is writable, and its volumes. Nothing where the layer cannot be told from the
    /// image.
    pub(crate) fn writable_places(&self) -> Option<Vec<PathBuf>> {
        let mounts = self.mounts().into_iter().filter(|mount| mount.kind == "volume");
        let mut places: Vec<PathBuf> =
            mounts.filter(|mount| mount.writable).filter_map(|mount| mount.place).collect();
        if !self.read_only_root() {
            places.push(self.layer()?);
        }
        Some(places)
    }

    /// Its root layer. The overlay's parts lie side by side: `merged` is the root that the
    /// container sees, `diff` what it has written.
    pub(crate) fn layer(&self) -> Option<PathBuf> {
        let root = PathBuf::from(self.root()?.get("path")?.as_str()?);
        let layer = root.file_name().filter(|name| *name == "merged").map(|_| "diff")?;
        Some(root.parent()?.join(layer))
    }
}

/// The name of the volume that lies at `path`, where one does.
fn volume_name(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/');
    (parts.next() == Some("_data")).then(|| parts.next()).flatten()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bundle(read_only: bool) -> Bundle {
        let config = json!({
            "process": {
                "noNewPrivileges": true, "user": {"uid": 7},
                "capabilities": {"effective": ["CAP_CHOWN"]},
            },
            "root": {"readonly": read_only, "path": "/storage/overlay/l/merged"},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc", "options": []},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []},
                {"destination": "/etc/hosts", "type": "bind", "options": ["bind"],
                 "source": "/run/containers/0a0a/userdata/hosts"},
                {"destination": "/run/podman-init", "type": "bind", "options": ["ro"],
                 "source": "/usr/libexec/podman/catatonit"},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                 "options": ["rw", "size=1024"]},
                {"destination": "/data", "type": "bind", "options": ["rw", "rbind"],
                 "source": "/storage/volumes/cofer-1-data/_data"},
                {"destination": "/host", "type": "bind", "options": ["ro", "rbind"],
                 "source": "/srv"},
            ],
        });
        Bundle { config, id: "0a0a".to_owned() }
    }

    #[test]
    fn mounts_are_what_a_person_would_want_to_know_of() {
        let mounts: Value = bundle(true).mounts().iter().map(Mount::to_json).collect();
        assert_eq!(
            mounts,
            json!([
                {"type": "tmpfs", "path": "/tmp", "writable": true, "size": "1024"},
                {"type": "volume", "path": "/data", "writable": true, "source": "cofer-1-data"},
                {"type": "bind", "path": "/host", "writable": false, "source": "/srv"},
            ])
        );
    }

    #[test]
    fn what_can_be_filled_are_volumes_and_a_root_that_is_writable() {
        let volume = PathBuf::from("/storage/volumes/cofer-1-data/_data");
        assert_eq!(bundle(true).writable_places(), Some(vec![volume.clone()]));
        let layer = PathBuf::from("/storage/overlay/l/diff");
        assert_eq!(bundle(false).writable_places(), Some(vec![volume, layer]));
        let mut copied = bundle(false);
        copied.config["root"]["path"] = "/storage/vfs/dir/l".into();
        assert_eq!(copied.writable_places(), None, "a layer that is a copy of the image");
    }

    #[test]
    fn what_is_no_configuration_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Bundle::read(dir.path(), "x").is_none());
        fs::write(dir.path().join("config.json"), "[]").unwrap();
        assert!(Bundle::read(dir.path(), "x").is_none());
        fs::write(dir.path().join("config.json"), "{}").unwrap();
        assert!(Bundle::read(dir.path(), "x").is_some());
    }
}
