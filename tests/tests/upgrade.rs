//! Daemons and programs of different versions. The version after this one is built from the same source, with the
//! feature `next`, which adds a request and fields; the version before the next one is this. What older programs write and
//! read is in `crates/service/proto/tests/version-6.txt`.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    fs,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use ringway::{
    AddressInfo, BridgeInfo, Cause, Control, DaemonInfo, Declared, DeclaredFor, DeviceCounter,
    Error, EventPage, Forwarding, GroupInfo, HeaderLen, Index, NameConflict, Page, Port, PortInfo,
    PortShape, RegionInfo, RingInfo, Session, Steered, SwitchFound,
};
use ringway_proto::{
    Grant, MirrorGrant, OLDEST, Parameters, Pools, PortGeometry, RegionPosition, Reply, Request,
    SwitchPosition, VERSION, in_version,
};
use ringway_testkit::{Netns, Proc, install, skip_without_root};
use ringway_tests::{
    GROUP, Home, connect, echo::PATIENCE, ends, inside, isolated_with_system, one_at_a_time, until,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{MemfdFlags, memfd_create},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
        listen, recvmsg, sendmsg, socket_with, socketpair,
    },
    process::Signal,
};

/// Longer than all goes on.
const HANGS: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(60);
const MAX_MESSAGE: usize = 128 << 10;

type Answer = (Result<Reply, ringway_proto::Error>, u32);

// ---- Messages, byte for byte ----

/// The messages of version 6 of that kind.
fn messages(kind: &str) -> Vec<Vec<u8>> {
    let path = "../crates/service/proto/tests/version-6.txt";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    };
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(is, _)| *is == kind).map(|(_, hex)| bytes(hex)).collect()
}

fn seqpacket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

fn send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(fds)));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
}

/// A message and its descriptors; no bytes are the end.
fn receive(socket: &OwnedFd) -> (Vec<u8>, Vec<OwnedFd>) {
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    );
    bytes.truncate(got.unwrap().bytes);
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    (bytes, fds.flatten().collect())
}

/// Sends a request as it is, and returns the answer as it is; `None` if there is none.
fn ask(connection: &OwnedFd, request: &[u8]) -> Option<Vec<u8>> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (mine, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
    send(connection, request, &[theirs.as_fd()]);
    drop(theirs);
    let limit = Timespec::try_from(LIMIT).unwrap();
    let mut ready = [PollFd::new(&mine, PollFlags::IN)];
    assert_eq!(poll(&mut ready, Some(&limit)), Ok(1), "no answer to {request:02x?}");
    Some(receive(&mine).0).filter(|answer| !answer.is_empty())
}

fn read_request(message: &[u8]) -> Request {
    in_version(6, || postcard::from_bytes(&message[1..])).expect("it is a request")
}

/// An answer of version 6, with nothing behind it.
fn read_answer(message: &[u8]) -> Answer {
    assert_eq!(message[0], 6, "{message:02x?}");
    let read = in_version(6, || postcard::take_from_bytes(&message[1..]));
    let (answer, rest) = read.expect("it is an answer");
    assert!(rest.is_empty(), "{message:02x?}");
    answer
}

/// Why the daemon says no.
fn refusal(answer: Option<Vec<u8>>) -> ringway_proto::Error {
    read_answer(&answer.expect("an answer")).0.expect_err("it is refused")
}

