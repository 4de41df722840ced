//! `cofer console`: the link that opens the console, signed in.

use super::Context;
use crate::failure::Failure;

pub(crate) async fn run(context: &mut Context) -> Result<(), Failure> {
    context.client.health().await?;
    let target = context.client.target();
    let Some(link) = target.console_link() else {
        return Err(Failure::new(format!(
            "there is no token in `{}`",
            target.token_file.display()
        ))
        .hint(
            "name the daemon's data directory with `--data-dir`, or give the token in COFER_TOKEN.",
        ));
    };
    if context.out.wants_json() {
        let json = serde_json::json!({ "url": link });
        return Ok(context.out.print_json(&json.to_string())?);
    }
    Ok(context.out.print(&link)?)
}
