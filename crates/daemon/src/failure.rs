//! Why the daemon does not run, with what to do about it.

use std::io;
use std::net::SocketAddr;

use cofer_store::StoreError;

use crate::data_dir::DataDirError;
use crate::telemetry::TelemetryError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The data directory cannot be used.
    #[error("could not use the data directory")]
    DataDir(#[from] DataDirError),
    /// Nothing can be logged.
    #[error("could not start logging")]
    Telemetry(#[from] TelemetryError),
    /// What is registered cannot be read.
    #[error("could not open the store")]
    Store(#[from] StoreError),
    /// Nobody could reach it.
    #[error("could not listen on {address}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why it cannot.
        source: io::Error,
    },
    /// Something on our side.
    #[error("could not {attempt}")]
    System {
        /// What was to be done.
        attempt: &'static str,
        /// Why it did not work.
        source: io::Error,
    },
}

impl DaemonError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::DataDir(error) => Some(error.hint()),
            Self::Telemetry(_) => Some("check COFER_LOG and the permissions of the data directory".to_owned()),
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("another program listens there, perhaps another Cofer; give another address with --listen, or port 0 for any free port".to_owned())
            }
            Self::Listen { .. } => Some("give an address of this machine with --listen".to_owned()),
            Self::System { .. } => None,
        }
    }
}
