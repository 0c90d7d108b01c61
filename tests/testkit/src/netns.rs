//! Network namespaces and the veth pairs between them.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sys;

/// A name no other test in this run uses, short enough for an interface (15 bytes) when `prefix`
/// has at most four.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{}-{n}", std::process::id())
}

/// A network namespace, deleted on drop; or the one this process was started in.
pub struct Netns {
    /// `None` is the namespace of this process.
    name: Option<String>,
}

impl Netns {
    /// Makes a namespace with a unique name that starts with `prefix`, its loopback up.
    pub fn new(prefix: &str) -> Netns {
        let name = unique_name(prefix);
        sh(&format!("ip netns add {name} && ip -n {name} link set lo up"));
        Netns { name: Some(name) }
    }

    /// The same, with a stack that says nothing by itself.
    pub fn quiet(prefix: &str) -> Netns {
        let netns = Netns::new(prefix);
        netns.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        netns
    }

    /// The namespace this process runs in. Dropping it does nothing.
    pub fn root() -> Netns {
        Netns { name: None }
    }

    /// The name under `/run/netns`; `None` for [`Netns::root`].
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// A descriptor of the namespace, for `setns` or to hand to another process.
    pub fn fd(&self) -> OwnedFd {
        let path = match &self.name {
            Some(name) => format!("/run/netns/{name}"),
            None => "/proc/self/ns/net".into(),
        };
        File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}")).into()
    }

    /// A command that will run `program` in this namespace. The process that is spawned is
    /// `program` itself: killing its pid kills it.
    pub fn command(&self, program: &str) -> Command {
        match &self.name {
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, program]);
                command
            }
            None => Command::new(program),
        }
    }

    /// Runs a shell command line here and returns its standard output; panics when it fails.
    pub fn run(&self, line: &str) -> String {
        succeed(line, self.try_run(line))
    }

    /// Runs a shell command line here, and ignores failures.
    pub fn try_run(&self, line: &str) -> Output {
        self.command("sh").args(["-c", line]).output().expect("cannot start sh")
    }

    /// Sends echo requests by ping's `arguments`, with their count (`-c`) and a deadline in seconds (`-w`); panics
    /// unless each is answered, and once. (ping itself is content with a single answer.)
    pub fn ping(&self, arguments: &str) {
        self.try_ping(arguments).unwrap_or_else(|said| panic!("ping {arguments}: {said}"));
    }

    /// The same, whatever comes of it.
    ///
    /// # Errors
    /// A request was not answered, or twice: what ping says.
    pub fn try_ping(&self, arguments: &str) -> Result<(), String> {
        let mut words = arguments.split(' ').skip_while(|word| *word != "-c").skip(1);
        let count = words.next().and_then(|count| count.parse().ok()).expect("a count");
        // Without a deadline ping waits for the last answer only twice as long as the others took.
        assert!(arguments.contains("-w "), "{arguments}: give a deadline");
        let output = self.try_run(&format!("ping {arguments}"));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let answers = said.lines().filter(|line| line.contains(" bytes from "));
        let numbers = answers.filter_map(|line| {
            let (_, number) = line.split_once(" icmp_seq=")?;
            number.split(' ').next()?.parse::<u32>().ok()
        });
        // Until so many have been answered, ping sends more: those do not count.
        if numbers.eq(1..=count) { Ok(()) } else { Err(said) }
    }

    /// Runs `f` on a thread of its own that lives in this namespace. Sockets that `f` opens stay
    /// in the namespace after `f` returns.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let ns = self.fd();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(ns.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("cannot enter the network namespace");
                f()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Connects this namespace to `peer` by a veth pair: interface `here` in this one, `there` in
    /// the other, one queue each way, both up.
    pub fn veth(&self, peer: &Netns, here: &str, there: &str) -> VethPair {
        self.veth_queues(peer, here, there, 1)
    }

    /// Like [`Netns::veth`], with `queues` receive and transmit queues at each end.
    pub fn veth_queues(&self, peer: &Netns, here: &str, there: &str, queues: u32) -> VethPair {
        // Made at once in both namespaces, so that the names never pass through another. A namespace
        // without a name is that of this process.
        let place = peer.name.clone().unwrap_or_else(|| std::process::id().to_string());
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        self.run(&format!(
            "ip link add {here} {queues} type veth peer name {there} {queues} netns {place}"
        ));
        let pair = VethPair { netns: self.name.clone(), name: here.into() };
        self.run(&format!("ip link set {here} up"));
        peer.run(&format!("ip link set {there} up"));
        pair
    }
}

/// Moves the calling thread into a network namespace of its own, which goes with the thread. Where it
/// is in one already, it stays there.
pub fn isolate_thread() {
    thread_local!(static ISOLATED: Cell<bool> = const { Cell::new(false) });
    if !ISOLATED.replace(true) {
        sys::leave_netns().expect("cannot make a network namespace");
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// A veth pair; dropping it deletes both ends.
pub struct VethPair {
    netns: Option<String>,
    name: String,
}

impl VethPair {
    /// Deletes the pair now; the devices are gone when this returns.
    pub fn delete(self) {}
}

impl Drop for VethPair {
    fn drop(&mut self) {
        // Fails when a test deleted the pair or its namespace first: then nothing is left to do.
        let mut ip = Command::new("ip");
        if let Some(netns) = &self.netns {
            ip.args(["-n", netns]);
        }
        let _ = ip.args(["link", "del", &self.name]).output();
    }
}

fn sh(line: &str) -> String {
    succeed(line, Command::new("sh").args(["-c", line]).output().expect("cannot start sh"))
}

fn succeed(line: &str, output: Output) -> String {
    assert!(
        output.status.success(),
        "`{line}`: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
