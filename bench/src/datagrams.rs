//! Programs of plain UDP sockets: one takes what comes to an address, many datagrams with one call; another sends there.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::cpu;
use crate::sys::Datagrams;
use crate::turn::{NAP, turn};

/// Datagrams that it takes with one call, at most.
const AT_ONCE: usize = 64;

/// Bytes that the kernel keeps for it.
const ROOM: usize = 4 << 20;

/// The options that matter.
pub fn settings() -> String {
    format!("recvmmsg, {AT_ONCE} datagrams at once, SO_RCVBUFFORCE {} MiB", ROOM >> 20)
}

/// The program. It sleeps in the call.
pub fn play(cpu: Option<usize>, at: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(NAP))?;
    set_socket_recv_buffer_size_force(&socket, ROOM)?;
    let datagrams = Datagrams::<AT_ONCE>::new(socket);
    cpu.map_or(Ok(()), cpu::pin)?;
    let mut failure = Ok(());
    let take = |datagrams: &mut Datagrams<AT_ONCE>| match datagrams.receive() {
        Ok(taken) => taken as u64,
        Err(error) => {
            failure = Err(error);
            0
        }
    };
    turn(datagrams, 0, take, |_| Ok(()))?;
    failure
}

/// Bytes of data that make a frame of 64 bytes.
const DATA: [u8; 22] = [0x5a; 22];

/// The program that sends, as fast as the stack lets it.
pub fn send(cpu: Option<usize>, from: SocketAddr, to: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    let mut failure = Ok(());
    let step = |socket: &mut UdpSocket| match socket.send(&DATA) {
        Ok(_) => 1,
        // The other end is not there yet, or no more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => 0,
        Err(error) => {
            failure = Err(error);
            0
        }
    };
    turn(socket, 0, step, |_| Ok(()))?;
    failure
}
