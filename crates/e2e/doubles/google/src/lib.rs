//! A Google of our own on loopback: token endpoint, Security Token Service, IAM Credentials API,
//! metadata server, JWKS, and the metadata server of AWS; and Cloud Run's front door, which checks
//! ID tokens and then forwards, or plays a fault.
//!
//! It gives real RS256 tokens, checks what it is sent as the real one does, refuses in the real
//! one's words, and remembers every request. Nothing in Cofer points at it but what may point
//! anywhere: URLs of credentials files, `GCE_METADATA_HOST`, and `HTTPS_PROXY` with `--cacert`,
//! behind which it is `oauth2.googleapis.com` and every other host.

mod aws;
mod claims;
mod door;
mod files;
mod iam;
mod keys;
mod metadata;
mod play;
mod server;
mod service;
mod state;
mod sts;
mod token;
mod tunnel;
mod words;

pub use claims::Verified;
pub use door::{DoorOptions, FrontDoor};
pub use files::{
    AWS_ROLE, CLIENT_ID, GCLOUD_CLIENT_ID, PERSON, POOL, SERVICE_ACCOUNT, TARGET, WORKFORCE_POOL,
};
pub use play::Play;
pub use server::Google;
pub use state::Seen;
pub use words::Words;
