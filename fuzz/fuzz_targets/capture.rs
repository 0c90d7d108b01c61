//! Any bytes as a capture file: they are read to an end, in memory that is bounded, whatever they claim; where
//! libpcap reads the file to its end, the frames are the same; and what was written down well is read as it
//! was.
#![no_main]

#[path = "capture/allocated.rs"]
mod allocated;
#[path = "capture/libpcap.rs"]
mod libpcap;
#[path = "capture/written.rs"]
mod written;

use std::{io::Write, path::PathBuf};

use libfuzzer_sys::fuzz_target;
use ringway_file::{Captured, Error, Reader};
use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::{MemfdFlags, memfd_create},
};

use crate::{allocated::assert_below, written::written};

/// Frames that are looked at, so that an input that is compressed a thousandfold ends soon.
const LONGEST: usize = 4096;
/// The longest block, twice while its buffer grows, and what the decompressors and a block's options take.
const MEMORY: usize = 448 << 20;

/// What is compared of a frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    time: u64,
    bytes: Vec<u8>,
    length: u32,
}

impl From<Captured<'_>> for Frame {
    fn from(Captured { time, bytes, length }: Captured<'_>) -> Frame {
        Frame { time, bytes: bytes.to_vec(), length }
    }
}

/// A file of these bytes.
fn file(bytes: &[u8]) -> (PathBuf, OwnedFd) {
    let memfd = memfd_create("capture", MemfdFlags::CLOEXEC).expect("there is memory");
    let mut file = std::fs::File::from(memfd);
    file.write_all(bytes).expect("it is memory");
    (format!("/proc/self/fd/{}", file.as_raw_fd()).into(), file.into())
}

/// The first frames of a file, and whether that is all there is.
fn read(bytes: &[u8]) -> Result<(Vec<Frame>, bool), Error> {
    let (path, _file) = file(bytes);
    let mut frames = Vec::new();
    let mut reader = Reader::open(&path)?;
    while frames.len() < LONGEST {
        if !reader.next(|frame| frames.push(frame.into()))? {
            let whole = reader.cut().is_none();
            return Ok((frames, whole));
        }
    }
    Ok((frames, false))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    if how & 1 == 0 {
        let ours = assert_below(MEMORY, || read(bytes));
        if let (Ok((mut frames, true)), Some((theirs, most))) = (ours, libpcap::read(bytes)) {
            frames.iter_mut().for_each(|frame| frame.bytes.truncate(most));
            // Frames that have no time have one here.
            for (frame, theirs) in
                frames.iter_mut().zip(&theirs).filter(|(_, other)| other.time == 0)
            {
                frame.time = theirs.time;
            }
            assert_eq!(frames, theirs);
        }
    } else {
        let (file, expected) = written(how, bytes);
        let (frames, _) = read(&file).expect("it was written well");
        assert_eq!(frames, expected);
    }
});
