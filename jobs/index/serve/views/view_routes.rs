//! The routes of the views.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use axum::body::Body;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use operators::{DocId, Reason};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::feed::feed;
use super::topic_state::{TopicState, ViewProgress};
use super::view_thread::Views;
use super::what_if_routes::what_if_routes;
use crate::serve::admission::RequestCaller;
use crate::serve::api_error::ApiError;
use crate::serve::route_state::{JSON_LINES, RouteState, refuse_params};
use crate::topics::TopicReader;
use crate::view::similarity;

/// Largest number of clusters of an answer.
const MOST_CLUSTERS: usize = 1000;

/// Returns the routes.
pub(in crate::serve) fn view_routes() -> Router<RouteState> {
    Router::new()
        .route("/topics/{topic}/view", get(view))
        .route("/topics/{topic}/view/documents/{id}", get(document))
        .route("/topics/{topic}/view/clusters/{id}", get(cluster))
        .route("/topics/{topic}/view/kept", get(kept))
        .route_layer(from_fn(refuse_params))
        .route("/topics/{topic}/view/clusters", get(clusters))
        .route("/topics/{topic}/view/changes", get(changes))
        .merge(what_if_routes())
}

impl RouteState {
    /// Returns the view of a topic, and the views of the server.
    ///
    /// # Errors
    /// 404 for a topic that is not there, and for a server without views; 503 while the view is being made; 409 if there is none.
    pub(super) fn view(
        &self,
        caller: &RequestCaller,
        topic: &str,
    ) -> Result<(Arc<TopicState>, &Views), ApiError> {
        self.check(caller, topic, false)?;
        let views = self.index.views();
        let views = views.ok_or_else(|| {
            ApiError::new(StatusCode::NOT_FOUND, "there are no views: the server needs --view")
        })?;
        if self.index.read(|index| index.topic(topic).is_none_or(|topic| topic.end_of_shown() == 0)) {
            return Err(ApiError::new(StatusCode::NOT_FOUND, "there is no such topic"));
        }
        let state = views.of(topic);
        let progress = state.seen.read().progress.clone();
        match progress {
            ViewProgress::Ready => Ok((state, views)),
            ViewProgress::Begun => Err(ApiError::busy("the view is being made: come back later")),
            ViewProgress::Building(done, all) => {
                Err(ApiError::busy(&format!("the view is being made: {done} of {all} documents are read")))
            }
            ViewProgress::Ended(end) => Err(ApiError::new(StatusCode::CONFLICT, end.why)),
        }
    }

    /// Returns the ids of documents; `None` for one that has gone since.
    fn ids(&self, topic: &str, docs: &[DocId]) -> Result<Vec<Option<String>>, ApiError> {
        let shown = self.shown_docs(topic, docs, 0)?.into_iter();
        Ok(shown.map(|shown| shown.map(|(id, _)| id)).collect())
    }

    /// Returns the ids of documents and the beginnings of their texts, of `chars` characters; `None` for one that has gone since.
    fn shown_docs(
        &self,
        topic: &str,
        docs: &[DocId],
        chars: usize,
    ) -> Result<Vec<Option<(String, String)>>, ApiError> {
        let shown = self.index.read(|index| {
            let Some(topic) = index.topic(topic) else { return Ok(vec![None; docs.len()]) };
            let mut reader = TopicReader::new(topic)?;
            let shown = docs.iter().map(|doc| {
                let Some(doc) = reader.doc(doc.0)? else { return Ok(None) };
                let text = if chars > 0 { reader.text(doc.text)? } else { String::new() };
                Ok(Some((doc.id, text.chars().take(chars).collect())))
            });
            shown.collect::<Result<_>>()
        });
        shown.map_err(|error| ApiError::failed(&error))
    }

    /// Returns the documents with an id, in order.
    fn docs(&self, topic: &str, id: &str) -> Result<Vec<DocId>, ApiError> {
        let ids = BTreeSet::from([id.to_owned()]);
        let numbers = self.index.read(|index| index.numbers_with_ids(topic, &ids));
        let mut docs: Vec<DocId> =
            numbers.map_err(|error| ApiError::failed(&error))?.into_iter().map(DocId).collect();
        docs.sort_unstable();
        match docs.is_empty() {
            true => Err(no_document()),
            false => Ok(docs),
        }
    }

    /// Returns a cluster as JSON: the document that stays, and those that go for it.
    fn cluster(
        &self,
        topic: &str,
        (kept, members): (DocId, Vec<(DocId, Reason)>),
    ) -> Result<Value, ApiError> {
        let docs: Vec<DocId> = [kept].into_iter().chain(members.iter().map(|(doc, _)| *doc)).collect();
        let ids = self.ids(topic, &docs)?;
        let removed = ids[1..].iter().zip(&members);
        let removed = removed.map(|(id, (_, tie))| json!({ "id": id, "similarity": similarity(*tie) }));
        Ok(json!({ "id": ids[0], "members": docs.len(), "removed": removed.collect::<Vec<_>>() }))
    }
}

fn no_document() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no document of this version has this id")
}

async fn view(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Json<Value>, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let is_unverified = shared.index.read(|index| index.is_unverified());
    block_in_place(|| {
        let seen = state.seen.read();
        let counts = seen.set.counts();
        Ok(Json(json!({
            "version": seen.version,
            "documents": seen.set.documents,
            "kept": seen.set.kept(),
            "clusters": counts.clusters,
            "largest": counts.largest,
            "cut": seen.cut,
            "unverified": is_unverified,
            "behind": seen.behind,
        })))
    })
}

