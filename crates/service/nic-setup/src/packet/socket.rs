//! The privileged half: sockets for a queue of an interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{SOL_PACKET, c_int};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};

use ringway_packet::{Geometry, PATIENCE_MS, socket as sys};

use serde::{Deserialize, Serialize};

use super::filter;
use crate::operation::{OpenMessages, OpenRxSocket, OpenTxSocket};
use crate::parcel::Fd;
use crate::{Error, helper, parcel};

/// Bytes of frames that may be on their way to the interface.
const SEND_BUFFER: usize = 4 << 20;

/// Bytes of messages that may wait to be received.
const RECEIVE_BUFFER: usize = 4 << 20;

const REMEDY: &str = "run with CAP_NET_RAW; the kernel needs CONFIG_PACKET";

/// What to listen to.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// For messages.
    pub interface: &'a str,
    /// Of the network namespace that the calling thread is in.
    pub ifindex: u32,
    /// The queue, of how many.
    pub queue: u32,
    pub queues: u32,
    /// Frames with this mark are none of the interface's: programs have sent them to the stack.
    pub ignored_mark: u32,
    /// Whether the NIC is to tell when it has received a frame, where it can.
    pub hardware_time: bool,
}

/// A socket that receives what comes in by a queue, into a ring of blocks. Its descriptor and the
/// [`Geometry`] are all that another process needs.
#[derive(Debug, Serialize, Deserialize)]
pub struct RxSocket {
    #[serde(with = "parcel::fd")]
    pub fd: OwnedFd,
    #[serde(with = "GeometryDef")]
    pub geometry: Geometry,
    ifindex: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Geometry")]
struct GeometryDef {
    block_size: u32,
    blocks: u32,
}

impl RxSocket {
    /// Opens a socket that does not [listen](Self::listen) yet. Needs CAP_NET_RAW.
    pub fn open(source: &Source<'_>) -> Result<RxSocket, Error> {
        let &Source { interface, ifindex, queue, queues, ignored_mark, hardware_time } = source;
        let interface = interface.into();
        helper::run(OpenRxSocket { interface, ifindex, queue, queues, ignored_mark, hardware_time })
    }

    pub(crate) fn open_here(source: &Source<'_>) -> Result<RxSocket, Error> {
        let geometry = Geometry::DEFAULT;
        let open = || -> io::Result<OwnedFd> {
            let fd = sys::new()?;
            let socket = fd.as_fd();
            let number = |option, value: c_int| sys::set_option(socket, SOL_PACKET, option, &value);
            number(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int)?;
            number(libc::PACKET_IGNORE_OUTGOING, 1)?;
            // In front of each frame: which checksum is missing, and whether it is many in one.
            number(libc::PACKET_VNET_HDR, 1)?;
            if source.hardware_time {
                number(libc::PACKET_TIMESTAMP, libc::SOF_TIMESTAMPING_RAW_HARDWARE as c_int)?;
            }
            let mut program = filter::program(source.queue, source.queues, source.ignored_mark);
            sys::set_filter(socket, &mut program)?;
            sys::set_option(socket, SOL_PACKET, libc::PACKET_RX_RING, &geometry.ring(PATIENCE_MS))?;
            Ok(fd)
        };
        let what = "no AF_PACKET socket can be made to receive";
        let fd = open().map_err(Error::refused(source.interface, what, REMEDY))?;
        Ok(RxSocket { fd, geometry, ifindex: source.ifindex })
    }

    /// Begins to receive, or ends. It fails when the interface has gone.
    pub fn listen(&self, on: bool) -> io::Result<()> {
        listen(self.as_fd(), self.ifindex, on)
    }
}

/// A socket that does not [listen](listen) yet, and receives messages in place of a ring of blocks: each with
/// a virtio-net header in front and its tag beside it.
pub(crate) fn open_messages(source: &Source<'_>) -> Result<OwnedFd, Error> {
    let interface = source.interface.into();
    let ignored_mark = source.ignored_mark;
    helper::run(OpenMessages { interface, ignored_mark }).map(|fd| fd.0)
}

pub(crate) fn open_messages_here(interface: &str, ignored_mark: u32) -> Result<Fd, Error> {
    let open = || -> io::Result<OwnedFd> {
        let fd = sys::new()?;
        let number = |option, value: c_int| sys::set_option(fd.as_fd(), SOL_PACKET, option, &value);
        number(libc::PACKET_IGNORE_OUTGOING, 1)?;
        number(libc::PACKET_VNET_HDR, 1)?;
        number(libc::PACKET_AUXDATA, 1)?;
        sys::set_filter(fd.as_fd(), &mut filter::program(0, 1, ignored_mark))?;
        // With less room, more is lost of what comes at once.
        let _ = set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER);
        Ok(fd)
    };
    let what = "no AF_PACKET socket can be made to receive";
    open().map(Fd).map_err(Error::refused(interface, what, REMEDY))
}

/// The same for a socket whose owner has it elsewhere.
pub(crate) fn listen(socket: BorrowedFd<'_>, ifindex: u32, on: bool) -> io::Result<()> {
    let protocol = if on { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
    sys::bind(socket, ifindex, protocol)
}

impl AsFd for RxSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket that sends through an interface.
#[derive(Debug, Serialize, Deserialize)]
pub struct TxSocket {
    #[serde(with = "parcel::fd")]
    pub fd: OwnedFd,
}

impl TxSocket {
    /// For interface `ifindex` of the calling thread's network namespace; `interface` is for
    /// messages. Needs CAP_NET_RAW.
    pub fn open(interface: &str, ifindex: u32) -> Result<TxSocket, Error> {
        helper::run(OpenTxSocket { interface: interface.into(), ifindex })
    }

    pub(crate) fn open_here(interface: &str, ifindex: u32) -> Result<TxSocket, Error> {
        let open = || -> io::Result<OwnedFd> {
            let fd = sys::new()?;
            // What is sent passes neither the queueing discipline, which costs time, nor what
            // diverts the stack's own packets.
            let bypass: c_int = 1;
            sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_QDISC_BYPASS, &bypass)?;
            // A smaller buffer only makes for smaller batches.
            let _ = set_socket_send_buffer_size_force(&fd, SEND_BUFFER);
            sys::bind(fd.as_fd(), ifindex, 0)?;
            Ok(fd)
        };
        let what = "no AF_PACKET socket can be made to send";
        Ok(TxSocket { fd: open().map_err(Error::refused(interface, what, REMEDY))? })
    }
}
