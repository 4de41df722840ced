//! The smallest pump from stdio to Streamable HTTP: each line is a POST to `127.0.0.1:PORT/mcp`
//! on a connection that is kept, each answer a line. No credentials, no sessions, no errors told:
//! what a proxy that does all this can be measured against.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use cofer_bench::http::{self, Connection};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> io::Result<()> {
    let port: u16 =
        std::env::args().nth(1).unwrap_or_default().parse().map_err(io::Error::other)?;
    let idle = Arc::new(Mutex::new(Vec::<Connection>::new()));
    let (answers, mut outbox) = mpsc::channel::<Vec<u8>>(256);
    let mut tasks = JoinSet::new();
    let mut out = Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    tasks.spawn(async move {
        let mut batch = Vec::new();
        while outbox.recv_many(&mut batch, 64).await > 0 {
            out.write_all(&batch.concat()).await?;
            batch.clear();
        }
        Ok(())
    });
    let input = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut lines = BufReader::with_capacity(1 << 16, input).lines();
    while let Some(line) = lines.next_line().await? {
        let (idle, answers) = (Arc::clone(&idle), answers.clone());
        tasks.spawn(async move {
            let free = idle.lock().await.pop();
            let mut connection = match free {
                Some(connection) => connection,
                None => Connection::open(port).await?,
            };
            let accept = [("Accept", "application/json, text/event-stream")];
            connection.call(&http::post(port, "/mcp", &accept, &line)).await?;
            if !connection.body().is_empty() {
                let answer = [connection.body(), b"\n"].concat();
                answers.send(answer).await.map_err(io::Error::other)?;
            }
            idle.lock().await.push(connection);
            Ok::<(), io::Error>(())
        });
        while tasks.try_join_next().is_some() {}
    }
    drop(answers);
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}
