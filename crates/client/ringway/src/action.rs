//! Action programs: a user's own eBPF decides what becomes of what an interface receives.

use ringway_proto::Ebpf;

#[cfg(feature = "actions")]
use crate::error::Error;

/// A program that decides what becomes of each frame that an interface receives, before the port's filter:
/// whether it is the port's, the stack's, sent back by the same interface, sent by another, or dropped.
///
/// It runs in the kernel, as a function of the interface's XDP program, and goes with the last program that
/// has the port's rings. It is written in C or Rust, and compiled for BPF; docs/guide/actions.md says what it
/// may do. Linux 5.18 and newer.
///
/// ```no_run
/// # #[cfg(feature = "actions")]
/// # fn main() -> Result<(), ringway::Error> {
/// // Needs a network interface, and an object file.
/// use ringway::{Action, Port};
///
/// let action = Action::read("firewall.o", None)?.redirect_to("eth1");
/// let port = Port::options().rx_only().action(action).open("netmap:eth0")?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "actions"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action(ringway_proto::Action);

impl Action {
    /// The program of that name in an object file, or the only one.
    ///
    /// # Errors
    /// [`Error::Action`]: what is wrong with the file. What the kernel's verifier refuses is an error of the call
    /// that sets the action.
    #[cfg(feature = "actions")]
    pub fn read(file: impl AsRef<std::path::Path>, program: Option<&str>) -> Result<Action, Error> {
        let file = file.as_ref();
        let wrong = |problem: String| Error::Action { file: file.display().to_string(), problem };
        let bytes = std::fs::read(file)
            .map_err(|e| wrong(format!("{e}; check the path and its permissions")))?;
        let read = ringway_action::Program::from_elf(&bytes, program);
        let read = read.map_err(|e| wrong(e.to_string()))?;
        let file = file.display();
        let text = program.map_or_else(|| file.to_string(), |name| format!("{file}:{name}"));
        Ok(Action::instructions(&text, read.insns().to_vec()))
    }

    /// A program of instructions, with a text to show for it. It begins with the first.
    ///
    /// ```
    /// use ringway::{Action, Ebpf};
    ///
    /// // r0 = 1 (XDP_DROP); exit
    /// let result = Ebpf { code: 0xb7, registers: 0, offset: 0, immediate: 1 };
    /// let exit = Ebpf { code: 0x95, registers: 0, offset: 0, immediate: 0 };
    /// let none = Action::instructions("none", vec![result, exit]);
    /// # drop(none);
    /// ```
    pub fn instructions(text: &str, insns: Vec<Ebpf>) -> Action {
        Action(ringway_proto::Action { text: text.into(), insns, redirects: Vec::new() })
    }

    /// The program may redirect to this interface, too: it has the next number, the first has 0. It is one that
    /// the caller could open, and beside the port's interface in the same network namespace.
    pub fn redirect_to(mut self, interface: &str) -> Action {
        let name = interface.strip_prefix("netmap:").unwrap_or(interface);
        self.0.redirects.push(name.into());
        self
    }

    pub(crate) fn request(self) -> ringway_proto::Action {
        self.0
    }
}
