//! The routes of a served index.

use std::sync::Arc;

use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{delete as delete_method, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::admission::{Admission, RequestCaller, admit};
use super::api_error::{ApiError, refuse_as_json};
use super::args::ServeArgs;
use super::changes::WriteRequest;
use super::deadline::Deadline;
use super::export_stream::export_stream;
use super::hosts::{HostNames, check_host};
use super::observe::{Observer, observe};
use super::route_state::{JSON_LINES, RouteState, refuse_params};
use super::served_index::{RequestDoc, ServedIndex};
use super::views::view_routes;
use crate::query::QueryLimits;
use crate::topics::PreparedDoc;
use runtime::clock::seconds_now;

/// Largest number of matches that a request may ask for.
const MOST_MATCHES: usize = 1000;

/// Joins routes and handlers.
pub(super) fn router(
    index: Arc<ServedIndex>,
    admission: Admission,
    observer: Arc<Observer>,
    hosts: HostNames,
    args: &ServeArgs,
) -> Router {
    let shared = RouteState { index, observer: Arc::clone(&observer), max_batch: args.max_batch };
    let without_params = Router::new()
        .route("/topics", get(topics))
        .route("/topics/{topic}", delete_method(drop_topic))
        .route("/topics/{topic}/documents", get(documents))
        .route("/topics/{topic}/insert", post(insert))
        .route("/topics/{topic}/delete", post(delete))
        .route("/topics/{topic}/expire", post(expire))
        .route("/metrics", get(metrics))
        .route_layer(from_fn(refuse_params));
    let admitted = without_params
        .route("/topics/{topic}/query", post(query))
        .route("/topics/{topic}/query-insert", post(query_and_insert))
        .merge(view_routes())
        // The admission has read the body by then.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(admission, admit));
    admitted
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .layer(from_fn_with_state(hosts, check_host))
        .layer(from_fn(refuse_as_json))
        .layer(from_fn_with_state(observer, observe))
        .with_state(shared)
}

/// Documents of a request, prepared, and whether the answer is to be JSON lines.
struct Asked {
    docs: Vec<PreparedDoc>,
    is_batch: bool,
}

impl RouteState {
    /// Reads one JSON document, or JSON lines, and prepares them.
    fn documents(&self, caller: &RequestCaller, headers: &HeaderMap, body: &[u8]) -> Result<Asked, ApiError> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_batch = kind.eq_ignore_ascii_case(JSON_LINES);
        // Pages of other sites cannot send these types, so they cannot use a server of this machine.
        if !is_batch && !kind.eq_ignore_ascii_case("application/json") {
            let line = format!("the content type must be application/json or {JSON_LINES}");
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, line));
        }
        let parse = |line: &[u8], number: usize| {
            serde_json::from_slice::<RequestDoc>(line)
                .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, format!("line {number}: {error}")))
        };
        let docs: Vec<RequestDoc> = match is_batch {
            false => vec![parse(body, 1)?],
            true => {
                let lines = (1..).zip(body.split(|byte| *byte == b'\n'));
                let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
                lines.map(|(number, line)| parse(line, number)).collect::<Result<_, _>>()?
            }
        };
        if docs.len() > self.max_batch {
            let line = format!("a request has at most {} documents", self.max_batch);
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, line));
        }
        caller.take(docs.len())?;
        self.observer.count_documents(docs.len());
        Ok(Asked { docs: self.index.prepare(&docs), is_batch })
    }
}

/// Limits of an answer: the number of its matches, and how near they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitParams {
    limit: Option<usize>,
    within: Option<u32>,
}

impl RouteState {
    /// Returns the limits that a request asks for.
    ///
    /// # Errors
    /// 400 for a distance of fingerprints that the method does not have, and for too many matches.
    fn limits(&self, params: &LimitParams) -> Result<QueryLimits, ApiError> {
        let limits = QueryLimits { matches: params.limit.unwrap_or(10), within: params.within };
        if limits.matches > MOST_MATCHES {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                format!("the limit is at most {MOST_MATCHES}"),
            ));
        }
        let checked = self.index.read(|index| index.check_limits(limits));
        checked.map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        Ok(limits)
    }
}

/// Returns one JSON object, or JSON lines.
fn answer(answers: &[impl Serialize], is_batch: bool) -> Result<Response, ApiError> {
    let mut lines = Vec::new();
    for answer in answers {
        serde_json::to_writer(&mut lines, answer).map_err(|error| ApiError::failed(&error.into()))?;
        lines.push(b'\n');
    }
    let kind = if is_batch { JSON_LINES } else { "application/json" };
    Ok(([(CONTENT_TYPE, kind)], Body::from(lines)).into_response())
}

/// Number of bytes of a body from which on the work for it keeps no other request waiting.
const LONG_BODY: usize = 1 << 14;

