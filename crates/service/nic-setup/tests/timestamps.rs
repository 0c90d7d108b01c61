//! What the XDP program writes in front of frames, seen in memory that nobody else writes to.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use common::{CHUNKS, Wire, attach_again, copy, frame_queue, open, send, wait_readable};
use ringway_nic_setup::{AttachMode, Filter, Interface, Mode, XdpProgram};
use ringway_region::Timestamps;
use ringway_testkit::{frame, skip_without_root};
use ringway_xdp::{FrameQueue, Umem};

const GARBAGE: u64 = 0x6761_7262_6167_6521;

fn attach(wire: &Wire, mode: AttachMode, timestamps: Option<Timestamps>) -> XdpProgram {
    let attach = || XdpProgram::attach_as(&Interface::by_name("b0").unwrap(), &[mode], timestamps);
    attach_again(&wire.b, attach)
}

/// A socket in memory that is full of garbage.
fn receiver(wire: &Wire, program: &mut XdpProgram) -> FrameQueue {
    let (xsk, umem) = open(&wire.b, "b0", 0, Mode::preference(program.mode())).unwrap();
    fill(&umem);
    program.set_queue(0, &xsk.socket).unwrap();
    FrameQueue::new(xsk.socket, umem).unwrap()
}

fn fill(umem: &Umem) {
    let words = GARBAGE.to_ne_bytes().repeat(umem.chunk_size() as usize / 8);
    for chunk in 0..umem.chunks() {
        let address = u64::from(chunk) * u64::from(umem.chunk_size());
        let (_, bytes) = umem.locate(address, umem.chunk_size()).expect("a chunk");
        assert_eq!(bytes.write(0, &words), words.len());
    }
}

/// What stands in front of the next frame, which is `bytes`.
fn in_front(to: &mut FrameQueue, bytes: &[u8]) -> u64 {
    wait_readable(&*to);
    let mut address = None;
    to.take(1, |received| {
        assert!(copy(received.data) == bytes);
        address = Some(received.address);
    });
    let front = common::in_front(to, address.expect("it was readable"));
    to.give_back();
    front
}

/// Of whatever kind, and with a filter as without: the program writes it into each chunk, over what
/// stood there; who did not ask for any finds that.
#[test]
fn the_program_writes_them() {
    if skip_without_root("the_program_writes_them") {
        return;
    }
    use Timestamps::{Hardware, Software};
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    for (mode, timestamps) in [
        (AttachMode::Native, None),
        (AttachMode::Generic, None),
        (AttachMode::Native, Some(Hardware)),
        (AttachMode::Native, Some(Software)),
        (AttachMode::Generic, Some(Software)),
    ] {
        let mut program = attach(&wire, mode, timestamps);
        let mut b = receiver(&wire, &mut program);
        let accept = ringway_filter::Program::new(vec![ringway_filter::Insn {
            code: 6,
            jt: 0,
            jf: 0,
            k: u32::MAX,
        }]);
        let filter = Filter::new("b0", accept.unwrap(), 1).unwrap();
        let filter = std::sync::Arc::new(filter);
        let mut last = 1;
        // All chunks once: then they come again.
        for i in 0..CHUNKS / 2 {
            if i == CHUNKS / 4 {
                program.set_rules(vec![filter.clone().into()]).unwrap();
            }
            let bytes = frame(i, 60 + i as usize);
            assert!(send(&mut a, &bytes));
            a.flush().unwrap();
            let time = in_front(&mut b, &bytes);
            match timestamps {
                None => assert_eq!(time, GARBAGE),
                // The pair passes on what hardware has received, and nobody here has any.
                Some(Hardware) => assert_eq!(time, 0),
                Some(Software) => assert!(time >= last && time != GARBAGE, "{time}"),
            }
            last = time;
        }
        assert!(timestamps != Some(Software) || last > 1_000_000_000 * 60 * 60 * 24 * 365);
    }
}
