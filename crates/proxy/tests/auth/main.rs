//! Credentials of every kind against a Google of our own, which gives real tokens and refuses in
//! the real one's words.

mod door;
mod failures;
mod finding;
mod kinds;
mod oracle;
mod secrets;
mod subjects;
mod world;
