//! Programs with more rights than the user who starts them: no library of theirs believes what that
//! user has chosen.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::UNIX_EPOCH,
};

use ringway_testkit::{install_script, skip_without_root};
use ringway_tests::{
    GROUP, Home, NOBODY, as_nobody,
    c::{Language::C11, link, succeed},
    capture, give_capability,
};
use rustix::{
    fs::CWD,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with,
    },
};

/// How a program comes to its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// It has those of its user, root.
    Own,
    SetUid,
    /// A set-user-ID bit, and the program takes the rights for good.
    Becoming,
    FileCapability,
}

use Rights::*;

/// A word that only traps have.
const WORD: &str = "trapword";

/// A folder that the user made, with all kinds of traps in it.
struct Traps(PathBuf);

impl Traps {
    fn new(home: &Home) -> Traps {
        let traps = Traps(home.path().join("traps"));
        traps.folder("", 0o755);
        traps.folder("marks", 0o777);
        traps.program("ringwayd");
        traps.library("libpcap.so.1");
        symlink("libpcap.so.1", traps.at("libpcap.so.0.8")).unwrap();
        fs::write(traps.at("secret"), WORD).unwrap();
        fs::set_permissions(traps.at("secret"), Permissions::from_mode(0o600)).unwrap();
        for folder in ["home", "home/.config", "home/.config/ringway"] {
            traps.folder(folder, 0o755);
        }
        let config = traps.at("home/.config/ringway/ringwayd.toml");
        fs::write(config, format!("{WORD} = 1")).unwrap();
        fs::write(traps.at("secret.pcap"), capture::file(&capture::frames())).unwrap();
        fs::set_permissions(traps.at("secret.pcap"), Permissions::from_mode(0o600)).unwrap();
        traps.socket();
        traps
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn folder(&self, name: &str, mode: u32) {
        DirBuilder::new().create(self.at(name)).unwrap();
        fs::set_permissions(self.at(name), Permissions::from_mode(mode)).unwrap();
    }

    /// A folder as the program's own would be.
    fn fresh_folder(&self, owner: u32) -> PathBuf {
        let path = self.at("folder");
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        chown(&path, Some(owner), Some(GROUP)).unwrap();
        fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        path
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.at("marks").join(name)
    }

    fn program(&self, name: &str) {
        let text = format!("#!/bin/sh\n: > {}\n", self.mark("sprung").display());
        install_script(&text, self.at(name));
    }

    /// What would be run by a program that loads the library.
    fn library(&self, name: &str) {
        let source = self.at("library.c");
        let text = format!(
            "#include <fcntl.h>\nint pcap_activate(void *p) {{ return p != 0; }}\n\
             __attribute__((constructor)) static void run(void) {{ creat(\"{}\", 0666); }}\n",
            self.mark("sprung").display()
        );
        fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(self.at(name)).arg(source);
        assert!(compiler.status().expect("cc starts").success());
    }

    /// A socket that hangs up on those who connect.
    fn socket(&self) {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let socket = socket.unwrap();
        bind(&socket, &SocketAddrUnix::new(self.at("socket")).unwrap()).unwrap();
        rustix::fs::chmodat(CWD, self.at("socket"), 0o666.into(), rustix::fs::AtFlags::empty())
            .unwrap();
        listen(&socket, 8).unwrap();
        let mark = self.mark("sprung");
        thread::spawn(move || {
            while let Ok(peer) = accept(&socket) {
                fs::write(&mark, "").unwrap();
                drop(peer);
            }
        });
    }

    /// Whether a mark was made since last asked, or something was put into the [folder](Self::fresh_folder), which a
    /// program that can start no daemon takes out again.
    fn are_marked(&self) -> bool {
        let marked = fs::remove_file(self.mark("sprung")).is_ok();
        let folder = fs::metadata(self.at("folder")).unwrap();
        marked || folder.modified().unwrap() != UNIX_EPOCH
    }
}

/// A library with what its program is linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    Netmap,
    /// The same, with no daemon beside it.
    NetmapAlone,
    Pcap,
    Pfring,
    Usdpaa,
}

use Library::*;

