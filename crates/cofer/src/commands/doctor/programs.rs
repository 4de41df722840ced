//! The programs of this machine, as findings. Podman has findings of its own, which say more.

use cofer_model::ProgramView;

use super::{Check, Level};
use crate::programs;

pub(super) async fn check() -> Vec<Check> {
    programs::look().await.iter().filter(|program| program.name != "podman").map(judge).collect()
}

fn judge(program: &ProgramView) -> Check {
    let ProgramView { name, purpose, path, version } = program;
    match (path, version) {
        (Some(path), Some(version)) => Check::new(name, Level::Ok, format!("{version} ({path})")),
        (Some(path), None) => Check::new(name, Level::Warning, format!("{path} does not run"))
            .hint(format!("it {purpose}; `{name} --version` shows what is wrong.")),
        (None, _) => Check::new(name, Level::Missing, format!("not on PATH; it {purpose}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_broken_says_what_it_is_for() {
        let judged = |path: Option<&str>, version: Option<&str>| {
            judge(&ProgramView {
                name: "uvx".to_owned(),
                purpose: "does nothing".to_owned(),
                path: path.map(str::to_owned),
                version: version.map(str::to_owned),
            })
        };
        let missing = judged(None, None);
        assert_eq!(missing.level, Level::Missing);
        assert_eq!(missing.message, "not on PATH; it does nothing");
        let broken = judged(Some("/bin/uvx"), None);
        assert_eq!(broken.level, Level::Warning);
        assert!(broken.hint.unwrap().contains("does nothing"));
        assert_eq!(judged(Some("/bin/uvx"), Some("uvx 1")).message, "uvx 1 (/bin/uvx)");
    }
}
