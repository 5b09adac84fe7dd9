//! Confinement of a process that reads foreign documents. It may still compute, and talk to the process that
//! started it.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Reading;

/// CPU time for the text of one document, in seconds.
const CPU_SECONDS: u64 = 10;
/// Size of the stack, in bytes. Endless nesting meets this limit.
const STACK_BYTES: u64 = 8 << 20;

/// Bounds of a process that reads a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Longest document as it is stored, and longest text, in bytes.
    pub max_bytes: usize,
    /// Memory for all data, in bytes: the file, the decompressed body, the text and copies of them.
    pub memory_bytes: u64,
    /// CPU time for one document, in seconds.
    pub cpu_seconds: u64,
}

impl Bounds {
    /// Returns the bounds of a reading.
    pub(crate) fn of(reading: &Reading) -> Self {
        let max_bytes = reading.max_record_bytes;
        let memory_bytes = (6 * max_bytes as u64).max(reading.block_bytes as u64);
        Bounds { max_bytes, memory_bytes, cpu_seconds: CPU_SECONDS }
    }

    /// Returns the bounds as arguments of the command line of the process.
    pub(super) fn arguments(self) -> [String; 3] {
        [self.max_bytes.to_string(), self.memory_bytes.to_string(), self.cpu_seconds.to_string()]
    }

    /// Reads the bounds from the command line. Returns `None` if they are missing.
    pub fn of_arguments(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut next = || arguments.next()?.parse::<u64>().ok();
        Some(Bounds { max_bytes: next()? as usize, memory_bytes: next()?, cpu_seconds: next()? })
    }
}

/// Takes from this process, for good, everything that reading a document does not need.
///
/// Memory for data is limited, no file grows, no core is left, and no descriptor can be opened: neither file
/// nor socket. Every system call fails with "operation not permitted", except those for memory, time and the
/// descriptors that are already open. After an error the process is not confined and must end. This is always
/// so where system calls cannot be filtered, which is everywhere but on Linux on x86-64 and AArch64.
pub(super) fn confine(bounds: Bounds) -> io::Result<()> {
    let limit = |resource, bytes: u64| {
        let bytes = Some(getrlimit(resource).maximum.map_or(bytes, |maximum| bytes.min(maximum)));
        setrlimit(resource, Rlimit { current: bytes, maximum: bytes })
    };
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, 0)?;
    // A limit of the address space would count the program itself.
    limit(Resource::Data, bounds.memory_bytes)?;
    let stack = getrlimit(Resource::Stack);
    if stack.current.is_none_or(|bytes| bytes > STACK_BYTES) {
        setrlimit(Resource::Stack, Rlimit { current: Some(STACK_BYTES), ..stack })?;
    }
    // After these seconds the system ends the process by a signal. The system counts whole seconds, and the
    // process has used part of one.
    let cpu = getrlimit(Resource::Cpu);
    let end = 1 + bounds.cpu_seconds;
    let current = Some(cpu.maximum.map_or(end, |maximum| end.min(maximum)));
    setrlimit(Resource::Cpu, Rlimit { current, ..cpu })?;
    filter::apply()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use std::io;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    /// System calls for memory, time, ending, and reading and writing what is open. The runtime uses
    /// `rt_sig*` and `sigaltstack` to report a stack overflow.
    const ALLOWED: [i64; 24] = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Confines the calling thread, and the threads that it would start.
    pub(super) fn apply() -> io::Result<()> {
        let program = program(std::process::id()).map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)
    }

    fn program(process: u32) -> Result<BpfProgram, seccompiler::BackendError> {
        let first_is = |value: u32| {
            let dword = SeccompCmpArgLen::Dword;
            let condition = SeccompCondition::new(0, dword, SeccompCmpOp::Eq, u64::from(value))?;
            Ok(vec![SeccompRule::new(vec![condition])?])
        };
        let mut rules: std::collections::BTreeMap<_, _> = ALLOWED.map(|call| (call, Vec::new())).into();
        // The process may change its own limits, and send signals to itself, which is how it aborts. It may
        // do neither to others.
        rules.insert(libc::SYS_prlimit64, first_is(0)?);
        rules.insert(libc::SYS_tgkill, first_is(process)?);
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        SeccompFilter::new(rules, refused, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?
            .try_into()
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod filter {
    /// Refuses to go on, because limits alone would leave a hijacked parser with most of what this user may
    /// do.
    pub(super) fn apply() -> std::io::Result<()> {
        Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "Word and PDF documents are read on Linux on x86-64 and AArch64 alone, where system calls can be refused to \
             what reads them; leave them out of the input",
        ))
    }
}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::Command;

    use super::*;

    #[test]
    fn behind_the_filter_there_are_no_files_no_sockets_and_no_programs() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let file = std::env::temp_dir().join(format!("dedup-job-{}", std::process::id()));
        let parent = rustix::process::getppid();
        let try_all = move || {
            [
                File::open("/etc/hostname").map(drop),
                File::create(&file).map(drop),
                TcpStream::connect(address).map(drop),
                UdpSocket::bind("127.0.0.1:0").map(drop),
                Command::new("/bin/true").status().map(drop),
                std::fs::read_link("/proc/self/exe").map(drop),
                std::fs::remove_file(&file),
                setrlimit_of(parent),
            ]
            .map(|tried| tried.err().map(|error| error.kind()))
        };
        // The filter holds for the thread that applies it.
        let confined = std::thread::spawn(move || {
            let free = try_all();
            filter::apply().unwrap();
            (free, try_all(), vec![1u8; 1 << 20].len())
        });
        let (free, refused, memory) = confined.join().unwrap();
        assert_eq!(free, [None; 8]);
        assert_eq!(refused, [Some(ErrorKind::PermissionDenied); 8]);
        assert_eq!(memory, 1 << 20);
        assert!(TcpStream::connect(address).is_ok(), "the filter has reached another thread");
    }

    fn setrlimit_of(parent: Option<rustix::process::Pid>) -> io::Result<()> {
        let limit = rustix::process::prlimit(parent, Resource::Core, getrlimit(Resource::Core));
        limit.map(drop).map_err(io::Error::from)
    }
}
