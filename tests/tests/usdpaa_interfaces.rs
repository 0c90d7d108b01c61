//! Programs of USDPAA on Ringway's ports: a reflector at one end, a netmap program at the other, and what users are told.

use std::{fs, path::Path, process::Command, time::Duration};

use ringway_testkit::{Netns, Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody,
    c::{Language::*, Library::*, compile, succeed},
    ends, inside, until,
    usdpaa::{build, build_with, config, policies, with_files},
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
const FRAMES: &str = "20000";

/// Ends a program by SIGINT; what it has printed.
fn interrupt(program: Proc) -> String {
    program.signal(Signal::INT);
    assert!(ends(program.pid(), LIMIT), "it does not end: {}", program.output());
    let (status, said) = program.wait();
    assert!(status.success(), "{status}: {said}");
    said
}

/// A netmap program sends to a reflector, and gets back what it should.
fn peer(mut command: Command) {
    command.arg(FRAMES);
    let said = succeed(command);
    assert!(said.contains(&format!("sent {FRAMES} back 17500 wrong 0")), "{said}");
}

/// The reflector on one port, the netmap program on another.
fn reflects(
    home: &Home,
    program: &Path,
    [ours, theirs]: [&str; 2],
    launch: impl Fn(Command) -> Command,
    far: impl Fn(Command) -> Command,
    arguments: &[&str],
) -> String {
    let far_program = compile(home, "tests/c/usdpaa_peer.c", C11, Preloaded);
    let config = config(home, &["fm0 10G 0 5"]);
    let ports = format!("fm0-10g0={ours}");
    let mut command = with_files(Command::new(program), &ports, &config);
    command.args(arguments);
    let reflector = Proc::spawn(launch(command));
    reflector.wait_for("Released 1728 bufs to BPID 9", LIMIT);
    let mut command = Command::new(far_program);
    command.arg(theirs).env("LD_PRELOAD", home.library());
    peer(far(command));
    interrupt(reflector)
}

/// A command in the home's environment.
fn settled(home: &Home, command: Command) -> Command {
    let mut settled = home.command(command.get_program());
    settled.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            settled.env(name, value);
        }
    }
    settled
}

fn system(home: &Home, command: Command) -> Command {
    let mut settled = home.system_command(command.get_program());
    settled.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            settled.env(name, value);
        }
    }
    settled
}

