//! Each key of [`EXECUTING`] set to a program that leaves a proof: plain git runs it, ours does not.

use std::fmt::Write as _;

use super::*;
use crate::repository::Repository;
use crate::testing::{Source, make_executable, try_git, write};

/// A repository whose configuration is hostile.
struct Hostile {
    source: Source,
    repository: Repository,
}

impl Hostile {
    async fn new() -> Self {
        let files = [("a", "1\n"), (".gitattributes", "* filter=x diff=x merge=x\n")];
        let source = Source::with(&files).await;
        let repository = source.prepared().await;
        write(
            &source.join(".git/evil"),
            &format!("#!/bin/sh\necho ran >> {}\nexit 1\n", source.join(".git/proof").display()),
        );
        make_executable(&source.join(".git/evil"));
        Self { source, repository }
    }

    fn evil(&self) -> String {
        self.source.join(".git/evil").display().to_string()
    }

    /// Writes `lines` at the end of the configuration; `EVIL` is the program, `TOP` the repository.
    async fn configure(&mut self, lines: &str) {
        let file = self.source.join(".git/config");
        let mut config = std::fs::read_to_string(&file).unwrap();
        let lines = lines.replace("EVIL", &self.evil());
        config.push_str(&lines.replace("TOP", &self.source.path().display().to_string()));
        std::fs::write(file, config).unwrap();
        // As the next process opens it.
        let registry = self.source.registry();
        self.repository = Repository::discover(&registry, self.source.path()).await.unwrap();
    }

    fn ran(&self) -> bool {
        let proof = self.source.join(".git/proof");
        let ran = proof.exists();
        drop(std::fs::remove_file(proof));
        ran
    }

    /// Runs `args` by plain git, which must run the program, and by ours, which must not.
    async fn check(&mut self, key: &str, lines: &str, args: &[&str]) {
        self.configure(lines).await;
        let args: Vec<String> = args.iter().map(|arg| arg.replace("EVIL", &self.evil())).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (_, _, words) = try_git(self.source.path(), &args).await;
        assert!(self.ran(), "{key}: the attack does not work with plain git: {words}");
        drop(self.repository.git().call(&args).bytes().await);
        assert!(!self.ran(), "{key}: git {args:?} ran the program");
        self.is_not_set(key).await;
    }

    /// Whether git sees nothing of the hostile value.
    async fn is_not_set(&self, key: &str) {
        let listed = self.repository.git().call(["config", "--list", "-z"]).text().await.unwrap();
        assert!(!listed.contains("/.git/evil"), "{key}: {listed}");
    }
}

/// One test per key: the key, the configuration, what is done before, and the command.
macro_rules! attacks {
    ($($name:ident: $key:literal, $config:literal, $prepare:expr, $args:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            assert!(EXECUTING.iter().any(|(key, _)| *key == $key), "not in the table");
            let mut hostile = Hostile::new().await;
            let prepare: fn(&Hostile) = $prepare;
            prepare(&hostile);
            hostile.check($key, $config, &$args).await;
        }
    )*};
}

fn nothing(_: &Hostile) {}

/// As long as before, so that git has to read the file.
fn modify(hostile: &Hostile) {
    let file = hostile.source.join("a");
    std::fs::write(&file, "2\n").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    std::fs::File::options().write(true).open(file).unwrap().set_modified(later).unwrap();
}

fn delete(hostile: &Hostile) {
    std::fs::remove_file(hostile.source.join("a")).unwrap();
}

fn hook(hostile: &Hostile) {
    let hooks = hostile.source.join(".git/own-hooks");
    std::fs::create_dir(&hooks).unwrap();
    for name in ["reference-transaction", "post-index-change"] {
        std::fs::copy(hostile.evil(), hooks.join(name)).unwrap();
    }
}

fn included(hostile: &Hostile) {
    write(
        &hostile.source.join(".git/more"),
        &format!("[core]\n\tfsmonitor = {}\n", hostile.evil()),
    );
}

fn of_worktree(hostile: &Hostile) {
    included(hostile);
    std::fs::rename(hostile.source.join(".git/more"), hostile.source.join(".git/config.worktree"))
        .unwrap();
}

