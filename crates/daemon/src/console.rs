//! What a browser is shown: one static page that says the daemon runs and how to use it.
//! It holds no data, wants no token and runs no script.

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::IntoResponse;
use axum::routing::get;

const PAGE: &str = include_str!("console/index.html");
const STYLE: &str = include_str!("console/console.css");
/// The page may load its own style sheet, and nothing else may happen in it.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// `/` and the files it needs.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(async || file("text/html; charset=utf-8", PAGE)))
        .route("/assets/console.css", get(async || file("text/css; charset=utf-8", STYLE)))
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::extract::Request;
    use http_body_util::BodyExt as _;
    use std::sync::Arc;
    use tower::ServiceExt as _;

    async fn get_file(path: &str) -> (u16, axum::http::HeaderMap, String) {
        let token = crate::token::Token::random().unwrap();
        let guard = crate::guard::Guard::new("127.0.0.1:8787".parse().unwrap(), token);
        let routes = crate::api::protect(routes(), Arc::new(guard));
        let request = Request::get(path).header("host", "localhost:8787");
        let answer = routes.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        (parts.status.as_u16(), parts.headers, text)
    }

    #[tokio::test]
    async fn the_page_and_all_it_refers_to_are_there_without_a_token() {
        let (status, headers, page) = get_file("/").await;
        assert_eq!(
            (status, &headers[CONTENT_TYPE]),
            (200, &"text/html; charset=utf-8".parse().unwrap())
        );
        let references: Vec<&str> =
            page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!references.is_empty());
        for reference in references {
            assert_eq!(get_file(reference).await.0, 200, "{reference}");
        }
    }

    #[tokio::test]
    async fn nothing_on_the_page_can_run() {
        let (_, headers, page) = get_file("/").await;
        assert_eq!(headers.get_all(CONTENT_SECURITY_POLICY).iter().count(), 1);
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"), "{policy}");
        assert!(
            !page.contains("<script") && !page.contains("style=") && !page.contains(" on"),
            "{page}"
        );
    }
}
