//! CPU seconds, for the benchmarks.

/// Returns the CPU seconds of this thread that `work` took, as the kernel counts them, and what `work`
/// returns.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = cpu_seconds();
    let result = work();
    (cpu_seconds() - before, result)
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: f64 = stat.split(' ').next().and_then(|field| field.parse().ok()).expect("a number");
    nanoseconds / 1e9
}
