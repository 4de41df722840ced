//! What the real services say when they refuse, word for word where it is known.

use serde_json::{Value, json};

/// Refusals of the real services.
#[derive(Debug, Clone, Copy)]
pub struct Words;

impl Words {
    /// The token endpoint, with an OAuth error.
    pub fn oauth(error: &str, description: &str) -> Value {
        json!({"error": error, "error_description": description})
    }

    /// A login that has ended.
    pub fn revoked() -> Value {
        Self::oauth("invalid_grant", "Token has been expired or revoked.")
    }

    /// An organisation that asks for a new login.
    pub fn reauth() -> Value {
        json!({
            "error": "invalid_grant",
            "error_description": "reauth related error (invalid_rapt)",
            "error_uri": "https://support.google.com/a/answer/9368756",
            "error_subtype": "invalid_rapt",
        })
    }

    /// An assertion from a machine whose clock is wrong.
    pub fn wrong_time() -> Value {
        Self::oauth(
            "invalid_grant",
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable \
             timeframe. Check your iat and exp values in the JWT claim.",
        )
    }

    /// An API's error.
    pub fn api(code: u16, status: &str, message: &str, details: Value) -> Value {
        json!({"error": {"code": code, "status": status, "message": message, "details": details}})
    }

    /// The IAM Credentials API, to a caller without the role.
    pub fn denied(permission: &str, target: &str) -> Value {
        Self::api(
            403,
            "PERMISSION_DENIED",
            &format!("Permission '{permission}' denied on resource (or it may not exist)."),
            json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "IAM_PERMISSION_DENIED",
                "domain": "iam.googleapis.com",
                "metadata": {"permission": permission, "resource": target},
            }]),
        )
    }

    /// A project in which the IAM Credentials API is off.
    pub fn service_disabled() -> Value {
        Self::api(
            403,
            "PERMISSION_DENIED",
            "IAM Service Account Credentials API has not been used in project 1 before or it is \
             disabled.",
            json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "SERVICE_DISABLED",
                "domain": "googleapis.com",
                "metadata": {"service": "iamcredentials.googleapis.com", "consumer": "projects/1"},
            }]),
        )
    }

    /// A service account that does not exist.
    pub fn unknown_account(email: &str) -> Value {
        let message = format!("Not found; Gaia id not found for email {email}");
        Self::api(404, "NOT_FOUND", &message, json!([]))
    }

    /// An access token that is none.
    pub fn unauthenticated() -> Value {
        Self::api(
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login \
             cookie or other valid authentication credential.",
            json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "ACCESS_TOKEN_TYPE_UNSUPPORTED",
                "domain": "googleapis.com",
            }]),
        )
    }

    /// The page of Cloud Run's front door.
    pub fn page(status: u16, title: &str, sentence: &str) -> String {
        format!(
            "<html><head>\n<meta http-equiv=\"content-type\" content=\"text/html;charset=utf-8\">\n\
             <title>{status} {title}</title>\n</head>\n<body text=#000000 bgcolor=#ffffff>\n\
             <h1>Error: {title}</h1>\n<h2>{sentence}</h2>\n<h2></h2>\n</body></html>\n"
        )
    }
}
