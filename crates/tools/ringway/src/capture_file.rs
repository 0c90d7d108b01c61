//! Ports that are capture files: how a run with one ends.

use crate::error::{Error, Result};
use crate::output::note;

/// Whether a run has ended with a file.
pub fn is_end(run: &Result<()>) -> bool {
    matches!(run, Err(Error::Ringway(ringway::Error::End { .. })))
}

/// The end of a file is a good end of a run; a file that ends in the middle of a block is worth a note.
pub fn ended(run: Result<()>) -> Result<()> {
    match run {
        Err(Error::Ringway(ringway::Error::End { name, cut, skipped })) => {
            if let Some(text) = skipped_text(skipped.0, skipped.1) {
                note(format_args!("{name}: {text}"));
            }
            if let Some(at) = cut {
                note(format_args!(
                    "{name}: byte {at}: the file ends in the middle of a block; everything before \
                     it was read"
                ));
            }
            Ok(())
        }
        other => other,
    }
}

/// What to say of frames of other link types, if there were any.
pub fn skipped_text(frames: u64, link: i32) -> Option<String> {
    (frames > 0).then(|| {
        format!(
            "{frames} frames were skipped: they are of link type {link}, or others, not Ethernet"
        )
    })
}
