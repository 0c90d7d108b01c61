//! VLANs (IEEE 802.1Q): which a port takes part in, and the tag that says so.
//!
//! On a bridge where no port is told about VLANs, tags are not looked at. Where one is, every frame
//! belongs to a VLAN as long as it is on the bridge: that of its tag, or that which its port has
//! for untagged frames. It reaches the ports of that VLAN only, with a tag or without as they
//! have it. A tag whose VLAN is 0 carries a priority, and nothing else: the frame is untagged, and leaves by the
//! ports of a VLAN as other untagged frames do.
#![expect(
    clippy::indexing_slicing,
    reason = "VLAN numbers have 12 bits, of which six say the word; frames are counted before they are indexed"
)]

use std::collections::BTreeSet;

use ringway_abi::NS_INDIRECT;
use ringway_fastpath::VLAN_WORDS;
use ringway_switch_port::{Burst, Drops, Frame, FrameStatus, HEADER};
use serde::{Deserialize, Serialize};

/// How a port takes part in VLANs. Numbers are 1 to 4094.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vlan {
    /// It is not told about VLANs, and passes everything on: tagged frames of all VLANs as they
    /// are; its untagged frames go between the ports of this kind only.
    #[default]
    Unaware,
    /// It is in this one VLAN, and knows nothing of tags: it neither sends nor receives any.
    Access(u16),
    /// It is in all of these, and its frames are tagged; but those of the native VLAN are not.
    /// Without one it neither sends nor receives untagged frames.
    Trunk { allowed: BTreeSet<u16>, native: Option<u16> },
}

const LAST: u16 = 4094;

/// [`Vlan`], ready for use.
#[derive(Debug)]
pub(crate) struct PortVlans {
    /// That of untagged frames.
    untagged: Option<u16>,
    /// Those of tagged frames, a bit for each; there is no 0.
    tagged: Box<[u64; VLAN_WORDS]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Untagged,
    Tagged,
}

impl PortVlans {
    pub fn new(vlan: &Vlan) -> PortVlans {
        let mut tagged = Box::new([0; VLAN_WORDS]);
        let mut add = |vid: u16| tagged[usize::from(vid >> 6)] |= 1 << (vid & 63);
        let untagged = match vlan {
            Vlan::Unaware => {
                (1..=LAST).for_each(add);
                Some(0)
            }
            Vlan::Access(vid) => Some(*vid),
            Vlan::Trunk { allowed, native } => {
                allowed.iter().copied().filter(|vid| (1..=LAST).contains(vid)).for_each(&mut add);
                *native
            }
        };
        PortVlans { untagged, tagged }
    }

    /// Those in which its frames are tagged, a bit for each.
    pub fn tagged(&self) -> &[u64; VLAN_WORDS] {
        &self.tagged
    }

    /// Whether its frames of this VLAN, of 12 bits, are tagged, if they are not those without a tag.
    fn has_tagged(&self, vid: u16) -> bool {
        self.tagged[usize::from(vid >> 6 & 63)] >> (vid & 63) & 1 != 0
    }

    /// Notes for each frame that the port has sent where it belongs; those that the port may not
    /// send go no further. Returns whether none has a tag.
    pub fn classify(&self, burst: &mut Burst<'_>) -> bool {
        let mut untagged = true;
        for i in 0..burst.frames.len() {
            let frame = &burst.frames[i];
            if frame.status != FrameStatus::Fine {
                continue;
            }
            let tag = tag(frame);
            untagged &= tag.is_none();
            let vid = self.vid_of(frame, tag, burst);
            let frame = &mut burst.frames[i];
            match vid {
                Some(vid) => frame.vid = vid,
                None => frame.status = FrameStatus::Vlan,
            }
        }
        untagged
    }

    /// Where a frame with this tag belongs that the port has sent; `None`: nowhere.
    #[inline]
    fn vid_of(&self, frame: &Frame, tag: Option<u16>, burst: &Burst<'_>) -> Option<u16> {
        // All others have their header in their piece.
        if tag.is_none() && frame.flags & NS_INDIRECT == 0 {
            return self.untagged;
        }
        self.vid_by_piece(frame, tag, burst)
    }

    #[inline(never)]
    fn vid_by_piece(&self, frame: &Frame, tag: Option<u16>, burst: &Burst<'_>) -> Option<u16> {
        let length = burst.begin(frame).map_or(0, |(_, len)| len);
        match tag {
            // Of an empty piece there is nothing to move (S-VALE-9).
            _ if length == 0 => None,
            Some(_) if length < 18 => None,
            Some(0) | None => self.untagged,
            Some(vid) => self.has_tagged(vid).then_some(vid),
        }
    }

