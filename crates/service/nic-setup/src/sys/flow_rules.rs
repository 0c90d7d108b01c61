//! The requests of ethtool's that steering needs, one method each.
#![expect(
    clippy::indexing_slicing,
    reason = "words of structures that were allocated with these in them; counts that the kernel gives are bounded"
)]

use std::{io, mem::offset_of};

use rustix::{
    fd::{AsFd, OwnedFd},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

use super::ethtool::ethtool;
use crate::{
    privileges::unprivileged,
    rtnl::{link_by_index, link_by_name},
};

const GFLAGS: u32 = 0x25;
const SFLAGS: u32 = 0x26;
const GRXRINGS: u32 = 0x2d;
const GRXCLSRLCNT: u32 = 0x2e;
const GRXCLSRLALL: u32 = 0x30;
const SRXCLSRLDEL: u32 = 0x31;
const SRXCLSRLINS: u32 = 0x32;
const GRXFHINDIR: u32 = 0x38;
const SRXFHINDIR: u32 = 0x39;

/// `ETH_FLAG_NTUPLE`: flow rules are in force.
const NTUPLE: u32 = 1 << 27;
/// In the count of rules: the driver chooses places.
const LOC_SPECIAL: u64 = 1 << 31;
/// Any place.
pub(crate) const LOC_ANY: u32 = u32::MAX;

/// `union ethtool_flow_union`: what to match, or which of its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match(pub [u8; 52]);

impl Default for Match {
    fn default() -> Match {
        Match([0; 52])
    }
}

/// `struct ethtool_rx_flow_spec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowSpec {
    pub flow_type: u32,
    pub value: Match,
    value_ext: [u32; 5],
    pub mask: Match,
    mask_ext: [u32; 5],
    pub ring_cookie: u64,
    pub location: u32,
    end: u32,
}
const _: () = assert!(size_of::<FlowSpec>() == 168 && offset_of!(FlowSpec, ring_cookie) == 152);

impl FlowSpec {
    pub fn new(flow_type: u32, value: Match, mask: Match, queue: u32, location: u32) -> FlowSpec {
        let ring_cookie = queue.into();
        FlowSpec { flow_type, value, mask, ring_cookie, location, ..FlowSpec::default() }
    }
}

/// `struct ethtool_rxnfc`, without the array at its end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Rxnfc {
    cmd: u32,
    flow_type: u32,
    data: u64,
    fs: FlowSpec,
    rule_cnt: u32,
    end: u32,
}
const _: () = assert!(size_of::<Rxnfc>() == 192 && offset_of!(Rxnfc, rule_cnt) == 184);

/// Words of the same, with the array that follows.
const DATA_LOW: usize = if cfg!(target_endian = "big") { 3 } else { 2 };
const RULE_CNT: usize = 184 / 4;
const RULE_LOCS: usize = 188 / 4;

/// Where the driver keeps rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// How many there are.
    pub size: usize,
    pub taken: Vec<u32>,
    /// The driver chooses one itself.
    pub special: bool,
}

/// An interface of the network namespace of the calling thread.
pub(crate) struct Ethtool {
    socket: OwnedFd,
    name: String,
    index: u32,
}

fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

impl Ethtool {
    /// The interface that is known by that name, one of its alternative names perhaps.
    pub fn new(interface: &str) -> io::Result<Ethtool> {
        let link = link_by_name(interface)?;
        let name = link.text(libc::IFLA_IFNAME).unwrap_or(interface).into();
        Ok(Ethtool { socket: socket()?, name, index: link.index })
    }

    /// By the number of the interface, whatever it is called now.
    pub fn by_index(index: u32) -> io::Result<Ethtool> {
        let link = link_by_index(index)?;
        let name = link.text(libc::IFLA_IFNAME).ok_or(io::ErrorKind::InvalidData)?.into();
        Ok(Ethtool { socket: socket()?, name, index })
    }

    /// The interface's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Receive queues.
    pub fn queues(&self) -> io::Result<u32> {
        let mut ask = Rxnfc { cmd: GRXRINGS, ..Rxnfc::default() };
        // SAFETY: the structure of the command, without an array.
        unsafe { self.ask(std::slice::from_mut(&mut ask))? };
        Ok(ask.data as u32)
    }

