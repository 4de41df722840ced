//! What to do next, for each way in which credentials fail: one table from errors to sentences.

use super::error::{FileError, Refusal, Service, SubjectError, TokenError, Verb};

/// The command that makes a login, which takes effect without a restart.
const LOGIN: &str = "gcloud auth application-default login";

/// Clocks that differ by less are not worth a word.
const NOTICEABLE_SKEW: i64 = 60;

/// Where no credentials were found.
pub(crate) fn not_found() -> String {
    format!(
        "run `{LOGIN}`, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a credentials file \
         (a service account's key, or a workload identity federation configuration)."
    )
}

/// After a failure to get a token.
pub(crate) fn after(error: &TokenError) -> String {
    let advice = match error {
        TokenError::Gone { .. } => return not_found(),
        TokenError::File { reason, .. } => return file(reason),
        TokenError::Unreachable { service, host, .. }
        | TokenError::Silent { service, host, .. } => unreachable(service, host),
        TokenError::Refused(refusal) => refused(refusal),
        TokenError::Answer { service: Service::Metadata, .. } => {
            "check GCE_METADATA_HOST, and that this machine has a service account".to_owned()
        }
        TokenError::Answer { .. } => {
            "check the URLs in the credentials file, and any proxy in between".to_owned()
        }
        TokenError::NoIdToken => format!(
            "run `{LOGIN} --scopes=openid,https://www.googleapis.com/auth/userinfo.email,\
             https://www.googleapis.com/auth/cloud-platform`"
        ),
        TokenError::Expired { .. } => "set this machine's clock right".to_owned(),
        TokenError::Subject(error) => subject(error),
        TokenError::Interrupted => "try again".to_owned(),
    };
    advice + "."
}

/// Where a credentials file cannot be used.
pub(crate) fn file(error: &FileError) -> String {
    let advice = match error {
        FileError::NeedsImpersonation(_) | FileError::NoIdTokens(_) => {
            "name a service account with --impersonate-service-account; these credentials need \
             roles/iam.serviceAccountOpenIdTokenCreator on it"
                .to_owned()
        }
        FileError::Unreadable(_) => format!(
            "check the path and its permissions, or unset GOOGLE_APPLICATION_CREDENTIALS and run \
             `{LOGIN}`"
        ),
        FileError::TooLarge(_)
        | FileError::NotJson { .. }
        | FileError::NoType
        | FileError::UnknownType(_)
        | FileError::Field(_) => format!("create the file anew, for instance with `{LOGIN}`"),
    };
    advice + "."
}

fn unreachable(service: &Service, host: &str) -> String {
    match service {
        Service::Metadata | Service::Aws => {
            format!("check that this machine's metadata server answers at {host}")
        }
        _ => format!(
            "check the network, HTTPS_PROXY and NO_PROXY, and --cacert where a proxy opens TLS; \
             {host} must be reachable"
        ),
    }
}

fn refused(refusal: &Refusal) -> String {
    if refusal.status == 429 || refusal.status >= 500 {
        return "this is the other side's trouble and usually passes: try again".to_owned();
    }
    match &refusal.service {
        Service::ServiceAccount(email) => service_account(refusal, email),
        Service::Login => login(refusal, LOGIN),
        Service::WorkforceLogin => {
            login(refusal, "gcloud auth application-default login --login-config=FILE")
        }
        Service::Exchange => exchange(refusal),
        Service::Impersonation { target, caller, verb } => {
            impersonation(refusal, target, caller.as_deref(), *verb)
        }
        Service::Metadata => {
            "this machine needs a service account: attach one to the VM, the pod or the service"
                .to_owned()
        }
        Service::Aws => {
            "attach a role to the instance, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                .to_owned()
        }
        Service::SubjectUrl => "check `credential_source` in the credentials file".to_owned(),
    }
}

fn service_account(refusal: &Refusal, email: &str) -> String {
    if let Some(clock) = wrong_clock(refusal) {
        return clock;
    }
    let says = |words: &str| refusal.description.to_lowercase().contains(words);
    if says("signature") {
        return format!(
            "the key of {email} was deleted or is not this account's: create a new one with \
             `gcloud iam service-accounts keys create FILE --iam-account={email}`"
        );
    }
    if says("not found") || says("disabled") {
        return format!("the service account {email} was deleted or disabled: use another one");
    }
    format!("check that the service account {email} and its key still exist and are enabled")
}

fn login(refusal: &Refusal, command: &str) -> String {
    match (refusal.code.as_str(), refusal.reason.as_deref()) {
        (_, Some("invalid_rapt" | "rapt_required")) => format!(
            "your organisation asks you to log in again from time to time: run `{command}`; it \
             takes effect without a restart"
        ),
        ("invalid_client" | "deleted_client" | "unauthorized_client", _) => format!(
            "the OAuth client of this login was deleted or may not do this: run `{command}` \
             without --client-id-file"
        ),
        ("access_denied" | "admin_policy_enforced" | "org_internal", _) => {
            "your organisation's policy refuses this login: ask its administrator".to_owned()
        }
        _ => format!(
            "the login has expired or was revoked: run `{command}` again; it takes effect \
             without a restart"
        ),
    }
}

