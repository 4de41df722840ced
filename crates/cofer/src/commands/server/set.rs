//! `cofer server set`: changes a registration.

use clap::Args;
use cofer_model::ServerView;
use serde_json::{Map, Value};

use super::container::merge;
use super::spec::SpecFlags;
use super::{ServerArg, outcome};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::text;

/// Change a server
///
/// What is not named stays as it is. A server whose command, image, directory, variables, limits
/// or isolation change is restarted.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// Call it something else
    #[arg(long = "name", value_name = "NAME")]
    new_name: Option<String>,
    #[command(flatten)]
    flags: SpecFlags,
    /// Take a variable away
    #[arg(long, value_name = "KEY")]
    unset_env: Vec<String>,
    /// Take a header away
    #[arg(long, value_name = "NAME")]
    unset_header: Vec<String>,
    /// Another program and its arguments; for a container, other arguments
    #[arg(last = true, value_name = "COMMAND [ARGS]")]
    command: Vec<String>,
}

pub(super) async fn run(args: SetArgs, context: &mut Context) -> Result<(), Failure> {
    let name = args.server.name.as_str();
    let mut body = args.flags.fields()?;
    if let Some(new) = &args.new_name {
        body.insert("name".to_owned(), Value::from(new.as_str()));
    }
    let before: ServerView = context.client.server(name, true).await?.read()?;
    if before.image.is_some() && args.flags.container.image.is_none() && !args.command.is_empty() {
        body.insert("args".to_owned(), Value::from(args.command.as_slice()));
    } else {
        body.extend(args.flags.words(&args.command)?);
    }
    for (key, current) in [
        ("resource_limits", serde_json::to_value(&before.resource_limits)),
        ("openings", serde_json::to_value(&before.openings)),
        ("headers", serde_json::to_value(&before.headers)),
    ] {
        merge(&mut body, key, current.unwrap_or_default());
    }
    if body.contains_key("environment") || !args.unset_env.is_empty() {
        merge_environment(&mut body, &before, &args.unset_env)?;
    }
    if !args.unset_header.is_empty() {
        drop_headers(&mut body, &before, &args.unset_header)?;
    }
    if body.is_empty() {
        return Err(Failure::mistyped("nothing to change was given")
            .hint("`cofer server set --help` shows what can be changed."));
    }
    let work = context.client.change(name, Value::Object(body).to_string(), Some(outcome::PATIENT));
    let what = format!("Changing `{}`…", text::line(name));
    let limit = outcome::PATIENT;
    let answer = outcome::settled(&what, name, &context.client, limit, work).await?;
    outcome::show_warnings(&answer)?;
    // A server that is switched off is not started by a change: an error it shows is an old one.
    if before.enabled {
        return outcome::show(&answer, context).await;
    }
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    let after: ServerView = answer.read()?;
    Ok(context.out.print(&format!("Changed: `{}`, switched off", text::line(&after.name)))?)
}

/// The API replaces the variables as a whole; a person names only those that change.
fn merge_environment(
    body: &mut Map<String, Value>,
    server: &ServerView,
    unset: &[String],
) -> Result<(), Failure> {
    let mut environment = server.environment.clone();
    for key in unset {
        if environment.remove(key).is_none() {
            return Err(Failure::mistyped(format!("the server has no variable `{key}`")));
        }
    }
    let mut merged: Map<String, Value> =
        environment.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
    if let Some(Value::Object(given)) = body.remove("environment") {
        merged.extend(given);
    }
    body.insert("environment".to_owned(), Value::Object(merged));
    Ok(())
}

/// Takes headers away, whatever case their names are typed in.
fn drop_headers(
    body: &mut Map<String, Value>,
    server: &ServerView,
    unset: &[String],
) -> Result<(), Failure> {
    let mut headers = match body.remove("headers") {
        Some(Value::Object(headers)) => headers,
        _ => server.headers.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect(),
    };
    for name in unset {
        let before = headers.len();
        headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
        if headers.len() == before {
            return Err(Failure::mistyped(format!("the server has no header `{name}`")));
        }
    }
    body.insert("headers".to_owned(), Value::Object(headers));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::tests::a_server;
    use serde_json::json;

    #[test]
    fn variables_that_are_not_named_stay() {
        let mut server = a_server("fs");
        server.environment =
            [("A", "1"), ("B", "2"), ("C", "3")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let mut body = Map::from_iter([("environment".to_owned(), json!({"B": "new"}))]);
        merge_environment(&mut body, &server, &["C".to_owned()]).unwrap();
        assert_eq!(body["environment"], json!({"A": "1", "B": "new"}));
        assert!(merge_environment(&mut Map::new(), &server, &["D".to_owned()]).is_err());
    }

    #[test]
    fn headers_that_are_not_named_stay() {
        let mut server = a_server("docs");
        server.headers =
            [("X-A", "1"), ("X-B", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let mut body = Map::new();
        drop_headers(&mut body, &server, &["x-a".to_owned()]).unwrap();
        assert_eq!(body["headers"], json!({"X-B": "2"}));
        let mut body = Map::from_iter([("headers".to_owned(), json!({"X-C": "3"}))]);
        merge(&mut body, "headers", serde_json::to_value(&server.headers).unwrap());
        drop_headers(&mut body, &server, &["X-B".to_owned()]).unwrap();
        assert_eq!(body["headers"], json!({"X-A": "1", "X-C": "3"}));
        assert!(drop_headers(&mut Map::new(), &server, &["X-Z".to_owned()]).is_err());
    }
}
