//! Numbered frames of all sizes, and who got them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ringway::{Control, Interest, Port};
use ringway_testkit::PacketSocket;

use super::cable::{Cable, LIMIT};

/// From the smallest that Ethernet has to the largest of the usual MTU, dense where buffers end.
pub const SIZES: [usize; 40] = [
    60, 61, 64, 65, 66, 90, 120, 127, 128, 129, 190, 255, 256, 257, 300, 400, 511, 512, 513, 600,
    700, 800, 900, 1000, 1002, 1003, 1024, 1025, 1100, 1200, 1279, 1280, 1300, 1400, 1470, 1472,
    1473, 1500, 1513, 1514,
];

/// Frames of each size.
pub const EACH: u32 = 8;

/// How long frames of a size are waited for; a guest is slow.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where frames come from: what [`PacketSocket::hear`] looks for.
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HEAD: usize = 14 + 20 + 8;

/// A frame of UDP, which no stack here takes: its number is in it, and its flow goes with the number, so that a card
/// with several queues uses all.
pub fn numbered(number: u32, size: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(FROM);
    frame.extend([0x08, 0x00]);
    let [ip, udp] = [size - 14, size - 34].map(|length| (length as u16).to_be_bytes());
    let mut header =
        vec![0x45, 0, ip[0], ip[1], 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend((1024 + (number % 64) as u16).to_be_bytes());
    // No checksum.
    frame.extend([0x88, 0xb5, udp[0], udp[1], 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..size).map(|i| (i as u32 ^ number) as u8));
    frame
}

/// The number of one of our frames; an error if it is not as it was sent.
fn number(frame: &[u8]) -> Result<Option<u32>, String> {
    if frame.get(6..12) != Some(&FROM[..]) || frame.get(36..38) != Some(&[0x88, 0xb5]) {
        return Ok(None);
    }
    let bytes = frame.get(HEAD..HEAD + 4).ok_or("a frame is cut off")?;
    let number = u32::from_be_bytes(bytes.try_into().expect("four"));
    match numbered(number, frame.len()) == frame {
        true => Ok(Some(number)),
        false => Err(format!("frame {number}, {} bytes, is not as it was sent", frame.len())),
    }
}

/// What has been taken: the numbers of frames that are whole, and what is wrong with another.
#[derive(Default)]
pub struct Taken {
    numbers: BTreeSet<u32>,
    wrong: Option<String>,
}

impl Taken {
    fn add(&mut self, frame: &[u8]) {
        match number(frame) {
            Ok(Some(number)) if !self.numbers.insert(number) => {
                self.wrong = Some(format!("frame {number} came twice"));
            }
            Ok(_) => {}
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    fn count(&self) -> u32 {
        self.numbers.len() as u32
    }
}

/// Takes our frames from all rings of a port, until `wanted` are there or `limit` has passed.
pub fn take(port: &mut Port, wanted: u32, limit: Duration) -> Result<Taken, String> {
    let deadline = Instant::now() + limit;
    let mut taken = Taken::default();
    let mut parts = vec![Vec::new(); port.rx_rings()];
    loop {
        for (ring, part) in parts.iter_mut().enumerate() {
            let mut rx = port.rx(ring);
            for frame in rx.batch(usize::MAX) {
                part.extend(frame.to_vec());
                if !frame.more_fragments() {
                    taken.add(&std::mem::take(part));
                }
            }
            rx.sync();
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if taken.count() >= wanted || left.is_zero() {
            return Ok(taken);
        }
        port.wait_rx(Some(left)).map_err(|e| e.to_string())?;
    }
}

/// The same from the far end's stack.
fn hear(far: &PacketSocket, wanted: u32, limit: Duration) -> Taken {
    let deadline = Instant::now() + limit;
    let mut taken = Taken::default();
    while taken.count() < wanted {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(heard) = far.hear_within(left) else { break };
        taken.add(&heard.bytes);
    }
    taken
}

/// Sends a frame by a port.
fn push(port: &mut Port, number: u32, size: usize) -> Result<(), String> {
    let ring = number as usize % port.tx_rings();
    let frame = numbered(number, size);
    // A long one takes several buffers.
    let parts: Vec<&[u8]> = frame.chunks(port.max_frame()).collect();
    let deadline = Instant::now() + LIMIT;
    loop {
        let mut tx = port.tx(ring);
        let sent = tx.space() >= parts.len();
        if sent {
            for (mut slot, (at, part)) in tx.batch(parts.len()).zip((1..).zip(&parts)) {
                slot.write_part(part, at < parts.len());
            }
        }
        tx.sync();
        if sent {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !port.wait(Interest::Tx, Some(left)).map_err(|e| e.to_string())? {
            return Err("there is no room to send".into());
        }
    }
}

/// What a port's receive rings have dropped.
fn dropped(cable: &Cable) -> Result<u64, String> {
    let control = Control::connect().map_err(|e| e.to_string())?;
    let ports = control.ports().map_err(|e| e.to_string())?;
    let port = ports.into_iter().find(|port| port.name == cable.near).ok_or("no such port")?;
    let rings = control.rings(&port).map_err(|e| e.to_string())?;
    let rings = rings.iter().filter(|ring| ring.receives && !ring.host);
    Ok(rings.map(|ring| ring.bad_slot + ring.too_long + ring.ring_full).sum())
}

/// What has become of frames.
#[derive(Default)]
struct Losses {
    frames: u32,
    sizes: usize,
    /// Sizes, and how many frames of each were lost.
    lost: Vec<(usize, u32)>,
    wrong: Option<String>,
}

impl Losses {
    /// Sends frames of each size, and takes them at the other end.
    fn of(
        sizes: &[usize],
        mut send: impl FnMut(u32, usize) -> Result<(), String>,
        mut take: impl FnMut(u32) -> Result<Taken, String>,
    ) -> Result<Losses, String> {
        // What follows can be counted when a frame gets through.
        let deadline = Instant::now() + LIMIT;
        loop {
            send(HELLO, 60)?;
            if take(1)?.numbers.contains(&HELLO) {
                break;
            }
            if Instant::now() >= deadline {
                return Err("no frame of 60 bytes arrives".into());
            }
        }
        let mut losses = Losses { sizes: sizes.len(), ..Losses::default() };
        for (at, &size) in (0u32..).zip(sizes) {
            let numbers = at * EACH..(at + 1) * EACH;
            numbers.clone().try_for_each(|number| send(number, size))?;
            let taken = take(EACH)?;
            losses.frames += EACH;
            let lost = EACH - taken.numbers.range(numbers).count() as u32;
            if lost > 0 {
                losses.lost.push((size, lost));
            }
            losses.wrong = losses.wrong.or(taken.wrong);
        }
        Ok(losses)
    }

    fn outcome(self, dropped: impl FnOnce() -> Result<u64, String>) -> Result<String, String> {
        let Losses { frames, sizes, lost, wrong } = self;
        let wrong = wrong.map(|wrong| format!("; {wrong}")).unwrap_or_default();
        let [Some(first), Some(last)] = [lost.first(), lost.last()] else {
            let told = format!("{frames} frames of {sizes} sizes{wrong}");
            return if wrong.is_empty() { Ok(told) } else { Err(told) };
        };
        let count: u32 = lost.iter().map(|(_, lost)| lost).sum();
        Err(format!(
            "{count} of {frames} frames are lost, of {} of {sizes} sizes from {} to {} bytes; {} are counted as \
             dropped{wrong}",
            lost.len(),
            first.0,
            last.0,
            dropped()?
        ))
    }
}

/// The number of the frame that goes ahead.
const HELLO: u32 = u32::MAX;

/// Frames of each size from the far end's stack to the port: each arrives.
pub fn receive(cable: &Cable, port: &mut Port, sizes: &[usize]) -> Result<String, String> {
    cable.wait_up()?;
    let far = PacketSocket::new(&cable.there, &cable.far);
    let send = |number, size| {
        far.send(&numbered(number, size));
        Ok(())
    };
    let losses = Losses::of(sizes, send, |wanted| take(port, wanted, PATIENCE))?;
    losses.outcome(|| dropped(cable))
}

/// The other way.
pub fn send(cable: &Cable, port: &mut Port, sizes: &[usize]) -> Result<String, String> {
    cable.wait_up()?;
    let far = PacketSocket::new(&cable.there, &cable.far);
    let send = |number, size| push(port, number, size);
    let losses = Losses::of(sizes, send, |wanted| Ok(hear(&far, wanted, PATIENCE)))?;
    losses.outcome(|| dropped(cable))
}
