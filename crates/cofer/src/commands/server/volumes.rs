//! `cofer server volumes`: what servers in containers keep, and its removal.

use std::collections::BTreeSet;

use clap::Args;
use cofer_model::{VolumeList, VolumeView};

use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{confirm, is_interactive, say, table, text};

/// List what servers in containers keep, also of servers that are no longer there
///
/// A server's volumes outlive it. With --remove, those that are listed are removed: of the server
/// that is named, else of all servers that are no longer registered.
#[derive(Debug, Args)]
#[command(visible_alias = "volume")]
pub(crate) struct VolumesArgs {
    /// A server's name, or the id of one that may be gone
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Remove them, with everything in them
    #[arg(long)]
    remove: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn run(args: VolumesArgs, context: &mut Context) -> Result<(), Failure> {
    let answer = context.client.volumes().await?;
    let VolumeList { volumes } = answer.read()?;
    let wanted: Vec<VolumeView> =
        volumes.into_iter().filter(|volume| is_meant(volume, &args)).collect();
    if args.remove {
        return remove(&args, &wanted, context).await;
    }
    if context.out.wants_json() {
        let list = VolumeList { volumes: wanted };
        return Ok(context.out.print_json(&serde_json::to_string(&list).unwrap_or_default())?);
    }
    if wanted.is_empty() {
        say("No volume is there; `volumes` in a registration makes them.");
        return Ok(());
    }
    let width = context.out.width();
    Ok(context.out.print(&table::volumes(&wanted, width))?)
}

fn is_meant(volume: &VolumeView, args: &VolumesArgs) -> bool {
    match &args.name {
        Some(name) => {
            let id = volume.server_id.map(|id| id.to_string());
            volume.server.as_deref() == Some(name) || id.as_deref() == Some(name)
        }
        None => !args.remove || volume.server.is_none(),
    }
}

async fn remove(
    args: &VolumesArgs,
    volumes: &[VolumeView],
    context: &mut Context,
) -> Result<(), Failure> {
    if volumes.is_empty() {
        say("There is no volume to remove.");
        return Ok(());
    }
    let count = text::count(volumes.len(), "volume");
    if !args.yes && is_interactive() {
        let names: Vec<String> = volumes.iter().map(|volume| text::line(&volume.name)).collect();
        let question = format!("Remove {count} with everything in them ({})?", names.join(", "));
        let answer = confirm(&question)
            .map_err(|error| Failure::new("could not read the answer").caused_by(error))?;
        if !answer {
            return Err(Failure::new("nothing was removed"));
        }
    }
    // The daemon removes all that a server keeps at once.
    let servers: BTreeSet<_> = volumes.iter().filter_map(|volume| volume.server_id).collect();
    for server in servers {
        context.client.remove_volumes(&server.to_string()).await?;
    }
    if context.out.wants_json() {
        let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
        let json = serde_json::json!({ "removed": names });
        return Ok(context.out.print_json(&json.to_string())?);
    }
    Ok(context.out.print(&format!("Removed {count}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::tests::a_volume;

    fn meant(name: Option<&str>, remove: bool) -> Vec<String> {
        let args = VolumesArgs { name: name.map(str::to_owned), remove, yes: true };
        let all = [a_volume("cofer-1", Some("db")), a_volume("cofer-2", None)];
        let meant = all.iter().filter(|volume| is_meant(volume, &args));
        meant.map(|volume| volume.name.clone()).collect()
    }

    #[test]
    fn without_a_name_only_what_nobody_has_is_removed() {
        // covers: HST-6.1
        assert_eq!(meant(None, false), ["cofer-1", "cofer-2"]);
        assert_eq!(meant(None, true), ["cofer-2"]);
        assert_eq!(meant(Some("db"), true), ["cofer-1"]);
        assert_eq!(meant(Some("01990000-0000-7000-8000-000000000001"), false).len(), 2);
        assert!(meant(Some("other"), true).is_empty());
    }
}
