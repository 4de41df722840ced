//! JSON Web Tokens: signing the ones we send to Google, and reading the ones Google gives us.
//! Reading is not trusting: whoever receives the token checks it, we only need to know until when
//! it lives and for whom it is.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// A longer one is no token.
const LONGEST: usize = 64 * 1024;

/// An ID token with what it says about itself.
#[derive(Clone)]
pub struct IdToken {
    raw: Secret,
    /// `Bearer` and the token, made once for all requests.
    header: HeaderValue,
    claims: Claims,
}

impl IdToken {
    /// Reads a token that was given to us; the reason where it is none.
    pub(crate) fn read(raw: &str) -> Result<Self, &'static str> {
        let raw = raw.trim();
        if raw.len() > LONGEST {
            return Err("it is too long for a token");
        }
        let mut parts = raw.split('.');
        let (Some(_), Some(claims), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("it is not a JSON Web Token");
        };
        let claims = BASE64_URL_SAFE_NO_PAD
            .decode(claims.trim_end_matches('='))
            .map_err(|_| "its claims are not base64")?;
        let claims = serde_json::from_slice(&claims)
            .map_err(|_| "its claims have no `exp` and `aud`, or are not JSON")?;
        if !raw.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it has characters that no token has");
        }
        let mut header = HeaderValue::try_from(format!("Bearer {raw}"))
            .map_err(|_| "it has characters that no token has")?;
        header.set_sensitive(true);
        Ok(Self { raw: Secret::new(raw), header, claims })
    }

    /// The token itself, for the `Authorization` header and nothing else.
    pub fn expose(&self) -> &str {
        self.raw.expose()
    }

    /// The `Authorization` header of a request that carries it. Its `Debug` shows nothing.
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// What it says about itself.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }
}

impl fmt::Debug for IdToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IdToken").field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// What an ID token says about itself, as far as we care. Nobody has checked it.
#[derive(Debug, Clone, Deserialize)]
pub struct Claims {
    /// For whom it is.
    #[serde(deserialize_with = "one_or_first")]
    pub aud: String,
    /// When it ends, in seconds since 1970.
    #[serde(deserialize_with = "whole_seconds")]
    pub exp: u64,
    /// Who it stands for, by mail address.
    #[serde(default)]
    pub email: Option<String>,
    /// Who it stands for, by number.
    #[serde(default)]
    pub sub: Option<String>,
    /// Who gave it.
    #[serde(default)]
    pub iss: Option<String>,
}

/// RFC 7519 allows a list of audiences, and Google's have one.
fn one_or_first<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(from)? {
        Audience::One(audience) => audience,
        Audience::Many(audiences) => audiences.into_iter().next().unwrap_or_default(),
    })
}

/// RFC 7519 allows a fraction.
fn whole_seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    number
        .as_u64()
        .or_else(|| number.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64))
        .ok_or_else(|| serde::de::Error::custom("a time before 1970"))
}

/// The private key of a service account.
pub(crate) struct SigningKey {
    key: RsaKeyPair,
    id: Option<String>,
}

impl SigningKey {
    /// Reads the key of a credentials file, PKCS #8 or PKCS #1; the reason where it is none.
    pub(crate) fn from_pem(pem: &Secret, id: Option<String>) -> Result<Self, &'static str> {
        let key = PrivateKeyDer::from_pem_slice(pem.expose().as_bytes())
            .map_err(|_| "`private_key` is not a PEM private key")?;
        let key = match &key {
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err("`private_key` is not an RSA key"),
        };
        let key = key.map_err(|_| "`private_key` is not an RSA key of 2048 bits or more")?;
        Ok(Self { key, id })
    }

    /// These claims, signed with RS256.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<Secret, &'static str> {
        #[derive(Serialize)]
        struct Header<'a> {
            alg: &'static str,
            typ: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            kid: Option<&'a str>,
        }
        let header = Header { alg: "RS256", typ: "JWT", kid: self.id.as_deref() };
        let mut token = format!("{}.{}", part(&header)?, part(claims)?);
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .map_err(|_| "signing with the private key failed")?;
        token.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(Secret::new(token))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

fn part(value: &impl Serialize) -> Result<String, &'static str> {
    let json = serde_json::to_vec(value).map_err(|_| "the claims cannot be written as JSON")?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_says_until_when_it_lives_and_for_whom_it_is() {
        // covers: PRX-2.2
        let read = IdToken::read(&token(
            r#"{"aud":"https://a.run.app","exp":1700000000,"email":"me@example.com","sub":"7"}"#,
        ))
        .unwrap();
        assert_eq!(read.claims().aud, "https://a.run.app");
        assert_eq!(read.claims().exp, 1_700_000_000);
        assert_eq!(read.claims().email.as_deref(), Some("me@example.com"));
        let list = IdToken::read(&token(r#"{"aud":["a","b"],"exp":17.9}"#)).unwrap();
        assert_eq!((list.claims().aud.as_str(), list.claims().exp), ("a", 17));
    }

    #[test]
    fn what_is_no_token_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "not a JSON Web Token"),
            ("a.b", "not a JSON Web Token"),
            ("a.b.c.d", "not a JSON Web Token"),
            ("a.!.c", "not base64"),
            ("a.e30.c", "no `exp`"),
            (&token(r#"{"aud":"a","exp":-1}"#), "no `exp`"),
            (&format!("{}\r\nX: y", token(r#"{"aud":"a","exp":1}"#)), "characters"),
            (&"a".repeat(LONGEST + 1), "too long"),
        ] {
            let refused = IdToken::read(text).unwrap_err();
            assert!(refused.contains(reason), "{text:.20}: {refused}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let raw = token(r#"{"aud":"a","exp":1}"#);
        let shown = format!("{:?}", IdToken::read(&raw).unwrap());
        assert!(shown.contains("exp: 1") && !shown.contains("e30."), "{shown}");
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_being_shown() {
        for pem in
            ["canary-key", "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----"]
        {
            let refused = SigningKey::from_pem(&Secret::new(pem), None).unwrap_err();
            assert!(refused.contains("`private_key`") && !refused.contains("canary"), "{refused}");
        }
    }
}