/// What shows that a library has believed something.
#[derive(Clone, Copy)]
enum Sign {
    /// Something was run, connected to, or made.
    Mark,
    /// The program printed this.
    Printed(&'static str),
}

use Sign::*;

/// A variable, what it is set to (a name in the folder of traps, or a word), the library that reads
/// it in other programs, and what is seen then. Without a variable: the device that PF_RING is to
/// open.
const TRAPS: [(&str, &str, Library, Sign); 18] = [
    ("RINGWAY_SOCKET", "/socket", Netmap, Mark),
    ("RINGWAY_DIR", "/folder", NetmapAlone, Mark),
    ("XDG_RUNTIME_DIR", "/folder", NetmapAlone, Mark),
    ("PATH", "/", NetmapAlone, Mark),
    ("HOME", "/home", Netmap, Printed("valet:a: Invalid argument")),
    ("XDG_CONFIG_HOME", "/home/.config", Netmap, Printed("valet:a: Invalid argument")),
    ("RINGWAY_VERBOSE", "1", Netmap, Printed("ringway: ")),
    ("RINGWAY_FILTER", WORD, Netmap, Printed("no_such_if: Invalid argument")),
    ("RINGWAY_NIC_MODE", WORD, Netmap, Printed("no_such_if: Invalid argument")),
    ("RINGWAY_NIC_BUFFERS", WORD, Netmap, Printed("no_such_if: Invalid argument")),
    ("RINGWAY_NIC_TIMESTAMPS", WORD, Netmap, Printed("no_such_if: Invalid argument")),
    ("RINGWAY_LIBPCAP", "/libpcap.so.1", Pcap, Mark),
    ("PF_RING_FT_CONF", WORD, Pfring, Printed("Operation not supported")),
    ("", "/secret.pcap", Pfring, Printed("pfring: open")),
    ("RINGWAY_USDPAA_PORTS", WORD, Usdpaa, Printed(WORD)),
    ("RINGWAY_USDPAA_CONFIG", "/secret", Usdpaa, Printed(WORD)),
    ("RINGWAY_USDPAA_CONFIG", "secret", Usdpaa, Printed(WORD)),
    ("RINGWAY_USDPAA_PORTS", "fm0-10g0=valet:a", Usdpaa, Printed("usdpaa: Success")),
];

/// The program of a library, with these rights.
fn program(home: &Home, library: Library, rights: Rights) -> PathBuf {
    let libraries: &[&str] = match library {
        Netmap | NetmapAlone => &["-lringway_netmap"],
        Pcap => &["-l:libringway_pcap.so"],
        Pfring => &["-lpfring"],
        Usdpaa => &["-lusdpaa"],
    };
    let built = link(home, "tests/c/believer.c", C11, libraries);
    let program = home.path().join(format!("{library:?}-{rights:?}"));
    fs::rename(built, &program).unwrap();
    match rights {
        Own => {}
        SetUid | Becoming => fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap(),
        FileCapability => give_capability(&program),
    }
    program
}

/// Runs a program in the folder of traps, with one of them set; whether it fell into it.
fn falls(home: &Home, traps: &Traps, rights: Rights, trap: usize, program: &Path) -> bool {
    let (variable, value, _, sign) = TRAPS[trap];
    let owner = if rights == FileCapability { NOBODY } else { 0 };
    traps.fresh_folder(owner);
    let value = match value.strip_prefix('/') {
        Some(name) => traps.at(name).display().to_string(),
        None => value.to_owned(),
    };
    let mut command = Command::new(program);
    match variable {
        "" => command.arg(format!("file:{value}@read")),
        _ => command.arg("no_such_if"),
    };
    if rights == Becoming {
        command.arg("become");
    }
    // What the library reads first must not hide the trap, nor a daemon be left behind; and one that
    // this user has already is none of this test's.
    let says_where = ["RINGWAY_DIR", "XDG_RUNTIME_DIR"].contains(&variable);
    if rights == Own && !says_where {
        command.env("RINGWAY_DIR", home.run());
    }
    let path = "/usr/bin:/bin:/usr/sbin:/sbin";
    match variable {
        "PATH" => command.env("PATH", format!("{value}:{path}")),
        "" => &mut command,
        _ => command.env(variable, value),
    };
    let mut command = match rights {
        Own => command,
        _ => as_nobody(command),
    };
    command.current_dir(&traps.0).env_remove("RINGWAY_SOCKET");
    if variable == "RINGWAY_SOCKET" {
        command.env(variable, traps.at("socket"));
    }
    let printed = succeed(command);
    match sign {
        Mark => traps.are_marked(),
        Printed(text) => printed.contains(text),
    }
}

/// Each variable, and each file of the working directory, is a trap; a program without more rights
/// falls into it.
#[test]
fn nothing_of_the_users_choice_is_believed() {
    if skip_without_root("nothing_of_the_users_choice_is_believed") {
        return;
    }
    let homes = [Home::new(), Home::new()];
    for home in &homes {
        home.install(&[
            ("libringway_pcap.so", "ringway-pcap"),
            ("libpfring.so", "ringway-libpfring"),
            ("libusdpaa.so", "ringway-usdpaa"),
        ]);
        // By this name the program asks for it.
        symlink("libringway_pcap.so", home.bin().join("libpcap.so.0.8")).unwrap();
    }
    let [home, alone] = &homes;
    fs::remove_file(alone.bin().join("ringwayd")).unwrap();
    let traps = Traps::new(home);
    let mut wrong = Vec::new();
    for rights in [Own, SetUid, Becoming, FileCapability] {
        for library in [Netmap, NetmapAlone, Pcap, Pfring, Usdpaa] {
            let place = if library == NetmapAlone { alone } else { home };
            let program = program(place, library, rights);
            for trap in (0..TRAPS.len()).filter(|trap| TRAPS[*trap].2 == library) {
                if falls(place, &traps, rights, trap, &program) != (rights == Own) {
                    wrong.push(format!("{rights:?}: {} = {}", TRAPS[trap].0, TRAPS[trap].1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    home.assert_left();
}

/// Runs a program with capabilities where `/dev/shm` has no folders of others; what is in it when the
/// daemon that it may have started has left.
fn left_by(home: &Home, traps: &Traps, program: &Path) -> String {
    let mut believer = Command::new(program);
    believer.arg("no_such_if");
    let believer = as_nobody(believer);
    let script = "mount -t tmpfs -o mode=1777 none /dev/shm && \"$@\" > /dev/null 2>&1; \
                  echo ended; read line; find /dev/shm -mindepth 1";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(believer.get_program()).args(believer.get_args()).current_dir(&traps.0);
    command.env("RINGWAY_DIR", traps.fresh_folder(NOBODY)).env_remove("RINGWAY_SOCKET");
    let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(shell.stdout.take().unwrap());
    let mut ended = String::new();
    said.read_line(&mut ended).unwrap();
    home.assert_left();
    shell.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut left = String::new();
    said.read_to_string(&mut left).unwrap();
    assert!(shell.wait().unwrap().success());
    left
}

/// The folder of such a program's daemon, which no variable names, goes with the daemon. Where there is
/// no daemon, one of the working directory is not made a socket for.
#[test]
fn the_daemon_of_a_program_with_capabilities_leaves_no_folder() {
    if skip_without_root("the_daemon_of_a_program_with_capabilities_leaves_no_folder") {
        return;
    }
    let [home, alone] = [Home::new(), Home::new()];
    fs::remove_file(alone.bin().join("ringwayd")).unwrap();
    let traps = Traps::new(&home);
    let left = left_by(&home, &traps, &program(&home, Netmap, FileCapability));
    assert_eq!(left, "");
    let left = left_by(&alone, &traps, &program(&alone, NetmapAlone, FileCapability));
    assert!(!left.contains("ringwayd"), "{left}");
}

/// A daemon is not looked for beside the word that a program was called by, which its caller
/// chooses.
#[test]
fn the_name_of_a_program_leads_to_no_daemon() {
    if skip_without_root("the_name_of_a_program_leads_to_no_daemon") {
        return;
    }
    let home = Home::new();
    fs::remove_file(home.bin().join("ringwayd")).unwrap();
    let traps = Traps::new(&home);
    traps.fresh_folder(0);
    let mut command = Command::new(home.bin().join("traffic"));
    command.arg0(traps.at("traffic")).args(["close", "valet:a"]);
    fs::write(traps.at("traffic"), "").unwrap();
    command.env("RINGWAY_DIR", home.run()).env_remove("RINGWAY_SOCKET").env("PATH", "/none");
    let output = command.output().unwrap();
    assert!(!traps.are_marked(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A private daemon with file capabilities, as `ringway doctor` recommends it, reads no
/// configuration that a variable names.
#[test]
fn a_daemon_with_capabilities_believes_no_home() {
    if skip_without_root("a_daemon_with_capabilities_believes_no_home") {
        return;
    }
    let home = Home::new();
    home.give_to_nobody();
    let traps = Traps::new(&home);
    for has_more in [false, true] {
        if has_more {
            give_capability(&home.bin().join("ringwayd"));
        }
        let mut command = home.command(home.bin().join("traffic"));
        command.args(["close", "valet:a"]).env("XDG_CONFIG_HOME", traps.at("home/.config"));
        let output = as_nobody(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.contains(WORD), !has_more, "{said}");
        assert_eq!(output.status.success(), has_more, "{said}");
        home.assert_left();
    }
}
