//! The routes of what-ifs.

use std::collections::btree_map::Entry;
use std::time::Instant;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use axum::{Json, Router};
use operators::Similarity;
use serde::Deserialize;
use serde_json::{Number, Value, json};
use tokio::task::block_in_place;

use super::topic_state::SeenView;
use super::view_thread::Views;
use super::what_ifs::WhatIfRule;
use crate::index_folder::IndexFolder;
use crate::serve::admission::RequestCaller;
use crate::serve::api_error::ApiError;
use crate::serve::route_state::{RouteState, refuse_params};
use crate::view::{name_of_policy, policy_of_index};

/// Returns the routes.
pub(super) fn what_if_routes() -> Router<RouteState> {
    Router::new()
        .route("/topics/{topic}/view/what-if", post(begin))
        .route("/topics/{topic}/view/what-if/{number}", get(look).delete(end))
        .route_layer(from_fn(refuse_params))
}

/// A threshold, a keep order, or both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhatIfBody {
    threshold: Option<Number>,
    policy: Option<String>,
}

impl WhatIfBody {
    /// Returns the rule that the body asks for. Without a policy it is that of the views.
    ///
    /// # Errors
    /// 400 for a body without a rule, a threshold below that of the index, and a policy that an index does not have.
    fn rule(&self, index: &IndexFolder, views: &Views) -> Result<WhatIfRule, ApiError> {
        let bad = |line: String| ApiError::new(StatusCode::BAD_REQUEST, line);
        if self.threshold.is_none() && self.policy.is_none() {
            return Err(bad("a what-if has a \"threshold\", a \"policy\", or both".to_owned()));
        }
        let threshold = self.threshold.as_ref().map(|number| number.to_string().parse::<Similarity>());
        let threshold = threshold.transpose().map_err(|error| bad(format!("threshold: {error}")))?;
        if let Some(threshold) = threshold {
            let least = index.settings.least_similarity().map_err(|error| ApiError::failed(&error))?;
            let least = least.ok_or_else(|| bad("the index measures no similarity".to_owned()))?;
            if threshold < least {
                return Err(bad(format!("the index finds matches from {least} on, and none below")));
            }
        }
        let policy = self.policy.as_deref().map_or(Ok(views.policy.clone()), policy_of_index);
        let policy = policy.map_err(|error| bad(format!("policy: {error}")))?;
        if !index.settings.texts && policy != views.policy {
            let line = "the index keeps no texts, so the matches of documents that stay are known alone: index view decides in another order";
            return Err(bad(line.to_owned()));
        }
        Ok(WhatIfRule { least: threshold, policy })
    }
}

async fn begin(
    State(shared): State<RouteState>,
    Path(topic): Path<String>,
    Extension(caller): Extension<RequestCaller>,
    Json(body): Json<WhatIfBody>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (state, views) = shared.view(&caller, &topic)?;
    let rule = shared.index.read(|index| body.rule(index, views))?;
    let begun = views.what_if(&topic, rule).await;
    let status = if state.has_ended() { StatusCode::CONFLICT } else { StatusCode::TOO_MANY_REQUESTS };
    let number = begun.map_err(|why| ApiError::new(status, why))?;
    block_in_place(|| Ok((StatusCode::CREATED, Json(what_if(&state.seen.read(), number)?))))
}

async fn look(
    State(shared): State<RouteState>,
    Path((topic, number)): Path<(String, u64)>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<Json<Value>, ApiError> {
    let (state, _) = shared.view(&caller, &topic)?;
    if let Some(asked) = state.seen.write().what_ifs.get_mut(&number) {
        asked.asked = Instant::now();
    }
    block_in_place(|| Ok(Json(what_if(&state.seen.read(), number)?)))
}

async fn end(
    State(shared): State<RouteState>,
    Path((topic, number)): Path<(String, u64)>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<StatusCode, ApiError> {
    let (state, views) = shared.view(&caller, &topic)?;
    match state.seen.write().what_ifs.entry(number) {
        Entry::Vacant(_) => return Err(no_what_if()),
        Entry::Occupied(ended) => _ = ended.remove(),
    }
    views.end_unwanted();
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a what-if as JSON.
fn what_if(seen: &SeenView, number: u64) -> Result<Value, ApiError> {
    let what_if = seen.what_ifs.get(&number).ok_or_else(no_what_if)?;
    let counts = what_if.set.counts();
    Ok(json!({
        "what_if": number,
        "version": seen.version,
        "threshold": what_if.rule.least.map(Similarity::as_f64),
        "policy": name_of_policy(&what_if.rule.policy),
        "documents": what_if.set.documents,
        "kept": what_if.set.kept(),
        "clusters": counts.clusters,
        "largest": counts.largest,
        "would_stay": what_if.would_stay.len(),
        "would_go": what_if.would_go.len(),
        // Matches of those that were led with documents that do not stay are not known.
        "exact": seen.led == 0 && seen.cut == 0,
    }))
}

fn no_what_if() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "there is no such what-if, or nobody has asked for it for ten minutes",
    )
}
