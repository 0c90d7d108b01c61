//! One-way traffic as fast as it goes, until told to stop.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use ringway::{Error, Interest, Port};

use crate::frame::{self, Seen};

/// How often a side that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a side has done so far, and whether it is to stop.
#[derive(Debug, Default)]
pub struct Progress {
    /// Frames of our kind sent, or received intact and in order.
    pub frames: AtomicU64,
    /// The flow of the last one received.
    pub flow: AtomicU64,
    pub stop: AtomicBool,
}

/// Sends the frames of `flow` from number `first` on.
pub fn send(port: &mut Port, flow: u32, progress: &Progress) -> Result<(), Error> {
    let (src, dst) = (frame::mac(flow, 0), frame::mac(flow, 1));
    let (mut bytes, mut number) = (Vec::new(), 0);
    while !progress.stop.load(Relaxed) {
        if !port.wait_tx(Some(LOOK))? {
            continue;
        }
        let mut tx = port.tx(0);
        for mut slot in tx.batch(64) {
            frame::build(&mut bytes, dst, src, flow, number);
            slot.write(&bytes);
            number += 1;
        }
        tx.sync();
        progress.frames.store(number, Relaxed);
    }
    Ok(())
}

/// The same without ever waiting for room.
pub fn push(port: &mut Port, flow: u32, progress: &Progress) -> Result<(), Error> {
    let (src, dst) = (frame::mac(flow, 0), frame::mac(flow, 1));
    let (mut bytes, mut number) = (Vec::new(), 0);
    while !progress.stop.load(Relaxed) {
        let mut tx = port.tx(0);
        for mut slot in tx.batch(1) {
            frame::build(&mut bytes, dst, src, flow, number);
            slot.write(&bytes);
            number += 1;
        }
        tx.sync();
        progress.frames.store(number, Relaxed);
        port.check(Interest::Tx)?;
    }
    Ok(())
}

/// Lets a bridge know where the frames of `flow` are to go; where there are no tx rings, nobody.
pub fn announce(port: &mut Port, flow: u32) {
    if port.tx_rings() == 0 {
        return;
    }
    let mut hello = vec![0; 60];
    hello[..6].copy_from_slice(&frame::BROADCAST);
    hello[6..12].copy_from_slice(&frame::mac(flow, 1));
    port.tx(0).push(&hello);
    port.tx(0).sync();
}

/// Receives frames of any flow. Within a flow numbers go up. Panics at a frame that is damaged
/// or out of order.
pub fn receive(port: &mut Port, progress: &Progress) -> Result<(), Error> {
    let mut last = HashMap::new();
    let mut spare = Vec::new();
    while !progress.stop.load(Relaxed) {
        if !port.wait_rx(Some(LOOK))? {
            continue;
        }
        for received in port.rx(0).batch(256) {
            match frame::look(&received.to_vec(), &mut spare) {
                Seen::Foreign => continue,
                Seen::Wrong => panic!("wrong: a damaged frame: {:?}", received.to_vec()),
                Seen::Ours { flow, number } => {
                    let before = last.insert(flow, number);
                    let after = before.is_none_or(|before| number > before);
                    assert!(after, "wrong: {number} of flow {flow} after {before:?}");
                    progress.flow.store(flow.into(), Relaxed);
                    progress.frames.fetch_add(1, Relaxed);
                }
            }
        }
    }
    Ok(())
}
