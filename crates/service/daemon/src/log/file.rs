//! The log of a private daemon, which has no journal: a file of bounded size, with the one before it beside it.
//!
//! All private daemons of a user write to it, each line in one piece.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
};

use ringway_environment::{has_more_rights, variable};
use ringway_ipc::{USERS, home_of};
use ringway_proto::Event;
use rustix::process::{geteuid, getuid};

use super::time::Utc;

/// In the user's directory of states.
const NAME: &str = "ringway/ringwayd.log";
/// In a directory that the user has named for a daemon, whose standard error has a file there, too.
const NAMED: &str = "ringwayd.events.log";
/// Bytes of a file at most, but for its last line.
const LARGEST: u64 = 1 << 20;

/// Where a private daemon's is, if its user has a directory.
pub fn private_path() -> Option<PathBuf> {
    if has_more_rights() {
        let home = home_of(getuid().as_raw(), USERS)?;
        return Some(Path::new(&home).join(".local/state").join(NAME));
    }
    path(|name| variable(name).map(PathBuf::from))
}

/// As the XDG Base Directory Specification has it: what is not absolute counts as not set.
fn path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    if let Some(named) = absolute("RINGWAY_DIR") {
        return Some(named.join(NAMED));
    }
    let states =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(states?.join(NAME))
}

/// See above.
pub struct LogFile {
    path: PathBuf,
    file: File,
    largest: u64,
}

impl LogFile {
    /// Makes it, and its directory, if they are not there.
    pub fn open(path: &Path) -> io::Result<LogFile> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(LogFile { path: path.into(), file: open(path)?, largest: LARGEST })
    }

    pub fn write(&mut self, event: &Event, sentence: &str) -> io::Result<()> {
        let found = self.file.metadata()?;
        if found.len() >= self.largest {
            self.begin_another((found.dev(), found.ino()))?;
        }
        self.file.write_all(line(event, sentence).as_bytes())
    }

    /// Puts the file aside, unless another daemon has.
    fn begin_another(&mut self, own: (u64, u64)) -> io::Result<()> {
        let is_own = |there: fs::Metadata| (there.dev(), there.ino()) == own;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            fs::rename(&self.path, self.path.with_extension("log.old"))?;
        }
        self.file = open(&self.path)?;
        Ok(())
    }
}

/// It is this user's, and where it seems to be; to write to it waits for nothing.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a file of yours"));
    }
    Ok(file)
}

fn line(event: &Event, sentence: &str) -> String {
    let Event { time, level, kind, .. } = event;
    let audit = if event.audit { " audit" } else { "" };
    format!("{} ringwayd[{}] {level} {kind}{audit}: {sentence}\n", Utc(*time), process::id())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use ringway_proto::EventKind;
    use ringway_testkit::Folder;

    use super::*;
    use crate::log::fixture;

    fn event() -> Event {
        Event { number: 1, kind: EventKind::Attach, audit: true, ..fixture::event() }
    }

    #[test]
    fn two_daemons_share_files_of_bounded_size() {
        let folder = Folder::new();
        let path = folder.path().join("state/ringway/ringwayd.log");
        let open = || LogFile { largest: 400, ..LogFile::open(&path).unwrap() };
        let (mut one, mut other) = (open(), open());
        let written = |path: &Path| fs::read_to_string(path).unwrap();
        one.write(&event(), "first").unwrap();
        let own = process::id();
        let line = format!("1970-01-01T00:00:00.000Z ringwayd[{own}] info attach audit: first\n");
        assert_eq!(written(&path), line);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for at in 0..50 {
            one.write(&event(), &format!("one {at}")).unwrap();
            other.write(&event(), &format!("other {at}")).unwrap();
            assert!(fs::metadata(&path).unwrap().len() < 400 + 100);
        }
        let last: Vec<_> = [path.with_extension("log.old"), path].map(|path| written(&path)).into();
        let both = last.concat();
        assert!(both.ends_with("other 49\n") && both.contains("one 49"), "{both}");
        assert_eq!(fs::read_dir(folder.path().join("state/ringway")).unwrap().count(), 2);
    }

    #[test]
    fn what_others_have_put_there_is_not_written_to() {
        let folder = Folder::new();
        let [path, target] = ["log", "target"].map(|name| folder.path().join(name));
        symlink(&target, &path).unwrap();
        assert!(LogFile::open(&path).is_err());
        assert!(!target.exists());
    }

    #[test]
    fn places_are_those_of_the_user() {
        let of = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(it, _)| *it == name);
            path(|name| find(name).map(|(_, value)| PathBuf::from(value)))
        };
        let home = ("HOME", "/home/a");
        assert_eq!(of(&[home]), Some("/home/a/.local/state/ringway/ringwayd.log".into()));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")]), Some("/s/ringway/ringwayd.log".into()));
        let named = [home, ("RINGWAY_DIR", "/run/x")];
        assert_eq!(of(&named), Some("/run/x/ringwayd.events.log".into()));
        assert_eq!(of(&[("HOME", "a")]), None);
    }
}
