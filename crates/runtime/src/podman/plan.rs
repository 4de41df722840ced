//! What a container is to be, and whether it can be.

use std::collections::BTreeMap;
use std::path::Path;

use cofer_model::{
    Limits, Network, Openings, PortMapping, Provider, Requirement, ServerId, ServerSpec,
};

use super::client::is_read_by_client;
use super::error::PodmanError;

/// A container to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPlan {
    /// The server it is for; at most one container of a server runs.
    pub server: ServerId,
    /// The server's name, for people who read `podman ps`.
    pub name: String,
    /// The image, which must be on this machine.
    pub image: String,
    /// A program instead of the image's entry point.
    pub command: Option<String>,
    /// What the entry point is given; the image's own where it is empty.
    pub args: Vec<String>,
    /// The working directory, where it is not the image's.
    pub cwd: Option<String>,
    /// `user` or `user:group`, where it is not the image's.
    pub user: Option<String>,
    /// Variables; values never stand in an argument.
    pub environment: BTreeMap<String, String>,
    /// Ports to publish.
    pub ports: Vec<PortMapping>,
    /// Paths that are kept, each on a named volume.
    pub volumes: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
    /// Who isolates it; the best available where it is not given.
    pub provider: Option<Provider>,
    /// Without which it must not start.
    pub require: Option<Requirement>,
    /// Whether stdin is bridged; without, it reads the end of a file at once.
    pub stdio: bool,
    /// What of the isolation is given up.
    pub openings: Openings,
}

impl ContainerPlan {
    /// The plan for a registered server with an `image`.
    pub fn of(id: ServerId, spec: &ServerSpec) -> Self {
        Self {
            server: id,
            name: spec.name.as_str().to_owned(),
            image: spec.image.clone().unwrap_or_default(),
            command: spec.command.clone(),
            args: spec.args.clone(),
            cwd: spec.cwd.clone(),
            user: spec.user.clone(),
            environment: spec.environment.clone(),
            ports: spec.ports.clone(),
            volumes: spec.volumes.clone(),
            limits: spec.resource_limits.clone(),
            network: spec.network,
            provider: spec.provider,
            require: spec.require,
            stdio: spec.stdio_bridge,
            openings: spec.openings.clone(),
        }
    }

    /// Checks what Podman could only refuse, or would misread.
    pub(crate) fn check(&self) -> Result<(), PodmanError> {
        let bad = |what: String, why| Err(PodmanError::BadPlan { what, why });
        if self.image.is_empty() || self.image.starts_with('-') {
            return bad(format!("the image {:?}", self.image), "it is not the name of one");
        }
        for text in self.texts() {
            if text.contains('\0') {
                return bad(format!("{text:?}"), "it holds a NUL byte");
            }
        }
        for (key, value) in &self.environment {
            check_variable(key, value)?;
        }
        for path in &self.volumes {
            check_path("the volume", path)?;
        }
        for mount in &self.openings.mounts {
            check_path("the mount", &mount.container)?;
            check_path("the mount", &mount.host)?;
        }
        if self.limits.cores().is_none() {
            return bad(format!("the limit of {:?} cores", self.limits.cpu), "it is no number");
        }
        for size in [&self.limits.memory, &self.limits.disk] {
            let limits = Limits { memory: size.clone(), ..Limits::default() };
            if limits.memory_bytes().is_none() {
                return bad(format!("the limit {size:?}"), "it is no size such as `512M`");
            }
        }
        Ok(())
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let single = [Some(&self.image), self.command.as_ref(), self.cwd.as_ref()];
        let single = single.into_iter().chain([self.user.as_ref()]).flatten();
        single.chain(&self.args).chain(&self.openings.capabilities)
    }

    /// The container's name: one for each server, so that there are never two.
    pub(crate) fn container_name(&self) -> String {
        format!("cofer-{}-{}", word(&self.name), short_id(self.server))
    }

    /// What it is called inside.
    pub(crate) fn hostname(&self) -> String {
        let name = word(&self.name).replace(['_', '.'], "-");
        let name = name.trim_matches('-');
        let name: String = name.chars().take(63).collect();
        if name.is_empty() { "server".to_owned() } else { name }
    }
}

fn check_variable(key: &str, value: &str) -> Result<(), PodmanError> {
    let bad = |why| Err(PodmanError::BadPlan { what: format!("the variable {key:?}"), why });
    // `--env NAME*` would pass every variable that begins so.
    if key.is_empty() || key.contains(['=', '\0', '*']) || key.contains(char::is_whitespace) {
        return bad("a name is not empty and has no `=`, `*` or space");
    }
    if value.contains('\0') {
        return bad("its value holds a NUL byte");
    }
    if is_read_by_client(key) && value.contains(['\n', '\r']) {
        return bad("its value has more than one line, which Podman cannot pass for this name");
    }
    if key.starts_with('#') {
        return bad("a name does not begin with `#`");
    }
    Ok(())
}

