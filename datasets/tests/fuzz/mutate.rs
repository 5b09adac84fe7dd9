//! Random damage to valid files.

pub use self::random::Random;

#[path = "../../../tests/random.rs"]
mod random;

/// Returns random numbers, the same for the same parser and seed.
pub fn random(parser: &str, seed: u64) -> Random {
    // FNV-1a, which mixes the seed into all bits: seeds that follow each other must not give numbers that do.
    let bytes = parser.bytes().chain(seed.to_le_bytes());
    let start = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    Random(start)
}

/// Numbers at which lengths and counts often go wrong.
const EXTREMES: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];

/// Returns one of the files, damaged in one to eight ways; sometimes noise, or the file unchanged.
pub fn mutant(random: &mut Random, files: &[Vec<u8>]) -> Vec<u8> {
    let chosen = random.below(files.len());
    let mut bytes = files[chosen].clone();
    match random.below(50) {
        0 => return bytes,
        1 => return (0..random.below(5_000)).map(|_| random.byte()).collect(),
        _ => {}
    }
    for _ in 0..=random.below(8) {
        damage(random, &mut bytes, files);
    }
    bytes
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>, files: &[Vec<u8>]) {
    // Headers and footers are short, and matter most.
    let at = match random.below(4) {
        0 => random.below(bytes.len().min(200)),
        1 => {
            bytes.len()
                - 1.min(bytes.len())
                - random.below(bytes.len().min(400)).min(bytes.len().saturating_sub(1))
        }
        _ => random.below(bytes.len()),
    };
    let magnitude = random.below(10);
    let length = 1 + random.below(1 << magnitude);
    let end = (at + length).min(bytes.len());
    match random.below(10) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.byte();
            }
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at.min(end)..end)),
        5 => {
            let again = bytes[at.min(end)..end].to_vec();
            let times = 1 + random.below(20);
            bytes.splice(at..at, again.repeat(times));
        }
        6 => {
            let other = &files[random.below(files.len())];
            let from = random.below(other.len());
            let piece = other[from..(from + length).min(other.len())].to_vec();
            let to = if random.below(2) == 0 { at } else { end };
            bytes.splice(at.min(to)..to, piece);
        }
        7 => {
            let noise: Vec<u8> = (0..length).map(|_| random.byte()).collect();
            bytes.splice(at..at, noise);
        }
        _ => {
            let number = EXTREMES[random.below(EXTREMES.len())];
            let width = 1 << random.below(4);
            let number = match random.below(2) {
                0 => number.to_le_bytes()[..width].to_vec(),
                _ => number.to_be_bytes()[8 - width..].to_vec(),
            };
            let end = (at + width).min(bytes.len());
            bytes.splice(at.min(end)..end, number);
        }
    }
}