/// A program of version 6 sends each of its requests, to a daemon of this version and to a newer one: all are
/// understood, and the answers are of version 6.
#[test]
fn a_daemon_understands_each_request_of_version_6() {
    if skip_without_root("a_daemon_understands_each_request_of_version_6") {
        return;
    }
    let _turn = one_at_a_time();
    build_next();
    let home = Home::new();
    install_next(&home);
    // What they ask for would be done, if it could be.
    let netns = Netns::quiet("rwu");
    for (program, versions) in
        [("ringwayd", [OLDEST, VERSION]), ("ringwayd-next", [OLDEST, VERSION + 1])]
    {
        put(&home, program);
        let daemon = home.system_daemon_with(GROUP, 0o660, "", |daemon| inside(&netns, daemon));
        let connect = || connect(&home.system_socket()).unwrap();
        netns.enter(|| {
            let requests = messages("request");
            // It is answered when there is something.
            let waits = |message: &[u8]| {
                matches!(read_request(message), Request::Events { wait: true, .. })
            };
            let asked = requests.iter().filter(|message| !waits(message));
            let causes: Vec<_> = asked
                .map(|message| {
                    let answer = ask(&connect(), message).expect("an answer");
                    let answer = read_answer(&answer).0;
                    if let Err(error) = &answer {
                        assert!(
                            !error.problem.contains("does not know"),
                            "{error}: {message:02x?}"
                        );
                    }
                    answer.err().map(|error| error.cause)
                })
                .collect();
            assert!(causes.len() > 110 && causes.contains(&None), "{causes:?}");

            // One in a version that it does not speak gets to know which ones it speaks, and asks again.
            let connection = connect();
            for version in [0, OLDEST - 1, versions[1] + 1, 255] {
                let told = ask(&connection, &[version, 1, 2, 3]);
                assert_eq!(told, Some(vec![0, versions[0], versions[1]]), "{version}");
            }
            // What is no request of its version is refused: nothing that is asked for is ignored.
            let parameters = postcard::to_allocvec(&Request::Parameters).unwrap();
            let unknown = [&[6, 200, 1][..], &[6], &[6, parameters[0], 0]];
            for message in unknown {
                let error = refusal(ask(&connection, message));
                assert_eq!(error.cause, Cause::Unsupported, "{error}");
                assert!(error.to_string().contains("upgrade it"), "{error}");
            }
            let answer = ask(&connection, &[6, parameters[0]]).expect("an answer");
            assert!(matches!(read_answer(&answer).0, Ok(Reply::Parameters(_))));
        });
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
    }
}

/// A daemon that says what the test has for it.
struct Said {
    listener: OwnedFd,
}

impl Said {
    /// Listens where the clients of this process look for their daemon.
    fn listen(home: &Home) -> Said {
        let socket = home.system_socket();
        fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let listener = seqpacket();
        bind(&listener, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
        listen(&listener, 8).unwrap();
        Said { listener }
    }

    /// Says it to the next client. A message of version 6 is that of a daemon which speaks no other, and says so first.
    fn to_the_next(&self, message: &[u8], fds: &[BorrowedFd<'_>]) {
        let connection = accept(&self.listener).unwrap();
        let answer = |version, message: &[u8], fds: &[BorrowedFd<'_>]| {
            let (request, reply_to) = receive(&connection);
            assert_eq!(request[0], version);
            send(&reply_to[0], message, fds);
        };
        if message[0] == 6 {
            answer(VERSION, &[0, 6, 6], &[]);
            answer(6, message, fds);
        } else {
            answer(VERSION, message, fds);
        }
    }

    /// What `client` makes of a message.
    fn heard<T: Send>(&self, message: &[u8], client: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let client = scope.spawn(client);
            self.to_the_next(message, &[]);
            client.join().unwrap()
        })
    }
}

