//! A reflector on one interface that only its own thread moves: each turn is a call. For measurements.

use std::{
    ffi::{c_int, c_uint},
    ptr,
    sync::Arc,
};

use ringway::Port;
use ringway_qbman::manager;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{
    abi::{qm_dqrr_entry, qm_fd, qm_mcc_initfq, qman_fq, qman_portal},
    dma,
    fman::{self, Distributor, Interface, POOLS},
    netcfg::policy::{Policy, Step},
    ports::{MacType, Place},
    settings::{WE_CONTEXTA, WE_CONTEXTB, WE_DESTWQ},
};

// What programs in C call.
unsafe extern "C" {
    fn qman_thread_init() -> c_int;
    fn qman_create_fq(fqid: u32, flags: u32, fq: *mut qman_fq) -> c_int;
    fn qman_init_fq(fq: *mut qman_fq, flags: u32, opts: *const qm_mcc_initfq) -> c_int;
    fn qman_static_dequeue_add(pools: u32);
    fn qman_poll_dqrr(limit: c_uint) -> c_int;
    fn qman_enqueue(fq: *mut qman_fq, fd: *const qm_fd, flags: u32) -> c_int;
}

/// Frame queues of received frames.
const FLOWS: u32 = 8;
const FIRST: u32 = 0x400;
/// The first pool of portals, as a channel and in the mask of static dequeues.
const CHANNEL: u16 = 0x21;
const POOL: u32 = 0x4000;
const TO_DCPORTAL: u32 = 4;
const SCHEDULED: u32 = 1;
const NO_CONFIRM: u32 = 0x8000_0000;
/// Frames that a poll hands out.
const POLL: c_uint = 16;

/// A frame queue, and where its frames are sent from.
#[repr(C)]
struct Flow {
    fq: qman_fq,
    out: *mut qman_fq,
}

/// It has a portal of its thread, and buffers; it lives as long as the process.
pub struct Reflector {
    _interface: Arc<Interface>,
}

impl Reflector {
    /// Over a port, with so many buffers.
    ///
    /// # Panics
    /// If the process has one already, or has no memory.
    pub fn new(port: Port, buffers: u32) -> Reflector {
        one_cpu();
        let place = Place { fman: 0, mac_type: MacType::TenGigabit, number: 0 };
        let interface = Interface::without_worker(place, 0, Some(port)).expect("it has its files");
        let key = ["ipv4.src", "ipv4.dst"].map(String::from).to_vec();
        let step = Step { key, base: FIRST, count: FLOWS, ..Step::default() };
        let policy = Policy { steps: vec![step], default: FIRST, ..Policy::default() };
        interface.set_distributor(Distributor::new(&policy));
        interface.set_receives(true);
        let (pool, size) = POOLS[0];
        let map = dma::create(0, None, (buffers * size) as usize).expect("there is memory");
        for buffer in 0..buffers {
            let address = map.address() as u64 + u64::from(buffer * size);
            manager().pools.release(pool, &[address]).expect("there is such a pool");
        }
        // SAFETY: as programs of USDPAA do it: the objects of queues stay, as they are leaked.
        unsafe {
            assert_eq!(qman_thread_init(), 0, "a thread with one CPU and no portal");
            let mut opts: qm_mcc_initfq = std::mem::zeroed();
            opts.we_mask = WE_DESTWQ | WE_CONTEXTA | WE_CONTEXTB;
            opts.fqd.dest_wq = interface.numbers.channel << 3 | 3;
            opts.fqd.context_a_hi = NO_CONFIRM;
            let out = flow(None);
            assert_eq!(qman_create_fq(FIRST + FLOWS, TO_DCPORTAL, out.cast()), 0);
            assert_eq!(qman_init_fq(out.cast(), SCHEDULED, &opts), 0);
            opts.we_mask = WE_DESTWQ;
            opts.fqd.dest_wq = CHANNEL << 3 | 4;
            for fqid in FIRST..FIRST + FLOWS {
                let queue = flow(Some(out.cast()));
                assert_eq!(qman_create_fq(fqid, 0, queue.cast()), 0);
                assert_eq!(qman_init_fq(queue.cast(), SCHEDULED, &opts), 0);
            }
            qman_static_dequeue_add(POOL);
        }
        fman::interfaces_mut().push(interface.clone());
        Reflector { _interface: interface }
    }

    /// Polls until that many frames were handed out, and what they have become is sent.
    pub fn turn(&self, frames: u32) {
        let mut left = frames;
        while left > 0 {
            // SAFETY: no arguments to be wrong; the callbacks are `on_frame`.
            left -= unsafe { qman_poll_dqrr(POLL) } as u32;
        }
        // Nothing is there: the interface has its turn.
        // SAFETY: as above.
        unsafe { qman_poll_dqrr(POLL) };
    }
}

/// A queue's object, which sends its frames from another.
fn flow(out: Option<*mut qman_fq>) -> *mut Flow {
    // SAFETY: functions that there are none of, numbers, and a mutex that nobody locks.
    let mut flow: Box<Flow> = unsafe { Box::new(std::mem::zeroed()) };
    flow.fq.cb.dqrr = out.map(|_| on_frame as _);
    flow.out = out.unwrap_or(ptr::null_mut());
    Box::into_raw(flow)
}

/// Exchanges the addresses of a frame, and sends it.
///
/// # Safety
/// The queue is the first field of a `Flow`, and the entry's frame is in a buffer of the interface's.
unsafe extern "C" fn on_frame(
    _portal: *mut qman_portal,
    fq: *mut qman_fq,
    entry: *const qm_dqrr_entry,
) -> c_int {
    // SAFETY: the queue is a `Flow`, and the frame's buffer is this function's.
    unsafe {
        let frame = ringway_qbman::Frame::from((*entry).fd);
        let start = (frame.address() + u64::from(frame.offset())) as *mut [u8; 6];
        ptr::swap_nonoverlapping(start, start.add(1), 1);
        assert_eq!(qman_enqueue((*fq.cast::<Flow>()).out, &(*entry).fd, 0), 0);
    }
    0
}

/// Binds the thread to a CPU that it may run on, as portals want it.
fn one_cpu() {
    let all = sched_getaffinity(None).expect("a thread may ask");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("it runs on one"));
    sched_setaffinity(None, &one).expect("it was one of its own");
}