/// A path that can stand in `--volume` beside another.
fn check_path(what: &str, path: &str) -> Result<(), PodmanError> {
    let bad = |why| Err(PodmanError::BadPlan { what: format!("{what} {path:?}"), why });
    if !path.starts_with('/') || Path::new(path).components().any(|part| part.as_os_str() == "..") {
        return bad("it is not an absolute path");
    }
    if path.contains([':', ',', '\0', '\n']) {
        return bad("a path with `:`, `,` or a line break cannot be mounted");
    }
    if path.trim_matches('/').is_empty() {
        return bad("the root itself cannot be one");
    }
    Ok(())
}

/// The part of an id that is random in every version of UUID.
pub(crate) fn short_id(server: ServerId) -> String {
    let text = server.0.simple().to_string();
    text[text.len() - 12..].to_owned()
}

/// Text as it may stand in the name of a container or volume.
fn word(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}

/// The name of the volume that a server has at `path`. Different paths have different names.
pub(crate) fn volume_name(server: ServerId, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let slug = word(&parts.join("-"));
    if parts.iter().all(|part| part.chars().all(plain)) {
        return format!("cofer-{}-{slug}", short_id(server));
    }
    format!("cofer-{}-{slug}-{:08x}", short_id(server), fnv(parts.join("/").as_bytes()))
}

/// A short number for a text, which stays the same for ever (FNV-1a).
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cofer_model::HostMount;

    pub(crate) fn plan() -> ContainerPlan {
        ContainerPlan {
            server: "018f0000-0000-7000-8000-0123456789ab".parse().unwrap(),
            name: "files".to_owned(),
            image: "localhost/bb".to_owned(),
            command: None,
            args: vec!["cat".to_owned()],
            cwd: None,
            user: None,
            environment: BTreeMap::new(),
            ports: Vec::new(),
            volumes: Vec::new(),
            limits: Limits::default(),
            network: Network::Egress,
            provider: None,
            require: None,
            stdio: true,
            openings: Openings::default(),
        }
    }

    #[test]
    fn names_tell_servers_apart_and_read_well() {
        assert_eq!(plan().container_name(), "cofer-files-0123456789ab");
        let odd = ContainerPlan { name: "_a b/ü._".to_owned(), ..plan() };
        assert_eq!(odd.container_name(), "cofer-_a-b--._-0123456789ab");
        assert_eq!(odd.hostname(), "a-b");
    }

    #[test]
    fn volumes_of_different_paths_have_different_names() {
        let server = plan().server;
        assert_eq!(volume_name(server, "/data"), "cofer-0123456789ab-data");
        assert_eq!(volume_name(server, "/data/"), "cofer-0123456789ab-data");
        let names = ["/a/b", "/a-b", "/a b", "/a.b", "/a_b"].map(|path| volume_name(server, path));
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
    }

    #[test]
    fn what_podman_would_misread_is_refused_without_the_value() {
        let refused = |plan: ContainerPlan| plan.check().unwrap_err().to_string();
        plan().check().unwrap();
        for image in ["", "--privileged"] {
            refused(ContainerPlan { image: image.to_owned(), ..plan() });
        }
        refused(ContainerPlan { args: vec!["a\0".to_owned()], ..plan() });
        for (key, value) in [
            ("", "secret"),
            ("A=B", "secret"),
            ("A*", "secret"),
            ("A", "secret\0"),
            ("PATH", "secret\nX"),
            ("#A", "secret"),
            ("A B", "secret"),
        ] {
            let environment = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let text = refused(ContainerPlan { environment, ..plan() });
            assert!(!text.contains("secret"), "{text}");
        }
        for volume in ["data", "/", "/a:b", "/a,b", "/../etc"] {
            refused(ContainerPlan { volumes: vec![volume.to_owned()], ..plan() });
        }
        let mount =
            HostMount { host: "etc".to_owned(), container: "/x".to_owned(), writable: false };
        let openings = Openings { mounts: vec![mount], ..Openings::default() };
        refused(ContainerPlan { openings, ..plan() });
        let limits = Limits { memory: "much".to_owned(), ..Limits::default() };
        refused(ContainerPlan { limits, ..plan() });
    }

    #[test]
    fn values_with_many_lines_pass_where_podman_does_not_read_the_name() {
        let environment = BTreeMap::from([("KEY".to_owned(), "a\nb".to_owned())]);
        ContainerPlan { environment, ..plan() }.check().unwrap();
    }
}
