//! Open vSwitch with its datapath in userspace, which needs no module of its own in the kernel. Its programs are those
//! of Debian's packages, unpacked by `bench/fetch-open-vswitch`, or those that are installed.
//!
//! ```text
//!   ovsdb-server      what is configured     (ovs-vsctl tells it)
//!   ovs-vswitchd      does so, and forwards
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, io};

use crate::netns::Netns;
use crate::roles::{self, Held, Seat};

/// Where the packages are unpacked.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/open-vswitch");
const SWITCH: &str = "usr/lib/openvswitch-switch/ovs-vswitchd";
const SCHEMA: &str = "usr/share/openvswitch/vswitch.ovsschema";
/// What a command may take, in seconds.
const PATIENCE: &str = "--timeout=20";

/// How it has its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// AF_XDP sockets: most frames a second.
    AfXdp,
    /// AF_PACKET sockets, with segments of TCP left whole: most bytes a second.
    Segments,
}

impl Ports {
    pub fn settings(self) -> &'static str {
        match self {
            Ports::AfXdp => "datapath_type=netdev, type=afxdp",
            Ports::Segments => "datapath_type=netdev, userspace-tso-enable=true",
        }
    }
}

/// Where its files are, if they are.
fn root() -> Option<PathBuf> {
    [UNPACKED, "/"].map(PathBuf::from).into_iter().find(|root| root.join(SWITCH).exists())
}

pub fn is_there() -> bool {
    root().is_some()
}

/// Which it is: `3.1.0`.
pub fn version() -> Option<String> {
    let root = root()?;
    let mut command = Command::new(root.join(SWITCH));
    let output = libraries(&root, &mut command).arg("--version").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.lines().next()?.split(' ').next_back()?.to_owned())
}

/// Has a program find what it is linked to.
fn libraries<'c>(root: &Path, command: &'c mut Command) -> &'c mut Command {
    if root == Path::new("/") {
        return command;
    }
    let machine = format!("usr/lib/{}-linux-gnu", env::consts::ARCH);
    command.env("LD_LIBRARY_PATH", root.join(machine))
}

/// Has one bridge them, as long as the result lives. Its files are in `folder`.
pub fn join(
    host: &Netns,
    folder: &Path,
    ports: Ports,
    interfaces: &[&str],
) -> io::Result<Vec<Held>> {
    let root =
        root().ok_or_else(|| io::Error::other("no Open vSwitch: bench/fetch-open-vswitch"))?;
    let program = |arguments: &[&str]| {
        let program = root.join(arguments[0]).to_string_lossy().into_owned();
        let arguments = [&["exec", "--", &program], &arguments[1..]].concat();
        let mut command = roles::command(Seat::default().inside(host), &arguments)?;
        libraries(&root, &mut command);
        for of in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
            command.env(of, folder);
        }
        Ok::<_, io::Error>(command)
    };
    let run = |arguments: &[&str]| {
        let output = program(arguments)?.stderr(Stdio::piped()).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "{}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    };
    let at = |file: &str| folder.join(file).to_string_lossy().into_owned();
    let (database, socket) = (at("conf.db"), format!("unix:{}", at("db.sock")));
    let (pid, log) = (format!("--pidfile={}", at("pid")), format!("--log-file={}", at("log")));
    let quiet = ["-vconsole:off", &pid, &log];
    let db = format!("--db={socket}");
    // Until the database, or the switch, answers.
    let tell = |arguments: &[&str]| {
        run(&[&["usr/bin/ovs-vsctl", "--retry", PATIENCE, &db], arguments].concat())
    };

    run(&["usr/bin/ovsdb-tool", "create", &database, &root.join(SCHEMA).to_string_lossy()])?;
    let listens = format!("--remote=p{socket}");
    let of_database = &["usr/sbin/ovsdb-server", &database, &listens, "-vconsole:off"];
    let start = |arguments: &[&str]| {
        let name = Path::new(arguments[0]).file_name().unwrap_or_default();
        let said = File::create(folder.join(name))?;
        Ok::<_, io::Error>(Held::new(program(arguments)?.stderr(said).spawn()?))
    };
    let database = start(of_database)?;
    tell(&["--no-wait", "init"])?;
    if ports == Ports::Segments {
        let wanted = "other_config:userspace-tso-enable=true";
        tell(&["--no-wait", "set", "Open_vSwitch", ".", wanted])?;
    }
    let switch = start(&[&[SWITCH, &socket], &quiet[..]].concat())?;
    let joined = vec![switch, database];
    tell(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])?;
    let kind = if ports == Ports::AfXdp { "type=afxdp" } else { "type=system" };
    for interface in interfaces {
        tell(&["add-port", "br0", interface, "--", "set", "interface", interface, kind])?;
    }
    Ok(joined)
}
