//! Who a client is, and where it is, the daemon takes from the kernel: a client's word for it counts
//! for nothing.

use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    process::Command,
    thread,
    time::Duration,
};

use ringway_proto::{Cause, Error, Registration, Reply, Request, VERSION};
use ringway_testkit::{Netns, Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody, become_another, connect, ends, inside, one_at_a_time, started_by, until,
};
use rustix::{
    fd::{AsFd, OwnedFd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
        listen, recvmsg, sendmsg, socket, socketpair,
    },
    process::Signal,
};

const LIMIT: Duration = Duration::from_secs(30);

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

type Answer = Result<(Reply, Vec<OwnedFd>), Error>;

fn register(port: &str) -> Request {
    let (registration, options) = (Registration::default(), Default::default());
    Request::Register { name: port.into(), registration, options }
}

/// Sends a request with these descriptors, the first of which the answer goes to.
fn send(connection: &OwnedFd, request: &Request, fds: Vec<OwnedFd>) {
    let request = postcard::to_allocvec(request).expect("it has a form");
    let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
    let bytes = [IoSlice::new(&[VERSION]), IoSlice::new(&request)];
    sendmsg(connection, &bytes, &mut ancillary, SendFlags::NOSIGNAL).unwrap();
}

/// A message, with the descriptors that come with it.
fn receive(socket: &OwnedFd) -> (Vec<u8>, Vec<OwnedFd>) {
    let mut bytes = vec![0; 1 << 17];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let got = recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    bytes.truncate(got.bytes);
    (bytes, fds)
}

/// `None`: the daemon has hung up.
fn answer(mine: &OwnedFd) -> Option<Answer> {
    let (bytes, fds) = receive(mine);
    let answer = bytes.strip_prefix(&[VERSION])?;
    let (answer, _): (Result<Reply, Error>, u32) = postcard::from_bytes(answer).expect("an answer");
    Some(answer.map(|reply| (reply, fds)))
}

/// Asks as a client does: with an end of a pair that the calling thread makes.
fn ask_on(connection: &OwnedFd, request: &Request) -> Answer {
    let (mine, theirs) = pair();
    send(connection, request, vec![theirs]);
    answer(&mine).expect("the daemon answers")
}

/// Asks for another connection.
fn barrier(connection: &OwnedFd) -> OwnedFd {
    let (_, mut fds) = ask_on(connection, &Request::Barrier).unwrap();
    fds.pop().expect("the other connection")
}

/// Asks for an interface with these descriptors; `None`: the daemon hangs up.
fn ask(home: &Home, port: &str, mine: &OwnedFd, fds: Vec<OwnedFd>) -> Option<Result<(), Error>> {
    let connection = connect(&home.system_socket()).unwrap();
    send(&connection, &register(port), fds);
    answer(mine).map(|answer| answer.map(drop))
}

/// A process in another network namespace, and what it has there, do not let a client ask for the
/// interfaces of that.
#[test]
fn nobody_speaks_for_another_network_namespace() {
    if skip_without_root("nobody_speaks_for_another_network_namespace") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwi"), Netns::quiet("rwi"));
    let _wire = a.veth(&b, "a0", "b0");
    let daemon = home.system_daemon_with(GROUP, 0o660, "", |daemon| inside(&a, daemon));
    let refused = |answer: Option<Result<(), Error>>| match answer {
        None => {}
        Some(Ok(())) => panic!("it is granted"),
        Some(Err(error)) => {
            assert!(matches!(error.cause, Cause::NoPort | Cause::Denied), "{error}");
        }
    };
    a.enter(|| {
        // The descriptor of another's namespace.
        let mut sleep = b.command("sleep");
        sleep.arg("1000");
        let there = Proc::spawn(sleep);
        let namespace = format!("/proc/{}/ns/net", there.pid());
        let is_there = || {
            std::fs::read_link(&namespace).ok()
                != std::fs::read_link("/proc/thread-self/ns/net").ok()
        };
        until("it is there", || if is_there() { Ok(()) } else { Err("not yet".into()) });
        for path in [namespace.clone(), format!("/run/netns/{}", b.name().unwrap())] {
            let namespace = OwnedFd::from(std::fs::File::open(path).unwrap());
            let (mine, theirs) = pair();
            refused(ask(&home, "b0", &mine, vec![theirs, namespace]));
        }

        // A socket that a process there has connected to one of ours, which is of its namespace.
        let address = SocketAddrUnix::new(home.path().join("trap")).unwrap();
        let trap = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&trap, &address).unwrap();
        listen(&trap, 1).unwrap();
        let victim = b.enter(|| connect(&home.path().join("trap"))).unwrap();
        refused(ask(&home, "b0", &victim, vec![accept(&trap).unwrap()]));
    });

    // A client that is there is: by the thread that asks, whatever the connection's was.
    let asked = |netns: &Netns, port: &str| {
        netns.enter(|| {
            let (mine, theirs) = pair();
            ask(&home, port, &mine, vec![theirs])
        })
    };
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(asked(&b, "b0"), Some(Ok(()))));
    });
    assert_eq!(asked(&a, "a0"), Some(Ok(())));
    refused(asked(&a, "b0"));
    refused(asked(&b, "a0"));
    daemon.kill();
}