fn alternates(hostile: &Hostile) {
    let other = hostile.source.join(".git/other");
    std::fs::create_dir_all(other.join("objects")).unwrap();
    std::fs::create_dir_all(other.join("refs")).unwrap();
    std::fs::write(other.join("HEAD"), "ref: refs/heads/x\n").unwrap();
    write(
        &hostile.source.join(".git/objects/info/alternates"),
        &format!("{}\n", other.join("objects").display()),
    );
}

attacks! {
    alias: "alias.*", "[alias]\n\tx = !EVIL\n", nothing, ["x"];
    alternate_refs_command: "core.alternateRefsCommand", "[core]\n\talternateRefsCommand = EVIL\n", alternates, ["receive-pack", "--http-backend-info-refs", "."];
    diff_command: "diff.*.command", "[diff \"x\"]\n\tcommand = EVIL\n", modify, ["diff"];
    diff_external: "diff.external", "[diff]\n\texternal = EVIL\n", modify, ["diff"];
    diff_textconv: "diff.*.textconv", "[diff \"x\"]\n\ttextconv = EVIL\n", modify, ["diff"];
    difftool: "difftool.*.cmd", "[difftool \"y\"]\n\tcmd = EVIL\n", modify, ["difftool", "--no-prompt", "--tool=y"];
    editor: "core.editor", "[core]\n\teditor = EVIL\n", nothing, ["commit", "--allow-empty"];
    filter_clean: "filter.*.clean", "[filter \"x\"]\n\tclean = EVIL\n", modify, ["status", "--porcelain"];
    filter_process: "filter.*.process", "[filter \"x\"]\n\tprocess = EVIL\n", modify, ["status", "--porcelain"];
    filter_smudge: "filter.*.smudge", "[filter \"x\"]\n\tsmudge = EVIL\n", delete, ["checkout-index", "-f", "a"];
    fsmonitor: "core.fsmonitor", "[core]\n\tfsmonitor = EVIL\n", nothing, ["status", "--porcelain"];
    git_proxy: "core.gitProxy", "[core]\n\tgitProxy = EVIL\n", nothing, ["ls-remote", "git://127.0.0.1:9/x"];
    gpg_program: "gpg.program", "[gpg]\n\tprogram = EVIL\n", nothing, ["commit-tree", "-S", "-m", "x", "HEAD^{tree}"];
    gpg_program_of_a_format: "gpg.*.program", "[gpg]\n\tformat = x509\n[gpg \"x509\"]\n\tprogram = EVIL\n", nothing, ["commit-tree", "-S", "-m", "x", "HEAD^{tree}"];
    gpg_key_command: "gpg.ssh.defaultKeyCommand", "[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n\tdefaultKeyCommand = EVIL\n", nothing, ["commit-tree", "-S", "-m", "x", "HEAD^{tree}"];
    commit_signature: "commit.gpgSign", "[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = EVIL\n", nothing, ["commit", "--allow-empty", "-m", "x"];
    hooks_path: "core.hooksPath", "[core]\n\thooksPath = TOP/.git/own-hooks\n", hook, ["update-ref", "refs/x", "HEAD"];
    include: "include.path", "[include]\n\tpath = more\n", included, ["status", "--porcelain"];
    include_if: "includeIf.*.path", "[includeIf \"gitdir:/**\"]\n\tpath = more\n", included, ["status", "--porcelain"];
    protocol_and_vcs: "remote.*.vcs", "[remote \"x\"]\n\tvcs = ext\n\turl = EVIL\n[protocol \"ext\"]\n\tallow = always\n", nothing, ["fetch", "x"];
    protocol: "protocol.*.allow", "[remote \"x\"]\n\turl = ext::EVIL\n[protocol \"ext\"]\n\tallow = always\n", nothing, ["ls-remote", "ext::EVIL"];
    receive_pack: "remote.*.receivepack", "[remote \"x\"]\n\turl = .\n\treceivepack = EVIL\n", nothing, ["push", "x", "HEAD:refs/x"];
    upload_pack: "remote.*.uploadpack", "[remote \"x\"]\n\turl = .\n\tuploadpack = EVIL\n", nothing, ["fetch", "x"];
    sequence_editor: "sequence.editor", "[sequence]\n\teditor = EVIL\n", nothing, ["rebase", "-i", "--root"];
    ssh_command: "core.sshCommand", "[core]\n\tsshCommand = EVIL\n", nothing, ["ls-remote", "ssh://127.0.0.1:9/x"];
    rewritten_url: "url.*.insteadOf", "[url \"ssh://127.0.0.1:9/\"]\n\tinsteadOf = innocent:\n[core]\n\tsshCommand = EVIL\n", nothing, ["ls-remote", "innocent:x"];
    tar_command: "tar.*.command", "[tar \"x\"]\n\tcommand = EVIL\n", nothing, ["archive", "--format=x", "HEAD"];
    trailer_cmd: "trailer.*.cmd", "[trailer \"x\"]\n\tcmd = EVIL\n", nothing, ["interpret-trailers", "--trailer", "x=1"];
    trailer_command: "trailer.*.command", "[trailer \"x\"]\n\tcommand = EVIL\n", nothing, ["interpret-trailers", "--trailer", "x=1"];
    worktree_config: "extensions.worktreeConfig", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n", of_worktree, ["status", "--porcelain"];
}

