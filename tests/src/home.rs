//! A place for one test: programs that anybody may run, and a directory for a private daemon.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
};

use ringway_testkit::{Folder, Proc, install};
use rustix::{
    fd::OwnedFd,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with},
};

use crate::wait::{LIMIT, ends, until};

/// The programs, with the packages that they are built from.
const ARTEFACTS: [(&str, &str); 3] = [
    ("ringwayd", "ringwayd"),
    ("libringway_preload.so", "ringway-preload"),
    ("traffic", "ringway-tests"),
];

/// A file system in memory, for everybody.
const MEMORY: &str = "/dev/shm";

const INHERITED: &str = "RINGWAY_TEST_HOME";

/// A temporary directory: `bin` with copies of what was built, and `run`, which is the
/// `RINGWAY_DIR` of the commands made here.
pub struct Home {
    root: PathBuf,
    /// Unless another process owns them: this directory, and one in memory.
    folders: Option<[Folder; 2]>,
}

/// The file `name` from the newest build: beside this test's profile, or of `make build`.
fn built(name: &str, package: &str) -> PathBuf {
    let exe = env::current_exe().expect("this program has a path");
    // target/PROFILE/deps/TEST
    let profile = exe.ancestors().nth(2).expect("tests lie two levels below target");
    let release = profile.with_file_name("release");
    let age = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    let candidates = [profile.join(name), release.join(name)];
    candidates.into_iter().filter(|path| path.is_file()).max_by_key(age).unwrap_or_else(|| {
        panic!(
            "{name} is not built: run `make build` first \
             (or `cargo build --release -p {package}`)"
        )
    })
}

impl Home {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Home {
        let folders = [Folder::new(), Folder::within(MEMORY.into())];
        let [root, memory] = folders.each_ref().map(|folder| folder.path().to_owned());
        let home = Home { root, folders: Some(folders) };
        fs::create_dir(home.bin()).expect("the root is new");
        symlink(&memory, home.path().join("memory")).expect("the root is new");
        for open in [home.path(), &home.bin(), &memory] {
            // Not by a builder's mode, which the umask would narrow.
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        fs::DirBuilder::new().mode(0o700).create(home.run()).expect("the root is new");
        home.install(&ARTEFACTS);
        symlink("libringway_preload.so", home.bin().join("libringway_netmap.so"))
            .expect("the folder is new");
        home
    }

    /// The home that the process was given (`hand_on`).
    pub fn inherited() -> Option<Home> {
        let root = env::var_os(INHERITED)?.into();
        Some(Home { root, folders: None })
    }

    /// Lets `command` use this home as its own.
    pub(crate) fn hand_on(&self, command: &mut Command) {
        command.env(INHERITED, &self.root);
    }

    /// Copies what was built into `bin`: files, with the packages that they are built from.
    pub fn install(&self, artefacts: &[(&str, &str)]) {
        install(artefacts.iter().map(|(name, package)| built(name, package)), self.bin());
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The private daemon's directory.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The private daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.run().join("ringwayd.sock")
    }

    pub fn library(&self) -> PathBuf {
        self.bin().join("libringway_preload.so")
    }

    /// Sets the environment of a client of this home's private daemon.
    pub(crate) fn settle(&self, command: &mut Command) {
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.bin()).chain(env::split_paths(&path));
        command
            .env("PATH", env::join_paths(dirs).expect("no colon in a directory's name"))
            .env("RINGWAY_DIR", self.run())
            // The events of a daemon elsewhere are not for the machine's user.
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env_remove("RINGWAY_SOCKET")
            .env_remove("LD_PRELOAD")
            .env_remove("LD_LIBRARY_PATH");
    }

    /// Sets the environment of a client of this home's system daemon.
    pub(crate) fn settle_with_system(&self, command: &mut Command) {
        self.settle(command);
        command.env("RINGWAY_SOCKET", self.system_socket()).env_remove("RINGWAY_DIR");
    }

