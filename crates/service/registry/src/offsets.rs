//! Where packets begin in the buffers of a port's rings (S-OFF).

use ringway_abi::Dir;
use ringway_proto::{Offsets, Result};

use crate::{
    kinds::monitor::no_offsets,
    options::{join, mask},
    port::Port,
    selection::Selection,
};

impl Port {
    /// Installs offsets in the rings of a new binding (S-OFF-1..4); `room`: bytes of a buffer.
    /// What drives the rings is to be told.
    pub fn set_offsets(&mut self, rings: &Selection, asked: &mut Offsets, room: u32) -> Result<()> {
        let name = &self.name;
        let [tx, rx] = rings;
        let nic = |dir, taken: &[u16]| {
            let count = self.nic_rings(dir).len();
            taken.iter().all(|&i| usize::from(i) < count)
        };
        let host = !nic(Dir::Tx, tx) || !nic(Dir::Rx, rx);
        if host {
            return Err(no_offsets(name));
        }
        self.backend.check_offsets(self, asked, !rx.is_empty())?;
        let mask = mask(asked, name, room)?;
        let chosen =
            |dir: Dir| if dir == Dir::Tx { tx } else { rx }.iter().map(|&i| usize::from(i));
        let mut joined = [Vec::new(), Vec::new()];
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(&mut joined) {
            let before = |i: usize| self.rings(dir).get(i).and_then(|ring| ring.offsets);
            *joined = chosen(dir)
                .map(|i| join(asked, name, mask, before(i)))
                .collect::<Result<Vec<_>>>()?;
        }
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(joined) {
            for (i, offsets) in chosen(dir).zip(joined) {
                let Some(ring) = self.rings_mut(dir).get_mut(i) else { continue };
                let view = ring.kring.ring();
                offsets.note(&ring.kring);
                view.set_offset_mask(offsets.mask);
                if asked.initial != 0 && ring.users == 0 {
                    for slot in 0..view.num_slots() {
                        let [word, ptr] = view.slot_words(slot);
                        let ptr = ptr & !offsets.mask | asked.initial;
                        view.set_slot_words(slot, [word, ptr]);
                    }
                }
                ring.offsets = Some(offsets);
                asked.max = offsets.max.into();
            }
        }
        Ok(())
    }
}