/// Root of a container is a user like any other.
#[test]
fn root_of_a_container_is_not_the_machines() {
    if skip_without_root("root_of_a_container_is_not_the_machines") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwi"), Netns::quiet("rwi"));
    let _wire = a.veth(&b, "a0", "b0");
    let mapped = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mapped.py");
    let containers: [&[&str]; 4] = [
        &["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"],
        // What containers are given as a rule.
        &["setpriv", "--bounding-set=-all,+net_raw,+setuid,+chown,+kill", "--"],
        &["unshare", "--user", "--map-root-user", "--"],
        // It makes a user namespace that looks like the machine's.
        &[
            "unshare",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "setpriv",
            "--bounding-set=-all,+setuid,+setgid,+setfcap",
            "--inh-caps=-all",
            "--",
            "python3",
            "-B",
            mapped,
        ],
    ];
    let traffic = |args: &[&str]| home.system_traffic(args);
    let refused = |command: Command, errno: &str| {
        let refused = Proc::spawn(inside(&a, command));
        assert!(ends(refused.pid(), LIMIT), "{}", refused.output());
        let (status, output) = refused.wait();
        assert!(!status.success() && output.contains(errno), "{output}");
    };
    let daemon = home.system_daemon_with(GROUP, 0o666, "", |daemon| inside(&a, daemon));
    let mine = Proc::spawn(inside(&a, traffic(&["hold", "vale0:mine", "netmap:a0"])));
    assert!(mine.wait_for("open", LIMIT).starts_with("open"), "{}", mine.output());
    for by in containers {
        refused(started_by(&traffic(&["hold", "netmap:a0"]), by), "error 1:");
        refused(started_by(&traffic(&["hold", "vale0:mine"]), by), "error 16:");
        let theirs = Proc::spawn(inside(&a, started_by(&traffic(&["hold", "vale0:theirs"]), by)));
        theirs.wait_for("open", LIMIT);
        refused(traffic(&["hold", "vale0:theirs"]), "error 16:");
        theirs.kill();
    }
    mine.kill();
    daemon.kill();

    // Unless it is granted.
    let granted = "nic_users = ['root']\n";
    let daemon = home.system_daemon_with(GROUP, 0o666, granted, |daemon| inside(&a, daemon));
    for by in containers {
        let theirs = Proc::spawn(inside(&a, started_by(&traffic(&["hold", "netmap:a0"]), by)));
        assert!(theirs.wait_for("open", LIMIT).starts_with("open"), "{}", theirs.output());
        theirs.kill();
    }
    daemon.kill();
}

/// A connection of a container's root, whose process waits for the end of the second socket.
fn of_contained_root(home: &Home) -> (Proc, OwnedFd) {
    const CONNECT: &str = "\
import socket, sys
ours, test = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
ours.connect(sys.argv[1])
test.connect(sys.argv[2])
socket.send_fds(test, [b'x'], [ours.fileno()])
test.recv(1)
";
    let path = home.path().join("connections");
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&listener, 1).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--", "python3", "-c", CONNECT]);
    let process = Proc::spawn({
        command.arg(home.system_socket()).arg(path);
        command
    });
    let (_, mut fds) = receive(&accept(&listener).unwrap());
    (process, fds.pop().expect("the connection"))
}

