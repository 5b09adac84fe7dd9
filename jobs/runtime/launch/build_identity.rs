//! Names the build of this program, which processes of one job and a resumed run must share.

use std::env;
use std::fs::File;
use std::io::{self, Read};

use xxhash_rust::xxh3::Xxh3;

/// Returns a name for the build of this program. The processes of a job must be of one build, and so must a
/// run and the run that it resumes.
///
/// Linkers put a hash of the whole program into its head (GNU's build id), and then the head is enough.
/// Without it the whole program is read, which takes 25 ms for 100 MB.
pub(crate) fn hash_of_program() -> io::Result<u128> {
    // Another program may have taken its name by now.
    let program = File::open("/proc/self/exe").or_else(|_| File::open(env::current_exe()?))?;
    hash_of_build(program)
}

fn hash_of_build(mut program: impl Read) -> io::Result<u128> {
    let mut hash = Xxh3::new();
    let mut window = Vec::with_capacity(PROGRAM_WINDOW);
    loop {
        window.clear();
        program.by_ref().take(PROGRAM_WINDOW as u64).read_to_end(&mut window)?;
        hash.update(&window);
        if window.len() < PROGRAM_WINDOW || memchr::memmem::find(&window, BUILD_ID).is_some() {
            return Ok(hash.digest128());
        }
    }
}

/// Number of bytes of the program that are read at a time.
const PROGRAM_WINDOW: usize = 64 << 10;
/// Head of the ELF note with the build id: a name of 4 bytes, 20 bytes of hash, type 3, "GNU".
const BUILD_ID: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_of_a_program_without_a_build_id_tells_its_build() {
        let program = |byte: usize, head: &[u8]| {
            let mut program = vec![7; 5 * PROGRAM_WINDOW + 3];
            program[100..100 + head.len()].copy_from_slice(head);
            program[byte] ^= 1;
            hash_of_build(&program[..]).unwrap()
        };
        for byte in [0, 70_000, 200_000, 5 * PROGRAM_WINDOW + 2] {
            assert_ne!(program(byte, b""), program(byte + 1 - 2 * (byte > 0) as usize, b""), "{byte}");
        }
        // The build id is in the head.
        assert_eq!(program(200_000, BUILD_ID), program(70_000, BUILD_ID));
        assert_ne!(program(120, BUILD_ID), program(70_000, BUILD_ID));
        assert!(hash_of_program().is_ok());
    }
}
