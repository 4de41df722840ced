//! Keeps an ID token while it is good. Its life is measured by the wall clock; it is renewed before
//! it ends, by one task for everybody who asks, and nobody waits for a renewal while the token that
//! is there still serves.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::environment::Clock;
use super::error::TokenError;
use super::jwt::IdToken;

/// How long before its end a token is renewed, where it lives long enough.
const EARLY: Duration = Duration::from_secs(5 * 60);

/// A token that ends sooner would be over when it arrives.
const LAST_MOMENT: Duration = Duration::from_secs(10);

/// After a failed renewal of a token that still serves, the next is not tried sooner.
const RESPITE: Duration = Duration::from_secs(15);

/// Where tokens come from.
#[async_trait]
pub(crate) trait Mint: fmt::Debug + Send + Sync + 'static {
    async fn mint(&self) -> Result<IdToken, TokenError>;
}

type Outcome = Result<Arc<IdToken>, Arc<TokenError>>;
type Flight = watch::Receiver<Option<Outcome>>;

/// The token that is kept, and the one task that fetches another.
#[derive(Debug)]
pub(crate) struct Cache {
    mint: Arc<dyn Mint>,
    clock: Clock,
    state: Arc<Mutex<State>>,
    /// Ended with the cache.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    flight: Option<Flight>,
    /// When an early renewal may be tried again.
    respite: Option<SystemTime>,
}

#[derive(Debug, Clone)]
struct Kept {
    token: Arc<IdToken>,
    renew: SystemTime,
    end: SystemTime,
}

/// What to do with what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    /// It serves, and another should be fetched meanwhile.
    Due,
    /// It does not serve.
    Over,
}

impl Cache {
    pub(crate) fn new(mint: Arc<dyn Mint>, clock: Clock) -> Self {
        Self { mint, clock, state: Arc::default(), tasks: Mutex::default() }
    }

    /// A token that is good for some time yet.
    pub(crate) async fn token(&self) -> Outcome {
        let flight = {
            let mut state = lock(&self.state);
            let now = self.clock.now();
            match state.verdict(now) {
                (Some(token), Verdict::Good) => return Ok(token),
                (Some(token), Verdict::Due) => {
                    if state.respite.is_none_or(|until| until <= now) {
                        self.flight(&mut state);
                    }
                    return Ok(token);
                }
                _ => self.flight(&mut state),
            }
        };
        land(flight).await
    }

    /// The token that is kept, good or not.
    pub(crate) fn kept(&self) -> Option<Arc<IdToken>> {
        lock(&self.state).kept.as_ref().map(|kept| Arc::clone(&kept.token))
    }

    /// Forgets the token that is kept, where `is_it` says so.
    pub(crate) fn forget(&self, is_it: impl Fn(&IdToken) -> bool) {
        let mut state = lock(&self.state);
        if state.kept.as_ref().is_some_and(|kept| is_it(&kept.token)) {
            state.kept = None;
        }
    }

    /// The task that is under way, else a new one.
    fn flight(&self, state: &mut State) -> Flight {
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return flight.clone();
        }
        let (sender, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        let (mint, clock, shared) =
            (Arc::clone(&self.mint), self.clock.clone(), Arc::clone(&self.state));
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let minted = mint.mint().await.map_err(Arc::new);
            let outcome = lock(&shared).settle(minted, clock.now());
            // Whoever asked has perhaps gone.
            drop(sender.send(Some(outcome)));
        });
        flight
    }
}

impl State {
    fn verdict(&self, now: SystemTime) -> (Option<Arc<IdToken>>, Verdict) {
        let Some(kept) = &self.kept else {
            return (None, Verdict::Over);
        };
        let verdict = if now < kept.renew {
            Verdict::Good
        } else if now + LAST_MOMENT < kept.end {
            Verdict::Due
        } else {
            Verdict::Over
        };
        (Some(Arc::clone(&kept.token)), verdict)
    }

    /// Keeps a new token. After a failure the old one stays, for as long as it serves.
    fn settle(&mut self, minted: Result<IdToken, Arc<TokenError>>, now: SystemTime) -> Outcome {
        self.flight = None;
        let kept = minted.and_then(|token| Kept::new(token, now).map_err(Arc::new));
        match kept {
            Ok(kept) => {
                self.respite = None;
                let token = Arc::clone(&kept.token);
                self.kept = Some(kept);
                Ok(token)
            }
            Err(error) => {
                self.respite = Some(now + RESPITE);
                if self.kept.is_some() {
                    tracing::warn!(%error, hint = error.hint(), "could not renew the ID token");
                }
                Err(error)
            }
        }
    }
}

