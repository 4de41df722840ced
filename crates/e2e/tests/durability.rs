//! What was answered with 201 is there tomorrow: after SIGKILL, on a full disk, on PostgreSQL.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofer_e2e::{Daemon, alive, pid_of, wait_gone, wayward, wayward_path};
use futures_util::StreamExt as _;
use reqwest::Method;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _, SqliteConnection};

fn switched_off(name: &str) -> Value {
    json!({"name": name, "command": wayward_path(), "enabled": false})
}

async fn names(daemon: &Daemon) -> Vec<String> {
    let list = daemon.get("/mcp/servers").await.expect(200);
    let servers = list["servers"].as_array().expect("a list of servers");
    servers.iter().map(|server| server["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn what_was_registered_survives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut taken: Vec<String> = Vec::new();
    for round in 0..10 {
        let mut daemon = Daemon::builder().data_dir(&data).start().await;
        let stored = names(&daemon).await;
        for name in &taken {
            assert!(
                stored.contains(name),
                "round {round}: {name} was answered with 201 and is gone"
            );
        }
        // Registrations go on, several at once, until the daemon is gone from under them.
        let moment = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]));
        let requests: Vec<_> = (0..2000)
            .map(|n| {
                let name = format!("r{round}-{n}");
                let request =
                    daemon.request(Method::POST, "/mcp/servers").json(&switched_off(&name));
                async move { (name, request.send().await.map(|answer| answer.status().as_u16())) }
            })
            .collect();
        let mut answers = futures_util::stream::iter(requests).buffer_unordered(4);
        let until = tokio::time::Instant::now() + moment;
        let mut killed = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until), if !killed => {
                    killed = true;
                    daemon.kill9().await;
                }
                answer = answers.next() => match answer {
                    Some((name, Ok(201))) => taken.push(name),
                    Some((name, Ok(status))) => panic!("{name}: {status}"),
                    Some((_, Err(_))) => break,
                    None => panic!("the daemon took them all before it was killed"),
                },
            }
        }
        if !killed {
            panic!("the daemon went away before it was killed");
        }
    }
    assert!(!taken.is_empty());
    let daemon = Daemon::builder().data_dir(&data).start().await;
    let stored = names(&daemon).await;
    assert!(taken.iter().all(|name| stored.contains(name)));
}

#[tokio::test]
async fn everything_comes_back_after_a_kill() {
    // covers: HST-3.1
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let token = daemon.token().to_owned();
    let mut body = wayward("w", &["--resources", "2"]);
    body["environment"] = json!({"API_KEY": "canary-161803398"});
    body["description"] = "kept".into();
    let before = daemon.register(&body).await;
    daemon.register(&wayward("gone", &[])).await;
    daemon.delete("/mcp/servers/gone").await;
    daemon.register(&wayward("off", &[])).await;
    daemon.act("off", "disable").await;
    daemon.kill9().await;

    let daemon = Daemon::builder().data_dir(&data).start().await;
    assert_eq!(daemon.token(), token, "the token is made once");
    let after = daemon.wait_status("w", "ready").await;
    for same in ["id", "created_at", "updated_at", "description", "args", "command"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    assert_ne!(after["pid"], before["pid"]);
    let key = daemon.tool("w", "env", &json!({"name": "API_KEY"})).await.tool_text();
    assert_eq!(key, "canary-161803398");
    assert_eq!(names(&daemon).await, ["off", "w"]);
    assert_eq!(daemon.server("off").await["status"], "stopped");
}

#[tokio::test]
async fn a_second_daemon_on_the_same_data_refuses_and_says_why() {
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    let Err(refusal) = Daemon::builder().data_dir(&daemon.data_dir()).try_start().await else {
        panic!("a second daemon runs on the same data directory");
    };
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    assert!(refusal.stderr.contains("Error:"), "{}", refusal.stderr);
    let shown = daemon.data_dir().display().to_string();
    assert!(refusal.stderr.contains(&shown), "{}", refusal.stderr);
    // The first one has not noticed.
    assert!(alive(pid_of(&server)));
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

/// A descriptor of the daemon's lock file, as a child has it that was forked and lives on.
fn inherit_lock(daemon: &Daemon) -> OwnedFd {
    let lock = daemon.data_dir().join("lock").canonicalize().expect("it is there");
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw).expect("a pid");
    let process = pidfd_open(pid, PidfdFlags::empty()).expect("the daemon runs");
    let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).expect("it runs");
    let number = open.flatten().find_map(|entry| {
        let is_lock = std::fs::read_link(entry.path()).is_ok_and(|target| target == lock);
        is_lock.then(|| entry.file_name().to_str()?.parse().ok())?
    });
    let number = number.expect("the daemon has its lock file open");
    pidfd_getfd(process, number, PidfdGetfdFlags::empty()).expect("a descriptor can be shared")
}

