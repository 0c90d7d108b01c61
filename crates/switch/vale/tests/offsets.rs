//! Offsets (S-OFF-5, 6), against a model: where data is read and written, and what slots say.

mod common;

use common::{BROADCAST, Client, barrier, header, mac};
use proptest::prelude::*;
use ringway_abi::Dir;
use ringway_kring::Offsets;
use ringway_vale::Bridge;

const BUF: u32 = common::BUF_SIZE;

/// A mask of whole bits, and a greatest offset that fits it.
fn offsets() -> impl Strategy<Value = Option<Offsets>> {
    let gap = prop_oneof![2 => Just(0), 1 => 1..2 * BUF, 1 => Just(u32::MAX)];
    let some = (6u32..=64, 0..=BUF, gap).prop_map(|(bits, max, gap)| {
        let mask = u64::MAX >> (64 - bits);
        Offsets { mask, max: max.min(mask.min(u64::from(BUF)) as u32), gap }
    });
    prop::option::weighted(0.8, some)
}

/// A slot's `ptr`: now and then beyond the mask, or the greatest offset.
fn ptr() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..=u64::from(BUF), 1 => any::<u64>(), 1 => 0u64..64]
}

fn read(offsets: Option<Offsets>, ptr: u64) -> u32 {
    offsets.map_or(0, |o| (ptr & o.mask).min(o.max.into()) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn s_off_5_and_6(
        agreed in [offsets(), offsets()], late: bool,
        frames in prop::collection::vec(([ptr(), ptr()], 14usize..2048), 1..20),
    ) {
        let [tx, rx] = agreed;
        let bridge = Bridge::start("vale-offsets").unwrap();
        let [a, b] = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
        let (place, counters) = if late { a.attach(&bridge) } else { a.attach_with(&bridge, [tx, None]) };
        let (other, received) = if late { b.attach(&bridge) } else { b.attach_with(&bridge, [None, rx]) };
        if late {
            bridge.set_offsets(place, Dir::Tx, 0, tx);
            bridge.set_offsets(other, Dir::Rx, 0, rx);
        }
        let (mut expected, mut bounds, mut bad, mut lost) = (vec![], vec![], 0, 0);
        for (n, ([from, _], len)) in (0..).zip(&frames) {
            let mut bytes = header(BROADCAST, mac(n as u8)).to_vec();
            bytes.resize(*len, n as u8);
            let begin = read(tx, *from);
            let view = a.tx[0].ring();
            view.set_slot_ptr(n, *from);
            a.fill(0, &[&vec![0xee; begin as usize][..], &bytes].concat(), *len as u16, 0, None);
            if begin as usize + len > BUF as usize {
                bad += 1;
                continue;
            }
            let at = expected.len() as u32;
            // The slot's, which the next frame finds if this one is lost.
            let ([_, to], _) = &frames[expected.len()];
            b.rx[0].ring().set_slot_ptr(at, *to);
            let wanted = read(rx, *to);
            let end = match rx.map_or(0, |rx| rx.gap) {
                0 => BUF,
                gap => wanted.saturating_add(gap).min(BUF),
            };
            let room = |begin: u32| begin as usize + len <= end as usize;
            let raised = (wanted..wanted + 64).find(|at| at % 64 == begin % 64).unwrap();
            let fits = rx.is_some_and(|rx| raised <= rx.max) && room(raised);
            let offset = if fits { raised } else { wanted };
            if !room(offset) {
                lost += 1;
                continue;
            }
            let ptr = rx.map_or(*to, |rx| to & !rx.mask | u64::from(offset));
            expected.push((offset, ptr, bytes));
            bounds.push(wanted as usize..end as usize);
        }
        a.tx_sync(0);
        a.drained(0);
        barrier(&bridge);
        let view = b.rx[0].ring();
        let mut got = vec![];
        for at in 0..b.rx[0].hwtail() {
            let slot = view.slot(at);
            let buf = view.buf(slot.buf_idx).unwrap();
            let mut whole = vec![0; BUF as usize];
            buf.copy_to(BUF as usize, &mut whole);
            let bounds = &bounds[at as usize];
            prop_assert!(whole[..bounds.start].iter().chain(&whole[bounds.end..]).all(|b| *b == 0));
            let begin = read(rx, slot.ptr);
            got.push((begin, slot.ptr, whole[begin as usize..][..slot.len.into()].to_vec()));
        }
        prop_assert_eq!(got, expected);
        prop_assert_eq!(counters.totals().drops.too_long, bad);
        prop_assert_eq!(received.totals().drops.too_long, lost);
    }
}
