//! `ringway log`: what a daemon logs, which users see it, and that nothing fills it or holds it up.

use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
    process::Signal,
};
use serde_json::Value;
use std::{
    fs::{self, File, Permissions},
    io::Read,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, net::UnixDatagram},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The account that owns nothing.
const NOBODY: u32 = 65534;

fn events(home: &Home, args: &[&str]) -> Vec<Value> {
    home.json(&[&["log"], args].concat())
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

/// Waits until a command that goes on has printed as many events of a kind.
fn until_events(proc: &Proc, kind: &str, count: usize) {
    let text = format!(r#""kind":"{kind}""#);
    let deadline = Instant::now() + LIMIT;
    while proc.output().matches(&text).count() < count {
        assert!(Instant::now() < deadline, "{count} {kind}: {}", proc.output());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_private_daemon_is_followed_over_its_end() {
    let home = Home::new();
    let said = home.failure(&["log"]);
    assert!(said.contains("cannot reach ringwayd"), "{said}");
    let follow = home.start(&["log", "--follow"]);
    follow.wait_for("waiting for a daemon", LIMIT);
    let receiver = home.open(&["recv", "vale0:b"]);
    until_events(&follow, "daemon-start", 1);
    assert!(home.run(&["switch", "new", "vale1"]).status.success());
    until_events(&follow, "switch", 1);
    home.failure(&["switch", "new", "vale1"]);
    // Ports of switches are not told without being asked for.
    assert!(of_kind(&events(&home, &[]), "port-open").is_empty());
    assert!(home.run(&["log", "--set-level", "debug"]).status.success());
    let other = home.open(&["recv", "vale0:c"]);
    other.signal(Signal::INT);
    finish(other);
    until_events(&follow, "port-close", 1);
    assert!(home.run(&["switch", "delete", "vale1"]).status.success());

    let all = events(&home, &[]);
    let kinds: Vec<_> = all.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        ["daemon-start", "switch", "refused", "config", "port-open", "port-close", "switch"]
    );
    let numbers: Vec<_> = all.iter().filter_map(|event| event["number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let uid = rustix::process::getuid().as_raw();
    let made = &all[1];
    assert_eq!((&made["switch"], &made["port"]), (&"vale1".into(), &Value::Null));
    assert_eq!((&made["uid"], &made["audit"]), (&uid.into(), &true.into()));
    assert!(made["pid"].is_u64() && made["level"] == "info", "{made}");
    let refused = &all[2];
    assert_eq!((&refused["cause"], &refused["audit"]), (&"exists".into(), &true.into()));
    assert!(refused["text"].as_str().unwrap().contains("there is such a switch"), "{refused}");
    let opened = &all[4];
    assert_eq!((&opened["port"], &opened["switch"]), (&"vale0:c".into(), &"vale0".into()));
    assert_eq!((&opened["level"], &opened["audit"]), (&"debug".into(), &false.into()));
    assert_eq!(events(&home, &["--audit"]).len(), 4);
    assert!(events(&home, &["--level", "warn"]).is_empty());
    let text = String::from_utf8(home.run(&["log"]).stdout).unwrap();
    assert!(text.lines().nth(1).unwrap().contains(" info  switch: vale1: made"), "{text}");

    // To follow keeps no daemon.
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
    until_events(&follow, "daemon-stop", 1);
    home.json(&["gen", "vale0:a", "--count", "1"]);
    until_events(&follow, "daemon-start", 2);
    home.is_left_clean();
    until_events(&follow, "daemon-stop", 2);
    follow.signal(Signal::INT);
    let (status, printed) = follow.wait();
    assert!(status.success(), "{printed}");

    let file = home.dir.join("ringwayd.events.log");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written.matches(" info daemon-start: ringwayd").count(), 2, "{written}");
    assert!(written.contains(" info switch audit: vale1: made to stay by user"), "{written}");
    let output = home.run(&["log"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let place = format!("your daemon has ended; its log is {}", file.display());
    assert!(output.status.code() == Some(1) && said.contains(&place), "{said}");
    // What programs were told themselves is in no other place.
    assert!(!home.dir.join("ringwayd.log").exists());
}

/// A receiver that takes nothing is told of, by the reason and whose port it is.
#[test]
fn a_port_that_loses_frames_is_told() {
    let home = Home::new();
    let follow = home.start(&["log", "--follow"]);
    let receiver = home.open(&["recv", "vale0:b"]);
    receiver.stop();
    let sender = home.open(&["gen", "vale0:a"]);
    until_events(&follow, "drops", 1);
    let told = lines(&follow.output());
    let drops = of_kind(&told, "drops")[0];
    assert_eq!((&drops["port"], &drops["level"]), (&"vale0:b".into(), &"warn".into()), "{drops}");
    let text = drops["text"].as_str().unwrap();
    assert!(text.contains("frames were dropped") && text.contains("(ring full)"), "{text}");
    receiver.signal(Signal::CONT);
    for running in [sender, receiver, follow] {
        running.signal(Signal::INT);
        running.wait();
    }
    home.is_left_clean();
}

#[test]
fn an_interface_that_goes_is_told() {
    if skip_without_root("an_interface_that_goes_is_told") {
        return;
    }
    let home = Home::new();
    let (near, far) = (Netns::quiet("lg"), Netns::quiet("lg"));
    let pair = near.veth(&far, "lg0", "lg1");
    let receiver = Proc::spawn(home.command_in(&near, &["recv", "netmap:lg0", "--json"]));
    receiver.wait_for(r#""type":"open""#, LIMIT);
    let follow = home.start(&["log", "--follow"]);
    until_events(&follow, "port-open", 1);
    near.run("ip link set lg0 down");
    until_events(&follow, "link-lost", 1);
    near.run("ip link set lg0 up");
    until_events(&follow, "link-back", 1);
    pair.delete();
    follow.wait_for("lg0: its interface has gone", LIMIT);
    receiver.wait();
    until_events(&follow, "port-close", 1);
    let kept = lines(&follow.output());
    let opened = of_kind(&kept, "port-open")[0];
    assert_eq!((&opened["port"], &opened["audit"]), (&"lg0".into(), &true.into()));
    let mode = opened["mode"].as_str().unwrap();
    assert!(mode.contains("not zerocopy"), "{mode}");
    let gone = of_kind(&kept, "link-lost");
    assert_eq!(gone.last().unwrap()["level"], "warn");
    follow.signal(Signal::INT);
    follow.wait();
    home.is_left_clean();
}

/// What the queues that `ethtool -L` adds receive goes to the stack, while programs and switches have the others.
#[test]
fn queues_that_are_added_are_told() {
    if skip_without_root("queues_that_are_added_are_told") {
        return;
    }
    let (near, far) = (Netns::quiet("lg"), Netns::quiet("lg"));
    let _pair = near.veth(&far, "lg0", "lg1");
    near.run(
        "ip link del lg0; ip link add lg0 numrxqueues 4 numtxqueues 4 type veth peer name lg1",
    );
    near.run("ethtool -L lg0 rx 2 tx 2; ip link set lg0 up; ip link set lg1 up");
    for (mode, added) in [("copy", true), ("generic", true), ("packet", false)] {
        let home = Home::new();
        let port = format!("netmap:lg0@mode={mode}");
        let receiver = Proc::spawn(home.command_in(&near, &["recv", &port, "--json"]));
        receiver.wait_for(r#""type":"open""#, LIMIT);
        let follow = home.start(&["log", "--follow"]);
        until_events(&follow, "port-open", 1);
        let state = || {
            let port = home.json(&["ports"]).remove(0);
            let doctor = home.command_in(&near, &["doctor", "lg0", "--json"]).output().unwrap();
            let doctor =
                String::from_utf8(doctor.stdout).unwrap().contains("queues without a ring: 2-3;");
            let is_noted = port["mode"].as_str().unwrap().contains("queues 2-3 have no rings");
            (port["added_queues"].clone(), is_noted, doctor)
        };
        assert_eq!(state(), (Value::Array(Vec::new()), false, false), "{mode}");
        near.run("ethtool -L lg0 rx 4");
        let queues = if added { vec![Value::from(2), Value::from(3)] } else { Vec::new() };
        assert_eq!(state(), (Value::Array(queues), added, added), "{mode}");
        near.run("ethtool -L lg0 rx 2");
        assert_eq!(state(), (Value::Array(Vec::new()), false, false), "{mode}");
        receiver.signal(Signal::INT);
        receiver.wait();
        until_events(&follow, "port-close", 1);
        let kept = lines(&follow.output());
        let told: Vec<_> = of_kind(&kept, "filter")
            .iter()
            .map(|event| (&event["level"], &event["port"]))
            .collect();
        let both =
            [("warn", "lg0"), ("info", "lg0")].map(|(level, port)| (level.into(), port.into()));
        let expected: Vec<(&Value, &Value)> =
            both.iter().map(|(level, port)| (level, port)).collect();
        assert_eq!(told, if added { expected } else { Vec::new() }, "{mode}: {kept:?}");
        follow.signal(Signal::INT);
        follow.wait();
        home.is_left_clean();
    }
}

/// The same of an interface that is attached to a switch.
#[test]
fn queues_that_are_added_to_an_attached_interface_are_told() {
    if skip_without_root("queues_that_are_added_to_an_attached_interface_are_told") {
        return;
    }
    let near = Netns::quiet("lg");
    near.run("ip link add lg0 numrxqueues 4 numtxqueues 4 type veth peer name lg1");
    near.run("ethtool -L lg0 rx 2 tx 2; ip link set lg0 up; ip link set lg1 up");
    let home = Home::new();
    let attach = ["switch", "attach", "vale0", "lg0@mode=copy"];
    assert!(home.command_in(&near, &attach).status().unwrap().success());
    near.run("ethtool -L lg0 rx 3");
    let port = home.json(&["ports"]).remove(0);
    assert_eq!(port["added_queues"], Value::Array(vec![2.into()]), "{port}");
    let mode = port["mode"].as_str().unwrap();
    assert!(mode.contains("queue 2 has no ring") && mode.contains("attach it again"), "{mode}");
    home.json(&["switch", "detach", "vale0", "lg0"]);
    home.is_left_clean();
}

/// A system daemon on a socket that everybody reaches.
pub struct System {
    pub home: Home,
    pub socket: PathBuf,
}

impl System {
    pub fn new() -> System {
        let home = Home::new();
        fs::set_permissions(&home.dir, Permissions::from_mode(0o755)).unwrap();
        let socket = home.dir.join("system").join("ringwayd.sock");
        fs::create_dir(socket.parent().unwrap()).unwrap();
        fs::set_permissions(socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
        let config = format!("socket = {socket:?}\nmode = '0666'\n");
        fs::write(home.dir.join("ringwayd.toml"), config).unwrap();
        System { home, socket }
    }

    pub fn daemon(&self, args: &[&str]) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_ringway")).with_file_name("ringwayd");
        let mut daemon = Command::new(program);
        daemon.arg("--config").arg(self.home.dir.join("ringwayd.toml")).args(args);
        daemon
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("RINGWAY_SOCKET", &self.socket).env_remove("RINGWAY_DIR");
        command
    }

    /// The same as a user that owns nothing.
    pub fn as_nobody(&self, args: &[&str]) -> Command {
        self.as_nobody_by(Command::new("setpriv"), args)
    }

    /// The same, where `setpriv` is to be run: in a network namespace.
    pub fn as_nobody_by(&self, mut setpriv: Command, args: &[&str]) -> Command {
        let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
        setpriv.args(ids).args(["--clear-groups", "--inh-caps=-all", "--"]);
        setpriv.arg(env!("CARGO_BIN_EXE_ringway")).args(args);
        setpriv.env("RINGWAY_SOCKET", &self.socket).env_remove("RINGWAY_DIR");
        setpriv
    }

    fn events(&self, mut command: Command) -> Vec<Value> {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{:?}", String::from_utf8_lossy(&output.stderr));
        lines(&text)
    }

    pub fn wait(&self) {
        let deadline = Instant::now() + LIMIT;
        while !self.command(&["log"]).output().unwrap().status.success() {
            assert!(Instant::now() < deadline, "no daemon at {:?}", self.socket);
        }
    }
}

#[test]
fn users_see_what_concerns_themselves() {
    if skip_without_root("users_see_what_concerns_themselves") {
        return;
    }
    let system = System::new();
    let daemon = Proc::spawn(system.daemon(&[]));
    system.wait();
    let follow = Proc::spawn(system.as_nobody(&["log", "--follow", "--json"]));
    assert!(system.command(&["switch", "new", "vale0"]).output().unwrap().status.success());
    let refused = system.as_nobody(&["recv", "netmap:lo"]).output().unwrap();
    assert!(!refused.status.success());
    until_events(&follow, "refused", 1);
    follow.signal(Signal::INT);
    let (_, printed) = follow.wait();
    assert!(!printed.contains("vale0"), "{printed}");

    let all = system.events(system.command(&["log", "--json"]));
    assert_eq!(all[0]["kind"], "daemon-start");
    assert_eq!(of_kind(&all, "switch").len(), 1);
    let own = system.events(system.as_nobody(&["log", "--json"]));
    assert!(own.len() == 1 && own[0]["uid"] == NOBODY, "{own:?}");
    assert_eq!((&own[0]["cause"], &own[0]["level"]), (&"denied".into(), &"warn".into()));
    assert_eq!(&own[0], of_kind(&all, "refused")[0]);
    let level = system.as_nobody(&["log", "--set-level", "error", "--json"]).output().unwrap();
    let said = lines(&String::from_utf8(level.stderr).unwrap());
    assert_eq!(find(&said, "error")["cause"], "denied");

    // A daemon that takes over tells what is back, and its numbers are higher.
    daemon.signal(Signal::TERM);
    let (_, printed) = daemon.wait();
    assert!(printed.contains("ringwayd: vale0: made to stay by user 0, process"), "{printed}");
    assert!(printed.contains("ringwayd: the daemon ends: a signal\n"), "{printed}");
    let next = Proc::spawn(system.daemon(&["--log-level", "warn"]));
    system.wait();
    assert!(system.events(system.command(&["log", "--json"])).is_empty());
    next.signal(Signal::TERM);
    assert_eq!(next.wait().1, "");
}

#[test]
fn a_flood_is_bounded_and_what_is_left_out_is_counted() {
    let home = Home::new();
    // It keeps the daemon.
    let receiver = home.open(&["recv", "vale0:b"]);
    let refused = || home.start(&["switch", "delete", "vale9"]);
    let flood: Vec<_> = (0..60).map(|_| refused()).collect();
    let mut count = flood.len() as u64;
    flood.into_iter().for_each(|one| _ = one.wait());
    let deadline = Instant::now() + LIMIT;
    let told = loop {
        // The next that is told says how many were not.
        refused().wait();
        count += 1;
        let told = events(&home, &[]);
        let last = of_kind(&told, "refused").last().cloned().cloned().unwrap();
        if last["left_out"] != 0 {
            break told;
        }
        assert!(Instant::now() < deadline, "{told:?}");
    };
    let told = of_kind(&told, "refused");
    let left_out: u64 = told.iter().filter_map(|event| event["left_out"].as_u64()).sum();
    assert_eq!(told.len() as u64 + left_out, count);
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

/// What is attached is told with its mode, and that it is back after a restart.
#[test]
fn an_attachment_is_told_and_comes_back() {
    if skip_without_root("an_attachment_is_told_and_comes_back") {
        return;
    }
    let system = System::new();
    let (near, far) = (Netns::quiet("lr"), Netns::quiet("lr"));
    let pair = near.veth(&far, "lr0", "lr1");
    let start = || {
        let daemon = system.daemon(&[]);
        let mut within = near.command(daemon.get_program().to_str().unwrap());
        within.args(daemon.get_args());
        let daemon = Proc::spawn(within);
        system.wait();
        daemon
    };
    let ask = |args: &[&str]| {
        let asked = system.command(args);
        let mut within = near.command(asked.get_program().to_str().unwrap());
        within.args(args).env("RINGWAY_SOCKET", &system.socket).env_remove("RINGWAY_DIR");
        let output = within.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let daemon = start();
    ask(&["switch", "attach", "vale0", "lr0"]);
    let told = system.events(system.command(&["log", "--json", "--audit"]));
    let attached = of_kind(&told, "attach")[0];
    assert_eq!((&attached["port"], &attached["switch"]), (&"vale0:lr0".into(), &"vale0".into()));
    assert!(!attached["mode"].as_str().unwrap().is_empty(), "{attached}");
    let follow = system.command(&["log", "--follow", "--json"]);
    let follow = Proc::spawn(follow);
    until_events(&follow, "attach", 1);
    daemon.signal(Signal::TERM);
    until_events(&follow, "daemon-stop", 1);
    daemon.wait();
    let daemon = start();
    until_events(&follow, "link-back", 1);
    pair.delete();
    until_events(&follow, "link-lost", 1);
    follow.signal(Signal::INT);
    let (_, printed) = follow.wait();
    let printed: Vec<_> =
        printed.lines().filter(|line| line.contains(r#""type":"event""#)).collect();
    let told = lines(&printed.join("\n"));
    let numbers: Vec<_> = told.iter().filter_map(|event| event["number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    for kind in ["link-back", "link-lost"] {
        let event = of_kind(&told, kind)[0];
        assert_eq!((&event["port"], &event["uid"]), (&"vale0:lr0".into(), &0.into()), "{event}");
    }
    daemon.signal(Signal::TERM);
    daemon.wait();
}

/// Hides the machine's journal behind a directory, and says that standard error, a file, is the journal's.
const WITH_JOURNAL: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/journal
mount --bind "$1" /run/systemd/journal
export JOURNAL_STREAM=$(stat -c %d:%i "$2")
log=$2
shift 2
exec "$@" 2>> "$log"
"#;

/// The daemon reaches the journal although it has confined itself.
#[test]
fn under_systemd_events_are_fields_of_the_journal() {
    if skip_without_root("under_systemd_events_are_fields_of_the_journal") {
        return;
    }
    let system = System::new();
    let [dir, errors] = ["journal", "errors"].map(|name| system.home.dir.join(name));
    fs::create_dir(&dir).unwrap();
    File::create(&errors).unwrap();
    let journal = UnixDatagram::bind(dir.join("socket")).unwrap();
    journal.set_read_timeout(Some(LIMIT)).unwrap();
    let daemon = system.daemon(&[]);
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", WITH_JOURNAL, "sh"]).arg(&dir).arg(&errors);
    unshare.arg(daemon.get_program()).args(daemon.get_args());
    let daemon = Proc::spawn(unshare);
    let entry = |kind: &str| loop {
        let mut bytes = [0; 8192];
        let length = journal.recv(&mut bytes).expect("an entry");
        let entry = String::from_utf8(bytes[..length].into()).unwrap();
        if entry.contains(&format!("RINGWAY_KIND={kind}\n")) {
            break entry;
        }
    };
    let started = entry("daemon-start");
    assert!(started.starts_with("MESSAGE=ringwayd ") && !started.contains("AUDIT"), "{started}");
    system.wait();
    assert!(system.command(&["switch", "new", "vale0"]).output().unwrap().status.success());
    let made = entry("switch");
    for field in ["PRIORITY=6", "RINGWAY_UID=0", "RINGWAY_SWITCH=vale0", "RINGWAY_AUDIT=1"] {
        assert!(made.contains(&format!("\n{field}\n")), "{field}: {made}");
    }
    assert!(!system.as_nobody(&["switch", "delete", "vale0"]).output().unwrap().status.success());
    let refused = entry("refused");
    assert!(refused.contains(&format!("\nRINGWAY_UID={NOBODY}\n")), "{refused}");
    // Without the journal there are lines, with their levels.
    drop(journal);
    fs::remove_file(dir.join("socket")).unwrap();
    assert!(system.command(&["switch", "delete", "vale0"]).output().unwrap().status.success());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().1, "");
    let lines = fs::read_to_string(errors).unwrap();
    assert!(lines.starts_with("<6>ringwayd: vale0: deleted by user 0"), "{lines}");
}

/// A pipe that has no room: its two ends.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let size = fcntl_setpipe_size(&writer, 4096).unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    assert_eq!(rustix::io::write(&writer, &vec![b'.'; size]), Ok(size));
    // The daemon's end waits for room.
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_standard_error_that_nobody_reads_holds_up_nothing() {
    if skip_without_root("a_standard_error_that_nobody_reads_holds_up_nothing") {
        return;
    }
    let system = System::new();
    let (reader, writer) = full_pipe();
    let mut daemon = system.daemon(&[]);
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(writer));
    let mut running = daemon.spawn().unwrap();
    // It has the other end of the pipe.
    drop(daemon);
    system.wait();
    let new = |name: &str| {
        assert!(system.command(&["switch", "new", name]).output().unwrap().status.success());
    };
    ["vale0", "vale1", "vale2"].into_iter().for_each(new);
    let kept = system.events(system.command(&["log", "--json"]));
    assert_eq!(of_kind(&kept, "switch").len(), 3);
    let mut reader = File::from(reader);
    reader.read_exact(&mut vec![0; 4096]).unwrap();
    new("vale3");
    rustix::process::kill_process(rustix::process::Pid::from_child(&running), Signal::TERM)
        .unwrap();
    assert!(running.wait().unwrap().success());
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    let first = rest.lines().next().unwrap();
    assert!(first.starts_with("ringwayd: vale3: made to stay"), "{rest}");
    // The start, and three switches.
    assert!(first.ends_with("(4 lines before this one are missing: nobody read them)"), "{rest}");
}

/// A request about several ports is logged with all of them, and says which of them it was refused for.
#[test]
fn a_refused_detach_names_its_ports() {
    let home = Home::new();
    assert!(home.run(&["switch", "new", "vale0"]).status.success());
    home.failure(&["switch", "detach", "vale0", "one", "other"]);
    let all = events(&home, &[]);
    let text = of_kind(&all, "refused")[0]["text"].as_str().unwrap();
    assert!(text.starts_with("vale0: not freed of ports (one, other) for user "), "{text}");
    assert!(text.contains(": vale0:one: there is no such port"), "{text}");
    assert!(home.run(&["switch", "delete", "vale0"]).status.success());
    home.is_left_clean();
}
