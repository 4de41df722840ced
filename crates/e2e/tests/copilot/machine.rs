//! A machine with a stand-in for the Copilot CLI on it, and what is asked and answered.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use cofer_e2e::{McpClient, alive, double, eventually, pids_in};
use serde_json::{Value, json};

/// A machine with one CLI on it.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    pub(crate) variables: Vec<(String, String)>,
}

impl Machine {
    /// With the stand-in of this persona as `copilot`.
    pub(crate) fn with(persona: &str) -> Self {
        let machine = Self::without_cli();
        symlink(double("copilot"), machine.path("bin/copilot")).unwrap();
        machine.set("DOUBLE", persona)
    }

    pub(crate) fn without_cli() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "tmp", "here"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let machine = Self { folder, variables: Vec::new() };
        let places = std::env::var("PATH").unwrap();
        let path = format!("{}:{places}", machine.path("bin").display());
        let text = |name: &str| machine.path(name).to_str().unwrap().to_owned();
        let (home, log, pids, gate) = (text("here"), text("log"), text("pids"), text("gate"));
        let tmp = text("tmp");
        machine
            .set("PATH", &path)
            .set("HOME", &home)
            .set("TMPDIR", &tmp)
            .set("DOUBLE_LOG", &log)
            .set("DOUBLE_PIDS", &pids)
            .set("DOUBLE_GATE", &gate)
    }

    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.variables.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn environment(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// The server, after the handshake.
    pub(crate) async fn start(&self, args: &[&str]) -> McpClient {
        let args = [&["copilot"], args].concat();
        let mut client = McpClient::start(&args, &self.environment(), &self.path("here"));
        client.initialize().await;
        client
    }

    /// What the stand-in was started with, run by run.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The runs that were no questions about the CLI itself.
    pub(crate) fn chats(&self) -> Vec<Value> {
        let about_itself = [json!(["--version"]), json!(["--help"])];
        self.runs().into_iter().filter(|run| !about_itself.contains(&run["args"])).collect()
    }

    /// The pids of all that hangs: the CLI and its three children.
    pub(crate) async fn family(&self) -> Vec<u32> {
        let pids = eventually("the CLI hangs with its children", async || {
            Some(pids_in(&self.path("pids"))).filter(|pids| pids.len() == 4)
        });
        let pids = pids.await;
        assert!(pids.iter().all(|pid| alive(*pid)), "{pids:?}");
        pids
    }

    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

pub(crate) fn answer(result: &Value) -> &Value {
    assert_eq!(result["isError"], false, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    &result["structuredContent"]
}

/// The error of a failed result, which is of this kind and says what to do.
pub(crate) fn error<'a>(result: &'a Value, kind: &str) -> &'a Value {
    assert_eq!(result["isError"], true, "{result}");
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["kind"], kind, "{result}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert!(!error["hint"].as_str().unwrap().is_empty());
    error
}

pub(crate) fn asking(input: &str) -> Value {
    json!({"input": input})
}
