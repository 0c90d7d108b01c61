//! A machine in QEMU, which does what its monitor's socket (QMP) is told.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ringway_lab::kernel::Kernel;
use ringway_testkit::{Proc, unique_name};
use serde_json::{Value, json};

use crate::LIMIT;

/// What the machine runs: it sends back what it gets, and says when it can.
const SCRIPT: &str = "\
ip link set lo up; ip link set eth0 up
ip addr add 10.9.0.2/24 dev eth0
ip link add link eth0 name eth0.10 type vlan id 10
ip addr add 10.10.0.2/24 dev eth0.10; ip link set eth0.10 up
nc -ll -p 7 -e cat &
echo ready > /dev/ttyS0
while :; do sleep 1000; done
";

const READY: &str = "ready";

/// What a machine starts from, whichever host it is on.
pub fn image(kernel: &Kernel, folder: &Path) -> PathBuf {
    let [script, image] = ["script", "image"].map(|name| folder.join(name));
    fs::write(&script, SCRIPT).expect("it is a new file");
    kernel
        .pack_alone(&image, &script, &["virtio_pci", "virtio_net", "8021q"])
        .expect("it is packed");
    image
}

pub struct Vm {
    qemu: Proc,
    qmp: BufReader<UnixStream>,
    /// How often it has said that it is ready.
    ready: usize,
}

impl Vm {
    /// Starts a machine whose card, with these options, is at that socket; it waits for another to come, if there is
    /// `incoming`.
    pub fn start(
        kernel: &Kernel,
        image: &Path,
        socket: &Path,
        card: &str,
        incoming: Option<&Path>,
    ) -> Vm {
        let qmp = image.with_file_name(unique_name("qmp"));
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args(["-accel", "tcg", "-cpu", "max", "-m", "256", "-display", "none"])
            .args(["-object", "memory-backend-memfd,id=mem,size=256M,share=on"])
            .args(["-machine", "q35,memory-backend=mem"])
            .arg("-kernel")
            .arg(kernel.root.join("vmlinuz"))
            .arg("-initrd")
            .arg(image)
            .args(["-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio", "-nic", "none"])
            .arg("-chardev")
            .arg(format!("socket,id=c,path={},reconnect-ms=50", socket.display()))
            .args(["-netdev", "vhost-user,id=n,chardev=c"])
            .arg("-device")
            .arg(format!("virtio-net-pci,netdev=n,romfile=,mac=52:54:00:00:00:01,{card}"))
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", qmp.display()));
        if let Some(incoming) = incoming {
            command.arg("-incoming").arg(format!("unix:{}", incoming.display()));
        }
        let mut qemu = Proc::spawn(command);
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(&qmp) {
                Ok(stream) => break stream,
                Err(e) => {
                    let waits = qemu.is_running() && begun.elapsed() < LIMIT;
                    assert!(waits, "{e}: {}", qemu.output());
                    std::thread::yield_now();
                }
            }
        };
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        let mut vm = Vm { qemu, qmp: BufReader::new(stream), ready: 0 };
        vm.until(|said| said.get("QMP").is_some());
        vm.command("qmp_capabilities");
        vm
    }

    pub fn until_ready(&mut self) {
        self.ready += 1;
        // The console ends its lines with both.
        self.qemu.wait_for(&format!("{READY}\r\n").repeat(self.ready), LIMIT);
    }

    pub fn command(&mut self, name: &str) {
        self.execute(json!({ "execute": name }));
    }

    /// Moves the machine to what waits there, and keeps it from running on here.
    pub fn migrate(&mut self, to: &Path) {
        let events = json!([{ "capability": "events", "state": true }]);
        self.execute(json!({
            "execute": "migrate-set-capabilities", "arguments": { "capabilities": events }
        }));
        let uri = format!("unix:{}", to.display());
        self.execute(json!({ "execute": "migrate", "arguments": { "uri": uri } }));
        let end = self.until(|said| {
            let ends = ["completed", "failed"].map(Value::from);
            said["event"] == "MIGRATION" && ends.contains(&said["data"]["status"])
        });
        assert_eq!(end["data"]["status"], "completed", "{end}: {}", self.qemu.output());
    }

    /// The machine that has come goes on.
    pub fn until_resumed(&mut self) {
        self.until(|said| said["event"] == "RESUME");
    }

    pub fn kill(self) {
        self.qemu.kill();
    }

    fn execute(&mut self, command: Value) {
        writeln!(self.qmp.get_mut(), "{command}").expect("QEMU runs");
        let answer = self.until(|said| said.get("return").is_some() || said.get("error").is_some());
        assert!(answer.get("error").is_none(), "{command}: {answer}");
    }

    /// What QEMU says that is looked for; what it says before is passed over.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let read = self.qmp.read_line(&mut line);
            assert!(matches!(read, Ok(1..)), "{read:?}: {}", self.qemu.output());
            let said = serde_json::from_str(&line).expect("JSON");
            if is_it(&said) {
                return said;
            }
        }
    }
}
