//! The file by which a system daemon hands on what its users have set up to stay, to the daemon that is
//! started after it: after a crash, at an upgrade, or when the administrator starts it again.
//!
//! It lies beside the socket, in `/run` as a rule, so it is as old as the machine is up at most. A change is
//! in the file before the user who made it has the answer, unless users make so many that writing them would
//! hold up others ([`Pace`](crate::pace::Pace)). The file is made anew each time and put in place
//! by `rename(2)`, so that it is whole, whatever ends the daemon. It is for the daemon's user alone.
//!
//! Whatever is in it, the daemon starts. A file that cannot be used is put aside, and the log says so. If daemons have
//! ended before they were through with it, the next sets up one entry at a time, and the file names that entry
//! meanwhile: what has ended several daemons is not tried any more, and the rest comes back.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ringway_proto::EventKind;
use ringway_registry::Lasting;
use serde::{Deserialize, Serialize};

use crate::log::{Entry, log};

/// Of what is in the file. A daemon writes its own version, and reads those before it.
///
/// 1: the first. 2: settings of persistent ports' devices. 3: filters and VLANs in short forms.
const VERSION: u32 = 3;
/// Bytes at most, which are read and written. Half of it is for what the operator declares, which is in it twice
/// ([`MOST_BYTES`](crate::config::MOST_BYTES)), and for root's own settings. Those of all users have 16 MiB
/// at most, and names, addresses and forwarding tables of 64 switches that are there, and of 64 that are to come back,
/// have the rest.
const LARGEST: u64 = 128 << 20;
/// How long to wait after a failure before the file is written once more.
const RETRY: Duration = Duration::from_secs(5);
/// Daemons that may have ended while they set up all of it at once; as many more, while they set up one entry, which is
/// then left, or between two entries.
const ATTEMPTS: u32 = 3;
/// Files that are kept of those that were put aside.
const ASIDE: u32 = 10;

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    /// The same as of [`Version`].
    #[serde(rename = "version")]
    _version: u32,
    /// Daemons that have begun to set this up again, and have not said that they were through.
    #[serde(default)]
    attempts: u32,
    #[serde(default)]
    trying: Option<String>,
    #[serde(default)]
    ended_over: BTreeMap<String, u32>,
    #[serde(default)]
    lasting: Lasting,
}

/// The same, to be written.
#[derive(Serialize)]
struct Writing<'a> {
    version: u32,
    #[serde(flatten)]
    progress: &'a Progress,
    lasting: &'a Lasting,
}

/// How daemons got on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Progress {
    /// Daemons that have begun to set this up again, and have not said that they were through; those are not among
    /// them that have ended over one entry.
    attempts: u32,
    /// The entry that is being set up, where it is one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    trying: Option<String>,
    /// How many daemons have ended over an entry.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ended_over: BTreeMap<String, u32>,
}

impl Progress {
    /// Another daemon begins.
    fn begin(&mut self) {
        match self.trying.take() {
            Some(name) => *self.ended_over.entry(name).or_default() += 1,
            None => self.attempts += 1,
        }
    }

    fn is_one_by_one(&self) -> bool {
        self.attempts > ATTEMPTS
    }

    /// The entries that are left out.
    fn left_out(&self) -> impl Iterator<Item = &String> {
        self.ended_over.iter().filter(|(_, ended)| **ended >= ATTEMPTS).map(|(name, _)| name)
    }
}

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is no file that this daemon's user alone can write")]
    Foreign,
    #[error("it is larger than {LARGEST} bytes")]
    Large,
    #[error("it has version {0}, and this daemon reads versions 1 to {VERSION}")]
    Version(u32),
    #[error("{0}")]
    Parse(String),
    #[error("{} daemons have ended while they set up what is in it", 2 * ATTEMPTS)]
    Deadly(Box<Lasting>),
}

