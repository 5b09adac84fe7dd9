//! Tests of the memory of a run: that `--memory` is kept, and that nothing in an input takes more.

mod bounds;
mod limit;