impl Kept {
    fn new(token: IdToken, now: SystemTime) -> Result<Self, TokenError> {
        let end = UNIX_EPOCH + Duration::from_secs(token.claims().exp);
        let Ok(life) = end.duration_since(now) else {
            let ago = now.duration_since(end).unwrap_or_default().as_secs();
            return Err(TokenError::Expired { ago });
        };
        // A short-lived token is used for most of its life too.
        let early = EARLY.min(life / 4);
        Ok(Self { token: Arc::new(token), renew: end - early, end })
    }
}

async fn land(mut flight: Flight) -> Outcome {
    match flight.wait_for(Option::is_some).await {
        Ok(outcome) => match &*outcome {
            Some(outcome) => outcome.clone(),
            None => Err(Arc::new(TokenError::Interrupted)),
        },
        Err(_) => Err(Arc::new(TokenError::Interrupted)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use tokio::sync::Semaphore;

    use super::*;

    /// A wall clock that is set by hand, in seconds.
    #[derive(Debug, Clone, Default)]
    struct Hands(Arc<AtomicU64>);

    impl Hands {
        fn set(&self, seconds: u64) {
            self.0.store(seconds, Ordering::SeqCst);
        }

        fn now(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }

        fn clock(&self) -> Clock {
            let hands = self.clone();
            Clock::from_fn(move || UNIX_EPOCH + Duration::from_secs(hands.now()))
        }
    }

    /// Gives a token that lives an hour each time it is let.
    #[derive(Debug)]
    struct Press {
        hands: Hands,
        minted: AtomicUsize,
        turns: Semaphore,
        broken: Mutex<bool>,
        life: u64,
    }

    #[async_trait]
    impl Mint for Press {
        async fn mint(&self) -> Result<IdToken, TokenError> {
            self.turns.acquire().await.unwrap().forget();
            let number = self.minted.fetch_add(1, Ordering::SeqCst) + 1;
            if *lock(&self.broken) {
                return Err(TokenError::NoIdToken);
            }
            let claims = format!(r#"{{"aud":"{number}","exp":{}}}"#, self.hands.now() + self.life);
            let claims = BASE64_URL_SAFE_NO_PAD.encode(claims);
            Ok(IdToken::read(&format!("e30.{claims}.c2ln")).unwrap())
        }
    }

    fn cache(life: u64, turns: usize) -> (Arc<Cache>, Arc<Press>, Hands) {
        let hands = Hands::default();
        hands.set(1_000_000);
        let press = Arc::new(Press {
            hands: hands.clone(),
            minted: AtomicUsize::new(0),
            turns: Semaphore::new(turns),
            broken: Mutex::new(false),
            life,
        });
        let cache = Cache::new(Arc::clone(&press) as Arc<dyn Mint>, hands.clock());
        (Arc::new(cache), press, hands)
    }

    async fn number(cache: &Cache) -> String {
        cache.token().await.unwrap().claims().aud.clone()
    }

    /// Lets the task that is under way come to its end.
    async fn settled(cache: &Cache) {
        let flight = lock(&cache.state).flight.clone();
        if let Some(flight) = flight {
            drop(land(flight).await);
        }
    }

    #[tokio::test]
    async fn a_token_serves_until_it_is_due() {
        // covers: PRX-2.5
        let (cache, press, hands) = cache(3600, 10);
        assert_eq!(number(&cache).await, "1");
        hands.set(1_000_000 + 3299);
        assert_eq!(number(&cache).await, "1");
        settled(&cache).await;
        assert_eq!(press.minted.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_early_renewal_delays_nobody() {
        // covers: PRX-2.5
        let (cache, press, hands) = cache(3600, 1);
        assert_eq!(number(&cache).await, "1");
        hands.set(1_000_000 + 3301);
        // The press has no turn left, so that this would wait for ever if it waited.
        assert_eq!(number(&cache).await, "1");
        assert_eq!(number(&cache).await, "1");
        press.turns.add_permits(5);
        settled(&cache).await;
        assert_eq!(number(&cache).await, "2");
        assert_eq!(press.minted.load(Ordering::SeqCst), 2, "one task for all who asked");
    }

    #[tokio::test]
    async fn a_token_that_ended_while_the_laptop_slept_is_not_used() {
        // covers: PRX-2.5
        let (cache, _, hands) = cache(3600, 10);
        assert_eq!(number(&cache).await, "1");
        // Only the wall clock has moved: tokio's own has hardly.
        hands.set(1_000_000 + 8 * 3600);
        assert_eq!(number(&cache).await, "2");
    }

    #[tokio::test]
    async fn in_its_last_moments_a_token_is_not_sent_out_any_more() {
        let (cache, _, hands) = cache(3600, 10);
        assert_eq!(number(&cache).await, "1");
        hands.set(1_000_000 + 3600 - 10);
        assert_eq!(number(&cache).await, "2");
    }

    #[tokio::test]
    async fn many_askers_share_one_task() {
        let (cache, press, _) = cache(3600, 0);
        let mut askers = JoinSet::new();
        for _ in 0..50 {
            let cache = Arc::clone(&cache);
            askers.spawn(async move { number(&cache).await });
        }
        tokio::task::yield_now().await;
        press.turns.add_permits(50);
        let numbers = askers.join_all().await;
        assert_eq!(numbers, vec!["1"; 50]);
        assert_eq!(press.minted.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_asker_who_goes_away_does_not_stop_the_task() {
        let (cache, press, _) = cache(3600, 0);
        let gone = tokio::time::timeout(Duration::from_millis(1), cache.token()).await;
        assert!(gone.is_err());
        press.turns.add_permits(1);
        assert_eq!(number(&cache).await, "1");
    }

    #[tokio::test]
    async fn while_renewing_fails_the_old_token_serves_to_its_end() {
        let (cache, press, hands) = cache(3600, 100);
        assert_eq!(number(&cache).await, "1");
        *lock(&press.broken) = true;
        hands.set(1_000_000 + 3400);
        for _ in 0..3 {
            assert_eq!(number(&cache).await, "1");
            settled(&cache).await;
        }
        assert_eq!(press.minted.load(Ordering::SeqCst), 2, "a failure is given some respite");
        hands.set(1_000_000 + 3416);
        assert_eq!(number(&cache).await, "1");
        settled(&cache).await;
        assert_eq!(press.minted.load(Ordering::SeqCst), 3);
        hands.set(1_000_000 + 3600);
        assert!(matches!(*cache.token().await.unwrap_err(), TokenError::NoIdToken));
        *lock(&press.broken) = false;
        assert_eq!(number(&cache).await, "5");
    }

    #[tokio::test]
    async fn only_the_token_that_was_refused_is_forgotten() {
        let (cache, _, _) = cache(3600, 10);
        let first = cache.token().await.unwrap();
        cache.forget(|token| token.expose() == first.expose());
        assert_eq!(number(&cache).await, "2");
        cache.forget(|token| token.expose() == first.expose());
        assert_eq!(number(&cache).await, "2");
    }

    #[tokio::test]
    async fn a_new_token_that_is_over_already_is_an_error() {
        let (cache, _, hands) = cache(0, 10);
        let press_clock = hands.now();
        let claims =
            BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"aud":"a","exp":{}}}"#, press_clock - 3000));
        let token = IdToken::read(&format!("e30.{claims}.c2ln")).unwrap();
        let refused = lock(&cache.state).settle(Ok(token), hands.clock().now()).unwrap_err();
        assert!(matches!(*refused, TokenError::Expired { ago: 3000 }), "{refused}");
        assert!(refused.hint().contains("clock"));
    }

    #[tokio::test]
    async fn a_short_life_is_used_for_most_of_its_length() {
        let (cache, press, hands) = cache(60, 10);
        assert_eq!(number(&cache).await, "1");
        hands.set(1_000_000 + 44);
        assert_eq!(number(&cache).await, "1");
        settled(&cache).await;
        assert_eq!(press.minted.load(Ordering::SeqCst), 1);
        hands.set(1_000_000 + 46);
        assert_eq!(number(&cache).await, "1");
        settled(&cache).await;
        assert_eq!(number(&cache).await, "2");
    }
}
