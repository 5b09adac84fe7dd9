//! Work on foreign files in processes that can do nothing else.
//!
//! A Word or PDF file was made by a foreign program and is read by a foreign parser, and so are streams that deflate has
//! compressed. So `child` works on such a file in a process of its own, which `confine` has deprived of everything else;
//! `extractors` starts those processes and asks them; `task.rs` has what they are asked for;
//! `undo.rs` has them undo deflate.

mod child;
mod confine;
mod extractors;
mod task;
mod undo;

pub use self::child::{EXTRACT, serve};
pub use self::confine::Bounds;
pub use self::extractors::Extractors;
pub(crate) use self::task::ConfinedTask;