/// Answers for each document with an id.
async fn document(
    State(shared): State<RouteState>,
    Path((topic, id)): Path<(String, String)>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Json<Value>, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let docs = shared.docs(&topic, &id)?;
    // The index is never waited for while a view is read: the thread of the views waits for both the other way round.
    let (version, decided) = {
        let seen = state.seen.read();
        let decided = docs.into_iter().filter(|doc| doc.0 < seen.end).map(|doc| {
            let removed = seen.set.removed(doc);
            let kept = removed.map_or(doc, |removed| removed.duplicate_of);
            (removed, kept, seen.set.members(kept).count() + 1)
        });
        (seen.version, decided.collect::<Vec<_>>())
    };
    if decided.is_empty() {
        return Err(no_document());
    }
    let names = shared.ids(&topic, &decided.iter().map(|(_, kept, _)| *kept).collect::<Vec<_>>())?;
    let documents = decided.iter().zip(names).map(|((removed, _, members), kept)| {
        let mut document = json!({ "kept": removed.is_none(), "cluster": kept, "members": members });
        if let Some(removed) = removed {
            document["duplicate_of"] = json!(kept);
            document["similarity"] = json!(similarity(removed.tie));
        }
        document
    });
    let documents: Vec<Value> = documents.collect();
    Ok(Json(json!({ "version": version, "id": id, "documents": documents })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterParams {
    /// Least number of documents of a cluster.
    #[serde(default)]
    least: usize,
    /// Largest number of clusters.
    limit: Option<usize>,
    /// Largest number of characters of a text that are shown of the document that stays.
    #[serde(default)]
    texts: usize,
}

async fn clusters(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Query(params): Query<ClusterParams>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Json<Value>, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let limit = params.limit.unwrap_or(10);
    if limit > MOST_CLUSTERS {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, format!("the limit is at most {MOST_CLUSTERS}")));
    }
    block_in_place(|| {
        let (version, clusters) = {
            let seen = state.seen.read();
            (seen.version, seen.set.clusters())
        };
        let large = clusters.partition_point(|(size, _)| *size >= params.least);
        let shown = &clusters[..large.min(limit)];
        let kept: Vec<DocId> = shown.iter().map(|(_, kept)| *kept).collect();
        let mut listed = Vec::new();
        for ((size, _), doc) in shown.iter().zip(shared.shown_docs(&topic, &kept, params.texts)?) {
            let (id, text) = doc.unzip();
            let mut cluster = json!({ "id": id, "members": size });
            if params.texts > 0 {
                cluster["text"] = json!(text);
            }
            listed.push(cluster);
        }
        Ok(Json(json!({ "version": version, "clusters": listed, "more": large - listed.len() })))
    })
}

async fn cluster(
    State(shared): State<RouteState>,
    Path((topic, id)): Path<(String, String)>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Json<Value>, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let docs = shared.docs(&topic, &id)?;
    block_in_place(|| {
        let (version, clusters) = {
            let seen = state.seen.read();
            let kept = |doc: &DocId| seen.set.removed(*doc).map_or(*doc, |of| of.duplicate_of);
            let docs = docs.iter().filter(|doc| doc.0 < seen.end);
            let kept: BTreeSet<DocId> = docs.map(kept).collect();
            let clusters = kept.into_iter().map(|kept| (kept, seen.set.members(kept).collect()));
            (seen.version, clusters.collect::<Vec<_>>())
        };
        if clusters.is_empty() {
            return Err(no_document());
        }
        let clusters = clusters.into_iter().map(|of| shared.cluster(&topic, of));
        let clusters = clusters.collect::<Result<Vec<_>, _>>()?;
        Ok(Json(json!({ "version": version, "clusters": clusters })))
    })
}

/// Answers with the ids of all documents that stay, as JSON lines behind one with the version.
async fn kept(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Response, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let lines = block_in_place(|| {
        shared.index.read(|index| {
            // A version is published while the index is read, so the two belong together, but for changes that wait: of those
            // that the feed will tell of, what has come is left out.
            let seen = state.seen.read();
            let mut lines = json!({ "version": seen.version }).to_string() + "\n";
            let Some(topic) = index.topic(&topic) else { return anyhow::Ok(lines) };
            TopicReader::new(topic)?.each_doc(|doc| {
                if doc.number < seen.end && seen.set.removed(DocId(doc.number)).is_none() {
                    lines += &(json!({ "id": doc.id, "number": doc.number }).to_string() + "\n");
                }
                Ok(())
            })?;
            Ok(lines)
        })
    });
    let lines = lines.map_err(|error| ApiError::failed(&error))?;
    Ok(([(CONTENT_TYPE, JSON_LINES)], Body::from(lines)).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangesParams {
    since: Option<u64>,
}

async fn changes(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Query(params): Query<ChangesParams>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Response, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    let since = {
        let seen = state.seen.read();
        let since = params.since.unwrap_or(seen.version);
        if since < seen.feed_from || since > seen.version {
            let line = format!(
                "changes are kept from version {} to {}: begin with /topics/{topic}/view/kept",
                seen.feed_from, seen.version
            );
            return Err(ApiError::new(StatusCode::GONE, line));
        }
        since
    };
    let body = feed(state, since, shared.index.closing());
    Ok(([(CONTENT_TYPE, JSON_LINES)], body).into_response())
}
