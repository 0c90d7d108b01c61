//! Metrics over HTTP, for as many scrapers as there should be: a scraper that is slow, or says nothing, has a bounded part of
//! all.

use super::accept::accepted_format;
use super::address::Address;
use super::socket;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::sys::Stop;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Connections at a time; others wait in the kernel's queue.
const CONNECTIONS: usize = 16;

/// How long a scraper may take to ask.
const ASKING: Duration = Duration::from_secs(5);

/// How long a connection lasts at most, answer included.
const CONNECTION: Duration = Duration::from_secs(30);

/// Bytes of a request at most, and headers.
const REQUEST: usize = 16 << 10;
const HEADERS: usize = 32;

/// After a failure to accept, as when there are too many open files.
const AGAIN: Duration = Duration::from_millis(100);

type Reply = Response<Full<Bytes>>;

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// It is served now.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "listening")]
pub struct Listening {
    address: String,
}

impl Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics are served at {}", self.address)
    }
}

/// Serves until the user asks for the end.
pub fn serve(address: &Address) -> Result<()> {
    let stop = Stop::install()?;
    let fail = |what| move |source: io::Error| Error::System { what, source };
    // Before there are other threads, which the file's mode takes.
    let (unix, _file) = match address {
        Address::Unix(path) => socket::listen(path).map(|(unix, file)| (Some(unix), Some(file)))?,
        Address::Loopback(_) => (None, None),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build()
        .map_err(fail("starting the server"))?;
    let result = runtime.block_on(async {
        let listener = match (address, unix) {
            (Address::Loopback(address), _) => {
                Listener::Tcp(TcpListener::bind(address).await.map_err(|source| {
                    Error::Value(format!("{address}: cannot listen: {source}; choose another port"))
                })?)
            }
            (Address::Unix(_), Some(listener)) => {
                listener.set_nonblocking(true).map_err(fail("setting up the socket"))?;
                let listener = UnixListener::from_std(listener);
                Listener::Unix(listener.map_err(fail("setting up the socket"))?)
            }
            (Address::Unix(_), None) => return Ok(()),
        };
        let address = match &listener {
            Listener::Unix(_) => address.to_string(),
            Listener::Tcp(tcp) => {
                tcp.local_addr().map_err(fail("reading the address"))?.to_string()
            }
        };
        Output::chosen().write(&Listening { address })?;
        let stopped = stopped(stop)?;
        tokio::select! {
            _ = stopped => Ok(()),
            () = accept_all(&listener) => Ok(()),
        }
    });
    // The daemon may not have answered yet.
    runtime.shutdown_background();
    result
}

/// Ends when the user asks for the end: a thread of its own waits for that.
fn stopped(stop: Stop) -> Result<oneshot::Receiver<()>> {
    let (sender, stopped) = oneshot::channel();
    let wait = move || {
        while !stop.requested() {
            let mut fds = [PollFd::new(&stop, PollFlags::IN)];
            // The next look tells why the wait has ended.
            let _ = poll(&mut fds, None);
        }
        // The server may have ended by itself.
        let _ = sender.send(());
    };
    let thread = std::thread::Builder::new().name("stop".into()).spawn(wait);
    thread.map_err(|source| Error::System { what: "starting a thread", source })?;
    Ok(stopped)
}

async fn accept_all(listener: &Listener) {
    let (room, watch) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Watch::default()));
    loop {
        // It is closed never.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let accepted = match listener {
            Listener::Unix(unix) => {
                unix.accept().await.map(|(stream, _)| start(stream, place, &watch))
            }
            Listener::Tcp(tcp) => {
                tcp.accept().await.map(|(stream, _)| start(stream, place, &watch))
            }
        };
        if accepted.is_err() {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn start(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: OwnedSemaphorePermit,
    watch: &Arc<Watch>,
) {
    let watch = watch.clone();
    tokio::spawn(async move {
        let service = service_fn(move |request| answer(request, watch.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(ASKING)
            .max_buf_size(REQUEST)
            .max_headers(HEADERS)
            .keep_alive(false)
            // A scraper that has said all may shut its side down, and still waits for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service);
        // A scraper that goes, or is too slow, is its own matter.
        let _ = tokio::time::timeout(CONNECTION, connection).await;
        drop(place);
    });
}

async fn answer(
    request: Request<Incoming>,
    watch: Arc<Watch>,
) -> std::result::Result<Reply, Infallible> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
        reply.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return Ok(reply);
    }
    if request.uri().path() != "/metrics" {
        return Ok(plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n"));
    }
    let accepted = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = accepted_format(&accepted.collect::<Vec<_>>());
    Ok(match watch.metrics(format).await {
        Ok(text) => with_type(StatusCode::OK, format.content_type(), text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    })
}

fn plain(status: StatusCode, text: impl Into<String>) -> Reply {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

fn with_type(status: StatusCode, content_type: &'static str, text: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}
