//! The daemon under test, which serves as long as this process lives.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use ringway_proto::{Reply, Request, VERSION};
use ringway_testkit::{Folder, is_root, isolate_thread};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    fs::{Mode, chmod},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
    process::{Uid, getuid},
    thread::set_thread_res_uid,
};

use crate::client::question;

/// An ordinary user.
const USER: u32 = 65534;
/// Longer than the daemon takes for anything.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Small enough for this process, and for limits to be met.
const CONFIG: &str = "
mode = '0666'
subuid = false
max_bridges = 8
memory_per_user = 64
descriptors_per_user = 400
[global_region]
buf_num = 4096
";

pub struct Daemon {
    socket: PathBuf,
    _folder: Folder,
}

impl Daemon {
    /// The one of this process. It and all clients are in a network namespace of their own, which has nothing
    /// but its loopback.
    pub fn running() -> &'static Daemon {
        static DAEMON: OnceLock<Daemon> = OnceLock::new();
        DAEMON.get_or_init(|| {
            if is_root() {
                isolate_thread();
                // For sockets that linger.
                let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
                assert!(up.expect("ip runs").success());
            }
            let folder = Folder::new();
            chmod(folder.path(), Mode::from_raw_mode(0o755)).expect("it is ours");
            let (socket, config) = (folder.path().join("socket"), folder.path().join("config"));
            let text = format!("socket = '{}'\n{CONFIG}", socket.display());
            fs::write(&config, text).expect("there is room");
            // It is readable when this process has gone.
            let end = eventfd(0, EventfdFlags::CLOEXEC).expect("there are descriptors");
            thread::spawn(move || {
                let ended = ringwayd::serve(&config, end);
                panic!("the daemon has ended: {ended:?}");
            });
            let daemon = Daemon { socket, _folder: folder };
            let begin = Instant::now();
            while daemon.try_connect().is_none() {
                assert!(begin.elapsed() < LIMIT, "the daemon does not listen");
                thread::yield_now();
            }
            daemon
        })
    }

    fn try_connect(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
        connect(&socket, &SocketAddrUnix::new(&self.socket).ok()?).ok()?;
        Some(socket)
    }

    /// A connection of the ordinary user.
    pub fn connect(&self) -> OwnedFd {
        let seen_as = |uid| {
            if getuid().is_root() {
                let uid = Uid::from_raw(uid);
                set_thread_res_uid(Uid::ROOT, uid, Uid::ROOT).expect("root may, and comes back");
            }
        };
        seen_as(USER);
        let socket = self.try_connect();
        seen_as(0);
        socket.expect("the daemon listens")
    }

    /// What can be told of the daemon, and how many descriptors this process has.
    pub fn holdings(&self) -> (String, usize) {
        let connection = self.connect();
        let ask = |request: Request| {
            let bytes =
                [&[VERSION], &postcard::to_allocvec(&request).expect("a form")[..]].concat();
            let (answer, _) = question(&connection, &bytes).expect("the daemon answers");
            answer.expect("it tells everybody")
        };
        let Reply::Switches { switches, .. } = ask(Request::Switches { from: Default::default() })
        else {
            panic!("another answer")
        };
        let names = switches.into_iter().map(|switch| switch.name);
        // What was made to stay does; it is the user's.
        names.for_each(|bridge| drop(ask(Request::SwitchDelete { bridge })));
        let lists = [
            Request::Switches { from: Default::default() },
            Request::Ports { from: 0 },
            Request::Regions { from: Default::default() },
        ];
        let lists = lists.map(|request| format!("{:?}", ask(request)));
        let fds = fs::read_dir("/proc/self/fd").expect("it is mounted").count();
        (format!("{lists:?}"), fds)
    }

    /// Waits until the daemon holds what it did: descriptors are closed by threads of their own. Work of an input
    /// before this one may have had some then.
    pub fn assert_holds(&self, before: &(String, usize)) {
        let begin = Instant::now();
        loop {
            let now = self.holdings();
            if now.0 == before.0 && now.1 <= before.1 {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "left: {now:?}\nbefore: {before:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
