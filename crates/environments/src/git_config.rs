//! The git configuration that Cofer's git commands read.
//!
//! A repository's own configuration can name programs (filters, hooks, helpers, drivers) and foreign
//! files. Git has no switch to ignore it, so `git_view` gives git a generated file in its place:
//! the keys of [`KEPT`] with the repository's values, and nothing else. Keys that a later git adds
//! are therefore ignored too. [`EXECUTING`] lists the keys through which git runs a program or reads
//! a foreign file; each has a test.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::git::{Git, GitError};

/// Keys that are copied from the repository's configuration, in lower case, as git lists them. They
/// describe the repository's format, its working tree and its upstream branches; none of them names
/// a program or a file.
const KEPT: [&str; 16] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.checkstat",
    "core.trustctime",
    "core.logallrefupdates",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "user.name",
    "user.email",
];

/// The same for keys with a subsection: `@{upstream}` is resolved by them.
const KEPT_OF_ANY: [(&str, &str); 3] =
    [("branch", "remote"), ("branch", "merge"), ("remote", "fetch")];

/// Extensions that are left out: one enables a second configuration file, the other fetches missing
/// objects by the repository's remotes. All others are copied, so that git itself refuses a format
/// it does not support.
const DROPPED_EXTENSIONS: [&str; 2] = ["extensions.worktreeconfig", "extensions.partialclone"];

/// How a key of [`EXECUTING`] is kept from having an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neutralised {
    /// It is not in the generated configuration.
    NotCopied,
    /// It is not in the generated configuration, and every call overrides it with this value: its
    /// default has an effect too, or the user's own configuration may set it.
    Override(&'static str),
}

use Neutralised::{NotCopied, Override};

/// Every key through which git runs a program or reads a foreign file. `*` is any subsection.
pub(crate) const EXECUTING: [(&str, Neutralised); 57] = [
    ("alias.*", NotCopied),
    ("blame.ignoreRevsFile", NotCopied),
    ("browser.*.cmd", NotCopied),
    ("commit.gpgSign", Override("false")),
    ("commit.template", NotCopied),
    ("core.alternateRefsCommand", NotCopied),
    ("core.askPass", NotCopied),
    ("core.attributesFile", Override("/dev/null")),
    ("core.editor", NotCopied),
    ("core.excludesFile", NotCopied),
    ("core.fsmonitor", Override("false")),
    ("core.gitProxy", NotCopied),
    ("core.hooksPath", Override("/dev/null")),
    ("core.pager", Override("cat")),
    ("core.sshCommand", NotCopied),
    ("core.worktree", NotCopied),
    ("credential.helper", NotCopied),
    ("credential.*.helper", NotCopied),
    ("diff.external", NotCopied),
    ("diff.orderFile", NotCopied),
    ("diff.*.command", NotCopied),
    ("diff.*.textconv", NotCopied),
    ("difftool.*.cmd", NotCopied),
    ("extensions.partialClone", NotCopied),
    ("extensions.worktreeConfig", NotCopied),
    ("filter.*.clean", NotCopied),
    ("filter.*.process", NotCopied),
    ("filter.*.smudge", NotCopied),
    ("gc.auto", Override("0")),
    ("gpg.program", NotCopied),
    ("gpg.ssh.defaultKeyCommand", NotCopied),
    ("gpg.*.program", NotCopied),
    ("guitool.*.cmd", NotCopied),
    ("hook.*.command", NotCopied),
    ("imap.tunnel", NotCopied),
    ("include.path", NotCopied),
    ("includeIf.*.path", NotCopied),
    ("init.templateDir", NotCopied),
    ("interactive.diffFilter", NotCopied),
    ("maintenance.auto", Override("false")),
    ("man.*.cmd", NotCopied),
    ("merge.*.driver", NotCopied),
    ("mergetool.*.cmd", NotCopied),
    ("pager.*", NotCopied),
    ("protocol.*.allow", NotCopied),
    ("remote.*.receivepack", NotCopied),
    ("remote.*.uploadpack", NotCopied),
    ("remote.*.vcs", NotCopied),
    ("sendemail.smtpServer", NotCopied),
    ("sequence.editor", NotCopied),
    ("submodule.recurse", Override("false")),
    ("submodule.*.update", NotCopied),
    ("tar.*.command", NotCopied),
    ("trailer.*.cmd", NotCopied),
    ("trailer.*.command", NotCopied),
    ("uploadpack.packObjectsHook", NotCopied),
    ("url.*.insteadOf", NotCopied),
];

