//! What Cloud Run's front door makes of an ID token.

use serde_json::Value;

use crate::keys;
use crate::state::{State, is_gcloud, now};

/// An ID token that was found to be good.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Whom it stands for.
    pub email: String,
    /// For whom it is.
    pub audience: String,
    /// When it ends.
    pub exp: u64,
}

/// Checks signature, issuer, time and audience; says what is wrong.
pub(crate) fn verify(state: &State, token: &str, audience: &str) -> Result<Verified, &'static str> {
    if !state.issuer.signed(token) {
        return Err("the signature is not Google's");
    }
    let claims = keys::claims(token).ok_or("there are no claims")?;
    let text = |name: &str| claims[name].as_str().unwrap_or_default().to_owned();
    if !matches!(text("iss").as_str(), "https://accounts.google.com" | "accounts.google.com") {
        return Err("the issuer is not Google");
    }
    let exp = claims["exp"].as_u64().ok_or("there is no end")?;
    if exp <= now() {
        return Err("the token has expired");
    }
    if claims["iat"].as_u64().is_none_or(|iat| iat > now() + 300) {
        return Err("the token is not valid yet");
    }
    let meant = text("aud");
    if meant != audience && !is_gcloud(&meant) {
        return Err("the audience is another");
    }
    if claims["email_verified"] != Value::Bool(true) {
        return Err("the address is not verified");
    }
    Ok(Verified { email: text("email"), audience: meant, exp })
}
