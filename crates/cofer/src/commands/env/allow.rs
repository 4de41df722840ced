//! `cofer env allow`: the secrets that a repository asks for, and the user's approval of them.

use clap::Args;
use cofer_model::{SecretState, SecretView};

use super::{Context, Place};
use crate::failure::Failure;
use crate::output::{table, text};

/// Show or approve the secrets that a repository asks for
///
/// `secrets` in .cofer/environment.json names variables and files of this machine. Commands in
/// environments get them once you have approved them here; a changed reference has to be approved
/// again. Without a name, they are listed.
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    #[command(flatten)]
    place: Place,
    /// The secrets to approve
    #[arg(value_name = "NAME", conflicts_with = "all")]
    names: Vec<String>,
    /// All that are asked for
    #[arg(long)]
    all: bool,
    /// Withdraw the approval instead
    #[arg(long)]
    revoke: bool,
}

pub(super) async fn run(args: AllowArgs, json: bool) -> Result<(), Failure> {
    let mut context = Context::new(&args.place, json).await?;
    if args.names.is_empty() && !args.all {
        if args.revoke {
            return Err(Failure::mistyped("no secret is named")
                .hint("name those whose approval is withdrawn, or use --all."));
        }
        return list(&mut context);
    }
    let is_meant = |name: &str| args.all || args.names.iter().any(|wanted| wanted == name);
    let done: Vec<String> = if args.revoke {
        let revoked =
            context.environments.revoke_secrets(&context.repository, |name, _| is_meant(name))?;
        check_names(&args.names, revoked.iter().map(|(name, _)| name.as_str()), "is approved")?;
        revoked.iter().map(|(name, reference)| format!("Revoked {name} ({reference}).")).collect()
    } else {
        let asked = context.environments.secrets(&context.repository)?;
        let asked = asked.iter().filter(|view| view.state != SecretState::Unused);
        check_names(&args.names, asked.map(|view| view.name.as_str()), "is asked for")?;
        let allowed =
            context.environments.allow_secrets(&context.repository, |name, _| is_meant(name))?;
        allowed.iter().map(|view| format!("Allowed {}: {}.", view.name, source(view))).collect()
    };
    let done = if done.is_empty() { vec!["Nothing to do.".to_owned()] } else { done };
    let lines: Vec<String> = done.iter().map(|line| text::line(line)).collect();
    context.out.print(&lines.join("\n"))?;
    Ok(())
}

/// Refuses names that nothing is known of.
fn check_names<'a>(
    names: &[String],
    known: impl Iterator<Item = &'a str>,
    what: &str,
) -> Result<(), Failure> {
    let known: Vec<&str> = known.collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::new(format!("no secret `{}` {what}", text::line(name)))
            .hint("`cofer env allow` lists them.")),
    }
}

fn list(context: &mut Context) -> Result<(), Failure> {
    let secrets = context.environments.secrets(&context.repository)?;
    if context.out.wants_json() {
        let json = serde_json::json!({"secrets": secrets});
        context.out.print_json(&json.to_string())?;
        return Ok(());
    }
    let shown = render(&secrets, context.out.width());
    context.out.print(&shown)?;
    Ok(())
}

fn render(secrets: &[SecretView], width: Option<u16>) -> String {
    if secrets.is_empty() {
        return "This repository asks for no secrets.".to_owned();
    }
    let rows = secrets.iter().map(|view| {
        let state = match view.state {
            SecretState::Allowed => "Allowed",
            SecretState::Pending => "Not allowed",
            SecretState::Changed => "Changed",
            SecretState::Unused => "Allowed, unused",
        };
        vec![state.to_owned(), view.name.clone(), text::line(&source(view))]
    });
    table::table(&["STATE", "NAME", "READS"], rows, width)
}

fn source(view: &SecretView) -> String {
    match (&view.file, view.reference.strip_prefix("env://")) {
        (Some(file), _) => format!("the file {file}"),
        (None, Some(variable)) => format!("the variable {variable}"),
        (None, None) => view.reference.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stand_in_a_table_and_are_shown_harmlessly() {
        let view = |name: &str, reference: &str, file: Option<&str>, state| SecretView {
            name: name.to_owned(),
            reference: reference.to_owned(),
            file: file.map(str::to_owned),
            state,
        };
        let all = [
            view("API_KEY", "env://API_KEY", None, SecretState::Allowed),
            view("CERT", "file://cert", Some("/r/\u{1b}[2Jcert"), SecretState::Changed),
            view("LOOT", "file:///none", None, SecretState::Pending),
        ];
        let shown = anstream::adapter::strip_str(&render(&all, None)).to_string();
        insta::assert_snapshot!(shown, @r"
        STATE        NAME     READS
        Allowed      API_KEY  the variable API_KEY
        Changed      CERT     the file /r/\u{1b}[2Jcert
        Not allowed  LOOT     file:///none
        ");
        assert_eq!(render(&[], None), "This repository asks for no secrets.");
    }
}