/// `KEY=VALUE` of every key that each call overrides.
pub(crate) fn overrides() -> impl Iterator<Item = String> {
    EXECUTING.iter().filter_map(|(key, how)| match how {
        Override(value) => Some(format!("{key}={value}")),
        NotCopied => None,
    })
}

/// One line of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Section and name in lower case, the subsection as it is written.
    key: String,
    /// Absent in `[core] bare`, which means true.
    value: Option<Vec<u8>>,
}

/// The configuration file of a repository, without the files that it includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitConfig {
    entries: Vec<Entry>,
}

impl GitConfig {
    /// Reads `file`. `git config --file` parses this one file: it enters no repository, follows no
    /// include and runs nothing.
    pub(crate) async fn read(file: &Path) -> Result<Self, GitError> {
        let git = Git::without_repository().call(["config", "--no-includes", "-z", "--list"]);
        let listed = git.call(["--file".as_ref(), file.as_os_str()]).bytes().await?;
        Ok(Self::parse(&listed))
    }

    fn parse(listed: &[u8]) -> Self {
        let lines = listed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let entry = |line: &[u8]| {
            let end = line.iter().position(|byte| *byte == b'\n');
            let (key, value) =
                end.map_or((line, None), |end| (&line[..end], Some(&line[end + 1..])));
            // A key that is not UTF-8 is none that is kept.
            Some(Entry { key: str::from_utf8(key).ok()?.to_owned(), value: value.map(Into::into) })
        };
        Self { entries: lines.filter_map(entry).collect() }
    }

    /// The last value of `key`, as git counts it.
    pub(crate) fn get(&self, key: &str) -> Option<&[u8]> {
        let entry = self.entries.iter().rev().find(|entry| entry.key == key)?;
        Some(entry.value.as_deref().unwrap_or(b"true"))
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.get(key).map(|value| PathBuf::from(OsStr::from_bytes(value)))
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        let value = self.text(key).map(|value| value.to_ascii_lowercase());
        value.is_some_and(|value| ["true", "yes", "on", "1"].contains(&value.as_str()))
    }

    /// The names of branches whose upstream is on the remote `name`.
    pub(crate) fn branches_of(&self, name: &str) -> Vec<&str> {
        let of_branch = |entry: &'_ Entry| entry.value.as_deref() == Some(name.as_bytes());
        let entries = self.entries.iter().filter(|entry| of_branch(entry));
        entries
            .filter_map(|entry| entry.key.strip_prefix("branch.")?.strip_suffix(".remote"))
            .collect()
    }

    /// Adds the entries of a second file, which count more.
    pub(crate) fn extend(&mut self, more: Self) {
        self.entries.extend(more.entries);
    }

    /// The configuration that git reads instead: the kept keys, in their order.
    pub(crate) fn generated(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for entry in self.entries.iter().filter(|entry| is_kept(&entry.key)) {
            write_entry(&mut text, &entry.key, entry.value.as_deref().unwrap_or(b"true"));
        }
        text
    }
}

/// The configuration of a bare repository that Cofer made.
pub(crate) fn of_store(object_format: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let version: &[u8] = if object_format == "sha1" { b"0" } else { b"1" };
    write_entry(&mut text, "core.repositoryformatversion", version);
    write_entry(&mut text, "core.bare", b"true");
    if object_format != "sha1" {
        write_entry(&mut text, "extensions.objectformat", object_format.as_bytes());
    }
    text
}

fn is_kept(key: &str) -> bool {
    if key.starts_with("extensions.") {
        return !DROPPED_EXTENSIONS.contains(&key);
    }
    let of_any = |(section, name): (&str, &str)| {
        let rest = key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
        rest.and_then(|rest| rest.strip_suffix(name)).is_some_and(|rest| rest.ends_with('.'))
    };
    KEPT.contains(&key) || KEPT_OF_ANY.into_iter().any(of_any)
}

/// Writes `key` so that git reads back exactly `value`.
fn write_entry(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    let Some((section, rest)) = key.split_once('.') else { return };
    let (subsection, name) = rest.rsplit_once('.').map_or((None, rest), |(a, b)| (Some(a), b));
    text.extend(format!("[{section}").bytes());
    if let Some(subsection) = subsection {
        text.extend(b" \"");
        text.extend(subsection.replace('\\', "\\\\").replace('"', "\\\"").bytes());
        text.push(b'"');
    }
    text.extend(format!("]\n\t{name} = \"").bytes());
    for byte in value {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            byte => text.push(*byte),
        }
    }
    text.extend(b"\"\n");
}

#[cfg(test)]
#[path = "git_config_tests.rs"]
mod tests;