#[tokio::test]
async fn merge_driver() {
    let mut hostile = Hostile::new().await;
    for (branch, text) in [("one", "one\n"), ("two", "two\n")] {
        hostile.source.git(&["checkout", "-q", "-b", branch, "main"]).await;
        hostile.source.write("a", text);
        hostile.source.git(&["commit", "-q", "-am", branch]).await;
    }
    let (key, config) = ("merge.*.driver", "[merge \"x\"]\n\tdriver = EVIL\n");
    hostile.check(key, config, &["merge-tree", "--write-tree", "one", "two"]).await;
}

/// Keys that need a terminal, a prompt, a mail or a browser, or that git reads from the user's own
/// configuration alone: whatever the command, git must not see the value.
macro_rules! unseen {
    ($($name:ident: $key:literal, $config:literal;)*) => {$(
        #[tokio::test]
        async fn $name() {
            assert!(EXECUTING.iter().any(|(key, _)| *key == $key), "not in the table");
            let mut hostile = Hostile::new().await;
            hostile.configure($config).await;
            let (_, listed, _) = try_git(hostile.source.path(), &["config", "--list"]).await;
            assert!(listed.contains("/.git/evil"), "plain git does not see it: {listed}");
            hostile.is_not_set($key).await;
        }
    )*};
}

unseen! {
    ask_pass: "core.askPass", "[core]\n\taskPass = EVIL\n";
    attributes_file: "core.attributesFile", "[core]\n\tattributesFile = EVIL\n";
    excludes_file: "core.excludesFile", "[core]\n\texcludesFile = EVIL\n";
    pager: "core.pager", "[core]\n\tpager = EVIL\n";
    pager_of_a_command: "pager.*", "[pager]\n\tlog = EVIL\n";
    core_worktree: "core.worktree", "[core]\n\tworktree = EVIL\n";
    blame_ignore_revs_file: "blame.ignoreRevsFile", "[blame]\n\tignoreRevsFile = EVIL\n";
    browser: "browser.*.cmd", "[browser \"x\"]\n\tcmd = EVIL\n";
    commit_template: "commit.template", "[commit]\n\ttemplate = EVIL\n";
    credential_helper: "credential.helper", "[credential]\n\thelper = EVIL\n";
    credential_helper_of_a_url: "credential.*.helper", "[credential \"https://example.org\"]\n\thelper = EVIL\n";
    diff_order_file: "diff.orderFile", "[diff]\n\torderFile = EVIL\n";
    partial_clone: "extensions.partialClone", "[extensions]\n\tpartialClone = x\n[remote \"x\"]\n\tpromisor = true\n\turl = .\n\tuploadpack = EVIL\n";
    gui_tool: "guitool.*.cmd", "[guitool \"x\"]\n\tcmd = EVIL\n";
    configured_hook: "hook.*.command", "[hook \"x\"]\n\tcommand = EVIL\n\tevent = reference-transaction\n";
    imap_tunnel: "imap.tunnel", "[imap]\n\ttunnel = EVIL\n";
    template_directory: "init.templateDir", "[init]\n\ttemplateDir = EVIL\n";
    interactive_diff_filter: "interactive.diffFilter", "[interactive]\n\tdiffFilter = EVIL\n";
    automatic_gc: "gc.auto", "[gc]\n\tauto = 1\n\trecentObjectsHook = EVIL\n";
    automatic_maintenance: "maintenance.auto", "[maintenance]\n\tauto = true\n\tstrategy = EVIL\n";
    manual: "man.*.cmd", "[man \"x\"]\n\tcmd = EVIL\n";
    mergetool: "mergetool.*.cmd", "[mergetool \"x\"]\n\tcmd = EVIL\n";
    mail_server: "sendemail.smtpServer", "[sendemail]\n\tsmtpServer = EVIL\n";
    submodule_recursion: "submodule.recurse", "[submodule]\n\trecurse = true\n[submodule \"x\"]\n\tupdate = !EVIL\n";
    submodule_update: "submodule.*.update", "[submodule \"x\"]\n\tupdate = !EVIL\n";
    pack_objects_hook: "uploadpack.packObjectsHook", "[uploadpack]\n\tpackObjectsHook = EVIL\n";
}

