//! What a client does with memory that it shares with the daemon holds up nobody else.

use std::{io::IoSlice, mem::MaybeUninit, sync::mpsc, thread, time::Duration};

use ringway::{Control, Port};
use ringway_proto::{Request, VERSION};
use ringway_testkit::{StuckWrite, skip_without_root};
use ringway_tests::{Pair, connect, isolated};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{MemfdFlags, memfd_create},
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        SocketFlags, SocketType, recv, sendmsg, socketpair,
    },
};

/// Longer than anything takes that does not wait for ever.
const LIMIT: Duration = Duration::from_secs(60);

/// Does something that must not wait for ever.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(work()));
    told.recv_timeout(LIMIT).unwrap_or_else(|e| panic!("{what}: {e}"))
}

fn exchange(pair: &mut Pair) {
    pair.exchange_some(1000).expect("the daemon serves");
}

/// A client holds the lock of its region's inode: the daemon serves the port, makes others in the region,
/// closes all of them, and answers everybody.
#[test]
fn a_write_into_a_region_that_never_ends() {
    const NAME: &str = "a_write_into_a_region_that_never_ends";
    if skip_without_root(NAME) {
        return;
    }
    isolated(NAME, |home| {
        let mut pair = Pair::open("valep:a", "valep:b", 1).unwrap();
        let daemon = home.daemon();
        let hostile = Port::options().extra_bufs(8).open("valep:hostile").unwrap();
        let region = hostile.binding().region().clone();
        let last = region.layout().memsize() - 1;
        let stuck = StuckWrite::into(region.memfd(), last).expect("root may");
        exchange(&mut pair);
        in_time("its other ports", move || {
            let mem_id = region.mem_id();
            let [one, two] = ["valep:hostile{1", "valep:hostile}1"].map(|n| Port::open(n).unwrap());
            let open = |name| Port::options().region(mem_id).open(name).unwrap();
            let (third, monitor) = (open("valep:third"), Port::open("valep:hostile/t").unwrap());
            drop((one, two, third, monitor, hostile));
            let control = Control::connect().unwrap();
            let ports = control.ports().unwrap();
            assert!(ports.iter().all(|port| !port.name.contains("hostile")), "{ports:?}");
            assert!(control.regions().unwrap().iter().all(|region| region.mem_id != mem_id));
            let again = Port::open("valep:hostile").unwrap();
            assert_ne!(again.binding().region().mem_id(), mem_id);
        });
        exchange(&mut pair);
        drop(stuck);
        assert_eq!(home.daemon(), daemon);
    });
}

/// The daemon takes no memory from clients.
#[test]
fn a_memfd_that_comes_with_a_request() {
    const NAME: &str = "a_memfd_that_comes_with_a_request";
    if skip_without_root(NAME) {
        return;
    }
    isolated(NAME, |home| {
        let mut pair = Pair::open("valeq:a", "valeq:b", 1).unwrap();
        let memfd = memfd_create("brought", MemfdFlags::ALLOW_SEALING).unwrap();
        let stuck = StuckWrite::into(&memfd, 0).expect("root may");
        let socket = connect(&home.socket()).unwrap();
        let reply = in_time("the answer", move || {
            let flags = SocketFlags::CLOEXEC;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            let (mine, reply_to) = pair.unwrap();
            say(&socket, &Request::Ports { from: 0 }, &[&reply_to, &memfd]);
            drop(reply_to);
            recv(&mine, &mut [0u8; 64], RecvFlags::empty()).map(|(bytes, _)| bytes)
        });
        assert_eq!(reply, Ok(0), "it hangs up");
        exchange(&mut pair);
        drop(stuck);
    });
}

fn say(socket: &OwnedFd, request: &Request, fds: &[&OwnedFd]) {
    let request = postcard::to_allocvec(request).expect("it has a form");
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let bytes = [IoSlice::new(&[VERSION]), IoSlice::new(&request)];
    sendmsg(socket, &bytes, &mut ancillary, SendFlags::empty()).expect("the daemon listens");
}