/// Neither a pair that the daemon has made, nor one of another process of user 0, gives a container's root the
/// interfaces of its maker's network namespace.
#[test]
fn a_pair_of_another_speaks_for_no_network_namespace() {
    if skip_without_root("a_pair_of_another_speaks_for_no_network_namespace") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwi"), Netns::quiet("rwi"));
    let _wire = a.veth(&b, "a0", "b0");
    let granted = "nic_users = ['root']\n";
    let daemon = home.system_daemon_with(GROUP, 0o666, granted, |daemon| inside(&a, daemon));
    let (_process, contained) = of_contained_root(&home);
    let root = connect(&home.system_socket()).unwrap();
    for (who, connection) in [("a container's root", &contained), ("root", &root)] {
        send(connection, &register("a0"), vec![barrier(connection)]);
        // Requests are answered in their order.
        let bound = ask_on(connection, &Request::Describe);
        assert!(bound.is_err(), "{who}: {bound:?}");
    }
    a.enter(|| {
        let error = ask_on(&contained, &register("a0")).unwrap_err();
        assert_eq!(error.cause, Cause::Denied, "{error}");
        ask_on(&root, &register("a0")).unwrap();
    });
    daemon.kill();
}

/// A connection for a barrier is the user's, and in no group of the daemon's, also when the configuration was read
/// again.
#[test]
fn a_barriers_connection_is_in_its_users_groups() {
    if skip_without_root("a_barriers_connection_is_in_its_users_groups") {
        return;
    }
    let home = Home::new();
    // The daemon is in group 0, the user is not.
    let reserve = format!(
        "[[reserve]]\nname = 'valer*'\ngroups = ['0']\n[[reserve]]\nname = 'valeg*'\ngroups = ['{GROUP}']\n"
    );
    let daemon = home.system_daemon_with(GROUP, 0o660, &reserve, |daemon| daemon);
    let socket = home.system_socket();
    let ask = |connections: &[OwnedFd]| {
        for connection in connections {
            let new =
                |bridge: &str| Request::SwitchNew { bridge: bridge.into(), one_address: false };
            let error = ask_on(connection, &new("valer1")).unwrap_err();
            assert_eq!(error.cause, Cause::Denied, "{error}");
            ask_on(connection, &new("valeg1")).unwrap();
            ask_on(connection, &Request::SwitchDelete { bridge: "valeg1".into() }).unwrap();
        }
    };
    let connections = thread::spawn(move || {
        become_another();
        let connection = connect(&socket).unwrap();
        let other = barrier(&connection);
        [connection, other]
    });
    let connections = connections.join().unwrap();
    ask(&connections);
    daemon.signal(Signal::HUP);
    daemon.wait_for("the configuration is read again", LIMIT);
    ask(&connections);
    daemon.kill();
}

/// Root's programs do not get memory that another user can write to but by asking for it.
#[test]
fn root_shares_no_memory_unasked() {
    if skip_without_root("root_shares_no_memory_unasked") {
        return;
    }
    let home = Home::new();
    let daemon = home.system_daemon(GROUP, 0o660);
    let theirs = Proc::spawn(as_nobody(home.system_traffic(&["hold", "vale0:theirs"])));
    theirs.wait_for("open", LIMIT);
    for port in ["vale0:theirs", "vale0:theirs/r"] {
        let (status, output) = Proc::spawn(home.system_traffic(&["hold", port])).wait();
        assert!(!status.success() && output.contains("error 16:"), "{port}: {output}");
        assert!(output.contains("vale0:theirs@user=65534"), "{port}: {output}");
        let asked = Proc::spawn(home.system_traffic(&["hold", &format!("{port}@user=65534")]));
        asked.wait_for("open", LIMIT);
        asked.kill();
        // Others may ask for what they like.
        let port = format!("{port}@user=0");
        let (status, output) = Proc::spawn(as_nobody(home.system_traffic(&["hold", &port]))).wait();
        assert!(!status.success() && output.contains("error"), "{port}: {output}");
    }
    let (status, output) =
        Proc::spawn(home.system_traffic(&["hold", "vale0:none@user=65534"])).wait();
    assert!(!status.success() && output.contains("error 6:"), "{output}");
    theirs.kill();
    daemon.kill();
}
