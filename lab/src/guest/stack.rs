//! The near end's stack, as the far end meets it: pings of all sizes, and TCP both ways.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ringway_testkit::Netns;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::cable::{ADDRESSES, Cable};

/// Of ICMP's data: frames are 42 bytes longer.
const PINGS: [usize; 8] = [18, 200, 900, 960, 961, 1358, 1430, 1472];

/// How long a connection may stand still.
const LIMIT: Duration = Duration::from_secs(10);

/// Bytes that TCP moves each way.
const BYTES: usize = 1 << 20;

/// Each size of ping is answered.
pub fn pings(cable: &Cable) -> Result<(), String> {
    cable.wait_ping()?;
    let lost = PINGS.iter().filter(|size| {
        cable.there.try_ping(&format!("-c 3 -i 0.02 -w 2 -s {size} {}", ADDRESSES[0])).is_err()
    });
    let lost: Vec<_> = lost.map(|size| format!("{} bytes", size + 42)).collect();
    match lost.is_empty() {
        true => Ok(()),
        false => Err(format!("pings are not answered: frames of {}", lost.join(", "))),
    }
}

/// TCP connections move bytes from the far end to the near one, and the other way.
pub fn tcp(cable: &Cable) -> Result<(), String> {
    moves(&cable.there, &cable.here, ADDRESSES[0]).map_err(|e| format!("TCP in: {e}"))?;
    moves(&cable.here, &cable.there, ADDRESSES[1]).map_err(|e| format!("TCP out: {e}"))
}

fn data() -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 % 251) as u8).collect()
}

fn moves(from: &Netns, to: &Netns, address: &str) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let ip: IpAddr = address.parse().expect("an address");
    let listener = to.enter(|| TcpListener::bind((ip, 0))).map_err(said)?;
    set_socket_timeout(&listener, Timeout::Recv, Some(LIMIT)).map_err(|e| e.to_string())?;
    let address = SocketAddr::new(ip, listener.local_addr().map_err(said)?.port());
    let connect = || {
        let mut stream = from.enter(|| TcpStream::connect_timeout(&address, LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.write_all(&data())
    };
    std::thread::scope(|scope| {
        let sender = scope.spawn(connect);
        let mut got = Vec::new();
        let received = listener.accept().and_then(|(mut stream, _)| {
            stream.set_read_timeout(Some(LIMIT))?;
            stream.read_to_end(&mut got)
        });
        let sent = sender.join().expect("it does not panic");
        if let Some(error) = sent.err().or(received.err()) {
            return Err(format!("{} of {BYTES} bytes: {error}", got.len()));
        }
        if got == data() { Ok(()) } else { Err("the bytes are not as they were sent".into()) }
    })
}
