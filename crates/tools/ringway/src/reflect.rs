//! What a port receives goes back out of it: buffers are exchanged, and only headers are written.

use crate::forward::portion;
use crate::fragmenter::publish;
use ringway::{Port, Turns};

/// Bytes of a packet that may be changed: a virtio-net header, Ethernet with two VLAN tags, IPv6, UDP.
pub const HEAD: usize = 12 + 22 + 40 + 8;
/// Slots of one ring before others have their turn.
const BATCH: usize = 256;

/// What was sent back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reflected {
    pub packets: u64,
    pub bytes: u64,
    /// Packets that were not sent back.
    pub ignored: u64,
    /// Packets of the stack behind an interface that were sent on by it.
    pub of_stack: u64,
}

/// Sends back what is there, as far as there is room, on transmit rings of the same numbers. `turn` gets
/// the first bytes of each packet, at most [`HEAD`]; it changes them, and says whether the packet goes
/// back at all. `turns` is the same in every call. What comes out of host rings is sent as it is.
pub fn reflect(
    port: &mut Port,
    turns: &mut Turns,
    mut turn: impl FnMut(&mut [u8]) -> bool,
) -> Reflected {
    let mut reflected = Reflected::default();
    // The numbers of host rings follow those of the interface's own.
    let registration = port.binding().registration();
    let (own_tx, own_rx) = (registration.tx_rings, registration.rx_rings);
    let tx_rings =
        (0..port.tx_rings()).take_while(|ring| port.tx_index(*ring) < Some(own_tx)).count();
    turns.each(port.rx_rings(), |ring| {
        let is_of_stack = port.rx_index(ring) >= Some(own_rx);
        let (mut tx, mut rx) = port.tx_and_rx(ring % tx_rings, ring);
        let room = portion(&mut rx, &tx, BATCH);
        let is_short = room == 0 && rx.available() > 0;
        let mut slots = tx.batch(room);
        let (mut head, mut begins, mut goes_back) = ([0; HEAD], true, is_of_stack);
        for frame in rx.batch(room) {
            let (len, more) = (frame.len() as u64, frame.more_fragments());
            let is_head = begins && !is_of_stack;
            let read = if is_head { frame.copy_to(&mut head) } else { 0 };
            if is_head {
                goes_back = turn(&mut head[..read]);
            }
            if !goes_back {
                reflected.ignored += u64::from(begins);
            } else if let Some(mut slot) = slots.next() {
                frame.forward(&mut slot);
                if is_of_stack {
                    reflected.of_stack += u64::from(!more);
                } else {
                    slot.write_at(0, &head[..read]);
                    reflected.packets += u64::from(!more);
                    reflected.bytes += len;
                }
            }
            begins = !more;
        }
        drop(slots);
        // The sender's ring first: the buffers of the other are on their way there.
        publish(&mut tx, is_short);
        rx.sync();
        room > 0
    });
    reflected
}
