//! Boots a guest, and listens to it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use ringway_testkit::Folder;

use crate::card::{Cable, Card, Made};
use crate::kernel::Kernel;
use crate::report::{Entry, Line, Report, Verdict};

/// How much of a console is shown, from its end.
const SHOWN: usize = 3000;

/// A guest to be: a kernel, a card, and what the guest is asked to check.
pub struct Machine<'a> {
    pub kernel: &'a Kernel,
    pub card: Card,
    /// The program that runs in the guest, with the command `guest`, and beside it the other programs.
    pub program: PathBuf,
    /// Names of checks and of modes, of either all where there are none; or `--script` and a script's path.
    pub checks: &'a [String],
    /// After that the guest is ended, and what it was at has failed.
    pub limit: Duration,
}

/// A child that does not outlive its guest's report.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine<'_> {
    /// Boots the guest and waits for its end; `said` is called for each check.
    ///
    /// # Errors
    /// The guest could not be started.
    pub fn run(&self, mut said: impl FnMut(&Entry)) -> Result<Report, String> {
        let folder = Folder::new();
        let [initramfs, script, console] =
            ["initramfs", "script", "console"].map(|name| folder.path().join(name));
        self.kernel.pack(&initramfs)?;
        fs::write(&script, self.script()).map_err(|e| format!("{}: {e}", script.display()))?;
        let ports = self.ports(folder.path())?;
        let mut command = self.qemu();
        command
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "2048"])
            // Which others can map.
            .args(["-object", "memory-backend-memfd,id=mem,size=2048M,share=on"])
            .args(["-machine", "q35,memory-backend=mem"])
            .args(["-smp", &self.card.cpus.to_string(), "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(self.kernel.root.join("vmlinuz"))
            .arg("-initrd")
            .arg(&initramfs)
            .args(["-append", &self.command_line(&script.display().to_string())])
            .arg("-virtfs")
            .arg("local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap")
            .args(["-nic", "none"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args(["-serial", "stdio"])
            .args(self.cards(folder.path())?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("qemu-system-x86_64: {e}"))?;
        let mut child = Killed(child);
        let mut entries = Vec::new();
        let (end, last) = self.listen(&mut child.0, |entry| {
            said(&entry);
            entries.push(entry);
        });
        if let Err(why) = end {
            let mut printed = String::new();
            if let Some(errors) = child.0.stderr.take() {
                drop(child);
                printed = std::io::read_to_string(errors).unwrap_or_default();
            }
            printed += &String::from_utf8_lossy(&fs::read(&console).unwrap_or_default());
            let from = printed.ceil_char_boundary(printed.len().saturating_sub(SHOWN));
            let (mode, check) = last.unwrap_or_else(|| (String::new(), "boot".into()));
            let detail = format!("{why}; console:\n{}", &printed[from..]);
            let entry = Entry {
                mode,
                check,
                verdict: Verdict::Fail,
                detail,
                seconds: self.limit.as_secs(),
            };
            said(&entry);
            entries.push(entry);
        }
        drop(ports);
        Ok(Report::new(&self.kernel.release, self.card.name, entries))
    }

    /// Takes what the guest says until it has said all; else, why it did not. With the check that it was at.
    fn listen(
        &self,
        child: &mut Child,
        mut entry: impl FnMut(Entry),
    ) -> (Result<(), String>, Option<(String, String)>) {
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        // Ends with the guest.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let deadline = Instant::now() + self.limit;
        let mut at = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return (Err(format!("no end after {} s", self.limit.as_secs())), at);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return (Err("the guest ended before its checks".into()), at);
                }
            };
            match serde_json::from_str(line.trim()) {
                Ok(Line::Begin { mode, check }) => at = Some((mode, check)),
                Ok(Line::Entry(one)) => entry(one),
                Ok(Line::End) => return (Ok(()), at),
                // The serial port's, of the firmware and of the boot.
                Err(_) => {}
            }
        }
    }

    /// What the guest runs.
    fn script(&self) -> String {
        let program = self.program.display();
        let folder = self.program.parent().expect("a program lies in a folder").display();
        let modules = self.kernel.root.display();
        let checks = self.checks.join(" ");
        let card = self.card.name;
        format!(
            "stty -F /dev/ttyS1 raw -echo\nexport PATH={folder}:$PATH XDG_RUNTIME_DIR=/run/lab\n\
             mkdir -m 700 $XDG_RUNTIME_DIR\nmkdir -p /lib/modules\n\
             ln -sfn {modules}/lib/modules/* /lib/modules/\n\
             exec {program} guest {card} {checks}\n"
        )
    }

    fn command_line(&self, script: &str) -> String {
        let iommu = if self.has_iommu() { " intel_iommu=on" } else { "" };
        format!("console=ttyS0 quiet panic=-1 oops=panic script={script}{iommu}")
    }

    fn has_iommu(&self) -> bool {
        matches!(self.card.made, Made::ByQemu { iommu: true, .. })
    }

    /// QEMU, where the cable can be had.
    fn qemu(&self) -> Command {
        const QEMU: &str = "qemu-system-x86_64";
        // It ends with this program, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        let Made::ByQemu { cable: Cable::Taps(_), .. } = self.card.made else {
            command.arg(QEMU);
            return command;
        };
        // The namespace goes with QEMU. It says nothing of its own on the cable.
        let mut script = String::from(
            "set -e; sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
             ip link add cable type bridge mcast_snooping 0 forward_delay 0; ip link set cable up\n",
        );
        for tap in ENDS {
            script += &format!(
                "ip tuntap add dev {tap} mode tap multi_queue; ip link set dev {tap} mtu 9000 master cable up\n"
            );
        }
        script += "exec \"$@\"";
        command.args(["unshare", "--net", "sh", "-c", &script, "sh", QEMU]);
        command
    }

    /// The ports of the switch that is the cable, if it is one.
    fn ports(&self, folder: &Path) -> Result<Vec<Killed>, String> {
        let by = match self.card.made {
            Made::ByQemu { cable: Cable::Switch(_), .. } => "--socket",
            Made::ByQemu { cable: Cable::Streams, .. } => "--stream",
            _ => return Ok(Vec::new()),
        };
        let ringway = self.program.with_file_name("ringway");
        let attach = |name: &str| {
            let socket = folder.join(name);
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--"]).arg(&ringway);
            command.args(["--json", "vm", "attach", "vale0", name, by]).arg(&socket);
            command.env("RINGWAY_DIR", folder).stdin(Stdio::null()).stdout(Stdio::piped());
            let failed = |e| format!("{}: {e}", ringway.display());
            let mut port = Killed(command.spawn().map_err(failed)?);
            // It says so when its socket is there.
            let mut said = BufReader::new(port.0.stdout.as_mut().expect("it is piped"));
            said.read_line(&mut String::new()).map_err(failed)?;
            match socket.exists() {
                true => Ok(port),
                false => Err(format!("{}: vm attach has failed", ringway.display())),
            }
        };
        ENDS.into_iter().map(attach).collect()
    }

    /// Two cards and the cable between them.
    fn cards(&self, folder: &Path) -> Result<Vec<String>, String> {
        let Made::ByQemu { device, cable, .. } = self.card.made else { return Ok(Vec::new()) };
        let mut options = Vec::new();
        if self.has_iommu() {
            options.extend(["-device".into(), "intel-iommu,device-iotlb=on".into()]);
        }
        let ends = match cable {
            Cable::Sockets => sockets()?,
            Cable::Streams => ENDS.map(|name| {
                let socket = folder.join(name);
                format!("stream,server=off,addr.type=unix,addr.path={}", socket.display())
            }),
            Cable::Switch(queues) => {
                for name in ENDS {
                    let socket = folder.join(name);
                    options.push("-chardev".into());
                    options.push(format!("socket,id={name},path={}", socket.display()));
                }
                ENDS.map(|name| format!("vhost-user,chardev={name},queues={queues}"))
            }
            Cable::Taps(queues) => ENDS.map(|tap| {
                format!("tap,ifname={tap},script=no,downscript=no,vhost=off,queues={queues}")
            }),
        };
        for (n, end) in (1..).zip(ends) {
            options.extend([
                "-netdev".into(),
                format!("{end},id=n{n}"),
                "-device".into(),
                format!("pcie-root-port,id=r{n},chassis={n}"),
                "-device".into(),
                format!("{device},romfile=,bus=r{n},netdev=n{n},mac=52:54:00:00:00:0{n}"),
            ]);
        }
        Ok(options)
    }
}

/// What the two ends of a cable are called.
const ENDS: [&str; 2] = ["one", "other"];

/// Both ends of a cable of two UDP sockets.
fn sockets() -> Result<[String; 2], String> {
    // Both at once, so that they are different; QEMU takes them when these are closed.
    let socket = || UdpSocket::bind("127.0.0.1:0").map_err(|e| format!("the cable: {e}"));
    let port = |end: &UdpSocket| {
        end.local_addr().map(|address| address.port()).map_err(|e| format!("the cable: {e}"))
    };
    let ends = [socket()?, socket()?];
    let [one, other] = [port(&ends[0])?, port(&ends[1])?];
    Ok([(one, other), (other, one)].map(|(own, other)| {
        format!(
            "dgram,local.type=inet,local.host=127.0.0.1,local.port={own},\
             remote.type=inet,remote.host=127.0.0.1,remote.port={other}"
        )
    }))
}
