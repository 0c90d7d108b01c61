//! VLAN tags that stand beside the frame: the hardware took them out, or the stack at the far end of
//! a veth pair never put them in. The XDP program does, before a filter looks at the frame; from one
//! that goes to the stack it takes the tag out again, for the stack has it already.
//!
//! Of an outer and an inner tag it is the outer one. It takes a driver that tells XDP programs of
//! tags (`Documentation/networking/xdp-rx-metadata.rst`; veth, ice, mlx5), and Linux 6.8.
//!
//! What the stack sends may have its tag beside it too, on its way to filters of host rings.

use std::{io, sync::OnceLock};

use ringway_filter::{Assembler, CONTEXT, Label, Operand, STACK, Size, jump, reg::*};
use serde::{Deserialize, Serialize};

use crate::generate::{MD_DATA, MD_DATA_END, XDP_ADJUST_HEAD};
use crate::{Interface, btf, genl, once::ask_once};

/// Bytes of a tag, and of the two addresses, behind which it stands.
const TAG: u32 = 4;
const ADDRESSES: i16 = 12;

/// Where the function leaves the tag, below what clocks and filters use: its kind, as it is on the
/// wire, and its value, as the machine has numbers. All 0: the frame has none beside it.
const KIND: i16 = -STACK - 16;
const VALUE: i16 = KIND + 2;

/// How a program learns the tag: by the function of the kernel's that has this number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Tags(u32);

impl Tags {
    /// `None`: the driver does not tell, or there is no kernel that asks it. The calling thread is in
    /// the interface's network namespace.
    pub fn of(interface: &Interface) -> Option<Tags> {
        genl::tells_vlan_tags(interface.index).then(Tags::find).flatten()
    }

    /// `None`: there is no kernel that asks a driver, or what it says cannot be read now. It is looked up once.
    pub fn find() -> Option<Tags> {
        static NUMBER: OnceLock<Option<u32>> = OnceLock::new();
        let number = || match btf::function("bpf_xdp_metadata_rx_vlan_tag") {
            Ok(number) => Ok(Some(number)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        };
        ask_once(&NUMBER, number).ok().flatten().map(Tags)
    }

    /// Puts the tag into the frame. Goes to `pass` with a frame that cannot take it; there is none.
    pub fn put_in(self, asm: &mut Assembler, pass: Label) {
        let (tagged, done) = (asm.label(), asm.label());
        asm.store(Size::Word, R10, KIND, Operand::Constant(0));
        asm.set(R1, Operand::Register(CONTEXT));
        for (register, at) in [(R2, KIND), (R3, VALUE)] {
            asm.set(register, Operand::Register(R10));
            asm.add(register, Operand::Constant(at as u32));
        }
        asm.call_function(self.0);
        asm.branch(jump::EQ, R0, Operand::Constant(0), tagged);
        // Some drivers leave half a tag.
        asm.store(Size::Word, R10, KIND, Operand::Constant(0));
        asm.jump(done);

        asm.place(tagged);
        asm.load(Size::Word, R7, R10, KIND);
        // The stack has the tag if it gets the frame before it is whole here.
        asm.store(Size::Word, R10, KIND, Operand::Constant(0));
        asm.set(R1, Operand::Register(CONTEXT));
        asm.set(R2, Operand::Constant(TAG.wrapping_neg()));
        asm.call(XDP_ADJUST_HEAD);
        asm.branch(jump::NE, R0, Operand::Constant(0), pass);
        find_addresses(asm, pass);
        move_addresses(asm, TAG as i16, 0);
        asm.store(Size::Word, R10, KIND, Operand::Register(R7));
        asm.load(Size::Half, R1, R10, KIND);
        asm.store(Size::Half, R2, ADDRESSES, Operand::Register(R1));
        asm.load(Size::Half, R1, R10, VALUE);
        asm.network_order(R1, Size::Half);
        asm.store(Size::Half, R2, ADDRESSES + 2, Operand::Register(R1));
        asm.place(done);
    }

    /// Takes it out again, if it was put in.
    pub fn take_out(self, asm: &mut Assembler) {
        let done = asm.label();
        asm.load(Size::Word, R1, R10, KIND);
        asm.branch(jump::EQ, R1, Operand::Constant(0), done);
        find_addresses(asm, done);
        move_addresses(asm, 0, TAG as i16);
        asm.set(R1, Operand::Register(CONTEXT));
        asm.set(R2, Operand::Constant(TAG));
        asm.call(XDP_ADJUST_HEAD);
        asm.place(done);
    }
}

/// Offset in `struct __sk_buff`.
const SKB_VLAN_PRESENT: i16 = 20;
/// Helpers of the kernel.
const SKB_VLAN_PUSH: u32 = 18;
const SKB_VLAN_POP: u32 = 19;
/// Whether the tag of an skb was put in. It survives filters and calls.
const WAS_PUT: u8 = R9;

/// Has the kernel put the tag of what the stack sends into the frame, for a filter to see: it does so
/// with the one that is beside a frame that is given another, which stays beside it.
pub(crate) fn put_into_skb(asm: &mut Assembler) {
    let done = asm.label();
    asm.set(WAS_PUT, Operand::Constant(0));
    asm.load(Size::Word, R1, CONTEXT, SKB_VLAN_PRESENT);
    asm.branch(jump::EQ, R1, Operand::Constant(0), done);
    asm.set(R1, Operand::Register(CONTEXT));
    asm.set(R2, Operand::Constant((libc::ETH_P_8021Q as u16).to_be().into()));
    asm.set(R3, Operand::Constant(0));
    asm.call(SKB_VLAN_PUSH);
    asm.branch(jump::NE, R0, Operand::Constant(0), done);
    asm.set(WAS_PUT, Operand::Constant(1));
    asm.place(done);
}

/// Takes the other away, with which the kernel puts the first beside the frame again.
pub(crate) fn take_out_of_skb(asm: &mut Assembler) {
    let done = asm.label();
    asm.branch(jump::EQ, WAS_PUT, Operand::Constant(0), done);
    asm.set(R1, Operand::Register(CONTEXT));
    asm.call(SKB_VLAN_POP);
    asm.place(done);
}

/// `R2` = the frame, which the verifier is shown to hold addresses and tag, or else goes on there.
fn find_addresses(asm: &mut Assembler, otherwise: Label) {
    asm.load(Size::Word, R2, CONTEXT, MD_DATA);
    asm.load(Size::Word, R3, CONTEXT, MD_DATA_END);
    asm.set(R4, Operand::Register(R2));
    asm.add(R4, Operand::Constant(ADDRESSES as u32 + TAG));
    asm.branch_wide(jump::GT, R4, Operand::Register(R3), otherwise);
}

/// Moves both addresses, in the frame at `R2`.
fn move_addresses(asm: &mut Assembler, from: i16, to: i16) {
    asm.load(Size::Double, R1, R2, from);
    asm.load(Size::Word, R4, R2, from + 8);
    asm.store(Size::Double, R2, to, Operand::Register(R1));
    asm.store(Size::Word, R2, to + 8, Operand::Register(R4));
}
