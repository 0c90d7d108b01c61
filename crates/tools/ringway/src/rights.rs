//! Whether a program has more rights than the user that starts it: then the loader takes no library
//! that this user names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getgid, getuid};

/// What gives the program at this path rights that this process has not (execve(2),
/// capabilities(7)).
pub fn beyond_ours(program: &Path) -> Option<&'static str> {
    let file = fs::metadata(program).ok()?;
    if statvfs(program).ok()?.f_flag.contains(StatVfsMountFlags::NOSUID) {
        return None;
    }
    let changes_ids = !rustix::thread::no_new_privs().unwrap_or(false);
    let has = |bits| file.mode() & bits == bits;
    if changes_ids && has(0o4000) && file.uid() != getuid().as_raw() {
        return Some("a set-user-ID bit");
    }
    if changes_ids && has(0o2010) && file.gid() != getgid().as_raw() {
        return Some("a set-group-ID bit");
    }
    let has_capabilities = || getxattr(program, "security.capability", &mut [0; 64]).is_ok();
    (!getuid().is_root() && has_capabilities()).then_some("file capabilities")
}
