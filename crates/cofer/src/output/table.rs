//! Tables and listings: servers, tools, resources, prompts, logs, each as text with styles in it.

use std::time::Duration;

use anstyle::Style;
use cofer_model::{
    Health, Kind, LogEntry, LogStream, LogTag, MaxInFlight, ServerView, Status, VolumeView,
};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{BAD, BOLD, BUSY, DIM, GOOD, container, styled, text};

/// The console's word for a status, and its colour.
pub(crate) fn status_word(status: Status) -> (&'static str, Style) {
    match status {
        Status::Ready => ("Connected", GOOD),
        Status::Stopped => ("Stopped", DIM),
        Status::Error => ("Error", BAD),
        Status::Starting => ("Starting", BUSY),
        Status::Restarting => ("Restarting", BUSY),
        Status::Stopping => ("Stopping", BUSY),
        Status::Unresponsive => ("Unresponsive", BAD),
    }
}

/// All servers, a line each.
pub(crate) fn servers(servers: &[ServerView], width: Option<u16>) -> String {
    let header = ["STATUS", "NAME", "UPTIME", "RESTARTS", "PROCESS", "COMMAND"];
    let rows = servers.iter().map(|server| {
        vec![
            status_word(server.status).0.to_owned(),
            text::line(&server.name),
            server.uptime_seconds.map_or_else(dash, uptime),
            server.restart_count.to_string(),
            server.pid.map_or_else(dash, |pid| pid.to_string()),
            what_runs(server),
        ]
    });
    let styles: Vec<Style> = servers.iter().map(|server| status_word(server.status).1).collect();
    colour_first_column(&table(&header, rows, width), &styles)
}

/// One server, a fact per line.
pub(crate) fn server(server: &ServerView) -> String {
    let (word, style) = status_word(server.status);
    let mut facts = vec![
        ("Name", styled(BOLD, &text::line(&server.name))),
        ("Status", styled(style, word)),
        ("Enabled", if server.enabled { "yes" } else { "no" }.to_owned()),
    ];
    facts.extend(running_facts(server));
    facts.extend(configured_facts(server));
    for warning in &server.warnings {
        facts.push(("Warning", styled(BUSY, &text::line(warning))));
    }
    self::facts(facts)
}