/// Does the work of a request with this body. That of several documents, or of a long one, keeps no other request waiting; for
/// a short one, to hand the other requests of the thread over to another one would take about as long as the query.
fn work_on<T>(body: &[u8], work: impl FnOnce() -> T) -> T {
    let is_long = body.len() >= LONG_BODY || body.trim_ascii_end().contains(&b'\n');
    if is_long { block_in_place(work) } else { work() }
}

async fn query(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Query(params): Query<LimitParams>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    shared.check(&caller, &topic, false)?;
    let limits = shared.limits(&params)?;
    work_on(&body, || {
        let Asked { docs, is_batch } = shared.documents(&caller, &headers, &body)?;
        let answers =
            shared.index.query(&topic, &docs, limits, &deadline).map_err(|error| ApiError::failed(&error))?;
        let too_slow = || ApiError::new(StatusCode::REQUEST_TIMEOUT, "the time of the request was over");
        answer(&answers.ok_or_else(too_slow)?, is_batch)
    })
}

async fn query_and_insert(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Query(params): Query<LimitParams>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    shared.check(&caller, &topic, true)?;
    let limits = shared.limits(&params)?;
    let Asked { docs, is_batch } = work_on(&body, || shared.documents(&caller, &headers, &body))?;
    let done = shared.index.write(topic, WriteRequest::QueryAndInsert { docs, limits }, deadline).await;
    let done = done.map_err(|refused| ApiError::of_change(refused, "answers"))?;
    answer(&done.answers, is_batch)
}

async fn insert(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    shared.check(&caller, &topic, true)?;
    let Asked { docs, .. } = work_on(&body, || shared.documents(&caller, &headers, &body))?;
    change(&shared, topic, (WriteRequest::Insert { docs }, "inserted"), deadline).await
}

/// Ids of documents that are to be deleted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteBody {
    ids: Vec<String>,
}

async fn delete(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
    Json(DeleteBody { mut ids }): Json<DeleteBody>,
) -> Result<Json<Value>, ApiError> {
    shared.check(&caller, &topic, true)?;
    caller.take(ids.len())?;
    ids.sort_unstable();
    ids.dedup();
    change(&shared, topic, (WriteRequest::Delete { ids }, "deleted"), deadline).await
}

/// Age of documents that are to expire.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpireBody {
    /// Seconds.
    older_than: u64,
}

async fn expire(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
    Json(body): Json<ExpireBody>,
) -> Result<StatusCode, ApiError> {
    shared.check(&caller, &topic, true)?;
    let before = seconds_now().saturating_sub(body.older_than);
    let expired = change(&shared, topic, (WriteRequest::Expire { before }, "expired"), deadline).await;
    expired.map(|_| StatusCode::NO_CONTENT)
}

async fn drop_topic(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
    Extension(deadline): Extension<Deadline>,
) -> Result<Json<Value>, ApiError> {
    shared.check(&caller, &topic, true)?;
    change(&shared, topic, (WriteRequest::Drop, "dropped"), deadline).await
}

/// Makes a change of a topic, and answers with the number that it counts.
async fn change(
    shared: &RouteState,
    topic: String,
    (request, counted): (WriteRequest, &str),
    deadline: Deadline,
) -> Result<Json<Value>, ApiError> {
    let done = shared.index.write(topic, request, deadline).await;
    let done = done.map_err(|refused| ApiError::of_change(refused, counted))?;
    Ok(Json(json!({ counted: done.count })))
}

async fn topics(
    State(shared): State<RouteState>,
    Extension(caller): Extension<RequestCaller>,
) -> Json<Value> {
    let topics: Vec<Value> = shared.index.read(|index| {
        let seen = index.topics.values().filter(|topic| topic.end_of_shown() > 0 && caller.sees(&topic.name));
        let numbers = |topic: &crate::topics::Topic| {
            let bytes: u64 = topic.segments.iter().map(|segment| segment.entry.bytes()).sum();
            let name = &topic.name;
            let segments = topic.segments.len();
            let in_memory = topic.memory_bytes();
            json!({ "name": name, "segments": segments, "bytes": bytes, "bytes_in_memory": in_memory })
        };
        seen.map(numbers).collect()
    });
    Json(json!({ "topics": topics }))
}

async fn documents(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Response, ApiError> {
    shared.check(&caller, &topic, false)?;
    if shared.index.read(|index| index.topic(&topic).is_none_or(|topic| topic.end_of_shown() == 0)) {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "there is no such topic"));
    }
    Ok(([(CONTENT_TYPE, JSON_LINES)], export_stream(shared.index, topic)).into_response())
}

async fn metrics(State(shared): State<RouteState>) -> Response {
    let is_ready = shared.index.check_ready().is_ok();
    let text = shared.index.read(|index| shared.observer.metrics(index, is_ready));
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn readyz(State(shared): State<RouteState>) -> Result<&'static str, ApiError> {
    let ready = shared.index.check_ready();
    ready.map(|()| "ready\n").map_err(|line| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, line))
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], include_str!("openapi.json")).into_response()
}
