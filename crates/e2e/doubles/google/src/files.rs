//! Credentials files of every type, as Google's tools write them, pointing at the fake.

use serde_json::{Value, json};

use crate::server::Google;

/// The service account whose key there is.
pub const SERVICE_ACCOUNT: &str = "robot@project.iam.gserviceaccount.com";
/// The service account that is impersonated.
pub const TARGET: &str = "target@project.iam.gserviceaccount.com";
/// The person who logged in.
pub const PERSON: &str = "person@example.com";
/// A workload identity provider.
pub const POOL: &str = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider";
/// A workforce pool's provider.
pub const WORKFORCE_POOL: &str =
    "//iam.googleapis.com/locations/global/workforcePools/pool/providers/provider";
/// The OAuth client of gcloud's own logins, which Cloud Run trusts.
pub const GCLOUD_CLIENT_ID: &str =
    "764086051850-6qr4p6gpi6hn506pt8ejuq83di341hur.apps.googleusercontent.com";
/// Somebody's own OAuth client.
pub const CLIENT_ID: &str = "1-own.apps.googleusercontent.com";
/// The role of the workload in AWS.
pub const AWS_ROLE: &str = "workload-role";

pub(crate) const CLIENT_SECRET: &str = "client-secret-canary";
pub(crate) const AWS_REGION: &str = "us-east-2";
pub(crate) const AWS_KEY: &str = "ASIAEXAMPLE";
pub(crate) const AWS_SECRET: &str = "aws-secret-canary";
pub(crate) const AWS_SESSION: &str = "aws-session-canary";

impl Google {
    /// A service account's key.
    pub fn service_account(&self) -> Value {
        json!({
            "type": "service_account",
            "project_id": "project",
            "private_key_id": self.state().account.id,
            "private_key": self.state().account.pem,
            "client_email": SERVICE_ACCOUNT,
            "client_id": "110000000000000000001",
            "token_uri": format!("{}/token", self.url()),
            "universe_domain": "googleapis.com",
        })
    }

    /// A person's login, as gcloud writes it: it names no endpoint.
    pub fn gcloud_login(&self) -> Value {
        let policy = self.state().policy();
        json!({
            "type": "authorized_user",
            "account": "",
            "client_id": policy.client_id,
            "client_secret": CLIENT_SECRET,
            "refresh_token": policy.refresh_token,
            "universe_domain": "googleapis.com",
        })
    }

    /// A person's login that names the fake's endpoint.
    pub fn authorized_user(&self) -> Value {
        let mut login = self.gcloud_login();
        login["token_uri"] = format!("{}/token", self.url()).into();
        login
    }

    /// Impersonation of the target by other credentials.
    pub fn impersonated(&self, source: Value) -> Value {
        json!({
            "type": "impersonated_service_account",
            "delegates": [],
            "service_account_impersonation_url": self.impersonation_url(TARGET),
            "source_credentials": source,
        })
    }

    /// Where an access token of a service account is asked for.
    pub fn impersonation_url(&self, email: &str) -> String {
        format!("{}/v1/projects/-/serviceAccounts/{email}:generateAccessToken", self.url())
    }

    /// A workload of another cloud, whose subject token comes from this source.
    pub fn external_account(&self, credential_source: Value) -> Value {
        json!({
            "type": "external_account",
            "universe_domain": "googleapis.com",
            "audience": POOL,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": format!("{}/v1/token", self.url()),
            "credential_source": credential_source,
            "service_account_impersonation_url": self.impersonation_url(TARGET),
        })
    }

    /// A workload in AWS.
    pub fn aws_account(&self) -> Value {
        let url = self.url();
        let mut account = self.external_account(json!({
            "environment_id": "aws1",
            "region_url": format!("{url}/latest/meta-data/placement/availability-zone"),
            "url": format!("{url}/latest/meta-data/iam/security-credentials"),
            "imdsv2_session_token_url": format!("{url}/latest/api/token"),
            "regional_cred_verification_url":
                "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
        }));
        account["subject_token_type"] = crate::aws::TOKEN_TYPE.into();
        account
    }

    /// A person's login in a workforce pool.
    pub fn workforce_login(&self) -> Value {
        json!({
            "type": "external_account_authorized_user",
            "audience": WORKFORCE_POOL,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "refresh_token": self.state().policy().refresh_token,
            "token_url": format!("{}/v1/oauthtoken", self.url()),
            "token_info_url": format!("{}/v1/introspect", self.url()),
            "universe_domain": "googleapis.com",
        })
    }

    /// Every text above that must never be seen in a log or a message.
    pub fn canaries(&self) -> Vec<String> {
        let policy = self.state().policy();
        let mut canaries: Vec<String> =
            [CLIENT_SECRET, AWS_SECRET, AWS_SESSION].map(str::to_owned).into();
        canaries.extend([policy.refresh_token, policy.subject_token]);
        canaries.extend(self.state().known().access.keys().cloned());
        // A line of the key, and the beginning of every token.
        canaries.extend(self.state().account.pem.lines().nth(1).map(str::to_owned));
        canaries.push("eyJhbGciOiJSUzI1NiIs".to_owned());
        canaries
    }
}
