//! AWS Signature Version 4, as far as a signed `GetCallerIdentity` needs it. Pure: the caller has
//! the time and the keys. The primitives are ring's.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::{digest, hmac};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::auth::secret::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What AWS leaves as it is in a query.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const WITH_SLASH: AsciiSet = UNRESERVED.remove(b'/');

/// The keys of an AWS role or user.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: Secret,
    /// Temporary keys have one.
    pub(crate) session: Option<Secret>,
}

/// A `POST` without content, to be signed.
pub(crate) struct Request<'a> {
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// As it stands in the URL.
    pub(crate) query: &'a str,
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
    /// Signed with the rest; names in lower case.
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) at: OffsetDateTime,
}

/// The headers of the signed request, `authorization` first.
pub(crate) fn sign(request: &Request<'_>, keys: &Keys) -> Vec<(String, String)> {
    let date = request.at.format(format_description!("[year][month][day]")).unwrap_or_default();
    let time = format!(
        "{date}T{:02}{:02}{:02}Z",
        request.at.hour(),
        request.at.minute(),
        request.at.second()
    );
    let mut headers = request.headers.clone();
    headers.push(("host", request.host));
    headers.push(("x-amz-date", &time));
    if let Some(session) = &keys.session {
        headers.push(("x-amz-security-token", session.expose()));
    }
    headers.sort_unstable();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let scope = format!("{date}/{}/{}/aws4_request", request.region, request.service);
    let digest = sha256(&canonical(request, &headers, &names));
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{digest}");
    let key = signing_key(&keys.secret, &date, request.region, request.service);
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        keys.id
    );
    let mut signed = vec![("Authorization".to_owned(), authorization)];
    signed.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    signed
}

/// `sts.us-east-2.amazonaws.com` and `sts-fips.us-east-2.amazonaws.com` are both `sts`.
pub(crate) fn service(host: &str) -> &str {
    let first = host.split('.').next().unwrap_or_default();
    first.strip_suffix("-fips").unwrap_or(first)
}

fn canonical(request: &Request<'_>, headers: &[(&str, &str)], names: &str) -> String {
    let path = if request.path.is_empty() { "/" } else { request.path };
    let mut query: Vec<(String, String)> = form_urlencoded::parse(request.query.as_bytes())
        .map(|(name, value)| (encoded(&name), encoded(&value)))
        .collect();
    query.sort_unstable();
    let query: Vec<String> =
        query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    format!("POST\n{path}\n{}\n{headers}\n{names}\n{}", query.join("&"), sha256(""))
}

fn signing_key(secret: &Secret, date: &str, region: &str, service: &str) -> hmac::Key {
    let first = format!("AWS4{}", secret.expose());
    let key = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
    [date, region, service, "aws4_request"].into_iter().fold(key, |key, part| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
    })
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// Text as it stands in one part of a URL's path.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, &WITH_SLASH).to_string()
}

fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    fn keys() -> Keys {
        Keys {
            id: "AKIDEXAMPLE".to_owned(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: None,
        }
    }

    /// `post-vanilla` and `post-vanilla-query` of AWS's own test suite for the signature.
    #[test]
    fn it_signs_as_the_test_suite_of_aws_says() {
        for (query, signature) in [
            ("", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            ("Param1=value1", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
        ] {
            let request = Request {
                host: "example.amazonaws.com",
                path: "/",
                query,
                region: "us-east-1",
                service: "service",
                headers: Vec::new(),
                at: datetime!(2015-08-30 12:36:00 UTC),
            };
            let signed = sign(&request, &keys());
            let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/\
                            aws4_request, SignedHeaders=host;x-amz-date, Signature=";
            assert_eq!(signed[0].1, format!("{expected}{signature}"), "{query}");
        }
    }

    #[test]
    fn the_service_is_the_beginning_of_the_host() {
        assert_eq!(service("sts.us-east-2.amazonaws.com"), "sts");
        assert_eq!(service("sts-fips.us-east-2.amazonaws.com"), "sts");
    }

    #[test]
    fn every_header_that_is_sent_is_signed() {
        let session = Some(Secret::new("session"));
        let request = Request {
            host: "sts.us-east-2.amazonaws.com",
            path: "",
            query: "Version=2011-06-15&Action=GetCallerIdentity",
            region: "us-east-2",
            service: "sts",
            headers: vec![("x-goog-cloud-target-resource", "//iam/pool")],
            at: datetime!(2020-08-11 06:55:22 UTC),
        };
        let signed = sign(&request, &Keys { session, ..keys() });
        let names: Vec<&str> = signed.iter().skip(1).map(|(name, _)| name.as_str()).collect();
        assert_eq!(signed[0].0, "Authorization");
        assert!(signed[0].1.contains(&format!("SignedHeaders={},", names.join(";"))));
        assert_eq!(
            names,
            ["host", "x-amz-date", "x-amz-security-token", "x-goog-cloud-target-resource"]
        );
        assert!(signed[0].1.contains("AKIDEXAMPLE/20200811/us-east-2/sts/aws4_request"));
        assert!(signed.contains(&("x-amz-date".to_owned(), "20200811T065522Z".to_owned())));
    }
}
