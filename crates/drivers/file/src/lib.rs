//! Capture files: rings that are filled from pcap and pcapng files, and rings whose frames are written
//! to such files.
//!
//! ```text
//!   file --> thread: reads, decompresses, parses --batches--> FileRx --> rx slots
//!   tx slots --> FileTx --> Recorder: blocks in memory --> thread: compresses, writes --> file
//! ```
//!
//! What a disk or a pipe takes its time for happens in a thread of its own, so no sync waits for it.
//! A reader that is slow delivers later. A writer that is slow loses frames, which are counted, once
//! [`QUEUE_BYTES`] of blocks wait for it.
//!
//! | file | idea |
//! | --- | --- |
//! | `format.rs` | the formats, and which one a name stands for |
//! | `reader.rs`, `input.rs` | the frames of a file, one by one; plain or compressed, a file or a pipe |
//! | `frames.rs` | all frames of a file, in memory |
//! | `playback.rs`, `rx.rs` | the thread that reads ahead, and the driver of an rx ring |
//! | `blocks.rs` | frames as records of pcap and blocks of pcapng |
//! | `recorder.rs`, `output.rs`, `tx.rs` | the queue of blocks; the files they go to; the driver of a tx ring |
//! | `threads.rs` | which process has these threads |
//! | `sys.rs` | the local time, for names of files |
#![deny(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests write to the temporary folder")
)]

mod blocks;
mod error;
mod format;
mod frames;
mod in_use;
mod input;
mod output;
mod playback;
mod reader;
mod recorder;
mod rx;
mod sys;
mod threads;
mod tx;

pub use error::{Error, Result};
pub use format::{Compression, Format, Kind};
pub use frames::Frames;
pub use in_use::InUse;
pub use playback::{Next, Playback, Replay};
pub use reader::{Captured, Reader, Skipped};
pub use recorder::{
    Burst, Direction, Interface, QUEUE_BYTES, Record, Recorder, Recording, Rotation, Totals, now,
};
pub use rx::FileRx;
pub use sys::local_time;
pub use tx::{FileTx, RECORDED};
