//! No value without an approval, and no approval of anything but what was shown.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::settings::Settings;
use crate::testing::Source;

/// A prepared repository and its user's environments.
struct Desk {
    source: Source,
    repository: Repository,
    environments: Environments,
}

impl Desk {
    async fn new() -> Self {
        let source = Source::with(&[("a", "1\n")]).await;
        let repository = source.prepared().await;
        let file = source.registry().folder().join("repositories.json");
        let settings = Settings::from_variables(|_| None).unwrap();
        let settings = Settings { registry_file: Some(file), ..settings };
        Self { source, repository, environments: Environments::new(settings) }
    }

    /// Commits to the repository what it asks for.
    fn ask(&self, references: &[&str]) {
        let config = serde_json::json!({"secrets": references});
        self.source.write(".cofer/environment.json", &config.to_string());
    }

    fn allow(&self, name: &str) -> Result<Vec<SecretView>, Failure> {
        self.environments.allow_secrets(&self.repository, |asked, _| asked == name)
    }

    fn resolve(&self, reference: &str) -> Result<String, Failure> {
        let all = self.environments.resolve_secrets(&self.repository, &[reference.to_owned()])?;
        Ok(all.into_values().next().unwrap())
    }

    fn refused(&self, reference: &str) -> Failure {
        let failure = self.resolve(reference).unwrap_err();
        assert_eq!(
            (failure.kind, failure.step),
            (Kind::PreconditionFailed, "secrets"),
            "{failure}"
        );
        assert!(failure.recovery.contains("cofer env allow -C"), "{failure}");
        failure
    }

    fn states(&self) -> Vec<(String, SecretState)> {
        let all = self.environments.secrets(&self.repository).unwrap();
        all.into_iter().map(|view| (view.reference, view.state)).collect()
    }
}

#[tokio::test]
async fn a_reference_is_resolved_after_it_was_approved_and_not_before() {
    let desk = Desk::new().await;
    desk.source.write("key", "s3cret\n");
    desk.ask(&["KEY=file://key", "P=env://PATH"]);
    let failure = desk.refused("KEY=file://key");
    assert!(failure.message.contains("KEY (file://key)"), "{failure}");
    assert!(failure.recovery.contains(" KEY`"), "{failure}");
    let allowed = desk.allow("KEY").unwrap();
    assert_eq!(
        allowed[0].file.as_deref(),
        desk.source.path().canonicalize().unwrap().join("key").to_str()
    );
    assert_eq!(desk.resolve("KEY=file://key").unwrap(), "s3cret");
    desk.refused("P=env://PATH");
    desk.allow("P").unwrap();
    assert_eq!(desk.resolve("P=env://PATH").unwrap(), std::env::var("PATH").unwrap());
    // Also for the next process, and after `cofer init` was run again.
    desk.source.prepared().await;
    assert_eq!(desk.resolve("KEY=file://key").unwrap(), "s3cret");
    let revoked =
        desk.environments.revoke_secrets(&desk.repository, |name, _| name == "KEY").unwrap();
    assert_eq!(revoked, [("KEY".to_owned(), "file://key".to_owned())]);
    desk.refused("KEY=file://key");
}

#[tokio::test]
async fn a_changed_reference_is_asked_for_again() {
    let desk = Desk::new().await;
    desk.source.write("key", "s3cret\n");
    desk.source.write("other", "another\n");
    desk.ask(&["KEY=file://key"]);
    desk.allow("KEY").unwrap();
    for changed in [
        "KEY=file://other",
        "KEY=file:///etc/hostname",
        "KEY=env://HOME",
        "KEY=file://./key",
        "OTHER=file://key",
    ] {
        desk.ask(&[changed]);
        desk.refused(changed);
        let reference = changed.split_once('=').unwrap().1.to_owned();
        let state =
            if changed.starts_with("KEY") { SecretState::Changed } else { SecretState::Pending };
        let unused = ("file://key".to_owned(), SecretState::Unused);
        assert!(desk.states().contains(&(reference.clone(), state)), "{changed}");
        assert_eq!(
            desk.states().contains(&unused),
            reference != "file://key" || changed.starts_with("OTHER")
        );
    }
    // The environment that was made of the approved one goes on.
    assert_eq!(desk.resolve("KEY=file://key").unwrap(), "s3cret");
}

#[tokio::test]
async fn a_link_does_not_turn_an_approval_into_one_of_another_file() {
    let desk = Desk::new().await;
    let loot = desk.source.registry().folder().join("loot");
    fs::write(&loot, "a key of the user's\n").unwrap();
    desk.source.write("keys/key", "s3cret\n");
    desk.ask(&["KEY=file://keys/key"]);
    desk.allow("KEY").unwrap();
    fs::remove_file(desk.source.join("keys/key")).unwrap();
    symlink(&loot, desk.source.join("keys/key")).unwrap();
    let failure = desk.refused("KEY=file://keys/key");
    assert!(failure.message.contains("changed"), "{failure}");
    fs::remove_dir_all(desk.source.join("keys")).unwrap();
    symlink(loot.parent().unwrap(), desk.source.join("keys")).unwrap();
    fs::rename(&loot, loot.with_file_name("key")).unwrap();
    desk.refused("KEY=file://keys/key");
    // The user sees where it leads, and may mean it.
    desk.allow("KEY").unwrap();
    assert_eq!(desk.resolve("KEY=file://keys/key").unwrap(), "a key of the user's");
}

#[tokio::test]
async fn an_approval_is_of_one_repository() {
    let desk = Desk::new().await;
    desk.source.write("key", "s3cret\n");
    desk.ask(&["KEY=file://key"]);
    desk.allow("KEY").unwrap();
    // Another one under the same path does not inherit it.
    fs::rename(desk.source.join(".git"), desk.source.join("old")).unwrap();
    desk.source.git(&["init", "-q"]).await;
    assert!(desk.resolve("KEY=file://key").is_err());
    desk.source.prepared().await;
    desk.refused("KEY=file://key");
}

#[tokio::test]
async fn what_is_not_there_is_not_approved_in_advance() {
    let desk = Desk::new().await;
    desk.ask(&["KEY=file://later", "V=op://vault/item"]);
    for name in ["KEY", "V"] {
        let failure = desk.allow(name).unwrap_err();
        assert!(failure.message.contains("is not there"), "{failure}");
    }
    desk.source.write("later", "anything\n");
    desk.refused("KEY=file://later");
}

#[tokio::test]
async fn approvals_are_bounded() {
    let desk = Desk::new().await;
    let all: Vec<String> = (0..=MOST).map(|number| format!("N{number}=env://PATH")).collect();
    desk.ask(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let failure = desk.environments.allow_secrets(&desk.repository, |_, _| true).unwrap_err();
    assert_eq!(failure.kind, Kind::LimitExceeded);
    assert!(desk.states().iter().all(|(_, state)| *state == SecretState::Pending));
}

#[test]
fn a_path_is_quoted_for_a_shell() {
    assert_eq!(quoted(Path::new("/home/me/a-b_c.d")), "/home/me/a-b_c.d");
    assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
}
