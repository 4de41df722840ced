//! RSA keys, made by openssl when a test first needs them and kept in the build's folder, because
//! making one takes most of a second.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// A key pair with its name.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) pem: String,
    pair: RsaKeyPair,
    public: RsaPublicKeyComponents<Vec<u8>>,
}

impl Key {
    /// The key of this name.
    pub(crate) fn named(name: &str) -> Self {
        let pem = kept(name);
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).expect("openssl writes PEM");
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("openssl makes RSA keys");
        let public = RsaPublicKeyComponents::from(pair.public());
        Self { id: format!("key-of-{name}"), pem, pair, public }
    }

    /// These claims, signed.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.id});
        let part = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let text = format!("{}.{}", part(&header), part(claims));
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .expect("a good key signs");
        format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Whether this key signed the token, by the key's name and by the signature.
    pub(crate) fn signed(&self, token: &str) -> bool {
        let Some((text, signature)) = token.rsplit_once('.') else {
            return false;
        };
        let header = text.split('.').next().unwrap_or_default();
        let header: Option<Value> = decoded(header);
        let names = header.is_some_and(|it| it["kid"] == self.id && it["alg"] == "RS256");
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        names
            && self.public.verify(&RSA_PKCS1_2048_8192_SHA256, text.as_bytes(), &signature).is_ok()
    }

    /// Its public half, as a JWKS has it.
    pub(crate) fn jwk(&self) -> Value {
        json!({
            "kid": self.id, "kty": "RSA", "alg": "RS256", "use": "sig",
            "n": BASE64_URL_SAFE_NO_PAD.encode(&self.public.n),
            "e": BASE64_URL_SAFE_NO_PAD.encode(&self.public.e),
        })
    }
}

/// The claims of a token, unchecked.
pub(crate) fn claims(token: &str) -> Option<Value> {
    decoded(token.split('.').nth(1)?)
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

fn kept(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../target/fake-google");
    let path = folder.join(format!("{name}.pem"));
    if let Ok(pem) = std::fs::read_to_string(&path) {
        return pem;
    }
    std::fs::create_dir_all(&folder).expect("the build's folder can be written");
    make(&folder, &path);
    std::fs::read_to_string(&path).expect("a key that was made can be read")
}

/// Made beside its place and moved there as a whole: tests run in many processes at once.
fn make(folder: &Path, path: &PathBuf) {
    let own = folder.join(format!("{}.tmp", uuid::Uuid::new_v4()));
    #[expect(clippy::disallowed_methods, reason = "a test double makes its keys")]
    let made = Command::new("openssl")
        .args([
            "genpkey",
            "-quiet",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
            "-out",
        ])
        .arg(&own)
        .status();
    let made = made.unwrap_or_else(|error| panic!("openssl makes the tests' keys: {error}"));
    assert!(made.success(), "openssl makes a key: {made}");
    std::fs::rename(&own, path).expect("a key can be moved");
}