/// The file of one daemon.
pub struct StateFile {
    path: PathBuf,
    former: Option<PathBuf>,
    /// What is in the file.
    written: Option<Lasting>,
    progress: Progress,
    /// What could not be written the last time, and when that was.
    unwritten: Option<(Lasting, Instant)>,
}

impl StateFile {
    /// The file of the daemon at `socket`.
    pub fn beside(socket: &Path) -> StateFile {
        let (path, former) = (path_beside(socket), former_path(socket));
        let progress = Progress::default();
        StateFile { path, former, written: None, progress, unwritten: None }
    }

    /// What a daemon that runs, or the last one, has; nothing if there is no file.
    ///
    /// # Errors
    /// The file cannot be used, in words.
    pub fn look(&self) -> Result<Lasting, String> {
        let path = self.path.display();
        let contents = self.read().map_err(|error| format!("{path}: {error}"))?;
        Ok(contents.map(|contents| contents.lasting).unwrap_or_default())
    }

    /// What the daemon before this one had. It is to be [set up](Self::done) now.
    pub fn take_over(&mut self) -> Option<Lasting> {
        if let Some(former) = self.former.take()
            && self.path.symlink_metadata().is_err()
        {
            // There may be none; what cannot be moved stays.
            let _ = fs::rename(former, &self.path);
        }
        let contents = match self.read() {
            Ok(contents) => contents?,
            Err(error) => {
                if let Error::Deadly(lasting) = &error {
                    // It is of use as it is, once there is another daemon.
                    self.write(Lasting::clone(lasting));
                }
                self.put_aside(&error);
                (self.written, self.unwritten) = (None, None);
                return None;
            }
        };
        let Contents { attempts, trying, ended_over, lasting, .. } = contents;
        self.progress = Progress { attempts, trying, ended_over };
        self.progress.begin();
        if self.is_one_by_one() {
            let text = format!(
                "{}: {ATTEMPTS} daemons have ended while they set up what is in it: now it is one entry after the other",
                self.path.display()
            );
            log(Entry::warn(EventKind::State, text));
        }
        // The next daemon is to know if this one does not get through.
        self.write(lasting.clone());
        Some(lasting)
    }

    /// Whether what was handed on is to be set up one by one, each [named](Self::trying) before.
    pub fn is_one_by_one(&self) -> bool {
        self.progress.is_one_by_one()
    }

    /// What is not to be set up, for daemons have ended over it, and why.
    pub fn left_out(&self) -> Vec<(String, String)> {
        let why = || format!("{ATTEMPTS} daemons have ended while they set it up");
        self.progress.left_out().map(|name| (name.clone(), why())).collect()
    }

    /// This is being set up now.
    pub fn trying(&mut self, name: &str) {
        if self.is_one_by_one() {
            self.progress.trying = Some(name.to_owned());
            self.write_again();
        }
    }

    /// It is set up, or could not be: the daemon lives.
    pub fn tried(&mut self, name: &str) {
        if self.progress.trying.as_deref() == Some(name) {
            self.progress.trying = None;
            self.progress.ended_over.remove(name);
            self.write_again();
        }
    }

    /// All that was handed on is set up again, or has been tried.
    pub fn done(&mut self) {
        if self.progress.attempts > 0 {
            (self.progress.attempts, self.progress.trying) = (0, None);
            self.progress.ended_over.retain(|_, ended| *ended >= ATTEMPTS);
            self.write_again();
        }
    }

    /// What is no longer to come back is not left out any more.
    pub fn let_in(&mut self, is_expected: impl Fn(&str) -> bool) {
        let ended_over = &mut self.progress.ended_over;
        ended_over.retain(|name, ended| *ended < ATTEMPTS || is_expected(name));
    }

    /// The daemon is stopped, perhaps while it sets up what was handed on: that has not ended it. What was left out is
    /// tried by the next, which may be another version.
    pub fn stop(&mut self) {
        let attempts = self.progress.attempts.saturating_sub(1);
        let progress = Progress { attempts, ..Progress::default() };
        let before = std::mem::replace(&mut self.progress, progress);
        if self.unwritten.is_some() {
            self.retry();
        } else if self.progress != before {
            self.write_again();
        }
    }