    /// The RSS table.
    pub fn table(&self) -> io::Result<Vec<u32>> {
        let mut ask = [GRXFHINDIR, 0];
        // SAFETY: the structure of the command, with room for no entry, as its second word says.
        unsafe { self.ask(&mut ask)? };
        let mut table = vec![0; 2 + ask[1] as usize];
        (table[0], table[1]) = (GRXFHINDIR, ask[1]);
        // SAFETY: the same, with room for as many entries as its second word says.
        unsafe { self.ask(&mut table)? };
        Ok(table.split_off(2))
    }

    /// Sets it; an empty one stands for the driver's own.
    pub fn set_table(&self, table: &[u32]) -> io::Result<()> {
        let mut change = [&[SRXFHINDIR, table.len() as u32], table].concat();
        // SAFETY: the structure of the command, with as many entries as its second word says.
        unsafe { self.change(&mut change) }
    }

    /// Whether flow rules are in force.
    pub fn ntuple(&self) -> io::Result<bool> {
        Ok(self.flags()? & NTUPLE != 0)
    }

    pub fn set_ntuple(&self, on: bool) -> io::Result<()> {
        let flags = self.flags()?;
        let flags = if on { flags | NTUPLE } else { flags & !NTUPLE };
        // SAFETY: the structure of the command: two words.
        unsafe { self.change(&mut [SFLAGS, flags]) }
    }

    fn flags(&self) -> io::Result<u32> {
        let mut ask = [GFLAGS, 0];
        // SAFETY: the structure of the command: two words.
        unsafe { self.ask(&mut ask)? };
        Ok(ask[1])
    }

    /// The places for rules.
    pub fn places(&self) -> io::Result<Places> {
        let mut count = Rxnfc { cmd: GRXCLSRLCNT, ..Rxnfc::default() };
        // SAFETY: the structure of the command, without an array.
        unsafe { self.ask(std::slice::from_mut(&mut count))? };
        // Word by word: the array follows `rule_cnt` at once, within the structure's last word.
        let mut list = vec![0; RULE_LOCS + count.rule_cnt as usize + 1];
        (list[0], list[RULE_CNT]) = (GRXCLSRLALL, count.rule_cnt);
        // SAFETY: the structure of the command, with room for as many places as its `rule_cnt` says.
        unsafe { self.ask(&mut list)? };
        let found = list[RULE_CNT].min(count.rule_cnt) as usize;
        let taken = list[RULE_LOCS..][..found].to_vec();
        let size = u64::from(list[DATA_LOW]) & !LOC_SPECIAL;
        Ok(Places { size: size as usize, taken, special: count.data & LOC_SPECIAL != 0 })
    }

    /// Adds a rule; returns its place.
    pub fn insert(&self, spec: FlowSpec) -> io::Result<u32> {
        let mut rule = Rxnfc { cmd: SRXCLSRLINS, fs: spec, ..Rxnfc::default() };
        // SAFETY: the structure of the command, without an array.
        unsafe { self.change(std::slice::from_mut(&mut rule))? };
        Ok(rule.fs.location)
    }

    /// Removes the rule at a place.
    pub fn delete(&self, location: u32) -> io::Result<()> {
        let fs = FlowSpec { location, ..FlowSpec::default() };
        let mut rule = Rxnfc { cmd: SRXCLSRLDEL, fs, ..Rxnfc::default() };
        // SAFETY: the structure of the command, without an array.
        unsafe { self.change(std::slice::from_mut(&mut rule)) }
    }

    /// A question, which anybody may ask: without privileges the kernel loads no module, should the name
    /// be another's by now.
    ///
    /// # Safety
    /// As [`ethtool`].
    unsafe fn ask<T>(&self, data: &mut [T]) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unprivileged(|| unsafe { ethtool(self.socket.as_fd(), &self.name, data) })?
    }

    /// A change, right after the name was seen to be an interface's: for one that it does not know the
    /// kernel loads a module.
    ///
    /// # Safety
    /// As [`ethtool`].
    unsafe fn change<T>(&self, data: &mut [T]) -> io::Result<()> {
        match link_by_name(&self.name)?.index == self.index {
            // SAFETY: the caller's promise.
            true => unsafe { ethtool(self.socket.as_fd(), &self.name, data) },
            false => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        }
    }
}