    /// The VLAN of a frame that the port has sent, as the bridge or, where that does not tell one, as its tag says. 0: none.
    pub fn vlan_in(&self, frame: &Frame, burst: &Burst<'_>) -> Option<u16> {
        self.vid_of(frame, tag(frame), burst).map(|vid| if vid != 0 { vid } else { vlan_of(frame) })
    }

    /// The VLAN of its untagged frames.
    pub fn untagged(&self) -> Option<u16> {
        self.untagged
    }

    fn form(&self, vid: u16) -> Option<Form> {
        if self.is_untagged(vid) {
            Some(Form::Untagged)
        } else {
            self.has_tagged(vid).then_some(Form::Tagged)
        }
    }

    /// Whether the port's frames of this VLAN are tagged. `None` if it does not take part.
    pub fn is_tagged(&self, vid: u16) -> Option<bool> {
        self.form(vid).map(|form| form == Form::Tagged)
    }

    /// Whether the port's frames of this VLAN are not tagged.
    #[inline]
    pub fn is_untagged(&self, vid: u16) -> bool {
        self.untagged == Some(vid)
    }

    /// Whether the port takes part in this VLAN.
    pub fn has(&self, vid: u16) -> bool {
        self.form(vid).is_some()
    }

    /// The frames of `run`, which belong to one VLAN, as the port is to receive them, in `to`. What
    /// it may not receive is counted.
    pub fn retag(&self, run: &[Frame], burst: &Burst<'_>, to: &mut Vec<Frame>, drops: &mut Drops) {
        to.clear();
        let Some(form) = run.first().and_then(|frame| self.form(frame.vid)) else {
            drops.vlan += run.len() as u64;
            return;
        };
        to.extend(run.iter().filter_map(|frame| form.of(frame, burst)));
        drops.vlan += (run.len() - to.len()) as u64;
    }

    /// Whether a tag that the port is to receive may push the end of the frame's first piece out of a slot with `room` bytes.
    pub fn may_push_out(&self, frame: &Frame, burst: &Burst<'_>, room: u32) -> bool {
        let longest = burst
            .pieces(frame)
            .iter()
            .take(1 + usize::from(burst.apart))
            .map(|(_, len)| *len)
            .max()
            .unwrap_or(0);
        longest.saturating_add(4) > room
            && self.retagged(frame, burst).is_some_and(|frame| frame.skip < 0)
    }

    /// The frame as the port is to receive it, if it may.
    pub fn retagged(&self, frame: &Frame, burst: &Burst<'_>) -> Option<Frame> {
        self.form(frame.vid)?.of(frame, burst)
    }
}

impl Form {
    /// The frame with a tag or without.
    fn of(self, frame: &Frame, burst: &Burst<'_>) -> Option<Frame> {
        match (self, tag(frame)) {
            (Form::Tagged, None) => Some(push(frame)),
            (Form::Tagged, Some(0)) => Some(name(frame)),
            // A switch's unaware ports keep the tags of priorities.
            (Form::Untagged, Some(_)) if frame.vid != 0 => pop(frame, burst),
            _ => Some(*frame),
        }
    }
}

/// The type of a tagged frame.
pub(crate) const TAG: [u8; 2] = [0x81, 0];

/// The VLAN that the frame's tag names, if it has one.
fn tag(frame: &Frame) -> Option<u16> {
    let header = frame.header();
    (header[12..14] == TAG).then(|| u16::from_be_bytes([header[14] & 0xf, header[15]]))
}

/// The VLAN of a frame, as the bridge or, where that does not look at tags, as its tag says. 0: none.
pub(crate) fn vlan_of(frame: &Frame) -> u16 {
    if frame.vid != 0 { frame.vid } else { tag(frame).unwrap_or(0) }
}

/// Gives an untagged frame its tag, of the lowest priority.
fn push(frame: &Frame) -> Frame {
    let mut header = frame.header();
    header[12..14].copy_from_slice(&TAG);
    header[14..].copy_from_slice(&frame.vid.to_be_bytes());
    frame.edited(header, -4)
}

/// Puts the VLAN into a tag that names none.
fn name(frame: &Frame) -> Frame {
    let mut header = frame.header();
    header[14] |= (frame.vid >> 8) as u8;
    header[15] = frame.vid as u8;
    frame.edited(header, 0)
}

/// Takes the tag off. Another behind it stays, as on a Linux bridge: it is a customer's, and from here on the frame's
/// first.
fn pop(frame: &Frame, burst: &Burst<'_>) -> Option<Frame> {
    let (buf, len) = burst.begin(frame)?;
    let mut behind = [0; 4];
    if let Some(buf) = buf.skip(HEADER as u32) {
        buf.copy_to(4, &mut behind);
    }
    // As in the header: nothing from past the end.
    behind.iter_mut().skip((len as usize).saturating_sub(HEADER)).for_each(|byte| *byte = 0);
    let mut header = frame.header();
    header[12..].copy_from_slice(&behind);
    Some(frame.edited(header, 4))
}