/// Each answer of version 6 is what this client reads; errors come with their causes. And a daemon that speaks other
/// versions is told of with the remedy.
#[test]
fn a_client_understands_each_answer_of_version_6() {
    isolated_with_system("a_client_understands_each_answer_of_version_6", HANGS, |home| {
        let said = Said::listen(home);
        // What the client has for the answer, and what the bytes say.
        macro_rules! check {
            ($message:expr, $reply:expr; $($variant:pat => $type:ty),* $(,)?) => {
                match &$reply {
                    $($variant => {
                        let call = || Session::connect_running()?.call::<$type>(Request::Describe);
                        let (answer, _) = said.heard($message, call).unwrap();
                        let wanted = <$type as ringway::Answer>::of($reply).unwrap();
                        assert_eq!(format!("{answer:?}"), format!("{wanted:?}"));
                    })*
                }
            };
        }
        let mut errors = 0;
        for message in messages("answer") {
            match read_answer(&message).0 {
                Ok(reply) => check!(&message, reply;
                    Reply::Done => (),
                    Reply::Granted(_) => Box<Grant>,
                    Reply::Mirrors(_) => Vec<MirrorGrant>,
                    Reply::PortGeometry(_) => PortGeometry,
                    Reply::Pools(_) => Pools,
                    Reply::NewInterface(_) => PortShape,
                    Reply::HeaderLen(_) => HeaderLen,
                    Reply::Index(_) => Index,
                    Reply::SwitchFound { .. } => SwitchFound,
                    Reply::Switches { .. } => Page<BridgeInfo, SwitchPosition>,
                    Reply::Ports { .. } => Page<PortInfo, u64>,
                    Reply::Rings { .. } => Page<RingInfo, u32>,
                    Reply::Regions { .. } => Page<RegionInfo, RegionPosition>,
                    Reply::Steered(_) => Steered,
                    Reply::Parameters(_) => Parameters,
                    Reply::NameConflicts(_) => Vec<NameConflict>,
                    Reply::SwitchAddresses { .. } => Page<AddressInfo, u32>,
                    Reply::DeviceCounters { .. } => Page<DeviceCounter, u32>,
                    Reply::Daemon(_) => DaemonInfo,
                    Reply::Events(_) => EventPage,
                    Reply::SwitchGroups { .. } => Page<GroupInfo, u32>,
                ),
                Err(wanted) => {
                    let call = || Session::connect_running()?.call::<()>(Request::Describe);
                    let error = said.heard(&message, call).unwrap_err();
                    assert_eq!(
                        (error.cause(), error.to_string()),
                        (wanted.cause, wanted.to_string())
                    );
                    errors += 1;
                }
            }
        }
        assert_eq!(errors, 20);

        let call = || Session::connect_running()?.call::<()>(Request::Describe).map(drop);
        for (versions, sentence, remedy) in [
            ([9, 12], "versions 9 to 12", "start the program again with the library"),
            ([3, 5], "versions 3 to 5", "upgrade ringwayd"),
            // It does not speak what it says it does.
            ([6, 9], "versions 6 to 9", ""),
        ] {
            let error = said.heard(&[0, versions[0], versions[1]], call).unwrap_err();
            let wanted =
                format!("ringwayd speaks {sentence} of the control protocol, and this program");
            assert!(error.to_string().starts_with(&wanted), "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
            assert_eq!(error.cause(), Cause::Version);
        }

        // A region of another version is not mapped.
        let granted = messages("answer").into_iter().map(|message| read_answer(&message));
        let mut grant = granted
            .filter_map(|(answer, _)| match answer {
                Ok(Reply::Granted(grant)) => Some(grant),
                _ => None,
            })
            .next()
            .expect("there is a grant");
        grant.layout.version = 2;
        let answer: Answer = (Ok(Reply::Granted(grant)), 1);
        let bytes = in_version(6, || postcard::to_allocvec(&answer)).unwrap();
        let message = [&[6], &bytes[..]].concat();
        let memory = memfd_create("a region", MemfdFlags::CLOEXEC).unwrap();
        let error: Error = thread::scope(|scope| {
            let client = scope.spawn(|| Port::open("vale0:a").map(drop));
            said.to_the_next(&message, &[memory.as_fd()]);
            client.join().unwrap().unwrap_err()
        });
        assert!(error.to_string().contains("its layout has version 2, and this is 1"), "{error}");
        assert_eq!(error.cause(), Cause::Version);
    });
}

/// A daemon of version 6 does not tell which user a port is declared for: `ringway switch save` opens it to no more users.
#[test]
fn what_is_saved_of_an_older_daemon_names_a_user() {
    isolated_with_system("what_is_saved_of_an_older_daemon_names_a_user", HANGS, |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let said = Said::listen(home);
        let answers = messages("answer").into_iter().map(|message| read_answer(&message).0);
        let switches = answers.filter_map(|answer| match answer {
            Ok(Reply::Switches { switches, .. }) => Some(switches),
            _ => None,
        });
        let mut switch = switches.flatten().find(|switch| !switch.ports.is_empty()).unwrap();
        switch.name = "vale0".into();
        switch.owner = Some(1234);
        switch.forwarding = Forwarding::Flood;
        switch.ports.truncate(1);
        let port = &mut switch.ports[0];
        assert_eq!(port.declared_for, DeclaredFor::Untold);
        port.name = "vale0:db".into();
        (port.uid, port.attachment, port.declared) = (1234, None, Declared::Yes);
        (port.filter_in, port.filter_out) = (None, None);
        let answer: Answer = (Ok(Reply::Switches { switches: vec![switch], next: None }), 0);
        let bytes = in_version(6, || postcard::to_allocvec(&answer)).unwrap();
        let save = || {
            let mut command = home.system_command(home.bin().join("ringway"));
            command.args(["switch", "save"]).output().unwrap()
        };
        let output = said.heard(&[&[6], &bytes[..]].concat(), save);
        let [saved, told] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(saved.contains("name = \"db\"\nuser = \"1234\"\n"), "{saved}{told}");
        assert!(told.contains("too old to tell which user"), "{told}");
    });
}