    /// A client of this home's private daemon.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        self.settle(&mut command);
        command
    }

    /// A client of this home's system daemon.
    pub fn system_command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        self.settle_with_system(&mut command);
        command
    }

    /// The program `traffic` with the given arguments.
    pub fn traffic(&self, args: &[&str]) -> Command {
        let mut command = self.command(self.bin().join("traffic"));
        command.args(args);
        command
    }

    /// The same as a client of the system daemon.
    pub fn system_traffic(&self, args: &[&str]) -> Command {
        let mut command = self.system_command(self.bin().join("traffic"));
        command.args(args);
        command
    }

    /// Starts a system daemon on [`system_socket`](Self::system_socket), and waits until it
    /// listens there with that group and mode.
    pub fn system_daemon(&self, group: u32, mode: u32) -> Proc {
        self.system_daemon_with(group, mode, "", |daemon| daemon)
    }

    /// The same with `more` lines of configuration, and with its command changed by `launch`.
    pub fn system_daemon_with(
        &self,
        group: u32,
        mode: u32,
        more: &str,
        launch: impl FnOnce(Command) -> Command,
    ) -> Proc {
        let socket = self.system_socket();
        let config = self.path().join("ringwayd.toml");
        let text = format!("socket = {socket:?}\ngroup = '{group}'\nmode = '{mode:o}'\n{more}");
        fs::write(&config, text).expect("the directory is ours");
        let mut daemon = self.command(self.bin().join("ringwayd"));
        daemon.arg("--config").arg(&config);
        let daemon = Proc::spawn(launch(daemon));
        until("the system daemon listens", || {
            try_to_connect(&socket).map_err(|e| format!("{e}; it said {:?}", daemon.output()))
        });
        let found = fs::metadata(&socket).expect("somebody listens there");
        assert_eq!((found.gid(), found.mode() & 0o777), (group, mode));
        daemon
    }

    /// The socket of this home's system daemon: what its clients have in `RINGWAY_SOCKET`.
    /// In memory, as `/run` is: the daemon keeps its state beside it, and what a disk takes for that differs.
    pub fn system_socket(&self) -> PathBuf {
        let memory = self.path().join("memory").canonicalize().expect("the home has it");
        memory.join("system").join("ringwayd.sock")
    }

    /// Process ids of this home's private daemons.
    pub fn daemons(&self) -> Vec<u32> {
        let dir = self.run();
        let serving = self.private_daemons().into_iter().filter(|(_, served)| *served == dir);
        serving.map(|(pid, _)| pid).collect()
    }

    /// The private daemon, which has been started; there must be just one.
    pub fn daemon(&self) -> u32 {
        until("one private daemon runs", || match self.daemons()[..] {
            [pid] => Ok(pid),
            ref pids => Err(format!("{pids:?} run; {}", self.log())),
        })
    }

    /// Each process that runs this home's daemon as a private one, with its directory: that of a
    /// program with more rights than its user's is elsewhere.
    fn private_daemons(&self) -> Vec<(u32, PathBuf)> {
        let program = self.bin().join("ringwayd");
        let directory = |pid: u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let mut args = line.split(|byte| *byte == 0);
            let is_private = args.nth(1)? == b"--private";
            let directory = PathBuf::from(OsStr::from_bytes(args.next()?));
            let runs = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
            (is_private && (runs || directory == self.run())).then_some((pid, directory))
        };
        let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(directory).collect()
    }

    /// Waits until the private daemons have left, and checks that the one of [`run`](Self::run) took
    /// its socket along.
    pub fn assert_left(&self) {
        for (pid, _) in self.private_daemons() {
            assert!(ends(pid, LIMIT), "ringwayd {pid} stays after its last client; {}", self.log());
        }
        // One that is about to be executed is not seen yet, but its socket is there.
        until("the daemon removes its socket", || match self.socket().exists() {
            true => Err(self.log()),
            false => Ok(()),
        });
    }

    /// What the private daemon has said.
    pub fn log(&self) -> String {
        let text = fs::read_to_string(self.run().join("ringwayd.log")).unwrap_or_default();
        format!("it said: {text:?}")
    }
}

/// Connects to a daemon's socket, to say things that no client would.
pub fn connect(socket: &Path) -> io::Result<OwnedFd> {
    connect_with(socket, SocketFlags::CLOEXEC)
}

fn connect_with(socket: &Path, flags: SocketFlags) -> io::Result<OwnedFd> {
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(socket)?)?;
    Ok(fd)
}

/// The same, without waiting for room in the queue of a daemon that accepts nothing.
fn try_to_connect(socket: &Path) -> io::Result<OwnedFd> {
    connect_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// Connects to a daemon that accepts nothing, until its queue has no room for more.
pub fn fill_queue(socket: &Path) -> Vec<OwnedFd> {
    let mut waiting = Vec::new();
    loop {
        match try_to_connect(socket) {
            Ok(fd) => waiting.push(fd),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return waiting,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.folders.is_none() {
            return;
        }
        for (pid, directory) in self.private_daemons() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            // What is within this home goes with it.
            if !directory.starts_with(&self.root) && ends(pid, LIMIT) {
                let _ = fs::remove_dir_all(directory);
            }
        }
    }
}
