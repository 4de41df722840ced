//! What the fake Google knows: keys, tokens it gave, what it was asked, and what it is to play.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::request::Parts;
use serde_json::{Value, json};

use crate::files::{CLIENT_ID, GCLOUD_CLIENT_ID, PERSON, SERVICE_ACCOUNT, TARGET};
use crate::keys::Key;
use crate::play::Play;

/// A request, as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The `Host` header.
    pub host: String,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The content.
    pub body: String,
}

impl Seen {
    pub(crate) fn of(parts: &Parts, body: &Bytes) -> Self {
        let headers = parts.headers.iter();
        let headers: BTreeMap<String, String> = headers
            .map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let query = parts.uri.query().unwrap_or_default();
        Self {
            host: headers.get("host").cloned().unwrap_or_default(),
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            headers,
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }

    /// The content as a form.
    pub fn form(&self) -> BTreeMap<String, String> {
        form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }

    /// The content as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The claims of the JWT in a field of the form, unchecked.
    pub fn claims(&self, field: &str) -> Value {
        let form = self.form();
        form.get(field).and_then(|token| crate::keys::claims(token)).unwrap_or(Value::Null)
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Who may do what to whom.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Who may impersonate a service account.
    pub(crate) impersonators: BTreeMap<String, Vec<String>>,
    /// The scopes of a person's login.
    pub(crate) login_scopes: Vec<String>,
    /// The refresh token that is good.
    pub(crate) refresh_token: String,
    /// The OAuth client of a person's login.
    pub(crate) client_id: String,
    /// The service account of the machine, none where it has none.
    pub(crate) machine: Option<String>,
    /// The subject token that the pools take.
    pub(crate) subject_token: String,
    /// How many seconds an ID token lives.
    pub(crate) life: i64,
}

impl Policy {
    fn usual() -> Self {
        let anyone = || vec!["*".to_owned()];
        Self {
            impersonators: BTreeMap::from([
                (TARGET.to_owned(), anyone()),
                (SERVICE_ACCOUNT.to_owned(), anyone()),
            ]),
            login_scopes: vec!["openid".to_owned(), "email".to_owned()],
            refresh_token: "1//refresh-token-canary".to_owned(),
            client_id: GCLOUD_CLIENT_ID.to_owned(),
            machine: Some("machine@project.iam.gserviceaccount.com".to_owned()),
            subject_token: "subject-token-canary".to_owned(),
            life: 3600,
        }
    }
}

/// What is known, behind one lock.
pub(crate) struct State {
    /// Signs ID tokens.
    pub(crate) issuer: Key,
    /// The service account's.
    pub(crate) account: Key,
    known: Mutex<Known>,
}

pub(crate) struct Known {
    pub(crate) policy: Policy,
    pub(crate) seen: Vec<Seen>,
    /// Access token → whom it stands for.
    pub(crate) access: BTreeMap<String, String>,
    /// What is played next, by the end of the path.
    plays: Vec<(String, Option<usize>, Play)>,
    given: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        let known = Known {
            policy: Policy::usual(),
            seen: Vec::new(),
            access: BTreeMap::new(),
            plays: Vec::new(),
            given: 0,
        };
        Self {
            issuer: Key::named("issuer"),
            account: Key::named("service-account"),
            known: Mutex::new(known),
        }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn policy(&self) -> Policy {
        self.known().policy.clone()
    }

    /// Plays this at paths that end so: so many times, or always.
    pub(crate) fn play(&self, path_end: &str, times: Option<usize>, play: Play) {
        self.known().plays.push((path_end.to_owned(), times, play));
    }

    /// What is to be played for this path, and once less.
    pub(crate) fn next_play(&self, path: &str) -> Option<Play> {
        let mut known = self.known();
        let at = known.plays.iter().position(|(end, _, _)| path.ends_with(end.as_str()))?;
        let (_, times, play) = &mut known.plays[at];
        let play = play.clone();
        match times {
            Some(1) => drop(known.plays.remove(at)),
            Some(times) => *times -= 1,
            None => {}
        }
        Some(play)
    }

    /// Plays nothing any more.
    pub(crate) fn play_nothing(&self) {
        self.known().plays.clear();
    }

    /// A new access token of somebody.
    pub(crate) fn access_token(&self, principal: &str) -> String {
        let mut known = self.known();
        known.given += 1;
        let token = format!("ya29.access-canary-{}", known.given);
        known.access.insert(token.clone(), principal.to_owned());
        token
    }

    /// A new ID token of somebody, for somebody.
    pub(crate) fn id_token(&self, email: &str, audience: &str) -> String {
        let life = self.policy().life;
        let now = i64::try_from(now()).expect("the clock is right");
        self.issuer.sign(&json!({
            "iss": "https://accounts.google.com",
            "aud": audience,
            "azp": audience,
            "sub": "110000000000000000001",
            "email": email,
            "email_verified": true,
            "iat": now.min(now + life - 1),
            "exp": now + life,
            // Two tokens of one second differ.
            "jti": uuid::Uuid::new_v4().to_string(),
        }))
    }

    /// The ID token that a person's login has: for its OAuth client, whatever is wanted.
    pub(crate) fn login_token(&self) -> String {
        self.id_token(PERSON, &self.policy().client_id)
    }
}

/// The OAuth clients whose ID tokens Cloud Run takes for any service.
pub(crate) fn is_gcloud(audience: &str) -> bool {
    audience == GCLOUD_CLIENT_ID && audience != CLIENT_ID
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970").as_secs()
}