    fn write_again(&mut self) {
        if let Some(lasting) = self.written.take() {
            self.write(lasting);
        }
    }

    /// From now on this is to be handed on.
    pub fn keep(&mut self, lasting: Lasting) {
        if self.written.as_ref() != Some(&lasting) || self.unwritten.is_some() {
            self.write(lasting);
        }
    }

    /// How long until the file is to be [written once more](Self::retry), if it could not be written.
    pub fn retry_after(&self, now: Instant) -> Option<Duration> {
        let (_, failed_at) = self.unwritten.as_ref()?;
        Some(RETRY.saturating_sub(now.saturating_duration_since(*failed_at)))
    }

    /// Writes what could not be written.
    pub fn retry(&mut self) {
        if let Some((lasting, _)) = self.unwritten.clone() {
            self.write(lasting);
        }
    }

    fn write(&mut self, lasting: Lasting) {
        let path = self.path.display();
        match self.try_to_write(&lasting) {
            Ok(()) => {
                if self.unwritten.take().is_some() {
                    let text = format!("{path}: written again; what is set up now is kept");
                    log(Entry::info(EventKind::State, text));
                }
                self.written = Some(lasting);
            }
            Err(error) => {
                if self.unwritten.is_none() {
                    let remedy = match error.kind() {
                        ErrorKind::FileTooLarge => "take filters off ports",
                        _ => "make room there, and let its user write in that directory",
                    };
                    let text = format!(
                        "{path}: {error}; what is set up now is lost when the daemon ends: {remedy}"
                    );
                    log(Entry::error(EventKind::State, text));
                }
                self.unwritten = Some((lasting, Instant::now()));
            }
        }
    }

    fn try_to_write(&self, lasting: &Lasting) -> io::Result<()> {
        if *lasting == Lasting::default() {
            return remove(&self.path);
        }
        let (version, progress) = (VERSION, &self.progress);
        let text = serde_json::to_string(&Writing { version, progress, lasting })?;
        if text.len() as u64 > LARGEST {
            let problem = format!("{} bytes, of which {LARGEST} would be read", text.len());
            return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
        }
        let new = with_more(&self.path, ".new");
        // An entry that a daemon was killed over.
        remove(&new)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // It may be what fills the disk.
            let _ = remove(&new);
        }
        written
    }

    /// `None`: there is none.
    fn read(&self) -> Result<Option<Contents>, Error> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let contents = parse(&text_of(file)?)?;
        if contents.attempts >= 2 * ATTEMPTS && contents.trying.is_none() {
            return Err(Error::Deadly(Box::new(contents.lasting)));
        }
        Ok(Some(contents))
    }

    fn put_aside(&self, why: &Error) {
        let (path, aside) = (&self.path, free_aside(&self.path));
        let kept = match fs::rename(path, &aside) {
            Ok(()) => format!("it is kept as {}", aside.display()),
            Err(error) => format!("and it cannot be put aside ({error}): remove it"),
        };
        let text = format!(
            "{}: {why}; {kept}. Switches, attached interfaces and persistent ports of before \
             are not set up again: do so with `ringway switch new` and `ringway switch attach`, or stop the daemon, \
             copy that file back, and start a daemon that can use it",
            path.display()
        );
        log(Entry::error(EventKind::State, text));
    }
}

/// Where to put a file aside, beside those before: `.bad`, `.bad.1` and so on. The last one is replaced.
fn free_aside(path: &Path) -> PathBuf {
    let name = |number: u32| match number {
        0 => with_more(path, ".bad"),
        _ => with_more(path, &format!(".bad.{number}")),
    };
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    (0..ASIDE - 1).map(name).find(is_free).unwrap_or_else(|| name(ASIDE - 1))
}