// ---- Programs of both versions ----

/// Where Cargo builds.
fn target() -> PathBuf {
    // target/PROFILE/deps/TEST
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).expect("tests lie three levels below it").to_owned()
}

/// Builds the daemon and the client of the next version.
fn build_next() {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--profile", "quick", "--workspace"]);
    build.args(["--features", "ringwayd/next,ringway-tests/next"]);
    build.args(["--bin", "ringwayd-next", "--bin", "traffic-next", "--target-dir"]).arg(target());
    build.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("RUSTFLAGS");
    assert!(build.status().unwrap().success());
}

/// Puts them into the home, beside those of this version.
fn install_next(home: &Home) {
    let built = |name: &str| target().join("quick").join(name);
    install([built("ringwayd-next"), built("traffic-next")], home.bin());
    fs::rename(home.bin().join("ringwayd"), older(home)).unwrap();
}

fn older(home: &Home) -> PathBuf {
    home.bin().join("ringwayd-older")
}

/// Puts one of the daemons where the system's is, as a package does.
fn put(home: &Home, program: &str) {
    let from = match program {
        "ringwayd" => older(home),
        other => home.bin().join(other),
    };
    install([from], home.bin().join("ringwayd"));
}

/// Asks on a port of a switch, and counts the answers; it opens the port again with each daemon.
fn converse(name: &str, answers: &AtomicU64, is_over: &AtomicBool) {
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], &[7; 46]].concat();
    let answer = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    let mut port = Port::open(name).unwrap();
    while !is_over.load(Relaxed) {
        let mut tx = port.tx(0);
        tx.push(&frame);
        tx.sync();
        match port.wait_rx(Some(Duration::from_millis(20))) {
            Ok(_) => {
                let right = port.rx(0).batch(64).filter(|frame| frame.to_vec() == answer).count();
                answers.fetch_add(right as u64, Relaxed);
            }
            Err(error) if error.cause() == Cause::Gone => port = port.reopen(PATIENCE).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Programs of both versions have ports open, and frames go to and fro, while the daemon is replaced by one of the
/// other version, and back.
#[test]
fn programs_go_on_with_a_daemon_of_another_version() {
    if skip_without_root("programs_go_on_with_a_daemon_of_another_version") {
        return;
    }
    let name = "programs_go_on_with_a_daemon_of_another_version";
    // Before the test is given its time.
    build_next();
    isolated_with_system(name, HANGS, |home| {
        install_next(home);
        put(home, "ringwayd");
        let mut daemon = home.system_daemon(GROUP, 0o660);
        Control::connect_running().unwrap().switch_new("vale7", false).unwrap();
        let client = |program: &str, args: &[&str]| {
            let mut command = home.system_command(home.bin().join(program));
            command.args(args);
            Proc::spawn(command)
        };
        let programs = ["traffic", "traffic-next"];
        let answering = [
            client("traffic", &["echo", "vale0:answers"]),
            client("traffic-next", &["echo", "vale1:answers"]),
        ];
        let (counts, is_over) = ([AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
        // More frames than are on their way are answered.
        let goes_on = |program: usize| {
            let before = counts[program].load(Relaxed);
            until("frames are answered", || match counts[program].load(Relaxed) - before {
                more if more > 1000 => Ok(()),
                more => Err(format!("{more} answers by {}", programs[program])),
            });
        };
        thread::scope(|scope| {
            let _over = ringway_tests::OnDrop(|| is_over.store(true, Relaxed));
            scope.spawn(|| converse("vale0:asks", &counts[0], &is_over));
            scope.spawn(|| converse("vale1:asks", &counts[1], &is_over));
            let daemons = ["ringwayd-next", "ringwayd", "ringwayd-next", "ringwayd-next"];
            let signals = [Signal::TERM, Signal::KILL, Signal::KILL, Signal::TERM];
            for (opened, (program, signal)) in (2..).zip(daemons.into_iter().zip(signals)) {
                (0..2).for_each(goes_on);
                daemon.signal(signal);
                assert!(ends(daemon.pid(), LIMIT));
                put(home, program);
                daemon = home.system_daemon(GROUP, 0o660);
                for client in &answering {
                    client.wait_for(&"open\n".repeat(opened), LIMIT);
                }
                (0..2).for_each(goes_on);
                // What was set up to stay is there, whichever version wrote it.
                let switches = Control::connect_running().unwrap().switches().unwrap();
                assert!(switches.iter().any(|switch| switch.name == "vale7"), "{switches:?}");
                assert_next(&client, program == "ringwayd-next");
            }
        });
        assert_python(home);
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
    });
}

/// The client that was written from the documents of version 6, with a newer daemon.
fn assert_python(home: &Home) {
    let mut command = home.system_command("python3");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/echo.py");
    command.arg(program).arg("vale3:python");
    let python = Proc::spawn(command);
    python.wait_for("open", LIMIT);
    let mut port = Port::open("vale3:rust").unwrap();
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], b"end", &[0; 43]].concat();
    assert!(port.tx(0).push(&frame));
    port.tx(0).sync();
    assert!(port.wait_rx(Some(LIMIT)).unwrap());
    let answer = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    assert_eq!(port.rx(0).batch(1).next().map(|frame| frame.to_vec()), Some(answer));
    let (status, said) = python.wait();
    assert!(status.success(), "{said}");
}

/// What a newer client has that this version has not: a newer daemon knows it, and of an older one the client says so.
fn assert_next(client: &dyn Fn(&str, &[&str]) -> Proc, daemon_is_newer: bool) {
    let (status, said) = client("traffic-next", &["ask"]).wait();
    let wanted: &[&str] = match daemon_is_newer {
        true => &["this is 8, and the daemon is 8", "the answer is 77"],
        false => &["this is 8, and the daemon is 0", "Unsupported: ringwayd", "upgrade it"],
    };
    assert!(wanted.iter().all(|part| said.contains(part)), "{said}");
    assert_eq!(status.success(), daemon_is_newer);
    let (status, said) = client("traffic-next", &["open", "vale8:a"]).wait();
    let wanted = match daemon_is_newer {
        true => "granted with Some(88)",
        false => {
            "Unsupported: ringwayd speaks version 7 of the control protocol, which lacks what is asked \
             for; upgrade ringwayd, and restart it"
        }
    };
    assert!(said.contains(wanted), "{said}");
    assert_eq!(status.success(), daemon_is_newer);
}
