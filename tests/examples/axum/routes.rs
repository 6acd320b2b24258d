//! The routes of the program: one that it has already, and `/mcp` beside it.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use hyper::body::{Body as _, Frame};
use mcp_driver::{Exchange, Gateway, Job, Part, Service, Task};
use mcp_proto::exchange::{Headers, Peer, RequestHead};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::task::spawn_blocking;

/// Returns the routes. Serve them with `ConnectInfo`: the engine has to know its clients.
pub(crate) fn routes(service: impl Into<Service>) -> io::Result<Router> {
    let Service { router, options } = service.into();
    let (gateway, driving) = Gateway::begin(router, options)?;
    tokio::spawn(driving.run(|time| Box::pin(tokio::time::sleep(time)), carry_out));
    Ok(Router::new().route("/health", get(|| async { "fine" })).route("/mcp", any(exchange)).with_state(gateway))
}

fn carry_out(task: Task) {
    match task {
        Task::Route(routing) => match routing.route() {
            Some(Job::Async(job)) => drop(tokio::spawn(job)),
            Some(Job::Sync(job)) => drop(spawn_blocking(|| job.run())),
            None => {}
        },
        Task::Deliver(events) => events.deliver(),
        Task::Open(..) | Task::Drive(..) | Task::Ended => {}
    }
}

/// Passes a request to the engine, and returns its response.
async fn exchange(State(gateway): State<Gateway>, peer: ConnectInfo<SocketAddr>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let mut headers = Headers::new();
    for (name, value) in &parts.headers {
        headers.push(name.as_str(), value.as_bytes().iter().map(|&byte| char::from(byte)).collect::<String>());
    }
    let head = RequestHead { method: parts.method.to_string().into(), target: parts.uri.to_string().into(), headers };
    let mut exchange = gateway.begin_exchange(Peer::tcp(peer.0), head);
    // Until there is a response: then the rest of the body is not needed.
    let mut more = exchange.wants_body().await;
    while more {
        more = match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => exchange.body(frame.into_data().unwrap_or_default()),
            // The client has disconnected: dropping the exchange reports that.
            Some(Err(_)) => return Response::default(),
            None => {
                exchange.end();
                false
            }
        };
    }
    let Part::Head(head, full) = exchange.part().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let response = Response::builder().status(head.status);
    let response = head.headers.iter().fold(response, |response, (name, value)| response.header(name, value));
    response.body(full.map_or_else(|| Body::new(Answer(exchange)), Body::from)).unwrap_or_default()
}

/// A response that is written over time. The framework drops it when the client has disconnected.
struct Answer(Exchange);

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match ready!(self.0.poll_part(cx)) {
            Part::Bytes(bytes) => Some(Ok(Frame::data(bytes))),
            Part::End => None,
            Part::Head(..) | Part::Cut => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }
}
