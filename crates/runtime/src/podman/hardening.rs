//! The arguments of `podman run` that isolate a container and limit its resources. One table for
//! the containers of servers and of environments: both start from everything closed, and each
//! relaxation is a field of [`Openings`].

use cofer_model::{Limits, Network, Openings};

use super::info::Info;

/// Namespaces, capabilities, privileges, system calls and the root file system.
pub fn isolation_arguments(openings: &Openings, network: Network) -> Vec<String> {
    let network = match network {
        Network::Egress => "private",
        Network::None => "none",
        Network::Host => "host",
    };
    let mut args = vec![
        "--cap-drop=all".to_owned(),
        "--ipc=private".to_owned(),
        "--pid=private".to_owned(),
        format!("--network={network}"),
    ];
    for name in &openings.capabilities {
        args.push(format!("--cap-add={}", name.to_ascii_uppercase()));
    }
    if !openings.new_privileges {
        args.push("--security-opt=no-new-privileges".to_owned());
    }
    if openings.all_system_calls {
        args.push("--security-opt=seccomp=unconfined".to_owned());
    }
    if !openings.writable_root {
        args.extend(["--read-only".to_owned(), "--read-only-tmpfs=false".to_owned()]);
    }
    args
}

/// CPU, memory and pids, as far as this engine can set them: an OCI runtime refuses a container
/// with a limit whose cgroup controller is missing.
pub fn limit_arguments(limits: &Limits, info: &Info) -> Vec<String> {
    let mut args = Vec::new();
    if let Some(cores) = limits.cores()
        && info.can_limit("cpu")
    {
        args.push(format!("--cpus={cores}"));
    }
    if let Some(bytes) = limits.memory_bytes()
        && info.can_limit("memory")
    {
        // `--memory-swap` is the sum of memory and swap: equal values mean no swap.
        args.extend([format!("--memory={bytes}b"), format!("--memory-swap={bytes}b")]);
    }
    if info.can_limit("pids") {
        args.push(format!("--pids-limit={}", limits.pids));
    }
    args
}

/// The size of a writable root layer, where the storage driver can enforce one.
pub fn layer_size_argument(limits: &Limits, info: &Info) -> Option<String> {
    let bytes = limits.disk_bytes().filter(|_| info.quota)?;
    Some(format!("--storage-opt=size={bytes}"))
}
