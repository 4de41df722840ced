//! Secrets in command lines: `--api-key=…`, `--token …`, `API_KEY=…`, `Authorization: …`, and
//! arguments that look like an issued credential. They are masked where a registration is shown,
//! and a mask that is sent back keeps the value.

use crate::secret::{MASK, looks_secret_key, looks_secret_value};

/// Names of headers that hold credentials, beside those that [`looks_secret_key`] knows.
const SECRET_HEADERS: [&str; 2] = ["authorization", "cookie"];

/// The part of one argument that is shown, in front of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot<'a> {
    /// `--api-key=`; empty if the whole argument is secret.
    prefix: &'a str,
    /// The option in front of an argument that is secret as a whole.
    option: Option<&'a str>,
    secret: &'a str,
}

/// `args` with each secret masked.
pub fn mask_args(args: &[String]) -> Vec<String> {
    let masked = |(arg, slot): (&String, Option<Slot<'_>>)| match slot {
        Some(slot) => format!("{}{MASK}", slot.prefix),
        None => arg.clone(),
    };
    args.iter().zip(slots(args)).map(masked).collect()
}

/// `shown` with each mask replaced by the value that it hides in `current`. A mask that hides
/// nothing there stays as it is.
pub fn unmask_args(shown: &[String], current: &[String]) -> Vec<String> {
    let mut known: Vec<Slot<'_>> = slots(current).into_iter().flatten().collect();
    let mut restored: Vec<String> = Vec::with_capacity(shown.len());
    for (nth, arg) in shown.iter().enumerate() {
        let before = nth.checked_sub(1).and_then(|nth| shown.get(nth)).map(String::as_str);
        let found = arg.strip_suffix(MASK).and_then(|prefix| {
            let option = if prefix.is_empty() { before } else { None };
            let exact = |slot: &Slot<'_>| {
                slot.prefix == prefix && (slot.option.is_none() || slot.option == option)
            };
            known.iter().position(exact)
        });
        restored.push(match found.map(|at| known.remove(at)) {
            Some(slot) => format!("{}{}", slot.prefix, slot.secret),
            None => arg.clone(),
        });
    }
    restored
}

/// The secrets in `args`.
pub(crate) fn secret_args(args: &[String]) -> impl Iterator<Item = &str> {
    slots(args).into_iter().flatten().map(|slot| slot.secret)
}

fn slots(args: &[String]) -> Vec<Option<Slot<'_>>> {
    let mut slots = Vec::with_capacity(args.len());
    let mut option = None;
    for arg in args {
        slots.push(slot(arg, option));
        let is_secret_option = arg.starts_with('-')
            && !arg.contains(['=', ':'])
            && !arg.starts_with("--no-")
            && looks_secret_key(arg);
        option = is_secret_option.then_some(arg.as_str());
    }
    slots
}

fn slot<'a>(arg: &'a str, option: Option<&'a str>) -> Option<Slot<'a>> {
    let whole = |option| Some(Slot { prefix: "", option, secret: arg });
    if option.is_some() && !arg.starts_with('-') && !arg.is_empty() {
        return whole(option);
    }
    if let Some(at) = arg.find(['=', ':']) {
        let name = arg[..at].trim();
        let rest = &arg[at + 1..];
        let start = arg.len() - rest.trim_start().len();
        if names_a_secret(name) && start < arg.len() {
            return Some(Slot { prefix: &arg[..start], option: None, secret: &arg[start..] });
        }
        if looks_secret_value(&arg[start..]) && !rest.starts_with("//") {
            return Some(Slot { prefix: &arg[..start], option: None, secret: &arg[start..] });
        }
    }
    if looks_secret_value(arg) { whole(None) } else { None }
}

/// An option, a variable or a header by this name holds a secret.
fn names_a_secret(name: &str) -> bool {
    let is_name = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let is_header = SECRET_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    name.chars().all(is_name) && (is_header || looks_secret_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

    fn check(args: &[&str], shown: &[&str]) {
        let args = words(args);
        assert_eq!(mask_args(&args), words(shown));
        assert_eq!(unmask_args(&mask_args(&args), &args), args);
    }

    #[test]
    fn values_of_secret_options_are_masked() {
        check(&["--api-key=canary", "--port=80"], &["--api-key=********", "--port=80"]);
        check(&["--token", "canary", "x"], &["--token", "********", "x"]);
        check(&["--password=", "--token", "--verbose"], &["--password=", "--token", "--verbose"]);
        check(&["-e", "API_KEY=canary", "-e", "A=b"], &["-e", "API_KEY=********", "-e", "A=b"]);
        check(
            &["mcp-remote", "https://example.com/mcp", "--header", "Authorization: Bearer canary"],
            &["mcp-remote", "https://example.com/mcp", "--header", "Authorization: ********"],
        );
    }

    #[test]
    fn values_that_look_like_credentials_are_masked_wherever_they_are() {
        check(&["ghp_abcdefghijklmnopqrstuvwxyz012345"], &["********"]);
        check(&["postgres://me:hunter2@db/app"], &["********"]);
        check(&["--dsn=postgres://me:hunter2@db/app"], &["--dsn=********"]);
    }

    #[test]
    fn other_arguments_are_shown() {
        let plain =
            ["-y", "@scope/server", "/tmp/a b", "--monkey=1", "--no-auth", "x", "C:\\keys", ""];
        check(&plain, &plain);
    }

    #[test]
    fn a_mask_that_is_sent_back_keeps_the_value_also_at_another_place() {
        let current = words(&["--token", "one", "--api-key=two", "--token", "three"]);
        let sent = words(&["-v", "--api-key=********", "--token", "********", "--token", "new"]);
        let expected = words(&["-v", "--api-key=two", "--token", "one", "--token", "new"]);
        assert_eq!(unmask_args(&sent, &current), expected);
        let unknown = words(&["--secret=********", "********"]);
        assert_eq!(unmask_args(&unknown, &current), unknown);
    }
}
