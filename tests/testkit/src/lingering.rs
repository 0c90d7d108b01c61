//! A socket that takes long to close.

use std::{
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::{
    io::ioctl_fionbio,
    net::sockopt::{set_socket_linger, set_socket_recv_buffer_size, set_socket_send_buffer_size},
};

/// For ever, as far as a test goes.
const HOUR: Duration = Duration::from_secs(3600);
/// As little as the kernel allows.
const LITTLE: usize = 1;

/// A socket, and its other end. Whoever closes the last descriptor of the first waits until the
/// second is closed, or a signal comes.
pub fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
    set_socket_recv_buffer_size(&listener, LITTLE).expect("it is a socket");
    let address = listener.local_addr().expect("it is bound");
    let ours = TcpStream::connect(address).expect("it listens");
    let (theirs, _) = listener.accept().expect("it has connected");
    set_socket_send_buffer_size(&ours, LITTLE).expect("it is a socket");
    ioctl_fionbio(&ours, true).expect("it is a socket");
    while rustix::io::write(&ours, &[0; 4096]).is_ok() {}
    set_socket_linger(&ours, Some(HOUR)).expect("it is a socket");
    (ours.into(), theirs)
}
