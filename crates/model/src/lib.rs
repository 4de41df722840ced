//! The nouns of Cofer and the rules that hold for them: what a server is asked to be
//! (`ServerSpec`), what is true of it (`Status`, `Failure`, `Exit`), what is told about it
//! (`Event`, `ServerView`), and how a failure is named (`ErrorKind`).
//!
//! No IO, no clock, no runtime: everything here is a value or a pure function, so that
//! every layer above can share it.
#![warn(missing_docs)]

mod budget;
mod environment;
mod error;
mod event;
mod hops;
mod image;
mod in_flight;
mod joined;
mod limits;
mod name;
mod openings;
mod remote;
mod secret;
mod secret_args;
mod spec;
mod spec_check;
mod spec_check_remote;
mod spec_parse;
mod state;
mod tool_filter;
mod trace;
mod view;

pub use budget::{Budget, Charge};
pub use environment::{
    ChangedFile, EnvironmentCommand, EnvironmentDestroyed, EnvironmentDiff, EnvironmentList,
    EnvironmentLog, EnvironmentPort, EnvironmentState, EnvironmentStep, EnvironmentView, HostView,
    IsolationProviderView, ProgramView, RepositoryError, RepositoryView, SecretDecision,
    SecretList, SecretState, SecretView,
};
pub use error::{ErrorBody, ErrorDetail, ErrorKind, FieldError};
pub use event::{
    Event, EventKind, Preparing, ServerNotice, StatusChange, ToolCallFinished, ToolCallStarted,
};
pub use hops::{DAEMONS_HEADER, DAEMONS_NOTIFICATION, DaemonIds, HOPS_HEADER, HOPS_VARIABLE};
pub use image::wrong_image;
pub use in_flight::{BadMaxInFlight, MaxInFlight};
pub use joined::{MAX_JOINED, MAX_PREFIX, joined_name, may_be_joined_of};
pub use limits::{Limits, parse_bytes};
pub use name::{NameError, ServerName};
pub use openings::{HostMount, Openings, is_capability};
pub use remote::{
    HeaderError, RemoteAuth, RemoteUrlError, is_loopback, is_private_url, parse_remote_header,
    parse_remote_url,
};
pub use secret::{MASK, Redactor, looks_secret_key, looks_secret_value};
pub use secret_args::{mask_args, unmask_args};
pub use spec::{
    HeartbeatSpec, Kind, Network, PortMapping, Provider, Requirement, RestartPolicy, ServerId,
    ServerSpec, Sharing,
};
pub use spec_parse::{parse_patch, parse_registration};
pub use state::{Exit, Failure, FailureKind, Health, PeerInfo, ProcessStatus, Status, Usage};
pub use tool_filter::matches_pattern;
pub use trace::TraceParent;
pub use view::{
    ActivityEntry, ActivityPage, CallSource, LogEntry, LogPage, LogStream, LogTag, Outcome,
    QueueView, RecordedCall, RecordedText, ServerList, ServerView, Stages, VolumeList, VolumeView,
};
