//! What a client does with memory that it shares with the daemon holds up nobody else.

use std::{
    io::IoSlice, mem::MaybeUninit, path::Path, process::Command, sync::mpsc, thread, time::Duration,
};

use ringway::{Control, Port};
use ringway_proto::{Request, VERSION};
use ringway_testkit::{StuckWrite, skip_without_root};
use ringway_tests::{GROUP, Pair, connect, isolated, isolated_with_system, until};
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

/// The memory of ports that were closed counts as long as a program holds it.
#[test]
fn memory_that_is_kept() {
    const NAME: &str = "memory_that_is_kept";
    if skip_without_root(NAME) {
        return;
    }
    isolated_with_system(NAME, 5 * LIMIT, |home| {
        let _daemon = home.system_daemon_with(GROUP, 0o660, "memory_per_user = 64\n", |d| d);
        let open = || Port::options().extra_bufs(5000).open("valer:kept");
        let mut kept = Vec::new();
        let error = loop {
            match open() {
                // Its extra buffers are listed: 10 MiB are in memory.
                Ok(port) => kept.push(port.binding().region().clone()),
                Err(error) => break error,
            }
            assert!(kept.len() < 20, "200 MiB are kept");
        };
        assert!(error.to_string().contains("although the ports are closed"), "{error}");
        drop(kept);
        until("it is free again", || open().map_err(|e| e.to_string()));
    });
}

/// A region whose pages cannot be had: its port goes, and nothing else.
#[test]
#[cfg(target_arch = "x86_64")]
fn pages_that_are_not_there() {
    const NAME: &str = "pages_that_are_not_there";
    if skip_without_root(NAME) {
        return;
    }
    let python = |program| Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(program);
    isolated_with_system(NAME, 5 * LIMIT, |home| {
        let unsealed = |daemon: Command| {
            let mut command = home.command("python3");
            command.arg(python("without_seals.py")).arg(daemon.get_program());
            command.args(daemon.get_args());
            command
        };
        let mut daemon = home.system_daemon_with(GROUP, 0o660, "", unsealed);
        let mut client = home.system_command("python3");
        let output = client.arg(python("lost.py")).output().expect("python3");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}; the daemon: {}", daemon.output());
        assert!(daemon.is_running());
        daemon.wait_for("its ports are closed", LIMIT);
    });
}

/// Packets of others are not in a core file of the daemon.
#[test]
fn regions_are_not_dumped() {
    isolated("regions_are_not_dumped", |home| {
        let _port = Port::open("vales:a").unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{}/smaps", home.daemon())).unwrap();
        let (_, region) = maps.split_once("/memfd:ringway-").expect("it has mapped a region");
        let flags = region.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert!(flags.contains(" dd"), "{flags}");
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