#[tokio::test]
async fn a_child_that_inherited_the_lock_does_not_keep_the_next_daemon_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let inherited = inherit_lock(&daemon);
    daemon.kill9().await;
    let next = Daemon::builder().data_dir(&data).start().await;
    // The lock is still one: also without the descriptor that the second daemon could not lock.
    drop(inherited);
    let refusal = Daemon::builder().data_dir(&data).try_start().await.err().expect("two daemons");
    assert!(refusal.stderr.contains(&format!("(process {})", next.pid())), "{}", refusal.stderr);
}

#[tokio::test]
async fn a_database_that_was_emptied_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    daemon.post("/mcp/servers", &switched_off("kept")).await.expect(201);
    assert!(daemon.terminate().await.success());
    std::fs::write(data.join("kb.db"), "").unwrap();
    let Err(refusal) = Daemon::builder().data_dir(&data).try_start().await else {
        panic!("a daemon runs without the servers that were registered");
    };
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    for part in ["kb.db", "missing or empty", "backup", ".initialized"] {
        assert!(refusal.stderr.contains(part), "{part}: {}", refusal.stderr);
    }
    // From nothing it starts.
    std::fs::remove_dir_all(&data).unwrap();
    Daemon::builder().data_dir(&data).start().await;
}

#[tokio::test]
async fn a_token_file_that_is_a_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let planted = folder.path().join("planted");
    std::fs::write(&planted, "0123456789abcdef0123456789abcdef").unwrap();
    std::os::unix::fs::symlink(&planted, data.join("token")).unwrap();
    let Err(refusal) = Daemon::builder().data_dir(&data).try_start().await else {
        panic!("a daemon runs with a token of somebody else");
    };
    assert!(refusal.stderr.contains("is a symbolic link"), "{}", refusal.stderr);
    assert!(refusal.stderr.contains("Hint: replace"), "{}", refusal.stderr);
}

#[tokio::test]
async fn a_broken_database_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).unwrap();
    let database = data.join("kb.db");
    let garbage = b"this is not a database, whatever its name says ".repeat(100);
    std::fs::write(&database, &garbage).unwrap();
    let Err(refusal) = Daemon::builder().data_dir(&data).try_start().await else {
        panic!("a daemon runs on a broken database");
    };
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    assert!(refusal.stderr.contains("Error:"), "{}", refusal.stderr);
    assert!(refusal.stderr.contains("kb.db"), "{}", refusal.stderr);
    assert!(refusal.stderr.contains("Hint:"), "{}", refusal.stderr);
    assert_eq!(std::fs::read(&database).unwrap(), garbage);
}

#[tokio::test]
async fn the_registration_is_a_row_of_the_agreed_table() {
    let mut daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    assert!(daemon.terminate().await.success());
    let url = format!("sqlite://{}", daemon.data_dir().join("kb.db").display());
    let mut database = SqliteConnection::connect(&url).await.unwrap();
    let rows = sqlx::query("SELECT container_type FROM agent_workspaces");
    let rows = rows.fetch_all(&mut database).await.unwrap();
    let types: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(types, ["mcp_server"]);
    assert!(server["id"].is_string());
}

