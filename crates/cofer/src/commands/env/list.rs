//! `cofer env list`: a line for each environment.

use std::time::Duration;

use cofer_environments::Listed;
use time::OffsetDateTime;

use super::Context;
use crate::failure::Failure;
use crate::output::{table, text};

pub(super) async fn run(mut context: Context) -> Result<(), Failure> {
    let listed = context.environments.list(&context.repository).await?;
    if context.out.wants_json() {
        let json = serde_json::json!({"environments": listed});
        context.out.print_json(&json.to_string())?;
        return Ok(());
    }
    let shown = render(&listed, OffsetDateTime::now_utc(), context.out.width());
    context.out.print(&shown)?;
    Ok(())
}

fn render(listed: &[Listed], now: OffsetDateTime, width: Option<u16>) -> String {
    let rows = listed.iter().map(|listed| {
        let age = Duration::try_from(now - listed.created_at).unwrap_or_default();
        vec![
            state_word(listed).to_owned(),
            listed.id.clone(),
            text::age(age),
            text::line(&listed.image),
            text::line(&listed.title),
        ]
    });
    table::table(&["STATE", "ID", "AGE", "IMAGE", "TITLE"], rows, width)
}

pub(super) fn state_word(listed: &Listed) -> &'static str {
    match (listed.broken, listed.running) {
        (true, _) => "Unfinished",
        (false, true) => "Running",
        (false, false) => "Stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_environments::Mode;

    #[test]
    fn environments_stand_in_a_table() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(3700);
        let listed = |id: &str, running, broken| Listed {
            id: id.to_owned(),
            title: "Add\u{1b}[2J login".to_owned(),
            created_at: OffsetDateTime::UNIX_EPOCH,
            image: "ubuntu:24.04".to_owned(),
            worktree: "/r/.cofer/worktrees/x".into(),
            remote_ref: format!("cofer/{id}"),
            worktree_mode: Mode::Overlay,
            container: "c".to_owned(),
            running,
            broken,
            isolation: serde_json::Value::Null,
        };
        let all =
            [listed("add-login", true, false), listed("x", false, false), listed("y", false, true)];
        let shown = anstream::adapter::strip_str(&render(&all, now, None)).to_string();
        insta::assert_snapshot!(shown, @r"
        STATE       ID         AGE        IMAGE         TITLE
        Running     add-login  1 h 1 min  ubuntu:24.04  Add\u{1b}[2J login
        Stopped     x          1 h 1 min  ubuntu:24.04  Add\u{1b}[2J login
        Unfinished  y          1 h 1 min  ubuntu:24.04  Add\u{1b}[2J login
        ");
    }
}
