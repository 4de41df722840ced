//! `cofer env show`: one environment with the isolation in force in its container.

use clap::Args;
use cofer_environments::Listed;

use super::{Context, Place, list};
use crate::failure::Failure;
use crate::output::{table, text, value_words};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// The environment [default: the only one there is]
    #[arg(value_name = "ID")]
    id: Option<String>,
}

pub(super) async fn run(args: ShowArgs, json: bool) -> Result<(), Failure> {
    let mut context = Context::new(&args.place, json).await?;
    let id = context.pick(args.id).await?;
    let listed = context.environments.list(&context.repository).await?;
    let Some(found) = listed.into_iter().find(|listed| listed.id == id) else {
        return Err(Failure::new(format!("environment {id:?} not found"))
            .hint("`cofer env list` shows the environments of this repository."));
    };
    if context.out.wants_json() {
        let json = serde_json::to_string(&found).map_err(|error| {
            Failure::new("could not write the environment as JSON").caused_by(error)
        })?;
        context.out.print_json(&json)?;
        return Ok(());
    }
    context.out.print(&render(&found))?;
    Ok(())
}

fn render(listed: &Listed) -> String {
    let mut facts = vec![
        ("ID", text::line(&listed.id)),
        ("Title", text::line(&listed.title)),
        ("State", list::state_word(listed).to_owned()),
        ("Branch", text::line(&listed.remote_ref)),
        ("Image", text::line(&listed.image)),
        ("Worktree", text::line(&listed.worktree.display().to_string())),
        ("Container", text::line(&listed.container)),
    ];
    if let Some(isolation) = listed.isolation.as_object() {
        let lines = isolation
            .iter()
            .map(|(name, value)| format!("{}: {}", text::line(name), value_words(value)));
        facts.push(("Isolation", lines.collect::<Vec<_>>().join("\n")));
    }
    table::facts(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_environments::Mode;
    use serde_json::json;

    #[test]
    fn an_environment_is_shown_with_its_isolation() {
        let listed = Listed {
            id: "x".to_owned(),
            title: "Add\u{1b}[2J login".to_owned(),
            created_at: time::OffsetDateTime::UNIX_EPOCH,
            image: "ubuntu:24.04".to_owned(),
            worktree: "/r/.cofer/worktrees/x".into(),
            remote_ref: "cofer/x".to_owned(),
            worktree_mode: Mode::Overlay,
            container: "c".to_owned(),
            running: true,
            broken: false,
            isolation: json!({"capabilities": ["chown", "kill"], "disk": "not enforced", "user_namespace": false}),
        };
        let shown = anstream::adapter::strip_str(&render(&listed)).to_string();
        insta::assert_snapshot!(shown, @r"
        ID         x
        Title      Add\u{1b}[2J login
        State      Running
        Branch     cofer/x
        Image      ubuntu:24.04
        Worktree   /r/.cofer/worktrees/x
        Container  c
        Isolation  capabilities: chown, kill
                   disk: not enforced
                   user_namespace: no
        ");
    }
}
