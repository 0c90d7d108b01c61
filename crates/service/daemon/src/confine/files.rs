//! Which files the broker reaches.
//!
//! It has no capabilities, but the user id of root, which owns most files of a machine. The unit shows it
//! a file system that it cannot write; this holds for a daemon that is started by hand, too, and keeps it from
//! reading other people's files.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError,
};

/// Processes, and processors. Names of network namespaces are the helper's affair.
const READ: [&str; 2] = ["/proc", "/sys"];
/// A descriptor in reserve.
const NULL: &str = "/dev/null";

/// Confines the calling thread, and those that it starts, to reading what the broker asks the kernel for, and
/// to its own files: those beside its socket. Linux 5.13; older kernels, and those without landlock, leave it
/// as it is.
///
/// # Errors
/// The kernel has landlock, and no descriptors or memory for it.
pub fn restrict(own: &Path) -> Result<(), RulesetError> {
    // Files and directories: what later versions add is for devices and sockets, which it cannot open.
    let all = AccessFs::from_all(ABI::V3);
    let execute: BitFlags<AccessFs> = AccessFs::Execute.into();
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?;
    let places = READ.map(|place| (Path::new(place), read));
    let null = (Path::new(NULL), AccessFs::ReadFile.into());
    for (place, access) in places.into_iter().chain([null, (own, all & !execute)]) {
        // What is not there cannot be reached either.
        if let Ok(fd) = PathFd::new(place) {
            ruleset = ruleset.add_rule(PathBeneath::new(fd, access))?;
        }
    }
    ruleset.restrict_self().map(drop)
}

#[cfg(test)]
mod tests {
    use std::{fs, io, thread};

    use ringway_testkit::{Folder, skip_unless};

    use super::*;

    #[test]
    fn the_broker_has_its_own_files_and_no_others() {
        let (own, other) = (Folder::new(), Folder::new());
        fs::write(other.path().join("secret"), "x").unwrap();
        let (here, there) = (own.path().to_owned(), other.path().to_owned());
        let run = move || {
            restrict(&here).unwrap();
            // The state file comes into being beside the one before, and takes its place.
            fs::write(here.join("new"), "x").unwrap();
            fs::rename(here.join("new"), here.join("old")).unwrap();
            assert_eq!(fs::read_to_string(here.join("old")).unwrap(), "x");
            fs::remove_file(here.join("old")).unwrap();
            fs::read_to_string("/proc/self/status").unwrap();
            fs::read_dir("/sys/class/net/lo/").unwrap();
            fs::File::open(NULL).unwrap();
            // A region's memfd, once more.
            let (_memfd, _mapping) = ringway_region::Mapping::create("ringway-test", 4096).unwrap();
            let refused = |result: io::Result<()>| {
                result.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
            };
            [
                ("read", refused(fs::read(there.join("secret")).map(drop))),
                ("write", refused(fs::write(there.join("secret"), "y"))),
                ("create", refused(fs::write(there.join("new"), "y"))),
                ("remove", refused(fs::remove_file(there.join("secret")))),
                ("users", refused(fs::read("/etc/passwd").map(drop))),
                ("services", refused(fs::read_dir("/run").map(drop))),
                ("settings", refused(fs::write("/proc/self/comm", "y"))),
                ("link", refused(fs::rename(there.join("secret"), here.join("mine")))),
            ]
        };
        let done = thread::spawn(run).join().unwrap();
        let test = "the_broker_has_its_own_files_and_no_others";
        if skip_unless(is_there(), test, "the kernel has no landlock") {
            return;
        }
        for (what, is_refused) in done {
            assert!(is_refused, "{what}");
        }
    }

    /// Whether the kernel would refuse what is not allowed.
    fn is_there() -> bool {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V3));
        ruleset.and_then(|ruleset| ruleset.create()).is_ok()
    }
}
