//! Any requests of a broker that an attacker controls, with descriptors of all kinds, to the NIC helper: it
//! answers or refuses, and in the end the interfaces that it did not make itself are there as before.
//!
//! The input is a list of records: two bytes of length, the number of descriptors, what each of them is, and
//! the bytes of the request. What was answered with goes with later requests. As root the requests are
//! carried out, in a network namespace of the fuzzer's own; else the kernel refuses most.
#![no_main]

#[path = "nic_helper/descriptors.rs"]
mod descriptors;

use std::{ffi::c_char, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use ringway_nic_setup::{Interface, Parcel, carry_out};
use ringway_testkit::{Netns, is_root, isolate_thread};

use crate::descriptors::descriptor;

/// Requests of an input, so that it ends soon.
const LONGEST: usize = 12;
/// Descriptors of a request, and those that are kept of answers.
const DESCRIPTORS: usize = 16;
const KEPT: usize = 64;
/// The interfaces that there are: a pair.
const INTERFACES: [&str; 2] = ["n0", "n1"];

/// The interfaces, as they were in the beginning; none without root.
fn before() -> &'static [Interface] {
    static BEFORE: OnceLock<Vec<Interface>> = OnceLock::new();
    BEFORE.get_or_init(|| {
        if !is_root() {
            return Vec::new();
        }
        isolate_thread();
        Netns::root().run(
            "ip link add n0 numrxqueues 2 numtxqueues 2 up type veth peer name n1 && \
             ip link set n1 up",
        );
        INTERFACES.map(|name| Interface::by_name(name).expect("it was made")).into()
    })
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

fn run(mut bytes: &[u8]) -> Option<()> {
    let before = before();
    let mut kept = Vec::new();
    for _ in 0..LONGEST {
        let Some(&[low, high, count]) = take(&mut bytes, 3) else { break };
        let Some(kinds) = take(&mut bytes, usize::from(count) % (DESCRIPTORS + 1)) else { break };
        let request = take(&mut bytes, u16::from_le_bytes([low, high]).into());
        let request = request.unwrap_or(std::mem::take(&mut bytes));
        let fds = kinds.iter().map(|&kind| descriptor(kind, &kept));
        let parcel = Parcel { bytes: request.to_vec(), fds: fds.collect() };
        match carry_out(parcel) {
            Ok(answer) => kept.extend(answer.fds),
            Err(error) => {
                let errno = error.raw_os_error();
                assert!(matches!(errno, Some(libc::EINVAL | libc::EMFILE)), "{error}");
            }
        }
        kept.truncate(KEPT);
    }
    drop(kept);
    for interface in before {
        assert_eq!(Interface::by_name(&interface.name).as_ref().ok(), Some(interface));
    }
    Some(())
}

/// What belongs to a thread that is being started is taken for a leak; descriptors are compared with what there
/// was instead.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"detect_leaks=0".as_ptr()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fuzz_target!(|bytes: &[u8]| {
    before();
    let open = descriptors();
    run(bytes);
    assert_eq!(descriptors(), open);
});
