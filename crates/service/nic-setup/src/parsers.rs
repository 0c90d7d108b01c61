//! What this crate reads from netlink, of bytes that are given: for fuzz targets.

use std::io;

use crate::{LinkState, genl, rtnl, watch};

/// A link as it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTold {
    /// `ARPHRD_*`.
    pub hardware: u16,
    /// Its number.
    pub index: u32,
    /// `IFF_*`.
    pub flags: i32,
    /// Attributes of it, where they are there, and are of their kind.
    pub name: Option<String>,
    /// See `name`.
    pub mtu: Option<u32>,
}

/// News of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// What has become of it.
    pub state: LinkState,
    /// Where they are told.
    pub mtu: Option<u32>,
    /// See `mtu`.
    pub name: Option<String>,
}

/// The answer to a question for a link.
///
/// # Errors
/// What the kernel says, or that it is no such answer.
pub fn link(answer: &[u8]) -> io::Result<LinkTold> {
    let link = rtnl::LinkAnswer::read(answer)?;
    Ok(LinkTold {
        hardware: link.hardware,
        index: link.index,
        flags: link.flags,
        name: link.text(libc::IFLA_IFNAME).map(str::to_owned),
        mtu: link.number(libc::IFLA_MTU),
    })
}

/// The answer to a request that is to be carried out.
///
/// # Errors
/// As [`link`].
pub fn outcome(answer: &[u8]) -> io::Result<()> {
    rtnl::outcome(answer)
}

/// What a datagram says of link `index`.
pub fn news(datagram: &[u8], index: u32) -> Vec<News> {
    let told = watch::told(datagram, index);
    told.map(|told| News { state: told.state, mtu: told.mtu, name: told.name.map(str::to_owned) })
        .collect()
}

/// The payload of the first attribute of `kind` in an answer by generic netlink.
pub fn general(answer: &[u8], kind: u16) -> Option<Vec<u8>> {
    rtnl::find(&genl::attributes(answer).ok()?, kind).map(<[u8]>::to_vec)
}