fn exchange(refusal: &Refusal) -> String {
    if let Some(clock) = wrong_clock(refusal) {
        return clock;
    }
    match refusal.code.as_str() {
        "invalid_target" => {
            "`audience` in the credentials file names no workload identity provider that exists \
             and is enabled"
        }
        "unauthorized_client" => {
            "the provider's attribute condition refuses this workload: check it and the mapping"
        }
        "invalid_grant" => {
            "the subject token is expired, or not for this provider: check its issuer, its \
             audience and its life"
        }
        _ => "check `audience`, `subject_token_type` and `credential_source` of the credentials",
    }
    .to_owned()
}

fn impersonation(refusal: &Refusal, target: &str, caller: Option<&str>, verb: Verb) -> String {
    match (refusal.status, refusal.reason.as_deref()) {
        (_, Some("SERVICE_DISABLED")) => {
            "run `gcloud services enable iamcredentials.googleapis.com` in the project of these \
             credentials, and wait some minutes"
                .to_owned()
        }
        (_, Some("USER_PROJECT_DENIED")) => {
            "run `gcloud auth application-default set-quota-project PROJECT` with a project you \
             may use"
                .to_owned()
        }
        (401, _) => format!("the credentials are not accepted: run `{LOGIN}` again"),
        (403, _) => missing_role(target, caller, verb),
        (404, _) => format!("the service account {target} does not exist: check its name"),
        _ => format!("check the audience and the name of the service account {target}"),
    }
}

fn missing_role(target: &str, caller: Option<&str>, verb: Verb) -> String {
    let role = match verb {
        Verb::IdToken => "roles/iam.serviceAccountOpenIdTokenCreator",
        Verb::AccessToken => "roles/iam.serviceAccountTokenCreator",
    };
    let member = caller.map_or_else(|| "MEMBER".to_owned(), member);
    format!(
        "grant {role} on it: `gcloud iam service-accounts add-iam-policy-binding {target} \
         --member={member} --role={role}`, and wait some minutes"
    )
}

/// Where the server refuses a token that Google gave us; `other` is the token's audience where it
/// is not the one that was asked for, as with a person's login.
pub(crate) fn refused_by_server(
    status: u16,
    audience: &str,
    principal: Option<&str>,
    other: Option<&str>,
) -> String {
    let impersonate = "or impersonate a service account with --impersonate-service-account";
    let advice = match (status, other) {
        (403, _) => {
            let member = principal.map_or_else(|| "MEMBER".to_owned(), member);
            let own = if other.is_some() { format!(", {impersonate}") } else { String::new() };
            format!(
                "grant roles/run.invoker on the service: `gcloud run services \
                 add-iam-policy-binding SERVICE --member={member} --role=roles/run.invoker`{own}"
            )
        }
        (_, Some(other)) => format!(
            "the ID tokens of a person's login are for its OAuth client ({other}), and Cloud Run \
             takes those of gcloud's own only: run `{LOGIN}` without --client-id-file, {impersonate}"
        ),
        _ => format!(
            "the server does not take a token for {audience}: behind a custom domain, a load \
             balancer or IAP, say what it takes with --audience"
        ),
    };
    advice + "."
}

/// An IAM member: service accounts are known by their domain.
pub(crate) fn member(email: &str) -> String {
    let kind = if email.ends_with(".gserviceaccount.com") { "serviceAccount" } else { "user" };
    format!("{kind}:{email}")
}

fn wrong_clock(refusal: &Refusal) -> Option<String> {
    let skew = refusal.skew.filter(|skew| skew.abs() >= NOTICEABLE_SKEW);
    let says = refusal.description.contains("iat and exp")
        || refusal.description.contains("reasonable timeframe");
    let measured = skew.map(|skew| {
        let way = if skew > 0 { "behind" } else { "ahead of" };
        format!("set this machine's clock right: it is {} s {way} Google's", skew.abs())
    });
    measured.or_else(|| says.then(|| "set this machine's clock right".to_owned()))
}

fn subject(error: &SubjectError) -> String {
    match error {
        SubjectError::File { .. } => "check `credential_source.file` of the credentials file",
        SubjectError::Format { .. } => "check `credential_source` of the credentials file",
        SubjectError::NotAllowed => {
            "where you trust the program in the credentials file, set \
             GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"
        }
        SubjectError::Start { .. } => "check `credential_source.executable.command`",
        SubjectError::Slow { .. } => {
            "make it quicker, or raise `credential_source.executable.timeout_millis`"
        }
        SubjectError::Failed { .. } | SubjectError::Unsuccessful { .. } => {
            "run the program by hand to see what it needs"
        }
        SubjectError::Aws(_) => {
            "set AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run on EC2 with a role"
        }
    }
    .to_owned()
}
