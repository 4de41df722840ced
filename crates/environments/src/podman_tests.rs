//! The arguments of containers, and the failures of Podman.

use super::*;

#[test]
fn a_mount_of_any_path_is_one_mount() {
    assert_eq!(
        mount(Path::new("/a b"), "/w", true),
        "type=bind,source=/a b,target=/w,nosuid,nodev,readonly"
    );
    assert_eq!(
        mount(Path::new("/a,b\"c"), "/w", false),
        "type=bind,\"source=/a,b\"\"c\",target=/w,nosuid,nodev"
    );
}

fn arguments(image: &str, info: &Info) -> Vec<String> {
    let path = Path::new("/p");
    let start = Start {
        name: "n",
        id: "x",
        image,
        source: path,
        executor: path,
        run: path,
        worktree: path,
        gitfile: path,
        workdir: "/w",
        pidfile: path,
        isolation: &Isolation::from_variables(&|_: &str| None).unwrap(),
        info,
        sandbox: None,
    };
    start.args().into_iter().map(|arg| arg.into_string().unwrap()).collect()
}

fn info(rootless: bool) -> Info {
    let answer = serde_json::json!({
        "host": {
            "cgroupVersion": "v1", "cgroupControllers": ["cpu", "memory", "pids"],
            "security": {"rootless": rootless},
        },
    });
    Info::read(answer.to_string().as_bytes(), "").unwrap()
}

#[test]
fn an_image_is_never_read_as_an_option() {
    let args = arguments("--privileged", &info(false));
    let at = args.iter().position(|arg| arg == "--privileged").unwrap();
    assert_eq!(args[at - 1], "--");
    assert_eq!(args[at + 1..], ["/.cofer/run/executor"]);
}

#[test]
fn a_container_is_closed_but_for_what_package_managers_need() {
    let args = arguments("i", &info(false));
    let added: Vec<&str> = args.iter().filter_map(|arg| arg.strip_prefix("--cap-add=")).collect();
    assert_eq!(added, crate::isolation::CAPABILITIES);
    for expected in [
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--ipc=private",
        "--pid=private",
        "--network=private",
        "--pids-limit=2048",
    ] {
        assert!(args.iter().any(|arg| arg == expected), "{expected} is not in {args:?}");
    }
    for limit in ["--cpus=", "--memory=", "--memory-swap="] {
        assert!(args.iter().any(|arg| arg.starts_with(limit)), "{limit} is not in {args:?}");
    }
    assert!(!args.iter().any(|arg| arg.contains("unconfined")), "{args:?}");
}

#[test]
fn limits_that_the_engine_cannot_set_are_left_out() {
    let args = arguments("i", &info(true));
    for limit in ["--cpus", "--memory", "--pids-limit"] {
        assert!(!args.iter().any(|arg| arg.starts_with(limit)), "{limit} is in {args:?}");
    }
}

#[test]
fn what_podman_says_becomes_a_kind() {
    let kind = |words: &str| {
        PodmanError::Failed { action: "run", words: words.to_owned() }.into_failure("x:1").kind
    };
    assert_eq!(
        kind("Error: short-name \"x\" did not resolve to an alias"),
        Kind::PreconditionFailed
    );
    assert_eq!(kind("name is already in use"), Kind::Conflict);
    assert_eq!(kind("something else"), Kind::Internal);
    assert_eq!(
        PodmanError::Missing("podman".into()).into_failure("x").kind,
        Kind::PreconditionFailed
    );
}
