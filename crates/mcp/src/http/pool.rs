//! Connections that are kept and used again, for as long as they can be trusted to live.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use tokio::time::Instant;

use super::connect::Sender;
use super::transport::Origin;

/// How long a connection may lie unused and still be trusted: one that is asked now and then
/// whether it lives, and one that is not.
const IDLE_MANY: Duration = Duration::from_secs(300);
const IDLE_ONE: Duration = Duration::from_secs(60);
/// How far the two clocks may drift apart while nobody slept.
const DRIFT: Duration = Duration::from_secs(10);
/// How many unused connections to one origin are kept.
const MAX_IDLE: usize = 256;
/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pool {
    kept: Mutex<HashMap<Origin, Kept>>,
}

/// The open connections to one origin, each with until when it is trusted.
#[derive(Debug, Default)]
struct Kept {
    idle: Vec<(http1::SendRequest<Full<Bytes>>, Trust)>,
    many: Option<(http2::SendRequest<Full<Bytes>>, Trust)>,
}

/// When a connection was last used, and how long it is trusted from then on.
#[derive(Debug, Clone, Copy)]
struct Trust {
    wall: SystemTime,
    since: Instant,
    limit: Duration,
}

impl Trust {
    fn from_now(limit: Duration) -> Self {
        Self { wall: SystemTime::now(), since: Instant::now(), limit }
    }

    /// Not where this machine slept meanwhile: one clock stood still then, the other did not,
    /// and the connections are dead.
    fn holds(&self) -> bool {
        let age = self.since.elapsed();
        let by_the_wall = SystemTime::now().duration_since(self.wall).unwrap_or(Duration::MAX);
        age < self.limit && by_the_wall < age.saturating_add(DRIFT)
    }
}

impl Pool {
    fn kept(&self) -> MutexGuard<'_, HashMap<Origin, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open connection that can take a request now.
    pub(super) async fn take(&self, origin: &Origin) -> Option<Sender> {
        loop {
            match self.take_any(origin)? {
                Sender::One(mut sender) => {
                    if sender.ready().await.is_ok() {
                        return Some(Sender::One(sender));
                    }
                }
                Sender::Many(mut sender) => {
                    if sender.ready().await.is_ok() {
                        return Some(Sender::Many(sender));
                    }
                    self.forget(origin);
                }
            }
        }
    }

    fn take_any(&self, origin: &Origin) -> Option<Sender> {
        let mut kept = self.kept();
        let kept = kept.get_mut(origin)?;
        if let Some((many, trust)) = &mut kept.many {
            if !many.is_closed() && trust.holds() {
                *trust = Trust::from_now(IDLE_MANY);
                return Some(Sender::Many(many.clone()));
            }
            kept.many = None;
        }
        while let Some((sender, trust)) = kept.idle.pop() {
            if !sender.is_closed() && trust.holds() {
                return Some(Sender::One(sender));
            }
        }
        None
    }

    pub(super) fn share(&self, origin: &Origin, sender: http2::SendRequest<Full<Bytes>>) {
        let mut kept = self.kept();
        let kept = kept.entry(origin.clone()).or_default();
        kept.many = Some((sender, Trust::from_now(IDLE_MANY)));
    }

    fn forget(&self, origin: &Origin) {
        if let Some(kept) = self.kept().get_mut(origin) {
            kept.many = None;
        }
    }

    fn give_back(&self, home: Home) {
        let mut kept = self.kept();
        let kept = kept.entry(home.origin).or_default();
        if kept.idle.len() < MAX_IDLE {
            kept.idle.push((home.sender, Trust::from_now(home.limit)));
        }
    }
}

/// Where an HTTP/1.1 connection goes once its answer has been read.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) origin: Origin,
    pub(super) pool: Arc<Pool>,
    /// How long it is trusted there.
    pub(super) limit: Duration,
}

impl Home {
    pub(super) fn go(self) {
        let pool = Arc::clone(&self.pool);
        pool.give_back(self);
    }
}

/// How long the server keeps an unused connection, by its own word, less the time that a
/// request may be under way when it closes it.
pub(super) fn announced_idle(headers: &HeaderMap) -> Duration {
    let announced = headers.get("keep-alive").and_then(|value| value.to_str().ok());
    let seconds = announced.and_then(|text| {
        let timeout = text.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
        timeout.trim().parse().ok()
    });
    seconds.map_or(IDLE_ONE, |seconds: u64| {
        IDLE_ONE.min(Duration::from_secs(seconds).saturating_sub(Duration::from_secs(1)))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn trust(age: Duration, by_the_wall: Duration) -> Trust {
        Trust {
            wall: SystemTime::now() - by_the_wall,
            since: Instant::now() - age,
            limit: IDLE_ONE,
        }
    }

    #[tokio::test]
    async fn connections_that_are_old_or_slept_through_are_not_trusted() {
        let second = Duration::from_secs(1);
        assert!(trust(second, second).holds());
        assert!(!trust(IDLE_ONE + second, IDLE_ONE + second).holds(), "too old");
        assert!(!trust(second, Duration::from_secs(3600)).holds(), "the machine slept");
        let mut early = trust(second, second);
        early.wall = SystemTime::now() + Duration::from_secs(60);
        assert!(!early.holds(), "the clock was set back");
    }

    #[test]
    fn a_server_that_says_how_long_it_waits_is_believed() {
        let idle = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("keep-alive", HeaderValue::from_static(text));
            announced_idle(&headers)
        };
        assert_eq!(idle("timeout=5, max=100"), Duration::from_secs(4));
        assert_eq!(idle("timeout=0"), Duration::ZERO);
        assert_eq!(idle("timeout=9999"), IDLE_ONE);
        assert_eq!(idle("max=100"), IDLE_ONE);
        assert_eq!(announced_idle(&HeaderMap::new()), IDLE_ONE);
    }
}
