//! An axum handler that reads the body of a call and answers it at once, with no server behind it:
//! what no HTTP bridge can be faster than. Prints its port.

use std::borrow::Cow;
use std::io::{self, Write as _};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Router, serve};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "read, as a bridge has to read it")]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Serialize)]
struct Answer<'a> {
    result: &'a RawValue,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    let routes = Router::new().route("/call", post(call)).layer(DefaultBodyLimit::disable());
    serve(listener, routes).await
}

async fn call(body: Bytes) -> Response {
    let Ok(call) = serde_json::from_slice::<Call<'_>>(&body) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    match serde_json::to_vec(&Answer { result: call.params }) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
