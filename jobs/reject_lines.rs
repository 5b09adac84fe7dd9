//! Which line of its file a rejected record is on.

use anyhow::Result;
use datasets::Reading;
use operators::Reject;

use crate::plan::Plan;

/// Puts the line before the reason of each reject of a format that has lines: `line 17: …`.
///
/// A worker that reads the middle of a file does not know how many lines lie before, and to count them for each piece
/// would take the square of the file's length; so this is done once for each file with rejects, when all is read. Cost:
/// one more reading of those files, up to the last reject.
pub(crate) fn number_lines(plan: &Plan, reading: &Reading, rejects: &mut [Reject]) -> Result<()> {
    for of_file in rejects.chunk_by_mut(|a, b| a.path == b.path) {
        let Some(first) = of_file.first() else { continue };
        let split = &plan.splits[first.doc.split() as usize];
        let Some(piece) = split.pieces.iter().find(|piece| piece.is_of(&first.path)) else { continue };
        // A reject lies at its first illegal byte, so two records never change places; but that is theirs to say.
        of_file.sort_by_key(|reject| reject.offset);
        let file = piece.whole_file()?;
        let mut offsets = of_file.iter().map(|reject| reject.offset);
        let lines = match split.format.line_numbers(&file, reading, &mut offsets) {
            Err(error) if !error.is_data() => return Err(error.into()),
            Ok(Some(lines)) => lines,
            Ok(None) | Err(_) => continue,
        };
        for (reject, line) in of_file.iter_mut().zip(lines) {
            reject.reason = format!("line {line}: {}", reject.reason);
        }
    }
    rejects.sort_by_key(|reject| reject.doc);
    Ok(())
}
