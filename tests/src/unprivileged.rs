//! An ordinary user: the account that owns nothing, in the group that may use a system daemon.

use std::{os::unix::fs::chown, path::Path, process::Command};

use rustix::{
    fs::{XattrFlags, setxattr},
    process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::{Home, launch::with_rest_of};

/// The account.
pub const NOBODY: u32 = 65534;

/// A group that the account gets for the test.
pub const GROUP: u32 = 54321;

/// Another account in the group, which has no name.
const ANOTHER: u32 = 54322;

/// A command line that runs a program as that user. Takes root.
pub fn as_nobody(command: Command) -> Command {
    as_nobody_with("", command)
}

/// The same with some capabilities, as setpriv(1) has them: `+sys_ptrace`.
pub fn as_nobody_with(capabilities: &str, command: Command) -> Command {
    let mut setpriv = Command::new("setpriv");
    setpriv.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={GROUP}"));
    setpriv.arg("--clear-groups");
    match capabilities {
        "" => setpriv.arg("--inh-caps=-all"),
        some => setpriv.args(["--inh-caps", "--ambient-caps"].map(|o| format!("{o}=-all,{some}"))),
    };
    setpriv.arg("--").arg(command.get_program());
    with_rest_of(setpriv, &command)
}

/// Gives a program a file capability, as setcap(8) does: CAP_NET_RAW, as those have that capture.
/// Takes root.
pub fn give_capability(program: &Path) {
    const NET_RAW: u32 = 1 << 13;
    // `struct vfs_cap_data` of linux/capability.h: revision 2, effective at once.
    let words = [0x0200_0001, NET_RAW, 0, 0, 0];
    let value: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    setxattr(program, "security.capability", &value, XattrFlags::empty()).expect("root may");
}

/// Makes the calling thread, which is root's, another user's of the group, for good.
pub fn become_another() {
    let (uid, gid) = (Uid::from_raw(ANOTHER), Gid::from_raw(GROUP));
    set_thread_groups(&[gid]).expect("root may");
    set_thread_res_gid(gid, gid, gid).expect("root may");
    set_thread_res_uid(uid, uid, uid).expect("root may");
    // The daemon is to see what it sees of a program that was started by that user.
    set_dumpable_behavior(DumpableBehavior::Dumpable).expect("it is our process");
}

impl Home {
    /// Lets that user start a private daemon here. Takes root.
    pub fn give_to_nobody(&self) {
        chown(self.run(), Some(NOBODY), Some(GROUP)).expect("root may");
    }
}
