//! The driver on paused time, with servers that live in the test: what happens in what
//! order, how long it takes, and what is told of it.

mod booting;
mod calling;
mod configuring;
mod containers;
mod crashing;
mod fakes;
mod fencing;
mod model;
mod puppet;
mod reaching;
mod silence;
mod starting;
mod stopping;
mod world;