/// `ringwayd.state` for `ringwayd.sock`. A name with another ending keeps it, and gets an ending that no such file has: no
/// two sockets share a file, and it is never the socket.
fn path_beside(socket: &Path) -> PathBuf {
    match socket.extension() {
        Some(ending) if ending == "sock" => socket.with_extension("state"),
        _ => with_more(socket, ".socket-state"),
    }
}

/// Where daemons before 0.3 had the file, if that was another place, and can be no other socket's.
fn former_path(socket: &Path) -> Option<PathBuf> {
    let is_shared = socket.extension().is_some_and(|ending| ending == "sock")
        || with_more(socket, ".sock").symlink_metadata().is_ok();
    (!is_shared).then(|| with_more(socket, ".state"))
}

fn with_more(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What others could have written, or write meanwhile, is not read. That they may read it, as a copy, does not matter.
fn text_of(file: File) -> Result<String, Error> {
    let found = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != own || found.mode() & 0o022 != 0 {
        return Err(Error::Foreign);
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(Error::Large),
        false => Ok(text),
    }
}

fn parse(text: &str) -> Result<Contents, Error> {
    let wrong = |error: serde_json::Error| Error::Parse(error.to_string());
    match serde_json::from_str(text).map_err(wrong)? {
        Version { version: 1..=VERSION } => serde_json::from_str(text).map_err(wrong),
        Version { version } => Err(Error::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use ringway_filter::Insn;
    use ringway_proto::{
        Filter, FloodLimit, Forwarding, Lossless, MirrorDirection, Multicast, MulticastRouter,
        NicMode, PortShape, RateLimit, SourceAddresses, Vlan,
    };
    use ringway_registry::{
        LastingAddress, LastingAttachment, LastingDevice, LastingMirror, LastingNetns, LastingPort,
        LastingSettings, LastingSwitch,
    };
    use ringway_testkit::Folder;

    use super::*;

    fn filter(text: &str) -> Filter {
        let insns = vec![Insn { code: 6, jt: 0, jf: 0, k: 1 }];
        Filter { text: text.into(), insns, one_in: 1 }
    }

    /// Something of everything.
    fn lasting() -> Lasting {
        let settings = |name: &str, vlan, sources, lossless| LastingSettings {
            name: name.into(),
            uid: 7,
            vlan,
            sources,
            lossless,
            group_forward: 0x4000,
            isolated: true,
            swap_buffers: true,
            filter_in: Some(filter("arp")),
            filter_out: Some(filter("")),
            max_addresses: Some(9),
            rate: Some(RateLimit { bits_per_second: 1_000_000, burst_bytes: 2000 }),
            storm: Some(77),
            storm_broadcast: Some(FloodLimit { frames_per_second: 5, burst_frames: 6 }),
            storm_multicast: Some(FloodLimit::new(7)),
            storm_unknown: Some(FloodLimit::new(8)),
            multicast_router: MulticastRouter::Always,
        };
        let trunk = Vlan::Trunk { allowed: [1, 4094].into(), native: Some(1) };
        let no_native = Vlan::Trunk { allowed: [5].into(), native: None };
        let switch = |name: &str, keeper, forwarding, settings| LastingSwitch {
            name: name.into(),
            keeper,
            one_address: true,
            configured_by: Some(9),
            forwarding,
            multicast: Multicast::default(),
            settings,
            addresses: Vec::new(),
            mirrors: Vec::new(),
            declared: None,
        };
        let added = LastingAddress { mac: [2, 0, 0, 0, 0, 9], vlan: 7, port: "vale3:d".into() };
        let learning = switch("vale3", None, Forwarding::default(), Vec::new());
        let multicast = Multicast::Querier;
        let mirror = |from, direction, filter| LastingMirror {
            name: "span".into(),
            uid: 7,
            from,
            direction,
            to: "vale3:probe".into(),
            to_uid: 8,
            filter,
        };
        let some = Some(vec!["vale3:a".into(), "vale3:b".into()]);
        let mirrors = vec![
            mirror(None, MirrorDirection::Both, None),
            mirror(some, MirrorDirection::Sent, Some(filter("ip"))),
        ];
        let learning = LastingSwitch { addresses: vec![added], multicast, mirrors, ..learning };
        let addresses = vec![([2, 0, 0, 0, 0, 1], "a".into()), ([255; 6], "vale0:b^".into())];
        let only = SourceAddresses::Only(vec![[2; 6]]);
        let (over, back) = (vec!["a".into(), "b".into()], None);
        Lasting {
            ports: vec![LastingPort {
                name: "p0".into(),
                uid: u32::MAX,
                netns: LastingNetns::Cookie(1 << 40),
                shape: PortShape { tx_slots: 512, rx_rings: 3, ..PortShape::default() },
                device: Some(LastingDevice { mac: [2, 0, 0, 0, 0, 5], mtu: 9000 }),
            }],
            switches: vec![
                switch(
                    "vale0",
                    Some(0),
                    Forwarding::Static { addresses, flood_unknown: true },
                    vec![
                        settings("vale0:a", trunk, only, Some(Lossless { patience_ms: 5 })),
                        settings("vale0:b", no_native, SourceAddresses::One, None),
                        settings("vale0:c", Vlan::Access(3), SourceAddresses::Any, None),
                    ],
                ),
                switch("vale1", None, Forwarding::Hash { over, back }, Vec::new()),
                switch("vale2", None, Forwarding::Flood, Vec::new()),
                learning,
            ],
            attached: vec![
                LastingAttachment {
                    name: "vale0:eth7".into(),
                    uid: 0,
                    netns: LastingNetns::Cookie(1),
                    stack: true,
                    mode: Some(NicMode::ZeroCopy),
                    polling: Some(vec![1, 2]),
                    never_there: false,
                    renamed: Some("eth8".into()),
                    absent: false,
                },
                LastingAttachment {
                    name: "vale1:p0".into(),
                    uid: 7,
                    netns: LastingNetns::Unknown,
                    stack: false,
                    mode: None,
                    polling: None,
                    never_there: false,
                    renamed: None,
                    absent: false,
                },
            ],
        }
    }

    fn at(folder: &Folder) -> StateFile {
        StateFile::beside(&folder.path().join("ringwayd.sock"))
    }

    #[test]
    fn sockets_have_files_of_their_own() {
        for (socket, state) in [
            ("/r/ringwayd.sock", "/r/ringwayd.state"),
            ("/r/r.sock", "/r/r.state"),
            ("/r/r.a", "/r/r.a.socket-state"),
            ("/r/r.b", "/r/r.b.socket-state"),
            ("/r/r", "/r/r.socket-state"),
            ("/r/r.state", "/r/r.state.socket-state"),
            ("/r/.sock", "/r/.sock.socket-state"),
        ] {
            assert_eq!(path_beside(Path::new(socket)), Path::new(state));
        }
    }

    /// What an older daemon has left for `r` is taken over from `r.state`, unless that may be the file of `r.sock`.
    #[test]
    fn a_file_of_a_former_name_is_taken_over() {
        for (socket, other, is_taken) in
            [("r", None, true), ("r.a", Some("r.sock"), true), ("r", Some("r.sock"), false)]
        {
            let folder = Folder::new();
            let path = |name: &str| folder.path().join(name);
            at(&folder).keep(lasting());
            let former = path(&format!("{socket}.state"));
            fs::rename(path("ringwayd.state"), &former).unwrap();
            if let Some(other) = other {
                fs::write(path(other), "").unwrap();
            }
            let mut file = StateFile::beside(&path(socket));
            assert_eq!(file.look().unwrap(), Lasting::default(), "a look moves nothing");
            assert_eq!(file.take_over(), is_taken.then(lasting), "{socket}");
            assert_eq!(former.exists(), !is_taken, "{socket}");
            assert_eq!(path(&format!("{socket}.socket-state")).exists(), is_taken, "{socket}");
        }
    }

    #[test]
    fn what_is_kept_is_taken_over() {
        let folder = Folder::new();
        let path = folder.path().join("ringwayd.state");
        assert_eq!(at(&folder).take_over(), None);
        let mut first = at(&folder);
        first.keep(Lasting::default());
        assert!(!path.exists());
        first.keep(lasting());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let mut second = at(&folder);
        assert_eq!(second.take_over(), Some(lasting()));
        second.done();
        second.keep(Lasting::default());
        assert!(!path.exists(), "nothing is to stay");
    }

    /// As daemons before this one wrote [`lasting`], each as it was: never to be changed.
    const WRITTEN_BY_1: &str = r#"{"version":1,"attempts":0,"lasting":{
        "ports":[{"name":"p0","uid":4294967295,"netns":{"cookie":1099511627776},
            "shape":{"tx_slots":512,"rx_slots":0,"tx_rings":0,"rx_rings":3,"mem_id":0}}],
        "switches":[
            {"name":"vale0","keeper":0,"one_address":true,"configured_by":9,
                "forwarding":{"static":{"addresses":[[[2,0,0,0,0,1],"a"],
                    [[255,255,255,255,255,255],"vale0:b^"]],"flood_unknown":true}},
                "settings":[
                    {"name":"vale0:a","uid":7,"vlan":{"trunk":{"allowed":[1,4094],"native":1}},
                        "sources":{"only":[[2,2,2,2,2,2]]},"lossless":{"patience_ms":5}},
                    {"name":"vale0:b","uid":7,"vlan":{"trunk":{"allowed":[5],"native":null}},
                        "sources":"one","lossless":null},
                    {"name":"vale0:c","uid":7,"vlan":{"access":3},"sources":"any","lossless":null}]},
            {"name":"vale1","keeper":null,"one_address":true,"configured_by":9,
                "forwarding":{"hash":{"over":["a","b"],"back":null}},"settings":[]},
            {"name":"vale2","keeper":null,"one_address":true,"configured_by":9,
                "forwarding":"flood","settings":[]},
            {"name":"vale3","keeper":null,"one_address":true,"configured_by":9,
                "forwarding":{"learning":{"ageing_seconds":300}},"settings":[]}],
        "attached":[
            {"name":"vale0:eth7","uid":0,"netns":{"cookie":1},"stack":true,"mode":"ZeroCopy",
                "polling":[1,2]},
            {"name":"vale1:p0","uid":7,"netns":"unknown","stack":false,"mode":null,
                "polling":null}]}}"#;

    /// Version 2 has what devices are set to, and filters.
    fn written_by_2() -> String {
        let device = r#""mem_id":0},"device":{"mac":[2,0,0,0,0,5],"mtu":9000}}"#;
        let text = WRITTEN_BY_1.replace(r#""version":1"#, r#""version":2"#);
        let filter = r#""lossless":{"patience_ms":5},"filter_in":{"text":"arp",
            "insns":[{"code":6,"jt":0,"jf":0,"k":1}],"one_in":1}"#;
        let text = text.replace(r#""lossless":{"patience_ms":5}"#, filter);
        text.replace(r#""mem_id":0}}"#, device)
    }

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let folder = Folder::new();
        let path = folder.path().join("ringwayd.state");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write(WRITTEN_BY_1);
        let mut second = lasting();
        second.attached[0].renamed = None;
        for switch in &mut second.switches {
            switch.addresses.clear();
            switch.mirrors.clear();
            switch.multicast = Multicast::Flood;
        }
        let settings = second.switches.iter_mut().flat_map(|switch| &mut switch.settings);
        settings.for_each(|settings| {
            (settings.group_forward, settings.isolated) = (0, false);
            settings.swap_buffers = false;
            (settings.rate, settings.storm, settings.max_addresses) = (None, None, None);
            (settings.storm_broadcast, settings.storm_multicast) = (None, None);
            (settings.storm_unknown, settings.multicast_router) = (None, MulticastRouter::Auto);
            (settings.filter_in, settings.filter_out) = (None, None);
        });
        let mut first = second.clone();
        first.ports[0].device = None;
        second.switches[0].settings[0].filter_in = Some(filter("arp"));
        assert_eq!(at(&folder).take_over(), Some(first));
        write(&written_by_2());
        assert_eq!(at(&folder).take_over(), Some(second.clone()));
        // From here on it is this version's.
        assert_eq!(at(&folder).take_over(), Some(second));
    }

    /// Daemons that end amid all of it lose nothing: the next ones take one entry at a time. Only those that end before they
    /// come to an entry have the file put aside, which can be used as it is.
    #[test]
    fn a_file_that_ends_daemons_is_put_aside() {
        let folder = Folder::new();
        let aside = folder.path().join("ringwayd.state.bad");
        for turn in 0..2 {
            if turn == 0 {
                at(&folder).keep(lasting());
            } else {
                fs::write(folder.path().join("ringwayd.state"), fs::read(&aside).unwrap()).unwrap();
            }
            for daemon in 1..=2 * ATTEMPTS {
                let mut state = at(&folder);
                assert_eq!(state.take_over(), Some(lasting()));
                assert_eq!(state.is_one_by_one(), daemon > ATTEMPTS, "daemon {daemon}");
            }
            assert_eq!(at(&folder).take_over(), None);
            assert!(aside.exists());
        }
        // What gets through counts from the beginning.
        at(&folder).keep(lasting());
        for _ in 0..2 * ATTEMPTS {
            let mut state = at(&folder);
            assert!(state.take_over().is_some());
            state.done();
        }
    }

    /// A stop while it is set up is no end over what is in it; one after that counts no more.
    #[test]
    fn daemons_that_are_stopped_do_not_count() {
        let folder = Folder::new();
        at(&folder).keep(lasting());
        assert!(at(&folder).take_over().is_some());
        for _ in 0..2 * ATTEMPTS {
            let mut state = at(&folder);
            assert_eq!(state.take_over(), Some(lasting()));
            state.stop();
        }
        // Only daemons that end without a stop count.
        for _ in 1..2 * ATTEMPTS {
            assert!(at(&folder).take_over().is_some());
        }
        assert_eq!(at(&folder).take_over(), None);
    }

    /// Of entries that are set up one by one, that is left out which daemons have ended over, until one is stopped, or
    /// it is no longer to come back.
    #[test]
    fn what_ends_daemons_is_left_out() {
        let folder = Folder::new();
        at(&folder).keep(lasting());
        let next = || {
            let mut state = at(&folder);
            assert_eq!(state.take_over(), Some(lasting()));
            state
        };
        let left_out = |state: &StateFile| {
            state.left_out().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        // At once, entries are not told apart.
        for _ in 0..ATTEMPTS {
            next().trying("vale0:eth7");
        }
        // Each gets past the first, and some end over the second.
        for _ in 0..ATTEMPTS {
            let mut state = next();
            assert!(state.is_one_by_one() && left_out(&state).is_empty());
            state.trying("vale0:eth7");
            state.tried("vale0:eth7");
            state.trying("vale1:p0");
        }
        for _ in 0..2 * ATTEMPTS {
            let mut state = next();
            assert_eq!(left_out(&state), ["vale1:p0"]);
            state.done();
        }
        let mut state = next();
        state.let_in(|name| name == "vale1:p0");
        assert_eq!(left_out(&state), ["vale1:p0"]);
        state.let_in(|_| false);
        state.done();
        assert_eq!(left_out(&next()), [""; 0]);

        // One entry that daemons get through at last.
        at(&folder).stop();
        at(&folder).keep(lasting());
        for _ in 0..ATTEMPTS {
            next();
        }
        for _ in 1..ATTEMPTS {
            next().trying("vale1:p0");
        }
        let mut state = next();
        state.trying("vale1:p0");
        state.tried("vale1:p0");
        state.done();
        assert_eq!(left_out(&next()), [""; 0]);

        // A stop.
        for _ in 0..2 * ATTEMPTS {
            next().trying("vale1:p0");
        }
        let mut state = next();
        assert_eq!(left_out(&state), ["vale1:p0"]);
        state.stop();
        assert_eq!(left_out(&next()), [""; 0]);
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let folder = Folder::new();
        let (path, new) =
            (folder.path().join("ringwayd.state"), folder.path().join("ringwayd.state.new"));
        // No file can be put there.
        fs::create_dir(&path).unwrap();
        let mut state = at(&folder);
        assert_eq!(state.retry_after(Instant::now()), None);
        state.keep(lasting());
        assert!(!new.exists(), "it takes room");
        let failed = Instant::now();
        assert!(state.retry_after(failed).is_some_and(|after| after <= RETRY));
        assert_eq!(state.retry_after(failed + RETRY), Some(Duration::ZERO));
        state.retry();
        assert_eq!(state.retry_after(failed), Some(RETRY));
        fs::remove_dir(&path).unwrap();
        state.retry();
        assert_eq!(state.retry_after(failed), None);
        assert_eq!(at(&folder).look(), Ok(lasting()));
    }

    #[test]
    fn no_more_is_written_than_is_read() {
        let folder = Folder::new();
        let mut state = at(&folder);
        state.keep(lasting());
        let mut large = lasting();
        large.attached[0].name = "x".repeat(LARGEST as usize);
        state.keep(large);
        assert_eq!(at(&folder).look(), Ok(lasting()));
        assert!(state.retry_after(Instant::now()).is_some());
        state.keep(lasting());
        assert_eq!(state.retry_after(Instant::now()), None);
    }

    #[test]
    fn what_is_no_state_is_put_aside() {
        let folder = Folder::new();
        let file = |name: &str| folder.path().join(name);
        let (path, bad) = (file("ringwayd.state"), file("ringwayd.state.bad"));
        at(&folder).keep(lasting());
        let good = fs::read_to_string(&path).unwrap();
        let half = good.get(..good.len() / 2).unwrap();
        let unknown = good.replace("one_address", "two_addresses");
        for text in [
            "",
            "\0",
            r#"{"version": 1, "lasting": 5}"#,
            r#"{"version": 0}"#,
            r#"{"version": 4}"#,
            half,
            &unknown,
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(at(&folder).take_over(), None, "{text}");
            assert_eq!(fs::read_to_string(&bad).unwrap(), text);
            assert!(!path.exists());
            fs::remove_file(&bad).unwrap();
        }
        // Each has a name of its own, until all names are taken.
        let aside = [""].into_iter().map(String::from).chain((1..ASIDE).map(|n| format!(".{n}")));
        let aside: Vec<_> = aside.map(|n| file(&format!("ringwayd.state.bad{n}"))).collect();
        for number in 0..=aside.len() {
            fs::write(&path, number.to_string()).unwrap();
            assert_eq!(at(&folder).take_over(), None);
            let aside = &aside[number.min(aside.len() - 1)];
            assert_eq!(fs::read_to_string(aside).unwrap(), number.to_string());
        }
        aside.iter().for_each(|aside| fs::remove_file(aside).unwrap());
        // Others can read it, or could have written it.
        for (mode, is_taken) in [(0o644, true), (0o660, false), (0o602, false)] {
            fs::write(&path, &good).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(at(&folder).take_over().is_some(), is_taken, "{mode:o}");
        }
        let _ = fs::remove_file(&path);
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(at(&folder).take_over(), None);
        fs::create_dir(&path).unwrap();
        assert_eq!(at(&folder).take_over(), None);
    }
}
