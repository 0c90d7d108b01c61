//! The life of a virtual machine on a switch: one TCP connection goes on while daemon, port and monitor come and go, while
//! the machine is in a VLAN, and over its migration to another daemon's switch.
//!
//! ```text
//!   far  --veth--  [ vale0 of the first daemon ]  --veth--  [ vale0 of the second daemon ]
//!                      |  vm1: QEMU                             |  vm1: QEMU, after the migration
//! ```

mod echo;
mod host;
mod vm;

use std::time::Duration;

use ringway_lab::kernel::Kernel;
use ringway_testkit::{Folder, Netns, skip};
use rustix::process::Signal;

use echo::Echo;
use host::Daemon;
use vm::Vm;

/// The newest that Debian has.
const SERIES: &str = "7.2";

/// Of each thing that is waited for, on a machine that is busy with others.
const LIMIT: Duration = Duration::from_secs(120);

/// Kinds of rings, in the monitor's words.
const SPLIT: &str = "packed=off";
const PACKED: &str = "packed=on";

/// What the machine has: untagged, and in the VLAN 10.
const MACHINE: [&str; 2] = ["10.9.0.2", "10.10.0.2"];

#[test]
fn a_connection_outlives_all_but_the_machine() {
    let kernel = match Kernel::of_series(SERIES) {
        Ok(kernel) => kernel,
        Err(reason) => return skip("a_connection_outlives_all_but_the_machine", &reason),
    };
    let folder = Folder::new();
    let image = vm::image(&kernel, folder.path());
    let [near, far] = [Netns::quiet("rwm"), Netns::quiet("rwm")];
    let _cables = [near.veth(&far, "near", "far"), near.veth(&near, "cable", "elbac")];
    far.run("ip addr add 10.9.0.1/24 dev far; ip addr add 10.10.0.1/24 dev far");
    let first = Daemon::start(&near, folder.path(), "first", "near cable");
    let second = Daemon::start(&near, folder.path(), "second", "elbac");
    let port = first.attach_machine();
    let boot = |daemon: &Daemon, card, incoming| {
        Vm::start(&kernel, &image, &daemon.socket(), card, incoming)
    };
    let mut vm = boot(&first, SPLIT, None);
    vm.until_ready();

    let echo = Echo::start(&far, MACHINE[0]);
    echo.until_passed("both ways at once");
    first.replace();
    echo.until_passed("the daemon was killed");
    port.kill();
    let port = first.attach_machine();
    echo.until_passed("the port's process was killed");
    vm.command("stop");
    vm.command("cont");
    echo.until_passed("the machine stood still");

    first.ringway("switch port vale0:near --access 10");
    first.ringway("switch port vale0:vm1 --trunk 10");
    let tagged = Echo::start(&far, MACHINE[1]);
    tagged.until_passed("in a VLAN");
    tagged.end();
    first.ringway("switch port vale0:near --no-vlan");
    first.ringway("switch port vale0:vm1 --no-vlan");
    echo.until_passed("in no VLAN any more");

    let other_port = second.attach_machine();
    let incoming = folder.path().join("incoming");
    let mut moved = boot(&second, SPLIT, Some(&incoming));
    vm.migrate(&incoming);
    moved.until_resumed();
    vm.kill();
    echo.until_passed("the machine was moved");
    let said = port.output();
    assert!(said.contains("monitor is not connected any more"), "{said}");
    port.signal(Signal::INT);
    echo.until_passed("its former port was closed");
    echo.end();

    moved.command("system_reset");
    moved.until_ready();
    let echo = Echo::start(&far, MACHINE[0]);
    echo.until_passed("the machine was started anew");
    echo.end();
    moved.kill();
    let mut vm = boot(&second, PACKED, None);
    vm.until_ready();
    let echo = Echo::start(&far, MACHINE[0]);
    echo.until_passed("its monitor was killed, and started with packed rings");
    other_port.kill();
    let other_port = second.attach_machine();
    echo.until_passed("the port of packed rings was killed");
    echo.end();
    vm.kill();
    other_port.signal(Signal::INT);
    let (status, said) = other_port.wait();
    assert!(status.success(), "{said}");
    assert!(!said.contains("is not used any more"), "{said}");
}