/// A small file system of its own, taken away at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path, bytes: u64) -> Self {
        std::fs::create_dir(path).expect("the mount point can be made");
        let options = std::ffi::CString::new(format!("size={bytes},mode=0700")).expect("no NUL");
        let mounted = mount("tmpfs", path, "tmpfs", MountFlags::empty(), Some(options.as_c_str()));
        if let Err(error) = mounted {
            panic!("this test mounts a tmpfs and needs root for that: {error}");
        }
        Self(path.to_owned())
    }

    /// Writes until nothing more fits.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).expect("the filler can be made");
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = unmount(&self.0, UnmountFlags::DETACH);
        assert!(unmounted.is_ok() || std::thread::panicking(), "{unmounted:?}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_is_new_and_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(&folder.path().join("disk"), 8 << 20);
    let mut daemon = Daemon::builder().data_dir(&disk.0).start().await;
    let server = daemon.register(&wayward("before", &[])).await;
    let filler = disk.fill();
    let mut taken = vec!["before".to_owned()];
    let mut refused = Vec::new();
    for n in 0..50 {
        let name = format!("during-{n}");
        let mut body = switched_off(&name);
        body["description"] = "d".repeat(20_000).into();
        let answer = daemon.post("/mcp/servers", &body).await;
        if answer.status == 201 {
            taken.push(name);
        } else {
            assert!(answer.status >= 500, "{answer:?}");
            assert_eq!(answer.json()["error"]["kind"], "store_unavailable", "{answer:?}");
            refused.push(name);
        }
    }
    assert!(!refused.is_empty(), "50 registrations fit on a full disk");
    // What runs runs on, and calls are answered though nothing can be logged.
    daemon.tool("before", "pid", &json!({})).await.expect(200);
    assert_eq!(daemon.server_pid("before").await, pid_of(&server));

    std::fs::remove_file(filler).unwrap();
    daemon.register(&wayward("after", &[])).await;
    taken.push("after".to_owned());
    taken.sort();
    assert_eq!(names(&daemon).await, taken);
    daemon.kill9().await;
    wait_gone(&[pid_of(&server)]).await;
    let mut daemon = Daemon::builder().data_dir(&disk.0).start().await;
    assert_eq!(names(&daemon).await, taken);
    daemon.wait_status("before", "ready").await;
    assert!(daemon.terminate().await.success());
}

/// A database of its own in the PostgreSQL of `scripts/with-postgres`.
struct Postgres {
    server: String,
    name: String,
}

impl Postgres {
    async fn create() -> Self {
        let server = std::env::var("COFER_TEST_POSTGRES_URL").unwrap_or_else(|_| {
            panic!("COFER_TEST_POSTGRES_URL is not set: run this under scripts/with-postgres")
        });
        let name = format!("cofer_e2e_{}", uuid::Uuid::new_v4().simple());
        let this = Self { server, name };
        this.execute(&format!("CREATE DATABASE {}", this.name)).await;
        this
    }

    fn url(&self) -> String {
        let (base, query) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (authority, _) = base.rsplit_once('/').expect("the URL names a database");
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        format!("{authority}/{}{query}", self.name)
    }

    async fn execute(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.server).await.expect("PostgreSQL answers");
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        sqlx::query(statement).execute(&mut connection).await.expect("the statement is done");
    }

    async fn drop(self) {
        self.execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

#[tokio::test]
async fn the_same_journey_on_postgresql() {
    // covers: HST-3.1, MGR-9, MGR-22
    let postgres = Postgres::create().await;
    let url = postgres.url();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || Daemon::builder().data_dir(&data).database_url(&url);
    let mut daemon = start().start().await;
    let mut body = wayward("w", &[]);
    body["environment"] = json!({"GREETING": "hej \u{1F44B}"});
    let before = daemon.register(&body).await;
    daemon.post("/mcp/servers", &body).await.failure(409, "conflict");
    let failing = wayward("failing", &["--exit-at-start", "3"]);
    let failed = daemon.post("/mcp/servers?wait=30", &failing).await.expect(201);
    assert_eq!((&failed["status"], &failed["enabled"]), (&json!("error"), &json!(false)));
    daemon.patch("/mcp/servers/w", &json!({"description": "changed"})).await.expect(200);
    daemon.register(&wayward("gone", &[])).await;
    daemon.delete("/mcp/servers/gone").await;
    daemon.kill9().await;

    let mut daemon = start().start().await;
    let after = daemon.wait_status("w", "ready").await;
    assert_eq!((&after["id"], &after["description"]), (&before["id"], &json!("changed")));
    assert_eq!(names(&daemon).await, ["failing", "w"]);
    let greeting = daemon.tool("w", "env", &json!({"name": "GREETING"})).await.tool_text();
    assert_eq!(greeting, "hej \u{1F44B}");
    assert_eq!(daemon.server("failing").await["enabled"], false);
    assert!(!data.join("kb.db").exists(), "the embedded database is not used");
    assert!(daemon.terminate().await.success());

    let mut connection = PgConnection::connect(&url).await.unwrap();
    let query = "SELECT count(*) FROM kb.agent_workspaces WHERE container_type = 'mcp_server'";
    let count: i64 = sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap();
    assert_eq!(count, 2);
    connection.close().await.unwrap();
    postgres.drop().await;
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_said_without_its_password() {
    let url = "postgres://cofer:canary-password@127.0.0.1:1/nothing";
    let Err(refusal) = Daemon::builder().database_url(url).try_start().await else {
        panic!("a daemon runs without its database");
    };
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    assert!(refusal.stderr.contains("Error:"), "{}", refusal.stderr);
    assert!(!refusal.stderr.contains("canary-password"), "{}", refusal.stderr);
}
