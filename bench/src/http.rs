//! A small HTTP/1.1 client: keep-alive, one request at a time, the request's bytes made beforehand,
//! so that the client costs as little as it can beside what it measures.

use std::io;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::sample::Sample;

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of a POST.
pub fn post(port: u16, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    request.into_bytes()
}

/// Sends each of `requests` over and over on a connection of its own for `time`. The first answer
/// of each connection must contain `expected`, all must be a success.
pub async fn load(
    port: u16,
    requests: Vec<Vec<u8>>,
    expected: &str,
    time: Duration,
) -> io::Result<Sample> {
    let mut connections = Vec::new();
    for request in requests {
        let mut connection = Connection::open(port).await?;
        connection.call(&request).await?;
        if memmem::find(connection.body(), expected.as_bytes()).is_none() {
            return Err(io::Error::other("the answer is not the echo of the request"));
        }
        connections.push((connection, request));
    }
    let mut loads = JoinSet::new();
    let begin = Instant::now();
    for (connection, request) in connections {
        loads.spawn(async move { one_caller(connection, &request, begin, time).await });
    }
    let joined = async {
        let mut sample = Sample::default();
        while let Some(ended) = loads.join_next().await {
            sample.join(ended.map_err(io::Error::other)??);
        }
        Ok(sample)
    };
    // One timer for all calls: one for each would wake the client's own runtime each time.
    timeout(time + PATIENCE, joined).await?
}

async fn one_caller(
    mut connection: Connection,
    request: &[u8],
    begin: Instant,
    time: Duration,
) -> io::Result<Sample> {
    let mut latencies = Vec::with_capacity(1 << 16);
    let mut now = begin;
    while now - begin < time {
        connection.succeed(request).await?;
        let answered = Instant::now();
        latencies.push(answered - now);
        now = answered;
    }
    Ok(Sample { elapsed: now - begin, latencies })
}

/// A connection that is kept between requests.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// What was read: the answer's head and body, as on the wire.
    input: Vec<u8>,
    head: usize,
    /// The body put together again, where it came in chunks.
    dechunked: Option<Vec<u8>>,
}

impl Connection {
    /// Connects to a port of this machine.
    pub async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: Vec::with_capacity(1 << 16), head: 0, dechunked: None })
    }

    /// Sends one request and reads the whole answer, which must be a success.
    pub async fn call(&mut self, request: &[u8]) -> io::Result<()> {
        timeout(PATIENCE, self.succeed(request)).await?
    }

    async fn succeed(&mut self, request: &[u8]) -> io::Result<()> {
        match self.exchange(request).await? {
            200..=299 => Ok(()),
            status => Err(io::Error::other(format!(
                "status {status}: {}",
                String::from_utf8_lossy(&self.body()[..self.body().len().min(300)])
            ))),
        }
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        self.dechunked.as_deref().unwrap_or(&self.input[self.head..])
    }

    /// A header of the last answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.input[..self.head], name)
    }

    /// Sends one request and reads the whole answer; its status.
    async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        self.input.clear();
        self.dechunked = None;
        if request.len() < 1 << 15 {
            self.stream.write_all(request).await?;
            return self.answer().await;
        }
        // A server may answer before it has read all: neither side may wait for the other.
        let (mut reader, mut writer) = self.stream.split();
        let (sent, read) =
            tokio::join!(writer.write_all(request), reader.read_buf(&mut self.input));
        sent?;
        if read? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<u16> {
        self.head = self.read_until_found(0, b"\r\n\r\n").await? + 4;
        let head = &self.input[..self.head];
        let status = head.get(9..12).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("not an HTTP answer"))?;
        if header(head, "transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            self.read_chunks().await?;
        } else if let Some(length) = header(head, "content-length") {
            let length: usize = length.parse().map_err(io::Error::other)?;
            self.input.reserve((self.head + length).saturating_sub(self.input.len()));
            while self.input.len() < self.head + length {
                self.read_some().await?;
            }
        }
        Ok(status)
    }

    async fn read_chunks(&mut self) -> io::Result<()> {
        let mut body = Vec::new();
        let mut at = self.head;
        loop {
            let end = self.read_until_found(at, b"\r\n").await?;
            let size = str::from_utf8(&self.input[at..end]).map_err(io::Error::other)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let chunk = end + 2;
            while self.input.len() < chunk + size + 2 {
                self.read_some().await?;
            }
            body.extend_from_slice(&self.input[chunk..chunk + size]);
            at = chunk + size + 2;
            if size == 0 {
                self.dechunked = Some(body);
                return Ok(());
            }
        }
    }

    /// Where `needle` stands at or after `from`, reading until it does.
    async fn read_until_found(&mut self, from: usize, needle: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(found) = memmem::find(&self.input[from..], needle) {
                return Ok(from + found);
            }
            self.read_some().await?;
        }
    }

    async fn read_some(&mut self) -> io::Result<()> {
        if self.input.capacity() - self.input.len() < 1 << 14 {
            self.input.reserve(1 << 16);
        }
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let head = str::from_utf8(head).ok()?;
    head.split("\r\n").skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn answered(answer: &'static str) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 256];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            for piece in answer.as_bytes().chunks(3) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut connection = Connection::open(port).await?;
        connection.call(&post(port, "/", &[], "{}")).await?;
        Ok(connection.body().to_vec())
    }

    #[tokio::test]
    async fn a_body_is_read_by_length_or_by_chunks() {
        let by_length = answered("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
        assert_eq!(by_length.unwrap(), b"hello");
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        assert_eq!(answered(chunked).await.unwrap(), b"hello");
    }

    #[tokio::test]
    async fn an_error_is_told_with_its_body() {
        let error = answered("HTTP/1.1 429 No\r\ncontent-length: 4\r\n\r\nfull").await.unwrap_err();
        assert_eq!(error.to_string(), "status 429: full");
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_an_error() {
        let cut = answered("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel").await;
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