/// Names and values, a fact per line.
pub(crate) fn facts(facts: Vec<(&'static str, String)>) -> String {
    let indent = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines: Vec<String> = facts
        .into_iter()
        .map(|(name, value)| {
            let space = " ".repeat(indent - name.len());
            format!("{DIM}{name}{DIM:#}{space}  {}", value.replace('\n', &next_line(indent)))
        })
        .collect();
    lines.join("\n")
}

fn next_line(indent: usize) -> String {
    format!("\n{}", " ".repeat(indent + 2))
}

/// What is true of it now.
fn running_facts(server: &ServerView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(error) = &server.error {
        facts.push(("Error", styled(BAD, &text::line(&error.message))));
        if let Some(stderr) = error.stderr.as_deref().filter(|text| !text.trim().is_empty()) {
            facts.push(("Stderr", text::block(stderr.trim_end())));
        }
        facts.push(("Hint", text::line(&error.hint)));
    }
    if server.health == Health::Warning {
        let reasons: Vec<String> =
            server.health_reasons.iter().map(|reason| text::line(reason)).collect();
        facts.push(("Health", styled(BUSY, &reasons.join("\n"))));
    }
    if let Some(pid) = server.pid {
        facts.push(("Process", pid.to_string()));
    }
    facts.extend(container::running_facts(server));
    if let Some(seconds) = server.uptime_seconds {
        facts.push(("Uptime", uptime(seconds)));
    }
    facts.push(("Restarts", server.restart_count.to_string()));
    for (name, at) in
        [("Last crash", server.last_crash_at), ("Next restart", server.next_restart_at)]
    {
        facts.extend(at.map(|at| (name, timestamp(at))));
    }
    if let Some(usage) = &server.usage {
        let memory = text::size(usage.memory_bytes);
        let processes = usage.pids;
        let cpu = usage.cpu_percent;
        let disk = usage
            .disk_bytes
            .map_or(String::new(), |disk| format!(", {} on disk", text::size(disk)));
        facts.push((
            "Usage",
            format!("{cpu:.1} % of a core, {memory}, processes: {processes}{disk}"),
        ));
    }
    if let Some(peer) = &server.server_info {
        facts.push(("MCP server", peer_name(peer)));
    }
    if let Some(version) = &server.protocol_version {
        facts.push(("MCP version", text::line(version)));
    }
    facts
}

/// What was asked for; what stands at its default is left to `--json`.
fn configured_facts(server: &ServerView) -> Vec<(&'static str, String)> {
    let what = match server.kind {
        Kind::Container => "Image",
        Kind::Process => "Command",
        Kind::Remote => "URL",
    };
    let mut facts = vec![(what, what_runs(server))];
    facts.extend(container::configured_facts(server));
    if let Some(cwd) = &server.cwd {
        facts.push(("Directory", text::line(cwd)));
    }
    if let Some(description) = &server.description {
        facts.push(("Description", text::block(description)));
    }
    if let Some(prefix) = &server.prefix {
        facts.push(("Prefix", text::line(prefix)));
    }
    if !server.environment.is_empty() {
        let pairs: Vec<String> = server
            .environment
            .iter()
            .map(|(key, value)| format!("{}={}", text::line(key), text::line(value)))
            .collect();
        facts.push(("Environment", pairs.join("\n")));
    }
    if !server.headers.is_empty() {
        let pairs: Vec<String> = server
            .headers
            .iter()
            .map(|(name, value)| format!("{}: {}", text::line(name), text::line(value)))
            .collect();
        facts.push(("Headers", pairs.join("\n")));
    }
    if let Some(auth) = server.auth.and_then(|auth| serde_json::to_value(auth).ok()) {
        facts.push(("Signed with", auth.as_str().unwrap_or_default().to_owned()));
    }
    let policy = serde_json::to_value(server.restart_policy).unwrap_or_default();
    facts.push(("Restart", policy.as_str().unwrap_or_default().to_owned()));
    facts.push((
        "Time limits",
        format!(
            "start {}, call {}",
            milliseconds(server.start_timeout_ms),
            call_timeout(server.call_timeout_ms)
        ),
    ));
    facts.push(("In flight", in_flight(server)));
    if server.include_resources {
        facts.push(("Resources", "offered as tools".to_owned()));
    }
    facts.push(("Registered", timestamp(server.created_at)));
    facts.push(("Id", server.id.to_string()));
    facts
}

/// Volumes, a line each.
pub(crate) fn volumes(volumes: &[VolumeView], width: Option<u16>) -> String {
    let rows = volumes.iter().map(|volume| {
        let server = volume.server.as_deref().map_or("(removed)".to_owned(), text::line);
        let path = volume.path.as_deref().map_or_else(dash, text::line);
        let id = volume.server_id.map_or_else(dash, |id| id.to_string());
        let size = volume.bytes.map_or_else(dash, text::size);
        vec![text::line(&volume.name), server, path, size, id]
    });
    table(&["VOLUME", "SERVER", "PATH", "SIZE", "SERVER ID"], rows, width)
}

/// Tools or prompts with their arguments; `argument?` may be left out.
pub(crate) fn tools(tools: &[Value], width: Option<u16>) -> String {
    let rows = tools.iter().map(|tool| {
        vec![field(tool, "name"), tool_arguments(tool), summary(&field_text(tool, "description"))]
    });
    table(&["NAME", "ARGUMENTS", "DESCRIPTION"], rows, width)
}

/// Prompts with their arguments.
pub(crate) fn prompts(prompts: &[Value], width: Option<u16>) -> String {
    let rows = prompts.iter().map(|prompt| {
        let arguments = prompt.get("arguments").and_then(Value::as_array);
        let arguments: Vec<String> = arguments
            .into_iter()
            .flatten()
            .map(|argument| {
                let required = argument.get("required") == Some(&Value::Bool(true));
                optional(&field(argument, "name"), required)
            })
            .collect();
        let description = summary(&field_text(prompt, "description"));
        vec![field(prompt, "name"), arguments.join(" "), description]
    });
    table(&["NAME", "ARGUMENTS", "DESCRIPTION"], rows, width)
}

/// Resources by address.
pub(crate) fn resources(resources: &[Value], width: Option<u16>) -> String {
    let rows = resources.iter().map(|resource| {
        vec![
            field(resource, "uri"),
            field(resource, "name"),
            field(resource, "mimeType"),
            summary(&field_text(resource, "description")),
        ]
    });
    table(&["URI", "NAME", "TYPE", "DESCRIPTION"], rows, width)
}

/// One line of a server's log. The daemon's own words are told from the server's by colour and
/// by a mark, since colour does not survive a pipe.
pub(crate) fn log_line(entry: &LogEntry) -> String {
    let at = timestamp(entry.at);
    let line = text::line(&entry.line);
    match entry.stream {
        LogStream::Stderr => format!("{DIM}{at}{DIM:#} {line}"),
        LogStream::Stdout => format!("{DIM}{at}{DIM:#} {BUSY}stdout:{BUSY:#} {line}"),
        LogStream::Lifecycle => {
            let mark = entry.tag.map_or("--", LogTag::prefix);
            format!("{DIM}{at}{DIM:#} {BOLD}{mark} {line}{BOLD:#}")
        }
    }
}

/// A table without lines; on a terminal its longest columns are wrapped to fit.
pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    width: Option<u16>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    match lines.split_first() {
        Some((header, [])) => styled(DIM, header),
        Some((header, rows)) => format!("{}\n{}", styled(DIM, header), rows.join("\n")),
        None => String::new(),
    }
}

