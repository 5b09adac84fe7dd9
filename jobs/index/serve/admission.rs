//! Lets requests in: not too many at a time, not for too long, and only with a token if there are tokens.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time;

use super::api_error::ApiError;
use super::args::ServeArgs;
use super::bodies::{RequestRoom, read_body};
use super::deadline::{Closing, Deadline};
use super::tokens::{ClientToken, Tokens};
use runtime::Common;

/// Sender of a request: the owner of a token, or anyone where there are no tokens.
#[derive(Clone)]
pub(super) struct RequestCaller(Option<Arc<ClientToken>>);

impl RequestCaller {
    /// Returns the name of the token.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|token| &*token.name)
    }

    /// Whether the topic is one of the caller's.
    pub fn sees(&self, topic: &str) -> bool {
        self.0.as_ref().is_none_or(|token| token.allows(topic))
    }

    /// # Errors
    /// 403 if the token is not for this topic, or not for changes.
    pub fn check(&self, topic: &str, writes: bool) -> Result<(), ApiError> {
        if !self.sees(topic) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "the token is not for this topic"));
        }
        if writes && !self.0.as_ref().is_none_or(|token| token.writes()) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "the token is for queries alone"));
        }
        Ok(())
    }

    /// Counts documents against the rate of the token.
    ///
    /// # Errors
    /// 429 when there are too many.
    pub fn take(&self, documents: usize) -> Result<(), ApiError> {
        let taken = self.0.as_ref().map_or(Ok(()), |token| token.take(documents));
        let line = "the token allows no more documents for now";
        taken.map_err(|seconds| ApiError::later(StatusCode::TOO_MANY_REQUESTS, line, seconds))
    }
}

/// Time after that of a request within which an answer comes, unless the disk or another request holds it up.
const TIME_TO_ANSWER: Duration = Duration::from_secs(5);

/// Checks of each request before the work for it.
#[derive(Clone)]
pub(super) struct Admission {
    room: RequestRoom,
    tokens: Option<Arc<Tokens>>,
    timeout: Duration,
    max_body: u64,
    closing: Closing,
}

impl Admission {
    /// Reads the tokens. `closing`: the end of the server.
    pub fn new(args: &ServeArgs, closing: &Closing, common: &Common) -> Result<Self> {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (max_body, max_bodies) = (bytes(args.max_body), bytes(args.max_bodies.max(args.max_body)));
        // A body of the largest size must fit into the share of a token.
        let share = || RequestRoom::new(args.max_requests.div_ceil(2), (max_bodies / 2).max(max_body));
        let tokens = args.tokens.as_deref().map(|path| Tokens::read(path, share, common)).transpose()?;
        Ok(Admission {
            room: RequestRoom::new(args.max_requests, max_bodies),
            tokens: tokens.map(Arc::new),
            timeout: args.timeout(),
            max_body: args.max_body,
            closing: closing.clone(),
        })
    }

    fn caller(&self, headers: &HeaderMap) -> Result<RequestCaller, ApiError> {
        let Some(tokens) = &self.tokens else { return Ok(RequestCaller(None)) };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        // The name of a scheme has no case (RFC 9110, section 11.1).
        let credentials = given.and_then(|given| given.split_once(' '));
        let token = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = token.and_then(|(_, token)| tokens.find(token));
        let unknown = || {
            ApiError::new(StatusCode::UNAUTHORIZED, "a known token is wanted: Authorization: Bearer TOKEN")
        };
        token.map(|token| RequestCaller(Some(Arc::clone(token)))).ok_or_else(unknown)
    }
}

/// Answers a request, unless its token is unknown, its body is too large or slow, there are too many requests, or it takes too
/// long. A request takes its place when its body is there, so slow clients keep nobody out.
pub(super) async fn admit(
    State(admission): State<Admission>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let deadline = Deadline::after(admission.timeout, &admission.closing);
    let caller = admission.caller(request.headers())?;
    let share = caller.0.as_ref().and_then(|token| token.share.as_ref());
    let (parts, body) = request.into_parts();
    let mut taken = Vec::new();
    let rooms: Vec<&RequestRoom> = share.into_iter().chain([&admission.room]).collect();
    let body = read_body(body, admission.max_body, &rooms, &deadline, &mut taken).await?;
    if share.is_some_and(|share| !share.take_request(&mut taken)) {
        let line = "the token has too many requests under way";
        return Err(ApiError::later(StatusCode::TOO_MANY_REQUESTS, line, 1));
    }
    if !admission.room.take_request(&mut taken) {
        return Err(ApiError::busy("too many requests are under way"));
    }
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(deadline);
    let answer = time::timeout(admission.timeout.saturating_add(TIME_TO_ANSWER), next.run(request)).await;
    let line = "the request took too long; whether a change was made is not known";
    let mut response = answer.map_err(|_| ApiError::new(StatusCode::REQUEST_TIMEOUT, line))?;
    response.extensions_mut().insert(caller);
    Ok(response)
}