/// What the first program of USDPAA prints, line by line, in the order in which it must.
fn assert_lines(said: &str, lines: &[&str]) {
    let mut rest = said.lines();
    for line in lines {
        assert!(rest.any(|found| found == *line), "no {line:?} in\n{said}");
    }
    let bad: Vec<&str> =
        said.lines().filter(|line| line.starts_with("Fail") || line.starts_with("Warn")).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_reflector_and_a_netmap_program_on_a_switch_and_a_pipe() {
    for ends in [["valeU:a", "valeU:b"], ["usd{1", "usd}1"]] {
        let home = Home::new();
        let program = build(&home, "examples/c/usdpaa_hello.c", &[]);
        let launch = |command| settled(&home, command);
        let said = reflects(&home, &program, ends, launch, launch, &["-n", "1"]);
        assert_lines(
            &said,
            &[
                "Starting hello_reflector, ncpus=1",
                "Found fm0-10g0, Tx Channel = 40, FMAN = 0, Port ID = 0",
                "DMA region created of size 16777216 (0x1000000)",
                "(0): Starting",
                "Released 0 bufs to BPID 7",
                "Released 0 bufs to BPID 8",
                "Released 1728 bufs to BPID 9",
                "Hit Ctrl-C (or send SIGINT) to terminate.",
                "(0): Finished",
                "Finished hello_reflector",
            ],
        );
        assert!(said.contains("Ctrl-C, ending..."), "{said}");
        home.assert_left();
    }
}

/// The library may be part of the program, and so may everything else.
#[test]
fn a_program_that_is_linked_statically() {
    for flags in [&[][..], &["-static"]] {
        let home = Home::new();
        let program = build_with(&home, "examples/c/usdpaa_hello.c", flags, "libusdpaa.a");
        assert!(!home.bin().join("libusdpaa.so").exists(), "it is not there to be used");
        let launch = |command| settled(&home, command);
        let said = reflects(&home, &program, ["valeU:a", "valeU:b"], launch, launch, &["-n", "1"]);
        assert_lines(&said, &["Starting hello_reflector, ncpus=1", "Finished hello_reflector"]);
        home.assert_left();
    }
}

/// Frame queues that are held by a thread, or go on when the frame before was sent, or have their order restored.
#[test]
fn several_threads_share_the_frames_and_keep_flows_in_order() {
    let home = Home::new();
    let program = build(&home, "examples/c/usdpaa_reflector.c", &[]);
    let launch = |command| settled(&home, command);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let range = format!("0..{}", cpus.min(2) - 1);
    for flags in [&[][..], &["-DORDER_PRESERVATION"], &["-DORDER_RESTORATION"]] {
        let program = match flags {
            [] => program.clone(),
            flags => build(&home, "examples/c/usdpaa_reflector.c", flags),
        };
        let far_program = compile(&home, "tests/c/usdpaa_peer.c", C11, Preloaded);
        let config = config(&home, &["fm0 10G 0 5"]);
        let mut command = with_files(Command::new(&program), "fm0-10g0=valeU:a", &config);
        command.args(["-n", "-b", "0:0:1024", &range]);
        let reflector = Proc::spawn(launch(command));
        reflector.wait_for(&format!("Thread uid:{} alive", cpus.min(2) - 1), LIMIT);
        let mut command = Command::new(far_program);
        command.arg("valeU:b").env("LD_PRELOAD", home.library());
        peer(launch(command));
        let said = interrupt(reflector);
        assert_lines(
            &said,
            &[
                "reflector starting",
                "Configuring for 1 network interface",
                "Allocated DMA region size 0x4000000",
                "Released 1024 bufs to BPID 9",
                "Thread uid:0 alive (on cpu 0)",
                "Thread uid:0 killed (cpu 0)",
                "reflector stopping",
            ],
        );
    }
    home.assert_left();
}

#[test]
fn a_reflector_on_an_interface() {
    if skip_without_root("a_reflector_on_an_interface") {
        return;
    }
    let home = Home::new();
    let program = build(&home, "examples/c/usdpaa_hello.c", &[]);
    let netns = Netns::quiet("rwu");
    let _pair = netns.veth(&netns, "u0", "u1");
    let launch = |command| inside(&netns, settled(&home, command));
    reflects(&home, &program, ["netmap:u0", "u1"], launch, launch, &["-n", "1"]);
    home.assert_left();
}

/// A member of the group of a system daemon, on a switch and on a pipe.
#[test]
fn an_ordinary_user() {
    if skip_without_root("an_ordinary_user") {
        return;
    }
    let home = Home::new();
    let program = build(&home, "examples/c/usdpaa_hello.c", &[]);
    let _daemon = home.system_daemon(GROUP, 0o660);
    let launch = |command| as_nobody(system(&home, command));
    for ends in [["valeU:a", "valeU:b"], ["usd{1", "usd}1"]] {
        reflects(&home, &program, ends, launch, launch, &["-n", "1"]);
    }
}

/// The same on an interface: of the user's own network namespace, where the daemon lets the user have those; and of the
/// daemon's, from another namespace, where it is granted.
#[test]
fn an_ordinary_user_on_an_interface() {
    if skip_without_root("an_ordinary_user_on_an_interface") {
        return;
    }
    let elsewhere = Netns::quiet("rwu");
    for (allows, from_elsewhere) in [
        ("nic_users = ['65534']\n", false),
        ("[[grant]]\ninterface = 'u0'\nusers = ['65534']\n", true),
    ] {
        let home = Home::new();
        let program = build(&home, "examples/c/usdpaa_hello.c", &[]);
        let netns = Netns::quiet("rwu");
        let _pair = netns.veth(&netns, "u0", "u1");
        let _daemon =
            home.system_daemon_with(GROUP, 0o660, allows, |daemon| inside(&netns, daemon));
        let where_it_runs = if from_elsewhere { &elsewhere } else { &netns };
        let launch = |command| inside(where_it_runs, as_nobody(system(&home, command)));
        let far = |command| inside(&netns, settled(&home, command));
        reflects(&home, &program, ["netmap:u0", "u1"], launch, far, &["-n", "1"]);
        home.assert_left();
    }
}

/// Commands of the command line, and that a program that has nothing to do sleeps.
#[test]
fn the_command_line_of_ppac_programs() {
    let home = Home::new();
    let program = build(&home, "examples/c/usdpaa_reflector.c", &[]);
    let config = config(&home, &["fm1 1G 2 8"]);
    let lines = [
        "help",
        "list",
        "nonsense",
        "add 1000",
        "rm uid:0",
        "add 0",
        "list",
        "rm uid:1",
        "list",
        "cgr",
        "macs off",
        "macs on",
        "macs sideways",
        "promisc enable f:1 p:2",
        "promisc enable f:0 p:2",
        "q",
    ];
    let mut shell = with_files(home.command("sh"), "fm1-1g2=valeU:a", &config);
    // The shell's own arguments come first.
    let files = format!("-p {} -c {config}", policies());
    shell = {
        let mut again = home.command("sh");
        again.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        again
    };
    let script = format!(
        "printf '{}\\n' | exec {} {files} -b 0:0:64 0 2>&1",
        lines.join("\\n"),
        program.display()
    );
    shell.args(["-c", &script]);
    let said = succeed(shell);
    for line in [
        "reflector> ",
        "Thread uid:0 alive (on cpu 0)",
        "Unknown command: nonsense",
        "add: Invalid argument",
        "rm: Invalid argument",
        "Thread uid:1 alive (on cpu 0)",
        "Thread uid:1 killed (cpu 0)",
        "rx CGR ID: 0, tx CGR ID: 1",
        "macs: Invalid argument",
        "promisc: Invalid argument",
        "reflector stopping",
    ] {
        assert!(said.contains(line), "no {line:?} in\n{said}");
    }
    assert_eq!(said.matches("macs: ").count(), 1, "{said}");
    assert_eq!(said.matches("promisc: ").count(), 1, "{said}");
}

/// The structures and macros of the headers, what is printed of a configuration, and arguments that are none.
#[test]
fn interfaces_and_configurations_of_c_programs() {
    let home = Home::new();
    let program = build(&home, "tests/c/usdpaa_netcfg.c", &[]);
    let config = config(&home, &["fm0 10G 0 5", "fm1 1G 2 8", "fm0 OFFLINE 1 9"]);
    let ports = "fm0-10g0=valeU:a fm1-1g2=valeU:b fm0-offline1=";
    let mut command = home.command(&program);
    command.env("RINGWAY_USDPAA_PORTS", ports).args([policies(), config]);
    let said = succeed(command);
    let expected = "\
..........  USDPAA Configuration  ..........

Network interfaces: 3

+ Fman 0, MAC 0 (10G);
\tmac_addr: 02:00:00:00:02:00
\ttx_channel_id: 0x41
\tfqid_rx_hash:
\t\t(PCD: start 0x900, count 32)
\tfqid_rx_def: 0x56
\tfqid_rx_err: 0x108
\tfqid_tx_err: 0x109
\tfqid_tx_confirm: 0x10a
\tbuffer pool: (bpid=7, count=0size=320, addr=0x0)
\tbuffer pool: (bpid=8, count=0size=704, addr=0x0)
\tbuffer pool: (bpid=9, count=0size=1728, addr=0x0)

+ Fman 1, MAC 2 (1G);
";
    assert!(said.contains(expected), "{said}");
    let offline = "\
+ Fman 0, MAC 1 (OFFLINE);
\ttx_channel_id: 0x40
\tfqid_rx_hash:
\t\t(PCD: start 0xd00, count 32)
\tfqid_rx_def: 0x5a
\tfqid_rx_err: 0x100
\tbuffer pool: (bpid=7, count=0size=320, addr=0x0)
";
    assert!(said.contains(offline), "{said}");
    home.assert_left();
}

/// What is wrong is said, with what to do.
#[test]
fn what_is_wrong_is_said() {
    let home = Home::new();
    let program = build(&home, "examples/c/usdpaa_hello.c", &[]);
    let config = config(&home, &["fm0 10G 0 5", "fm1 1G 2 8"]);
    let none = home.path().join("none.conf").display().to_string();
    let wrong: [(&[(&str, &str)], &str); 5] = [
        (
            &[("RINGWAY_USDPAA_CONFIG", &none)],
            "Set RINGWAY_USDPAA_PORTS, as in RINGWAY_USDPAA_PORTS='fm0-10g0=vale0:a'",
        ),
        (&[("RINGWAY_USDPAA_PORTS", "")], "names no interface: write fm0-10g0=vale0:a"),
        (&[("RINGWAY_USDPAA_PORTS", "eth0=vale0:a")], "is no interface: write fm0-10g0"),
        (&[("RINGWAY_USDPAA_PORTS", "fm0-10g0=valeU:a")], "fm1-1g2 is no port: add fm1-1g2=PORT"),
        (&[("RINGWAY_USDPAA_PORTS", "fm0-10g0=netmap:nonesuch")], "fm0-10g0=netmap:nonesuch: "),
    ];
    for (environment, expected) in wrong {
        let mut command = home.command(&program);
        command.args(["-n", "1", "-p", &policies(), "-c", &config]);
        command.envs(environment.iter().copied());
        let (status, said) = Proc::spawn(command).wait();
        assert!(!status.success() && said.contains(expected), "{environment:?}: {status}: {said}");
        assert!(said.contains("Fail: usdpaa_netcfg_acquire: -22"), "{said}");
    }
    for arguments in [["-n", "0x1000"], ["-s", "many"], ["-b", "1:x:2"]] {
        let mut command = home.command(&program);
        let (status, said) = Proc::spawn({
            command.args(arguments);
            command
        })
        .wait();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("Error: "), "{said}");
    }
}

/// A program whose threads have nothing to do takes no CPU.
#[test]
fn a_program_that_waits_takes_no_cpu() {
    let home = Home::new();
    let program = build(&home, "tests/c/usdpaa_netcfg.c", &[]);
    let config = config(&home, &["fm0 10G 0 5"]);
    let mut command = home.command(&program);
    command.env("RINGWAY_USDPAA_PORTS", "fm0-10g0=valeU:a").args([&policies(), &config, "wait"]);
    let program = Proc::spawn(command);
    program.wait_for("waiting", LIMIT);
    // Its threads come to rest, and stay there.
    let switches = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).unwrap();
        let count = tasks.map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            lines
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
                .sum::<u64>()
        });
        count.sum::<u64>()
    };
    let mut before = switches();
    until("its threads rest", || {
        std::thread::sleep(Duration::from_millis(300));
        let now = switches();
        let result = if now == before { Ok(()) } else { Err(format!("{now} switches")) };
        before = now;
        result
    });
    program.signal(Signal::TERM);
    program.wait();
}
