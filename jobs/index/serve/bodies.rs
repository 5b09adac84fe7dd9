//! Reads the bodies of requests: no more bytes at a time than there is room for, and from no client that sends too slowly.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::api_error::ApiError;
use super::deadline::Deadline;

/// Time in which at least [`LEAST_BYTES`] of a body arrive, unless it ends.
const WINDOW: Duration = Duration::from_secs(5);
/// Bytes: 8 KiB for each second of [`WINDOW`].
const LEAST_BYTES: usize = (WINDOW.as_secs() << 13) as usize;

/// Room for requests that are worked on, and for bytes of bodies from when they arrive to the answer. The server has one,
/// and each token has half of it, so that no client takes all.
#[derive(Clone)]
pub(super) struct RequestRoom {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// Share of the rooms, which is given back when this is dropped.
pub(super) type RoomTaken = Vec<OwnedSemaphorePermit>;

impl RequestRoom {
    /// Makes room. Larger numbers than can be counted mean as much as can be.
    pub fn new(requests: usize, bytes: usize) -> Self {
        let semaphore = |size: usize| Arc::new(Semaphore::new(size.min(Semaphore::MAX_PERMITS)));
        RequestRoom { requests: semaphore(requests), bytes: semaphore(bytes) }
    }

    /// Takes the place of a request. Returns whether there was one.
    pub fn take_request(&self, taken: &mut RoomTaken) -> bool {
        let place = Arc::clone(&self.requests).try_acquire_owned();
        let is_taken = place.is_ok();
        taken.extend(place);
        is_taken
    }

    fn take_bytes(&self, bytes: usize, taken: &mut RoomTaken) -> bool {
        let Ok(bytes) = u32::try_from(bytes) else { return false };
        match Arc::clone(&self.bytes).try_acquire_many_owned(bytes) {
            Ok(more) => {
                // Parts of one room are kept as one.
                let of_room = taken.iter_mut().find(|part| Arc::ptr_eq(part.semaphore(), &self.bytes));
                match of_room {
                    Some(part) => part.merge(more),
                    None => taken.push(more),
                }
                true
            }
            Err(_) => false,
        }
    }
}

/// Reads a body, and takes room for its bytes as they arrive. `rooms`: those of the client and of the server.
///
/// # Errors
/// 413 for a body of more than `most` bytes, before it is read if its length is told; 408 when it comes too slowly; 503 without
/// room; 400 when it is broken.
pub(super) async fn read_body(
    body: Body,
    most: u64,
    rooms: &[&RequestRoom],
    deadline: &Deadline,
    taken: &mut RoomTaken,
) -> Result<Bytes, ApiError> {
    let too_large = || {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {most} bytes (--max-body)"),
        )
    };
    if body.size_hint().lower() > most {
        return Err(too_large());
    }
    let mut parts = body.into_data_stream();
    let mut bytes = Vec::new();
    let (mut has_room, mut length) = (true, 0);
    let mut window_end = Instant::now() + WINDOW;
    let mut wanted = LEAST_BYTES;
    loop {
        let end = window_end.min(Instant::from_std(deadline.end()));
        let part = match timeout_at(end, parts.next()).await {
            Ok(None) if has_room => return Ok(Bytes::from(bytes)),
            Ok(None) => return Err(ApiError::busy("too many bytes of bodies are under way")),
            Ok(Some(part)) => part.map_err(|error| {
                ApiError::new(StatusCode::BAD_REQUEST, format!("the body is broken: {error}"))
            })?,
            Err(_) => {
                let line = "the body came too slowly, so nothing of the request was done";
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, line));
            }
        };
        length += part.len();
        if length as u64 > most {
            return Err(too_large());
        }
        if has_room && rooms.iter().all(|room| room.take_bytes(part.len(), taken)) {
            bytes.extend_from_slice(&part);
        } else {
            // The rest is thrown away. A client whose connection was closed while it sends would not see the refusal.
            has_room = false;
            (bytes, *taken) = (Vec::new(), Vec::new());
        }
        if length >= wanted {
            (window_end, wanted) = (Instant::now() + WINDOW, length + LEAST_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_when_the_request_ends() {
        let room = RequestRoom::new(2, 100);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        assert!(room.take_bytes(60, &mut one) && room.take_bytes(30, &mut one));
        assert!(!room.take_bytes(11, &mut two) && room.take_bytes(10, &mut two));
        assert!(room.take_request(&mut one) && room.take_request(&mut two));
        assert!(!room.take_request(&mut two));
        drop(one);
        assert!(room.take_bytes(90, &mut two) && room.take_request(&mut two));
        assert!(RequestRoom::new(usize::MAX, usize::MAX).take_bytes(1 << 30, &mut two));
    }
}
