//! The committed OpenAPI document is the one that the daemon serves.

use std::path::Path;

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/cofer.json");
    let served = serde_json::to_string_pretty(&cofer_daemon::openapi()).unwrap() + "\n";
    if std::env::var_os("COFER_UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &served).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == served,
        "openapi/cofer.json is not what the daemon serves; look at the change and run \
         `COFER_UPDATE_OPENAPI=1 cargo test -p cofer-daemon --test openapi`"
    );
}
