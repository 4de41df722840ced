//! Whatever happens in whatever order, the driver ends where it is wanted.

use std::time::Duration;

use cofer_model::{ServerId, Status, parse_patch};
use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::puppet::{Manners, Script};
use super::world::{Server, World};

/// What a person or a server does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Configure {
        on: bool,
        version: u8,
        forgive: bool,
    },
    Restart,
    Crash,
    CloseStdout,
    /// How the server behaves from its next launch on.
    Behave(Manners),
    Wait(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    let script = prop_oneof![
        4 => Just(Script::Serves),
        1 => Just(Script::IsMute),
        1 => Just(Script::IsMissing),
        1 => Just(Script::IsNeverLaunched),
        1 => Just(Script::Exits { code: 1, stderr: "no" }),
    ];
    let manners =
        (script, any::<bool>(), any::<bool>()).prop_map(|(script, heeds_eof, heeds_sigterm)| {
            Manners { script, heeds_eof, heeds_sigterm }
        });
    let configure = (any::<bool>(), 0..3u8, any::<bool>())
        .prop_map(|(on, version, forgive)| Deed::Configure { on, version, forgive });
    prop_oneof![
        4 => configure,
        1 => Just(Deed::Restart),
        2 => Just(Deed::Crash),
        1 => Just(Deed::CloseStdout),
        2 => manners.prop_map(Deed::Behave),
        3 => prop_oneof![Just(0), 1..1000u64, 1000..20_000u64].prop_map(Deed::Wait),
    ]
}

/// What was last ordered.
struct Wanted {
    on: bool,
    version: u8,
}

/// Does everything without waiting for what comes of it, so that orders meet every state.
async fn act(world: &World, server: &Server<'_>, deeds: &[Deed]) -> Wanted {
    let mut wanted = Wanted { on: true, version: 0 };
    let mut orders = JoinSet::new();
    for deed in deeds {
        match *deed {
            Deed::Configure { on, version, forgive } => {
                wanted = Wanted { on, version };
                let patch = json!({"enabled": on, "args": [version.to_string()]});
                let spec = parse_patch(&server.handle.spec(), patch).unwrap();
                let (supervisor, id) = (world.supervisor.clone(), server.id());
                orders.spawn(async move { supervisor.configure(id, spec, forgive).await });
            }
            Deed::Restart => {
                let handle = server.handle.clone();
                orders.spawn(async move {
                    handle.restart().await;
                });
            }
            Deed::Crash => {
                if let Some(run) = server.runs().last() {
                    run.exit(1);
                }
            }
            Deed::CloseStdout => {
                if let Some(run) = server.runs().last() {
                    run.close_stdout();
                }
            }
            Deed::Behave(manners) => server.teach(manners),
            Deed::Wait(ms) => sleep(Duration::from_millis(ms)).await,
        }
        check_always(world, server.id());
    }
    server.teach(Manners::good(Script::Serves));
    orders.join_all().await;
    wanted
}

/// What holds at every moment.
fn check_always(world: &World, id: ServerId) {
    assert_eq!(world.launcher.overlaps(), 0, "two processes of one server");
    let snapshot = world.supervisor.get(id).unwrap().snapshot();
    let runs = world.launcher.runs(id);
    let there = runs.iter().filter(|run| run.is_there()).count();
    if matches!(snapshot.status, Status::Stopped | Status::Error) {
        assert_eq!(there, 0, "it runs although it is {}", snapshot.status);
    }
}

/// What holds once nothing more is to come.
fn check_finally(world: &World, server: &Server<'_>, wanted: &Wanted) {
    check_always(world, server.id());
    let snapshot = server.snapshot();
    let there: Vec<_> = server.runs().into_iter().filter(|run| run.is_there()).collect();
    assert_eq!(snapshot.spec.args, [wanted.version.to_string()]);
    assert_eq!(*snapshot.spec, *server.handle.spec());
    assert_eq!(server.told().last().copied().unwrap_or(Status::Stopped), snapshot.status);
    match snapshot.status {
        Status::Ready => {
            assert!(wanted.on && snapshot.spec.enabled, "it runs and is not wanted to");
            assert_eq!(there.len(), 1);
            assert_eq!(there[0].spec.args, snapshot.spec.args, "it runs an old configuration");
            assert_eq!(snapshot.pid, Some(there[0].pid));
        }
        // One that is wanted may have failed its first start, and is off then.
        Status::Error => assert!(!snapshot.spec.enabled && snapshot.failure.is_some()),
        Status::Stopped => assert!(!wanted.on && !snapshot.spec.enabled),
        other => panic!("it stays {other}"),
    }
}

async fn check(deeds: Vec<Deed>) {
    let world = World::new();
    let more = json!({"args": ["0"], "start_timeout_ms": 5000});
    let server = world.add_with(Manners::good(Script::Serves), more);
    let wanted = act(&world, &server, &deeds).await;
    // Longer than the longest pause of a crash loop. A launch that never ends is broken off.
    sleep(Duration::from_secs(400)).await;
    if server.status() == Status::Starting || server.status() == Status::Restarting {
        server.handle.restart().await;
        sleep(Duration::from_secs(60)).await;
    }
    check_finally(&world, &server, &wanted);
    world.supervisor.shut_down().await;
    assert!(server.has_gone());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_server_ends_where_it_is_wanted_whatever_happens(deeds in prop::collection::vec(deed(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(deeds));
    }
}
