//! What is done with received frames besides counting them: they are verified, printed, recorded.

use crate::error::Result;
use crate::fragments::Whole;
use crate::print::Printer;
use crate::recording::Origin;
use crate::verify::Verifier;
use ringway_file::{Burst, Recorder};

#[derive(Default)]
pub struct FrameUses {
    pub verifier: Option<Verifier>,
    pub printer: Option<Printer>,
    pub recorder: Option<Recorder>,
    /// The frame that is looked at.
    pub frame: Vec<u8>,
}

impl FrameUses {
    /// Whether frames are only counted.
    pub fn are_none(&self) -> bool {
        self.verifier.is_none() && self.printer.is_none() && self.recorder.is_none()
    }

    /// Begins with some frames of a port, which are with the recorder when this is dropped.
    pub fn begin<'u>(&'u mut self, origin: &'u Origin) -> Batch<'u> {
        let FrameUses { verifier, printer, recorder, frame } = self;
        let burst = recorder.as_mut().map(Recorder::burst);
        Batch { origin, verifier: verifier.as_mut(), printer: printer.as_mut(), burst, frame }
    }

    /// What the recorder had no room for.
    pub fn dropped(&self) -> u64 {
        self.recorder.as_ref().map_or(0, |recorder| recorder.totals().dropped)
    }

    /// Prints what there is; fails if it cannot be printed, or nothing is recorded any more.
    pub fn flush(&mut self) -> Result<()> {
        if let Some(printer) = &mut self.printer {
            printer.flush()?;
        }
        match self.recorder.as_ref().and_then(Recorder::error) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

pub struct Batch<'u> {
    origin: &'u Origin,
    verifier: Option<&'u mut Verifier>,
    printer: Option<&'u mut Printer>,
    burst: Option<Burst<'u>>,
    frame: &'u mut Vec<u8>,
}

impl Batch<'_> {
    /// A frame of `length` bytes of which the captured part was copied out, and its time.
    pub fn take_copy(&mut self, bytes: &[u8], length: u32, time: u64, was_sent: bool) {
        if let Some(burst) = &mut self.burst {
            self.origin.record_copy(burst, bytes, length, time, was_sent);
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.frame(bytes);
        }
        if let Some(printer) = &mut self.printer {
            printer.packet(&self.origin.name, time, bytes, length as usize);
        }
    }

    /// A frame that came `now`, in nanoseconds since 1970.
    pub fn take(&mut self, frame: &Whole<'_>, now: u64) {
        if let Some(burst) = &mut self.burst {
            self.origin.record(burst, frame, now);
        }
        if self.verifier.is_some() || self.printer.is_some() {
            frame.read(self.frame);
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.frame(self.frame);
        }
        if let Some(printer) = &mut self.printer {
            let (time, length) = (self.origin.time(frame, now), frame.wire_length());
            printer.packet(&self.origin.name, time, self.frame, length);
        }
    }
}
