//! Two namespaces joined by a veth pair, with a socket at an end.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod nic;

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use ringway_nic_setup::{AttachMode, Error, Interface, Mode, XdpProgram, Xsk, XskConfig, in_netns};
use ringway_region::Buf;
use ringway_testkit::{Netns, VethPair};
use ringway_xdp::{FrameMemory, FrameQueue, RingSizes, Umem};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_send_buffer_size_force;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub const CHUNKS: u32 = 1024;
pub const SIZES: RingSizes = RingSizes { fill: 1024, completion: 512, rx: 1024, tx: 512 };

/// `a0` in one namespace, `b0` in the other; nothing but the tests sends on them.
pub struct Wire {
    pub pair: VethPair,
    pub a: Netns,
    pub b: Netns,
}

impl Wire {
    pub fn new() -> Wire {
        let (a, b) = (Netns::new("xa"), Netns::new("xb"));
        for netns in [&a, &b] {
            // Else the stack's own IPv6 frames mix with the tests'.
            netns.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        }
        let pair = a.veth(&b, "a0", "b0");
        Wire { pair, a, b }
    }

    /// The MTU of both ends, which must not have programs yet.
    pub fn set_mtu(&self, mtu: u32) {
        self.a.run(&format!("ip link set a0 mtu {mtu}"));
        self.b.run(&format!("ip link set b0 mtu {mtu}"));
    }

    /// Makes the kernel look at what arrives on `b0` once in `milliseconds` only.
    pub fn hold_frames_at_b(&self, milliseconds: u32) {
        self.b.run(&format!(
            "echo 1 > /sys/class/net/b0/napi_defer_hard_irqs &&
             echo {milliseconds}000000 > /sys/class/net/b0/gro_flush_timeout"
        ));
    }
}

pub fn attach(netns: &Netns, name: &str) -> Result<XdpProgram, Error> {
    let modes = [AttachMode::Native, AttachMode::Generic];
    let attach = || XdpProgram::attach_as(&Interface::by_name(name)?, &modes, None);
    in_netns(netns.fd().as_fd(), attach).unwrap()
}

/// Attaches a program where another one of this process may have been until now: the kernel detaches that with
/// the last copy of its link, and a process that another test starts has a copy until it executes its
/// program. Panics after half a minute, which only a bug takes.
pub fn attach_again(
    netns: &Netns,
    attach: impl Fn() -> Result<XdpProgram, Error> + Sync,
) -> XdpProgram {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match in_netns(netns.fd().as_fd(), &attach).unwrap() {
            Err(Error::Occupied { .. }) if Instant::now() < deadline => thread::yield_now(),
            result => return result.unwrap(),
        }
    }
}

/// Waits until that is so of an interface, as `ip` shows it: what goes with the last copy of a descriptor may
/// stay a moment, as above. Panics after half a minute.
pub fn wait_for_link(netns: &Netns, name: &str, is_so: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = netns.run(&format!("ip -d link show {name}"));
        if is_so(&shown) {
            return;
        }
        assert!(Instant::now() < deadline, "{shown}");
    }
}

pub fn open(netns: &Netns, name: &str, queue: u32, modes: &[Mode]) -> Result<(Xsk, Umem), Error> {
    in_netns(netns.fd().as_fd(), || {
        let umem = Umem::anonymous(CHUNKS, 2048).unwrap();
        let config = XskConfig {
            interface: &Interface::by_name(name)?,
            queue,
            memory: FrameMemory::of_umem(&umem),
            chunk_size: umem.chunk_size(),
            sizes: SIZES,
            frags: false,
            modes,
        };
        Ok((Xsk::open(&config)?, umem))
    })
    .unwrap()
}

/// Attached, opened on queue 0 and pointed at each other.
pub fn endpoint(netns: &Netns, name: &str) -> (XdpProgram, Xsk, Umem) {
    let mut program = attach(netns, name).unwrap();
    let (xsk, umem) = open(netns, name, 0, Mode::preference(program.mode())).unwrap();
    program.set_queue(0, &xsk.socket).unwrap();
    (program, xsk, umem)
}

pub fn frame_queue(netns: &Netns, name: &str) -> (XdpProgram, FrameQueue) {
    let (program, xsk, umem) = endpoint(netns, name);
    (program, FrameQueue::new(xsk.socket, umem).unwrap())
}

/// How many bytes may be on their way: a small number makes the kernel refuse before veth's ring of
/// 256 is full, a large one fills it.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) {
    set_socket_send_buffer_size_force(socket, bytes).unwrap();
}

/// Waits until the socket can be read; panics after half a minute, which only a bug takes.
pub fn wait_readable(socket: impl AsFd) {
    let mut fds = [PollFd::new(&socket, PollFlags::IN)];
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert!(poll(&mut fds, Some(&limit)).unwrap() > 0, "nothing arrives");
}

/// Stages `bytes`; false when there is no room.
pub fn send(queue: &mut FrameQueue, bytes: &[u8]) -> bool {
    let Some(room) = queue.send(bytes.len() as u32) else { return false };
    room.write(0, bytes) == bytes.len()
}

/// Receives what is there, as copies.
pub fn recv(queue: &mut FrameQueue) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    queue.recv(u32::MAX, |frame| frames.push(copy(frame.data)));
    frames
}

/// All that is in a buffer.
pub fn copy(data: Buf<'_>) -> Vec<u8> {
    let mut bytes = vec![0; data.size() as usize];
    data.copy_to(bytes.len(), &mut bytes);
    bytes
}

/// The word in front of a frame that was taken: its timestamp, if it has one.
pub fn in_front(queue: &FrameQueue, address: u64) -> u64 {
    let (_, word) = queue.umem().locate(address - 8, 8).expect("a chunk has room in front");
    u64::from_ne_bytes(word.read(0).expect("eight bytes"))
}

/// Keeps the calling thread, and with it what it sends, on one processor.
pub fn stay_on_one_cpu() {
    let allowed = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..).find(|&cpu| allowed.is_set(cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
}
