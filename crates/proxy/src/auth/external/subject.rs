//! Where a subject token comes from: a file, a URL, a program, or AWS.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::aws::{Aws, AwsFile};
use super::executable::{Executable, ExecutableFile};
use crate::auth::error::{FileError, Service, SubjectError, TokenError};
use crate::auth::exchange::Question;
use crate::auth::file::any_url;
use crate::auth::secret::Secret;
use crate::auth::source::Context;

/// No subject token is larger.
const LARGEST: u64 = 1024 * 1024;

/// `credential_source` of a file.
#[derive(Deserialize)]
pub(crate) struct CredentialSource {
    #[serde(default)]
    environment_id: Option<String>,
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    format: Format,
    #[serde(default)]
    executable: Option<ExecutableFile>,
    #[serde(default)]
    certificate: Option<Value>,
    #[serde(flatten)]
    aws: AwsFile,
}

#[derive(Debug, Default, Deserialize)]
struct Format {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    subject_token_field_name: Option<String>,
}

/// How what is read becomes the token.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    /// JSON, in whose field of this name it stands.
    Field(String),
}

/// Where the token comes from.
#[derive(Debug)]
pub(crate) enum Subject {
    File(PathBuf, Shape),
    Url(String, Headers, Shape),
    Executable(Executable),
    Aws(Aws),
}

/// Headers of a question; their values may be secrets.
pub(crate) struct Headers(Vec<(String, Secret)>);

impl std::fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.0.iter().map(|(name, value)| (name, value))).finish()
    }
}

/// What the token is for.
pub(crate) struct Wanted<'a> {
    pub(crate) audience: &'a str,
    pub(crate) token_type: &'a str,
    pub(crate) impersonated: Option<&'a str>,
}

impl Subject {
    pub(crate) fn new(source: CredentialSource) -> Result<Self, FileError> {
        let wrong = |reason: &str| Err(FileError::Field(format!("`credential_source`: {reason}")));
        if let Some(id) = &source.environment_id {
            return Aws::new(id, source.url, source.aws).map(Self::Aws);
        }
        if source.certificate.is_some() {
            return wrong("certificates (X.509 federation) are not supported");
        }
        let shape = shape(source.format)?;
        match (source.file, source.url, source.executable) {
            (Some(file), None, None) => Ok(Self::File(file, shape)),
            (None, Some(url), None) => {
                any_url("credential_source.url", &url)?;
                let headers = source.headers.into_iter();
                let headers = headers.map(|(name, value)| (name, Secret::new(value))).collect();
                Ok(Self::Url(url, Headers(headers), shape))
            }
            (None, None, Some(executable)) => Executable::new(executable).map(Self::Executable),
            (None, None, None) => wrong("it names no file, url, executable or environment_id"),
            _ => wrong("it names more than one of file, url and executable"),
        }
    }

    /// The token, fetched anew: whoever wrote it has perhaps renewed it.
    pub(crate) async fn token(
        &self,
        context: &Context,
        wanted: &Wanted<'_>,
    ) -> Result<Secret, TokenError> {
        match self {
            Self::File(path, shape) => from_file(path.clone(), shape).await,
            Self::Url(url, headers, shape) => from_url(context, url, headers, shape).await,
            Self::Executable(executable) => {
                executable.token(context, wanted).await.map_err(TokenError::Subject)
            }
            Self::Aws(aws) => aws.token(context, wanted.audience).await,
        }
    }
}

fn shape(format: Format) -> Result<Shape, FileError> {
    match (format.kind.as_deref(), format.subject_token_field_name) {
        (None | Some("text"), _) => Ok(Shape::Text),
        (Some("json"), Some(field)) => Ok(Shape::Field(field)),
        (Some("json"), None) => Err(FileError::Field(
            "`credential_source.format` is json and has no `subject_token_field_name`".to_owned(),
        )),
        (Some(_), _) => {
            Err(FileError::Field("`credential_source.format.type` is not text or json".to_owned()))
        }
    }
}

async fn from_file(path: PathBuf, shape: &Shape) -> Result<Secret, TokenError> {
    let failed = |source| TokenError::Subject(SubjectError::File { path: path.clone(), source });
    let content = read(&path).await.map_err(failed)?;
    shape.token(&content, || path.display().to_string()).map_err(TokenError::Subject)
}

/// A file's beginning, up to the cap.
pub(super) async fn read(path: &std::path::Path) -> std::io::Result<String> {
    use tokio::io::AsyncReadExt as _;
    let mut content = String::new();
    let file = tokio::fs::File::open(path).await?;
    file.take(LARGEST).read_to_string(&mut content).await?;
    Ok(content)
}

async fn from_url(
    context: &Context,
    url: &str,
    headers: &Headers,
    shape: &Shape,
) -> Result<Secret, TokenError> {
    let mut question = Question::new(&Service::SubjectUrl, Method::GET, url)?;
    for (name, value) in &headers.0 {
        question = question.header(name, value.expose())?;
    }
    let content = context.exchange.ask(&question).await?;
    shape.token(&content, || url.to_owned()).map_err(TokenError::Subject)
}

impl Shape {
    fn token(&self, content: &str, place: impl Fn() -> String) -> Result<Secret, SubjectError> {
        let wrong =
            |reason: &str| SubjectError::Format { place: place(), reason: reason.to_owned() };
        let token = match self {
            Self::Text => content.to_owned(),
            Self::Field(name) => {
                let json: Value =
                    serde_json::from_str(content).map_err(|_| wrong("it is not JSON"))?;
                let token = json.get(name).and_then(Value::as_str);
                token.ok_or_else(|| wrong(&format!("it has no text in `{name}`")))?.to_owned()
            }
        };
        let token = token.trim();
        if token.is_empty() {
            return Err(wrong("the subject token is empty"));
        }
        Ok(Secret::new(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject(json: Value) -> Result<Subject, String> {
        let source = serde_json::from_value(json).map_err(|error| error.to_string())?;
        Subject::new(source).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_one_place_is_named() {
        let url = "http://169.254.169.254/token";
        let json_format = json!({"type": "json", "subject_token_field_name": "t"});
        assert!(matches!(subject(json!({"file": "/t"})), Ok(Subject::File(..))));
        assert!(matches!(
            subject(json!({"url": url, "format": json_format})),
            Ok(Subject::Url(..))
        ));
        for (source, reason) in [
            (json!({}), "names no file"),
            (json!({"file": "/t", "url": url}), "more than one"),
            (json!({"url": "ftp://x"}), "is not a URL"),
            (json!({"certificate": {}}), "X.509"),
            (json!({"file": "/t", "format": {"type": "json"}}), "subject_token_field_name"),
            (json!({"file": "/t", "format": {"type": "xml"}}), "not text or json"),
        ] {
            let refused = subject(source.clone()).unwrap_err();
            assert!(refused.contains(reason), "{source}: {refused}");
        }
    }

    #[test]
    fn a_token_is_text_or_stands_in_a_field() {
        let place = || "there".to_owned();
        let text = Shape::Text;
        assert_eq!(text.token(" t \n", place).unwrap().expose(), "t");
        assert!(text.token(" \n", place).unwrap_err().to_string().contains("empty"));
        let field = Shape::Field("a".to_owned());
        assert_eq!(field.token(r#"{"a":"t"}"#, place).unwrap().expose(), "t");
        for wrong in ["", "t", "{}", r#"{"a":1}"#] {
            let refused = field.token(wrong, place).unwrap_err().to_string();
            assert!(refused.starts_with("there: it"), "{wrong}: {refused}");
        }
    }
}