/// Colours the first word of each row; what a row wraps to begins with a space.
fn colour_first_column(table: &str, styles: &[Style]) -> String {
    let mut styles = styles.iter();
    let coloured: Vec<String> = table
        .lines()
        .enumerate()
        .map(|(number, line)| match line.split_once(' ') {
            Some((word, rest)) if number > 0 && !word.is_empty() => {
                let style = styles.next().copied().unwrap_or_default();
                format!("{} {rest}", styled(style, word))
            }
            _ => line.to_owned(),
        })
        .collect();
    coloured.join("\n")
}

fn what_runs(server: &ServerView) -> String {
    let program = [&server.command, &server.image, &server.url].into_iter().flatten().next();
    let words = program.into_iter().chain(&server.args).map(String::as_str);
    text::command_line(words)
}

fn tool_arguments(tool: &Value) -> String {
    let schema = tool.get("inputSchema");
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|given| given.as_str() == Some(name)))
    };
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .map(|name| optional(&text::line(name), is_required(name)))
        .collect();
    names.join(" ")
}

fn optional(name: &str, required: bool) -> String {
    if required { name.to_owned() } else { format!("{name}?") }
}

fn field(value: &Value, key: &str) -> String {
    text::line(&field_text(value, key))
}

fn field_text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The first line that says something.
fn summary(text: &str) -> String {
    text::line(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}

fn peer_name(peer: &Value) -> String {
    format!("{} {}", field(peer, "name"), field(peer, "version")).trim().to_owned()
}

fn dash() -> String {
    "-".to_owned()
}

fn uptime(seconds: f64) -> String {
    text::age(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn call_timeout(milliseconds_set: Option<u64>) -> String {
    match milliseconds_set {
        Some(limit) => milliseconds(limit),
        None => "30 s (60 s for the gateway, the chat and the console)".to_owned(),
    }
}

fn in_flight(server: &ServerView) -> String {
    let effective = server.max_in_flight_effective;
    let mut text = match server.max_in_flight {
        Some(MaxInFlight::Auto) => format!("auto ({effective} now)"),
        Some(MaxInFlight::Fixed(number)) => number.to_string(),
        None => format!("{effective} (the daemon's default)"),
    };
    if let Some(queue) = server.queue.filter(|queue| queue.waited > 0) {
        let longest = milliseconds(queue.longest_wait_ms as u64);
        text += &format!("; {} calls wait, the longest wait was {longest}", queue.waiting);
    }
    text
}

fn milliseconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn timestamp(at: OffsetDateTime) -> String {
    let seconds = at.replace_nanosecond(0).unwrap_or(at);
    seconds.format(&Rfc3339).unwrap_or_else(|_| at.to_string())
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;
