//! The kernel's machine, with the translated filter in an XDP program, and in a tc program.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use ringway_filter::{Assembler, CONTEXT, Ebpf, Operand, Packet, Program, reg, translate};

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
/// Program types.
const CLASSIFIER: u32 = 3;
const XDP: u32 = 6;
const MATCH: u32 = 2;
const NO_MATCH: u32 = 1;

/// Whether this process may ask the kernel.
pub fn may_load() -> bool {
    // SAFETY: the call takes nothing.
    unsafe { libc::geteuid() == 0 }
}

/// A filter that the kernel has verified and compiled, for each kind of packet.
pub struct Loaded([OwnedFd; 3]);

impl Loaded {
    /// Panics with the verifier's words if it refuses.
    pub fn new(filter: &Program) -> Loaded {
        let kinds = [(XDP, Packet::Xdp), (XDP, Packet::XdpByCopy), (CLASSIFIER, Packet::Skb)];
        Loaded(kinds.map(|(kind, packet)| {
            let insns = program(filter, packet);
            load(kind, &insns, &mut []).unwrap_or_else(|_| {
                let mut log = vec![0; 1 << 20];
                let error = load(kind, &insns, &mut log).expect_err("it was refused before");
                let log = String::from_utf8_lossy(&log);
                let end = log.trim_end_matches('\0');
                panic!("{error}: {filter:?}\n{}", &end[end.len().saturating_sub(4000)..]);
            })
        }))
    }

    /// Whether `packet`, of 14 to 3000 bytes, matches. All programs must say the same.
    pub fn matches(&self, packet: &[u8]) -> bool {
        let [xdp, by_copy, skb] = &self.0;
        let matches = run(xdp, packet);
        assert_eq!(run(by_copy, packet), matches, "the program that copies");
        if makes_skb(packet) {
            assert_eq!(run(skb, packet), matches, "the program of tc");
        }
        matches
    }
}

/// Whether the kernel makes an skb of the packet to run a program of tc: what says that it is IP must
/// have its header, and nothing may end with that of Ethernet.
fn makes_skb(packet: &[u8]) -> bool {
    let payload = match packet[12..14] {
        [0x08, 0x00] => 20,
        [0x86, 0xdd] => 40,
        _ => 1,
    };
    packet.len() >= 14 + payload
}

fn run(program: &OwnedFd, packet: &[u8]) -> bool {
    let mut attr = [0u32; 20];
    attr[0] = program.as_raw_fd() as u32;
    attr[2] = packet.len() as u32;
    attr[4..6].copy_from_slice(&halves(packet.as_ptr() as u64));
    attr[8] = 1;
    bpf(BPF_PROG_TEST_RUN, &mut attr).expect("a test run");
    match attr[1] {
        MATCH => true,
        NO_MATCH => false,
        other => panic!("the program returned {other}"),
    }
}

fn program(filter: &Program, packet: Packet) -> Vec<Ebpf> {
    let mut asm = Assembler::new();
    let (accept, reject) = (asm.label(), asm.label());
    asm.set(CONTEXT, Operand::Register(reg::R1));
    translate(filter, packet, &mut asm, accept, reject);
    for (label, verdict) in [(accept, MATCH), (reject, NO_MATCH)] {
        if asm.place(label) {
            asm.set(reg::R0, Operand::Constant(verdict));
            asm.exit();
        }
    }
    asm.finish().expect("the filter is short")
}

fn load(kind: u32, insns: &[Ebpf], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attr = [0u32; 20];
    attr[0] = kind;
    attr[1] = insns.len() as u32;
    attr[2..4].copy_from_slice(&halves(insns.as_ptr() as u64));
    attr[4..6].copy_from_slice(&halves(c"GPL".as_ptr() as u64));
    if !log.is_empty() {
        attr[6] = 1;
        attr[7] = log.len() as u32;
        attr[8..10].copy_from_slice(&halves(log.as_mut_ptr() as u64));
    }
    // SAFETY: a new descriptor, which nobody else has.
    bpf(BPF_PROG_LOAD, &mut attr).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn halves(address: u64) -> [u32; 2] {
    let bytes = address.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

fn bpf(command: libc::c_long, attr: &mut [u32; 20]) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes `attr`, and reads what its addresses name: slices that
    // the callers above borrow, of the lengths given beside them.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
