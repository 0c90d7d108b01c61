//! Frames that take several slots, put together.

use ringway::{Port, Recorded, RxFrame};

/// What has come of a ring's next frame.
#[derive(Debug, Default)]
pub struct Fragments {
    bytes: Vec<u8>,
    /// Bytes that have come of a frame whose bytes are not kept.
    counted: usize,
    /// When its first slot came, and what a capture file says of it.
    time: Option<u64>,
    recorded: Option<Recorded>,
    goes_on: bool,
}

/// All of a frame, in its slot or put together.
#[derive(Debug)]
pub struct Whole<'f> {
    slot: RxFrame<'f>,
    joined: Option<&'f [u8]>,
    time: Option<u64>,
    recorded: Option<Recorded>,
}

impl Fragments {
    /// Of each receive ring of a port: nothing.
    pub fn of(port: &Port) -> Vec<Fragments> {
        (0..port.rx_rings()).map(|_| Fragments::default()).collect()
    }

    /// Counts the ring's next slot, without a copy; the bytes of the frame, if that is its last one.
    pub fn count(&mut self, slot: &RxFrame<'_>) -> Option<usize> {
        self.counted += slot.len();
        (!slot.more_fragments()).then(|| std::mem::take(&mut self.counted))
    }

    /// Takes the ring's next slot; the frame, if that is its last one.
    pub fn add<'f>(&'f mut self, slot: RxFrame<'f>) -> Option<Whole<'f>> {
        let goes_on = slot.more_fragments();
        let begins = !std::mem::replace(&mut self.goes_on, goes_on);
        if begins {
            (self.time, self.recorded) = (slot.timestamp().map(u64::from), slot.recorded());
            if !goes_on {
                let (time, recorded) = (self.time, self.recorded);
                return Some(Whole { slot, joined: None, time, recorded });
            }
            self.bytes.clear();
        }
        let start = self.bytes.len();
        self.bytes.resize(start + slot.len(), 0);
        let copied = slot.copy_to(&mut self.bytes[start..]);
        self.bytes.truncate(start + copied);
        let (time, recorded) = (self.time, self.recorded);
        (!goes_on).then_some(Whole { slot, joined: Some(&self.bytes), time, recorded })
    }
}

impl Whole<'_> {
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.joined.map_or_else(|| self.slot.len(), <[u8]>::len)
    }

    /// When it came, if its port tells.
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// What a capture file says of it.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorded
    }

    /// Bytes that it had on the wire: a capture file may have fewer.
    pub fn wire_length(&self) -> usize {
        self.recorded.map_or(0, |recorded| recorded.length as usize).max(self.len())
    }

    /// Of a monitor's frame: whether the monitored port has sent it.
    pub fn was_sent(&self) -> bool {
        self.slot.was_sent()
    }

    /// Copies it out, as far as `to` holds it.
    pub fn copy_to(&self, to: &mut [u8]) {
        match self.joined {
            Some(bytes) => to.copy_from_slice(&bytes[..to.len()]),
            None => {
                self.slot.copy_to(to);
            }
        }
    }

    /// Copies it out, in place of what was in `to`. The copy is what may be looked at: a sender of the same
    /// region can still change the slot.
    pub fn read(&self, to: &mut Vec<u8>) {
        to.resize(self.len(), 0);
        self.copy_to(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_doc as doc;

    #[test]
    fn a_frame_is_whole_with_its_last_slot() {
        let mut a = doc::open("frag{1").unwrap();
        let mut b = doc::open("frag}1").unwrap();
        let mut tx = a.tx(0);
        for (mut slot, (text, goes_on)) in
            tx.batch(4).zip([("one", false), ("t", true), ("w", true), ("o", false)])
        {
            slot.write_part(text.as_bytes(), goes_on);
        }
        tx.sync();
        let mut rx = b.rx(0);
        rx.sync();
        let (mut fragments, mut frame, mut seen) = (Fragments::default(), Vec::new(), Vec::new());
        for slot in rx.batch(4) {
            if let Some(whole) = fragments.add(slot) {
                whole.read(&mut frame);
                seen.push(String::from_utf8(frame.clone()).unwrap());
            }
        }
        assert_eq!(seen, ["one", "two"]);
    }
}
