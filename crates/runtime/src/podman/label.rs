//! What marks our containers and volumes, by which all that look for them know them.

/// The data directory that something belongs to.
pub(crate) const OWNER: &str = "cofer.owner";
/// The daemon, of all that ever ran, that started a container.
pub(crate) const DAEMON: &str = "cofer.daemon";
/// The start, of all of a daemon's, that made a container.
pub(crate) const RUN: &str = "cofer.run";
/// The server's id.
pub(crate) const SERVER: &str = "cofer.server";
/// The server's name at that time.
pub(crate) const NAME: &str = "cofer.name";
/// Where in the container a volume is.
pub(crate) const PATH: &str = "cofer.path";
