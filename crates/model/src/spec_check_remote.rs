//! What a registration by `url` may say, and what only such a one may.

use crate::spec_check::Wrong;
use crate::{Network, ServerSpec, is_private_url, parse_remote_header, parse_remote_url};

/// More headers than any server wants.
const MAX_HEADERS: usize = 64;

/// A server elsewhere: nothing of it runs here.
pub(crate) fn check_remote(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    check_url(spec, wrong);
    check_headers(spec, wrong);
    if spec.audience.is_some() && spec.auth.is_none() {
        wrong.say("audience", "is for servers with `auth`");
    }
    let runs_elsewhere = "a server given by `url` runs elsewhere and has none of its own here";
    for (field, given) in [
        ("args", !spec.args.is_empty()),
        ("cwd", spec.cwd.is_some()),
        ("environment", !spec.environment.is_empty()),
        ("ports", !spec.ports.is_empty()),
        ("volumes", !spec.volumes.is_empty()),
        ("require", spec.require.is_some()),
        ("user", spec.user.is_some()),
        ("openings", !spec.openings.is_closed()),
        ("provider", spec.provider.is_some()),
        ("network", spec.network != Network::Egress),
    ] {
        if given {
            wrong.say(field, runs_elsewhere);
        }
    }
    if spec.http_path.is_some() {
        wrong.say("http_path", "give the path in `url`");
    }
    if !spec.stdio_bridge {
        wrong.say("stdio_bridge", "is for servers given by `image`");
    }
}

fn check_url(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    match parse_remote_url(spec.url.as_deref().unwrap_or_default()) {
        Err(error) => wrong.say("url", error.to_string()),
        Ok(url) if spec.auth.is_some() && !is_private_url(&url) => {
            wrong.say("url", "with `auth` it is https, or on this machine: everybody on the way could use the token");
        }
        Ok(_) => {}
    }
}

fn check_headers(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    for (name, value) in &spec.headers {
        if let Err(error) = parse_remote_header(name, value) {
            wrong.say(format!("headers.{name}"), error.to_string());
        }
    }
    if spec.headers.len() > MAX_HEADERS {
        wrong.say("headers", format!("has more than {MAX_HEADERS}"));
    }
}

/// What makes sense with a `url` only.
pub(crate) fn check_not_remote(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    for (field, given) in [
        ("headers", !spec.headers.is_empty()),
        ("auth", spec.auth.is_some()),
        ("audience", spec.audience.is_some()),
    ] {
        if given {
            wrong.say(field, "is for servers given by `url`");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_registration};
    use serde_json::{Value, json};

    /// A remote server's registration with `more` in it: the fields that are wrong.
    fn wrong_in(more: Value) -> Vec<String> {
        let mut body = json!({"name": "x", "url": "https://example.com/mcp"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let errors = parse_registration(body).err().unwrap_or_default();
        errors.into_iter().map(|error| error.field).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_remote_server_is_given_by_its_url() {
        let spec = parse_registration(json!({"name": "x", "url": "http://example.com/mcp"}));
        assert_eq!(spec.unwrap().kind(), Kind::Remote);
        let whole = json!({
            "headers": {"Authorization": "Bearer x", "X-Team": "a"},
            "auth": "google_id_token", "audience": "https://other.example.com",
            "max_in_flight": 8, "restart_policy": "never",
        });
        assert_eq!(wrong_in(whole), NOTHING);
        for url in ["ftp://example.com", "https://me:pw@example.com/", "example.com"] {
            assert_eq!(wrong_in(json!({"url": url})), ["url"], "{url}");
        }
        assert_eq!(wrong_in(json!({"headers": {"a b": "c"}})), ["headers.a b"]);
        assert_eq!(wrong_in(json!({"headers": {"Host": "c"}})), ["headers.Host"]);
        assert_eq!(wrong_in(json!({"headers": {"a": 1}})), ["headers"]);
        assert_eq!(wrong_in(json!({"auth": "basic"})), ["auth"]);
        assert_eq!(wrong_in(json!({"audience": "a"})), ["audience"]);
    }

    #[test]
    fn a_token_goes_nowhere_in_plain_text() {
        let to = |url: &str| wrong_in(json!({"url": url, "auth": "google_id_token"}));
        assert_eq!(to("http://example.com/mcp"), ["url"]);
        assert_eq!(to("http://127.0.0.1:8080/mcp"), NOTHING);
    }

    #[test]
    fn what_runs_here_alone_is_refused_for_what_runs_elsewhere() {
        let body = json!({
            "args": ["a"], "cwd": "/srv", "environment": {"A": "1"}, "ports": [{"container": 1}],
            "volumes": ["/data"], "require": "gvisor", "user": "me", "provider": "podman",
            "openings": {"writable_root": true}, "network": "host", "http_path": "/mcp",
            "stdio_bridge": false,
        });
        let fields = wrong_in(body);
        assert_eq!(fields.len(), 12, "{fields:?}");
    }

    #[test]
    fn what_goes_over_the_network_alone_is_refused_for_what_runs_here() {
        let body = json!({
            "name": "x", "command": "y", "headers": {"a": "b"}, "auth": "google_id_token",
            "audience": "c",
        });
        let errors = parse_registration(body).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["headers", "auth", "audience"]);
    }

    #[test]
    fn where_nothing_says_what_runs_only_that_is_missing() {
        let remote = json!({"name": "x", "auth": "google_id_token", "headers": {"a": "b"}});
        let container = json!({"name": "x", "volumes": ["/data"], "stdio_bridge": false});
        for body in [remote, container] {
            let errors = parse_registration(body).unwrap_err();
            let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, ["command"]);
        }
    }
}
