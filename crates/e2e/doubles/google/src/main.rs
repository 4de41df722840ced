//! The fake Google by hand: writes a credentials file of each type into a folder, says what to
//! set, and runs until its stdin ends.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use fake_google::{DoorOptions, FrontDoor, Google};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "fake-google".to_owned()));
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let google = Google::start();
    let options = DoorOptions { upstream: arguments.next(), ..DoorOptions::default() };
    let door = FrontDoor::start(&google, options);
    let subject = folder.join("subject-token");
    std::fs::write(&subject, google.subject_token())?;
    std::fs::write(folder.join("ca.pem"), google.ca_pem())?;
    let files: [(&str, Value); 7] = [
        ("service-account", google.service_account()),
        ("login", google.authorized_user()),
        ("impersonated", google.impersonated(google.authorized_user())),
        ("external-file", google.external_account(json!({ "file": subject }))),
        ("external-aws", google.aws_account()),
        ("workforce", google.workforce_login()),
        ("gcloud-login", google.gcloud_login()),
    ];
    let mut said = format!(
        "front door {}\nGCE_METADATA_HOST={}\nHTTPS_PROXY={} (with --cacert {})\n",
        door.url(),
        google.metadata_host(),
        google.proxy(),
        folder.join("ca.pem").display(),
    );
    for (name, file) in files {
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, file.to_string())?;
        said.push_str(&format!("GOOGLE_APPLICATION_CREDENTIALS={}\n", path.display()));
    }
    said.push_str("runs until its stdin ends\n");
    std::io::stdout().write_all(said.as_bytes())?;
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