#[test]
fn each_key_of_the_table_has_a_test_and_none_is_copied() {
    let tests = include_str!("git_config_tests.rs");
    for (key, how) in EXECUTING {
        assert!(
            [": ", "= ("].iter().any(|before| tests.contains(&format!("{before}\"{key}\", \"["))),
            "{key} has no test"
        );
        if how == NotCopied {
            assert!(!is_kept(&key.to_ascii_lowercase().replace('*', "x.y")), "{key}");
        }
    }
}

#[tokio::test]
async fn the_kept_keys_are_read_back_as_they_were() {
    let source = Source::with(&[("a", "1\n")]).await;
    let odd = "a \"b\" \\ c;#\nd\t";
    source.git(&["config", "user.name", odd]).await;
    source.git(&["config", "branch.we\"ird\\name.x.merge", "refs/heads/main"]).await;
    source.git(&["config", "core.autocrlf", "input"]).await;
    let repository = source.prepared().await;
    let read = async |key: &str| repository.git().call(["config", "-z", "--get", key]).text().await;
    assert_eq!(read("user.name").await.unwrap().trim_end_matches('\0'), odd);
    assert_eq!(read("branch.we\"ird\\name.x.merge").await.unwrap(), "refs/heads/main\0");
    assert_eq!(read("core.autocrlf").await.unwrap(), "input\0");
    assert_eq!(repository.settings().await.unwrap().name.as_deref(), Some(odd));
}

#[tokio::test]
async fn refs_objects_and_index_are_those_of_the_repository() {
    let source = Source::with(&[("a", "1\n")]).await;
    let repository = source.prepared().await;
    let head = source.git(&["rev-parse", "HEAD"]).await;
    repository.git().call(["update-ref", "refs/remotes/cofer/x", &head]).bytes().await.unwrap();
    assert_eq!(source.git(&["rev-parse", "cofer/x"]).await, head);
    source.git(&["pack-refs", "--all"]).await;
    repository.git().call(["update-ref", "-d", "refs/remotes/cofer/x"]).bytes().await.unwrap();
    assert_eq!(source.git(&["for-each-ref", "refs/remotes/cofer"]).await, "");
    source.git(&["branch", "other"]).await;
    source.git(&["branch", "--set-upstream-to=other", "-q", "main"]).await;
    let registry = source.registry();
    let repository = Repository::discover(&registry, source.path()).await.unwrap();
    assert_eq!(repository.commit("@{u}").await.unwrap().id, head);
    source.write("a", "22\n");
    source.write("new", "");
    let settings = repository.settings().await.unwrap();
    let mut uncommitted = repository.uncommitted(9, false, &settings).await.unwrap();
    uncommitted.sort();
    assert_eq!(uncommitted, [" M a", "?? new"]);
}

#[test]
fn a_listing_is_parsed() {
    let config =
        GitConfig::parse(b"core.bare\0core.bare\nfalse\0branch.a.remote\ncofer\0x.y\na\nb\0");
    assert_eq!(config.get("core.bare"), Some(b"false".as_slice()));
    assert_eq!(config.text("x.y").as_deref(), Some("a\nb"));
    assert_eq!(config.branches_of("cofer"), ["a"]);
    assert!(GitConfig::parse(b"extensions.worktreeconfig\0").is_true("extensions.worktreeconfig"));
    let mut text = String::new();
    write!(text, "{}", String::from_utf8(of_store("sha256")).unwrap()).unwrap();
    assert!(
        text.contains("objectformat = \"sha256\"") && text.contains("bare = \"true\""),
        "{text}"
    );
}
