//! A daemon's configuration: a TOML file, every key optional; and, of the system daemon, what files of a folder
//! beside it add.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use ringway_environment::{has_more_rights, variable};
use ringway_ipc::{GROUPS, USERS, home_of, id_of};
use ringway_proto::Level;
use ringway_region::{LayoutError, Sizes};
use ringway_registry::{Accounts, DeclaredSwitch, NamePattern, Settings, UidRange};
use rustix::process::{Resource, geteuid, getrlimit, getuid};
use serde::Deserialize;
use toml::Spanned;

use crate::{confine, reservations::Reservation, uid_ranges};

#[cfg(test)]
mod described;
mod drop_in;
mod mirrors;
mod place;
#[cfg(test)]
mod schema;
mod switches;
mod syntax;
mod text;

use place::{Waits, line_of_key, open, read_text, text_of};
use switches::{Switch, is_port_name};

pub const DEFAULT_PATH: &str = "/etc/ringway/ringwayd.toml";

/// Of a private daemon's configuration, in the user's configuration directory.
const PRIVATE_NAME: &str = "ringway/ringwayd.toml";

/// What to do about a file that need not be there.
const OPTIONAL: &str = "correct the file, or remove it to have the defaults";

/// What to do about a file that a command line names.
const NAMED: &str = "correct the file";

/// Keys for the users of a daemon, and its place.
const SYSTEM_KEYS: [&str; 12] = [
    "socket",
    "group",
    "mode",
    "nic_users",
    "grant",
    "reserve",
    "switch",
    "switches_per_user",
    "switch_ports_per_user",
    "lossless_users",
    "subuid",
    "uid_ranges",
];

/// Bytes of a socket's path (unix(7)), without the zero at its end.
const LONGEST_SOCKET: usize = 107;

/// Bytes at most of what is declared, with the lists of users, as a daemon that runs is given it, and the one after it by
/// the [state](crate::state).
pub const MOST_BYTES: usize = 24 << 20;

/// Bytes of settings of ports that the [state](crate::state) has of one user at most.
const KEPT_BYTES: usize = 2 << 20;

/// Ports that a user may have on a bridge: a quarter of them.
const SWITCH_PORTS: usize = 63;

/// Megabytes at least with which a user can open a port.
const LEAST_MEMORY: u64 = 16;

/// The same of descriptors.
const LEAST_DESCRIPTORS: usize = 16;

/// What the administrator may set, or the user of a private daemon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The socket's path; its directory is made if missing.
    #[cfg_attr(test, schemars(regex(pattern = "^/"), length(max = LONGEST_SOCKET)))]
    pub socket: String,
    /// Group that owns the socket: its members may open ports. A name or a number.
    pub group: Option<String>,
    /// Permissions of the socket, in octal.
    #[cfg_attr(test, schemars(regex(pattern = described::MODE)))]
    pub mode: String,
    /// Users that may open network interfaces, besides root: names or numbers.
    pub nic_users: Vec<String>,
    /// Interfaces that some users may open by name.
    pub grant: Vec<Grant>,
    /// Names of switches and ports that only some users may take; the first that stands for a name
    /// decides.
    pub reserve: Vec<Reserve>,
    /// Switches that stay, with their ports.
    switch: Vec<Switch>,
    /// Bridges at most.
    pub max_bridges: usize,
    /// Bridges of one user at most. Without it: a quarter of all.
    pub switches_per_user: Option<usize>,
    /// Ports of one user on a bridge at most. Without it: a quarter of what a bridge has.
    pub switch_ports_per_user: Option<usize>,
    /// Users whose ports of switches may be lossless, besides root: names or numbers. Without it: all.
    pub lossless_users: Option<Vec<String>>,
    /// Whether ids that `/etc/subuid` gives to a user count as that user.
    pub subuid: bool,
    /// Other ids that count as a user, as lines of that file: `alice:100000:65536`.
    pub uid_ranges: Vec<String>,
    /// Slots of the rings of NIC ports, 3 to 8176: as many as a `ring_size` of the global region has room for. Default:
    /// 1024, or as many as that has room for.
    #[cfg_attr(test, schemars(range(min = 3, max = 8176)))]
    pub nic_slots: Option<u32>,
    /// Whether receive rings are stamped with the time at every sync.
    pub timestamps: bool,
    /// Megabytes (2^20) of rings and buffers that the programs of one user ask for at most, together.
    #[cfg_attr(test, schemars(range(min = LEAST_MEMORY)))]
    pub memory_per_user: u64,
    /// Descriptors of the daemon that one user takes up at most. Without it: a quarter of those
    /// that the daemon may have.
    #[cfg_attr(test, schemars(range(min = LEAST_DESCRIPTORS)))]
    pub descriptors_per_user: Option<usize>,
    /// What is logged: error, warn, info or debug.
    #[cfg_attr(test, schemars(with = "described::Level"))]
    pub log_level: Level,
    /// Pools of each user's global region, from the daemon's start on (S-MEM-6).
    #[cfg_attr(test, schemars(with = "described::Region"))]
    pub global_region: Sizes,
}

/// An interface of the daemon's own network namespace, and those who may open it from wherever they
/// are: a container, say, with a network namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Grant {
    #[cfg_attr(test, schemars(with = "String", regex(pattern = described::PORT_NAME)))]
    interface: Spanned<String>,
    /// Names or numbers.
    users: Vec<String>,
    /// The file and the line.
    #[serde(skip)]
    place: String,
}

/// Names of switches, or of their ports, that these users alone may take, and root.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// `vale_prod*`, say, or `vale0:db`.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = described::NAME_PATTERN)))]
    name: Spanned<String>,
    /// Names or numbers.
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    /// The file and the line.
    #[serde(skip)]
    place: String,
}

impl Grant {
    fn note_place(&mut self, path: &str, text: &str) {
        self.place = place::of(path, text, self.interface.span().start);
    }
}

impl Reserve {
    fn note_place(&mut self, path: &str, text: &str) {
        self.place = place::of(path, text, self.name.span().start);
    }
}

impl Default for Config {
    fn default() -> Self {
        let settings = Settings::default();
        Config {
            socket: "/run/ringway/ringwayd.sock".into(),
            group: None,
            mode: "0660".into(),
            nic_users: Vec::new(),
            grant: Vec::new(),
            reserve: Vec::new(),
            switch: Vec::new(),
            max_bridges: settings.max_bridges,
            switches_per_user: None,
            switch_ports_per_user: None,
            lossless_users: None,
            subuid: true,
            uid_ranges: Vec::new(),
            nic_slots: None,
            timestamps: settings.timestamps,
            memory_per_user: settings.memory_per_user >> 20,
            descriptors_per_user: None,
            log_level: Level::Info,
            global_region: settings.global_region,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}")]
    Read { path: String, source: io::Error },
    #[error(
        "{path}: a link to {target}, which is not there; remove the link, or put the file there"
    )]
    Dangling { path: String, target: String },
    #[error("{path}: line {line}: {problem}; {remedy}")]
    Parse { path: String, line: usize, problem: String, remedy: &'static str },
    #[error(
        "{path}: {source}; a daemon that runs reads it again without the privilege to read all files: let the \
         daemon's user read it (chown, chmod u+r)"
    )]
    Unreadable { path: String, source: io::Error },
    #[error("{key}: `{value}` {problem}")]
    Value { key: &'static str, value: String, problem: &'static str },
    #[error("{place}: {source}")]
    At { place: String, source: Box<Error> },
    #[error(
        "{path}: `{key}` is for the system daemon: who may use a private one, and where it is, \
         follows from who starts it; remove the line"
    )]
    System { path: String, key: &'static str },
    #[error("{path}: {source}; correct the file, or remove it to have the defaults")]
    Private { path: String, source: Box<Error> },
    #[error("{place}: {problem}")]
    Switch { place: String, problem: String },
    #[error(
        "what is declared, with lists of users, takes {0} bytes, and {MOST_BYTES} is the most; shorten the filters \
         of switches' ports, or take some away"
    )]
    Large(usize),
    #[error(
        "`nic_slots` is {slots}, and `ring_size` of [global_region] is {ring_size}, with room for {fit} slots; raise \
         ring_size to {needed} or more, or lower nic_slots"
    )]
    Slots { slots: u32, ring_size: u32, fit: u32, needed: u32 },
    #[error("global_region: {0}")]
    Region(#[from] LayoutError),
}

/// Where the link at `path` leads, if nothing is there.
fn leads_nowhere(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    matches!(path.try_exists(), Ok(false)).then(|| target.display().to_string())
}

impl Error {
    /// That the file or folder at `path` cannot be read.
    fn read(path: &Path, source: io::Error) -> Error {
        let shown = path.display().to_string();
        match leads_nowhere(path) {
            Some(target) => Error::Dangling { path: shown, target },
            None if source.kind() == io::ErrorKind::PermissionDenied => {
                Error::Unreadable { path: shown, source }
            }
            None => Error::Read { path: shown, source },
        }
    }

    /// The same, unless nothing is there, not even a link.
    fn unless_missing(path: &Path, source: io::Error) -> Result<(), Error> {
        let is_missing = source.kind() == io::ErrorKind::NotFound;
        match Error::read(path, source) {
            Error::Read { .. } if is_missing => Ok(()),
            error => Err(error),
        }
    }

    fn parse(path: &str, text: &str, error: &toml::de::Error, remedy: &'static str) -> Error {
        let at = error.span().map_or(0, |span| span.start);
        let line = place::line(text, at);
        let problem = syntax::problem(&error.message().replace('\n', ", "), place::key(text, at));
        Error::Parse { path: path.into(), line, problem, remedy }
    }

    /// With the line of the file that has the key.
    fn in_file(self, path: &str, text: &str) -> Error {
        match self {
            Error::Value { key, .. } => {
                let place = match line_of_key(text, key) {
                    Some(line) => format!("{path}: line {line}"),
                    None => path.into(),
                };
                Error::At { place, source: Box::new(self) }
            }
            Error::Region(_) | Error::Large(_) | Error::Slots { .. } => {
                Error::At { place: path.into(), source: Box::new(self) }
            }
            other => other,
        }
    }

    fn at(self, place: &str) -> Error {
        Error::At { place: place.into(), source: Box::new(self) }
    }
}

impl Config {
    /// A private daemon's, from the file in the user's configuration directory, if there is one.
    pub fn private() -> Result<Config, Error> {
        Config::private_file()
            .map_or_else(|| Ok(Config::default()), |path| Config::private_at(&path))
    }

    /// Where that file is, if it is there.
    pub fn private_file() -> Option<PathBuf> {
        let home = home_of(getuid().as_raw(), USERS);
        match has_more_rights() {
            true => home.map(|home| Path::new(&home).join(".config").join(PRIVATE_NAME)),
            false => private_path(|name| variable(name).map(PathBuf::from)),
        }
    }

    fn private_at(path: &Path) -> Result<Config, Error> {
        let text = match read_of_user(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
            // The directory is another user's: `su` and `setpriv` leave HOME as it was.
            Err(_) if fs::metadata(path).is_err() => return Ok(Config::default()),
            Err(source) => return Err(Error::Read { path: path.display().to_string(), source }),
        };
        let path = || path.display().to_string();
        let keys: toml::Table = toml::from_str(&text)
            .map_err(|error| Error::parse(&path(), &text, &error, OPTIONAL))?;
        if let Some(key) = SYSTEM_KEYS.into_iter().find(|key| keys.contains_key(*key)) {
            return Err(Error::System { path: path(), key });
        }
        Config::parse(&path(), &text, OPTIONAL).map_err(|error| match error {
            Error::Parse { .. } => error,
            Error::At { source, .. } => Error::Private { path: path(), source },
            other => Error::Private { path: path(), source: Box::new(other) },
        })
    }

    /// Reads the system daemon's file. The default file may be missing; any other must be there.
    pub fn read(path: &Path) -> Result<Config, Error> {
        Config::read_as(path, Waits::Yes)
    }

    /// The same for a daemon that runs already: it is not to wait for what is behind a pipe.
    pub fn read_again(path: &Path) -> Result<Config, Error> {
        Config::read_as(path, Waits::No)
    }

    fn read_as(path: &Path, waits: Waits) -> Result<Config, Error> {
        let shown = path.display().to_string();
        let text = match read_text(path, waits) {
            Ok(text) => text,
            Err(source) if path == Path::new(DEFAULT_PATH) => {
                Error::unless_missing(path, source)?;
                String::new()
            }
            Err(source) => return Err(Error::read(path, source)),
        };
        // Any other file has to be there.
        let remedy = if path == Path::new(DEFAULT_PATH) { OPTIONAL } else { NAMED };
        let mut config = Config::take_in(&shown, &text, remedy)?;
        drop_in::read(path, &mut config)?;
        config.check().map_err(|error| error.in_file(&shown, &text))?;
        Ok(config)
    }

    /// What is doubtful about the files at `path`, and beside it, though they are good: users other than root can change
    /// them, or a daemon that runs cannot read them again.
    pub fn doubts(path: &Path) -> Vec<String> {
        let folder = drop_in::folder(path);
        let drop_ins = drop_in::paths(&folder).unwrap_or_default();
        let files = [path.to_owned(), folder].into_iter().chain(drop_ins);
        files.filter_map(|path| doubt(&path)).collect()
    }

    /// Parses and checks the text of the file at `path`.
    fn parse(path: &str, text: &str, remedy: &'static str) -> Result<Config, Error> {
        let config = Config::take_in(path, text, remedy)?;
        config.check().map_err(|error| error.in_file(path, text))?;
        Ok(config)
    }

    /// Parses it. `remedy`: what to do about a file that cannot be parsed.
    fn take_in(path: &str, text: &str, remedy: &'static str) -> Result<Config, Error> {
        let mut config: Config =
            toml::from_str(text).map_err(|error| Error::parse(path, text, &error, remedy))?;
        config.switch.iter_mut().for_each(|switch| switch.note_place(path, text));
        config.grant.iter_mut().for_each(|grant| grant.note_place(path, text));
        config.reserve.iter_mut().for_each(|reserve| reserve.note_place(path, text));
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        let config = self;
        config.check_socket()?;
        config.mode()?;
        config.gid()?;
        let users = (config.nic_uids()?, config.lossless_uids()?);
        let lists = (users, config.grants()?, config.reservations()?, config.declared()?);
        let bytes = serde_json::to_vec(&lists).map_or(0, |text| text.len());
        if bytes > MOST_BYTES {
            return Err(Error::Large(bytes));
        }
        config.uid_ranges()?;
        config.check_shares()?;
        let fit = config.settings(false).check()?.max_slots();
        match config.nic_slots {
            Some(slots) if !(3..=8176).contains(&slots) => {
                let value = slots.to_string();
                Err(Error::Value { key: "nic_slots", value, problem: "is not in 3..=8176" })
            }
            Some(slots) if slots > fit => {
                let ring_size = config.global_region.ring_size;
                Err(Error::Slots { slots, ring_size, fit, needed: 256 + 16 * slots })
            }
            _ => Ok(()),
        }
    }

    /// Refuses shares of which no user, not even root, could have anything.
    fn check_shares(&self) -> Result<(), Error> {
        let problem = "is less than one port takes; write 16 or more";
        let wrong = |key, value: String| Err(Error::Value { key, value, problem });
        match self.descriptors_per_user {
            _ if self.memory_per_user < LEAST_MEMORY => {
                wrong("memory_per_user", self.memory_per_user.to_string())
            }
            Some(most) if most < LEAST_DESCRIPTORS => {
                wrong("descriptors_per_user", most.to_string())
            }
            _ => Ok(()),
        }
    }

    fn check_socket(&self) -> Result<(), Error> {
        let wrong =
            |problem| Err(Error::Value { key: "socket", value: self.socket.clone(), problem });
        if !self.socket.starts_with('/') {
            return wrong("does not begin with /; write the whole path");
        }
        match self.socket.len() > LONGEST_SOCKET {
            true => {
                wrong("is longer than the path of a socket may be; choose one of at most 107 bytes")
            }
            false => Ok(()),
        }
    }

    /// The socket's permission bits.
    pub fn mode(&self) -> Result<u32, Error> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(|| {
            let value = self.mode.clone();
            Error::Value { key: "mode", value, problem: "is not an octal mode such as 0660" }
        })
    }

    /// The socket's group.
    pub fn gid(&self) -> Result<Option<u32>, Error> {
        let Some(group) = &self.group else { return Ok(None) };
        id_of(group, GROUPS).map(Some).ok_or_else(|| Error::Value {
            key: "group",
            value: group.clone(),
            problem: "is no group here; `groupadd --system` makes one",
        })
    }

    /// Users that may open network interfaces.
    pub fn nic_uids(&self) -> Result<Vec<u32>, Error> {
        uids("nic_users", &self.nic_users)
    }

    /// Users whose ports may be lossless.
    fn lossless_uids(&self) -> Result<Option<Vec<u32>>, Error> {
        self.lossless_users.as_ref().map(|users| uids("lossless_users", users)).transpose()
    }

    /// Interfaces, each with the users that may open it by name.
    pub fn grants(&self) -> Result<Vec<(String, Vec<u32>)>, Error> {
        let grant = |grant: &Grant| -> Result<(String, Vec<u32>), Error> {
            let interface = grant.interface.get_ref();
            if !is_port_name(interface) {
                let problem =
                    "is the name of no interface: they have 1 to 15 bytes, and none of / : @ { }";
                let value = interface.clone();
                return Err(Error::Value { key: "grant.interface", value, problem });
            }
            Ok((interface.clone(), uids("grant.users", &grant.users)?))
        };
        self.grant.iter().map(|it| grant(it).map_err(|error| error.at(&it.place))).collect()
    }

    /// Reserved names, each with the users and groups that may take it.
    pub fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        let reservation = |reserve: &Reserve| -> Result<Reservation, Error> {
            let name = reserve.name.get_ref();
            let pattern = NamePattern::parse(name).ok_or_else(|| Error::Value {
                key: "reserve.name",
                value: name.clone(),
                problem: "stands for no switch and no port: write vale<id> or vale<id>:<port>, with * for \
                          any characters",
            })?;
            let uids = uids("reserve.users", &reserve.users)?;
            let gid = |group: &String| {
                id_of(group, GROUPS).ok_or_else(|| Error::Value {
                    key: "reserve.groups",
                    value: group.clone(),
                    problem: "is no group here; write a name of `getent group`, or a number",
                })
            };
            let gids = reserve.groups.iter().map(gid).collect::<Result<Vec<_>, _>>()?;
            Ok(Reservation::new(pattern, uids, gids))
        };
        self.reserve.iter().map(|it| reservation(it).map_err(|error| error.at(&it.place))).collect()
    }

    /// Switches as they are to be.
    pub fn declared(&self) -> Result<Vec<DeclaredSwitch>, Error> {
        switches::check_names(&self.switch)?;
        if let Some(switch) = self.switch.get(self.max_bridges) {
            return Err(switch.too_many(self.switch.len(), self.max_bridges));
        }
        let users = self.lossless_uids()?;
        let may_be_lossless =
            |uid| uid == 0 || users.as_ref().is_none_or(|users| users.contains(&uid));
        self.switch.iter().map(|switch| switch.declared(may_be_lossless)).collect()
    }

    /// As is written there, or as many as usual where a ring has room for them.
    pub fn nic_slots(&self) -> u32 {
        let fit = self.global_region.ring_size.saturating_sub(256) / 16;
        self.nic_slots.unwrap_or_else(|| Settings::default().nic_slots.min(fit).max(3))
    }

    /// The keys that are read when the daemon starts alone, and what they are set to.
    pub fn fixed(&self) -> Vec<(String, String)> {
        let Config { socket, group, mode, max_bridges, subuid, uid_ranges, .. } = self;
        let Config { nic_slots, timestamps, memory_per_user, descriptors_per_user, .. } = self;
        let values: [(&str, &dyn std::fmt::Debug); 11] = [
            ("socket", socket),
            ("group", group),
            ("mode", mode),
            ("max_bridges", max_bridges),
            ("subuid", subuid),
            ("uid_ranges", uid_ranges),
            ("nic_slots", nic_slots),
            ("timestamps", timestamps),
            ("memory_per_user", memory_per_user),
            ("descriptors_per_user", descriptors_per_user),
            ("global_region", &self.global_region),
        ];
        values.into_iter().map(|(key, value)| (key.into(), format!("{value:?}"))).collect()
    }

    /// Ids that count as other users.
    fn uid_ranges(&self) -> Result<Vec<UidRange>, Error> {
        let range = |line: &String| {
            uid_ranges::parse(line, |name| id_of(name, USERS)).ok_or_else(|| Error::Value {
                key: "uid_ranges",
                value: line.clone(),
                problem: "is not USER:FIRST:COUNT with a user who is here, as in subuid(5)",
            })
        };
        self.uid_ranges.iter().map(range).collect()
    }

    /// What the registry is to know of it. The user of a private daemon shares it with nobody.
    pub fn settings(&self, is_private: bool) -> Settings {
        let quarter = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
        let share = if is_private { 3 * quarter } else { quarter };
        let (switches_per_user, switch_ports_per_user, ranges) = if is_private {
            (usize::MAX, usize::MAX, Vec::new())
        } else {
            let mut ranges = if self.subuid { uid_ranges::of_machine() } else { Vec::new() };
            // They were read before: there are none that are wrong.
            ranges.extend(self.uid_ranges().unwrap_or_default());
            let switches = self.switches_per_user.unwrap_or((self.max_bridges / 4).max(1));
            (switches, self.switch_ports_per_user.unwrap_or(SWITCH_PORTS), ranges)
        };
        Settings {
            max_bridges: self.max_bridges,
            switches_per_user,
            switch_ports_per_user,
            // A private daemon writes no state.
            kept_bytes_per_user: if is_private { usize::MAX } else { KEPT_BYTES },
            // They were read before.
            lossless_users: self.lossless_uids().unwrap_or_default(),
            accounts: Arc::new(Accounts::new(ranges)),
            timestamps: self.timestamps,
            nic_slots: self.nic_slots(),
            global_region: self.global_region,
            memory_per_user: self.memory_per_user.saturating_mul(1 << 20),
            descriptors_per_user: self.descriptors_per_user.unwrap_or(share as usize),
        }
    }
}

/// See [`Config::doubts`].
fn doubt(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    let shown = path.display();
    let (uid, mode) = (about.uid(), about.mode());
    if ![0, geteuid().as_raw()].contains(&uid) {
        return Some(format!(
            "{shown}: user {uid}, its owner, can change what the daemon does; \
             `chown root` it"
        ));
    }
    // /dev/null in place of a file takes that away.
    if mode & 0o002 != 0 && !about.file_type().is_char_device() {
        return Some(format!("{shown}: each user can change what the daemon does; `chmod o-w` it"));
    }
    let is_unreadable = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let opened = confine::as_reader(|| match about.is_dir() {
        true => fs::read_dir(path).map(drop),
        false => open(path, Waits::No).map(drop),
    });
    let error = opened.err().filter(is_unreadable)?;
    Some(Error::read(path, error).to_string())
}

/// Where a private daemon's configuration is, by the environment of the program that started it:
/// `$XDG_CONFIG_HOME/ringway/ringwayd.toml`, or in `~/.config`.
fn private_path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // As the XDG Base Directory Specification has it, what is not absolute counts as not set.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join(PRIVATE_NAME))
}

/// The text of a file that the user has chosen. A daemon with file capabilities may read what its
/// user may not, and says what is wrong in a file.
fn read_of_user(path: &Path) -> io::Result<String> {
    let file = open(path, Waits::No)?;
    if has_more_rights() && file.metadata()?.uid() != getuid().as_raw() {
        let problem = "belongs to another user, and this daemon has more rights than its own";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    text_of(file)
}

fn uids(key: &'static str, users: &[String]) -> Result<Vec<u32>, Error> {
    let uid = |user: &String| {
        let missing = || Error::Value {
            key,
            value: user.clone(),
            problem: "is no user here; write a name of `getent passwd`, or a number",
        };
        id_of(user, USERS).ok_or_else(missing)
    };
    users.iter().map(uid).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use ringway_proto::Insn;
    use ringway_testkit::{Folder, skip_without_root};

    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ringwayd-{}-{}.toml", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        let config = Config::read(&path).map_err(|e| e.to_string());
        fs::remove_file(&path).unwrap();
        config
    }

    #[test]
    fn the_example_shows_the_defaults() {
        let text = include_str!("../../../../dist/ringwayd.toml");
        // An installation makes the group, and this machine may be without it.
        let example = parse(&text.replace("\ngroup = \"ringway\"\n", "\n")).unwrap();
        assert_eq!(example, Config::default());
    }

    #[test]
    fn files_that_others_can_change_or_the_daemon_cannot_read_again_are_told() {
        use std::os::unix::fs::{PermissionsExt, chown};
        if skip_without_root("files_that_others_can_change") {
            return;
        }
        let home = Folder::new();
        let (path, folder) = (home.path().join("x.toml"), home.path().join("x.d"));
        let drop_in = folder.join("a.toml");
        fs::create_dir(&folder).unwrap();
        let all = [&path, &folder, &drop_in];
        let modes: [(u32, [u32; 3], [&str; 3]); 5] = [
            (0, [0o644, 0o755, 0o600], ["", "", ""]),
            (0, [0o666, 0o777, 0o602], ["chmod o-w", "chmod o-w", "chmod o-w"]),
            (0, [0o644, 0o755, 0o000], ["", "", "chmod u+r"]),
            (0, [0o200, 0o755, 0o400], ["chmod u+r", "", ""]),
            (65534, [0o644, 0o755, 0o600], ["", "", "chown root"]),
        ];
        for (uid, modes, expected) in modes {
            for (file, mode) in all.into_iter().zip(modes) {
                if !file.exists() {
                    fs::write(file, "").unwrap();
                }
                fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
            }
            chown(&drop_in, Some(uid), None).unwrap();
            let told = Config::doubts(&path);
            let doubts: Vec<_> = expected.iter().filter(|remedy| !remedy.is_empty()).collect();
            assert_eq!(told.len(), doubts.len(), "{told:?}");
            for (line, remedy) in told.iter().zip(doubts) {
                assert!(line.contains(remedy), "{line}");
            }
            // What starts with root's privileges, and cannot be read again.
            assert!(Config::read(&path).is_ok());
            let again = confine::as_reader(|| Config::read_again(&path));
            let is_readable = modes[0] & 0o400 != 0 && modes[2] & 0o400 != 0 && uid == 0;
            match again {
                Ok(_) => assert!(is_readable, "{modes:?}"),
                Err(error) => {
                    assert!(!is_readable && error.to_string().contains("chmod u+r"), "{error}");
                }
            }
        }
    }

    #[test]
    fn shares_without_room_for_a_port_are_refused() {
        for key in ["memory_per_user", "descriptors_per_user"] {
            for (value, good) in [(0, false), (15, false), (16, true)] {
                let read = parse(&format!("{key} = {value}\n"));
                assert_eq!(read.is_ok(), good, "{key} = {value}: {read:?}");
                if let Err(error) = read {
                    assert!(error.contains("line 1") && error.contains("16 or more"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_private_daemon_reads_its_users_file() {
        let at = |config: Option<&str>, home: Option<&str>| {
            private_path(|name| if name == "HOME" { home } else { config }.map(PathBuf::from))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(at(Some("/c"), Some("/h")), path("/c/ringway/ringwayd.toml"));
        assert_eq!(at(Some("c"), Some("/h")), path("/h/.config/ringway/ringwayd.toml"));
        assert_eq!(at(None, None), None);

        let file =
            std::env::temp_dir().join(format!("ringwayd-private-{}.toml", std::process::id()));
        assert_eq!(Config::private_at(&file).unwrap(), Config::default());
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            Config::private_at(&file).map_err(|error| error.to_string())
        };
        assert_eq!(read("nic_slots = 512").unwrap().nic_slots(), 512);
        for (text, word) in [
            ("group = 'x'", "`group` is for the system daemon"),
            ("[[grant]]\ninterface = 'e'\nusers = []", "`grant` is for the system daemon"),
            ("[[reserve]]\nname = 'vale0'", "`reserve` is for the system daemon"),
            ("nic_slots = 1", "remove it to have the defaults"),
            ("nic_slots = 'many'", "remove it to have the defaults"),
            ("nic_slots =", "remove it to have the defaults"),
            ("timestamps = true\nslots = 5", "line 2: unknown field"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(word) && said.contains("ringwayd-private"), "{text}: {said}");
        }
        fs::remove_file(&file).unwrap();

        // A directory that the user cannot search holds no configuration of the user's; a file that is
        // there and cannot be read is an error.
        assert_eq!(Config::private_at(Path::new("/dev/null/x.toml")).unwrap(), Config::default());
        assert!(Config::private_at(&std::env::temp_dir()).is_err());
    }

    #[test]
    fn reads_what_is_set_and_defaults_the_rest() {
        let config = parse("group = 'root'\nmode = '0600'\nnic_users = ['root', '1234']").unwrap();
        assert_eq!(config.gid().unwrap(), Some(0));
        assert_eq!(config.mode().unwrap(), 0o600);
        assert_eq!(config.nic_uids().unwrap(), [0, 1234]);
        assert_eq!(config.socket, Config::default().socket);

        let text = "[[grant]]\ninterface = 'eth7'\nusers = ['root', '7']";
        assert_eq!(parse(text).unwrap().grants().unwrap(), [("eth7".into(), vec![0, 7])]);

        let text = "[[reserve]]\nname = 'vale0:db*'\nusers = ['7']\ngroups = ['root']";
        let reserved = parse(text).unwrap().reservations().unwrap();
        assert!(reserved.len() == 1 && reserved[0].pattern().to_string() == "vale0:db*");

        for (text, word) in [
            ("[[grant]]\ninterface = 'eth7'\nusers = ['nobody at all']", "grant.users"),
            ("[[reserve]]\nname = 'eth0'", "any characters"),
            ("[[reserve]]\nname = 'vale0'\nusers = ['nobody at all']", "reserve.users"),
            ("[[reserve]]\nname = 'vale0'\ngroups = ['nobody at all']", "reserve.groups"),
            ("[[reserve]]\nnames = 'vale0'", "unknown field"),
            ("grup = 'x'", "grup"),
            ("mode = '999'", "octal"),
            ("mode = 660", "expected a text, in quotes"),
            ("nic_slots = -1", "expected a number from 3 to 8176"),
            ("max_bridges = 'all'", "expected a number from 0 to"),
            ("global_region = 5", "expected a table"),
            ("log_level = 3", "not a text; write it in quotes"),
            ("group = 'no such group'", "groupadd"),
            ("nic_slots = 1", "nic_slots"),
            ("uid_ranges = ['root']", "subuid(5)"),
            ("lossless_users = ['nobody at all']", "lossless_users"),
            ("nic_slots = 8177", "nic_slots"),
            ("nic_slots = 2289", "raise ring_size to 36880 or more, or lower nic_slots"),
            (
                "nic_slots = 9\n[global_region]\nring_size = 256",
                "room for 0 slots; raise ring_size to 400",
            ),
            ("[global_region]\nbuf_size = 32", "(buf_size) is 32, but must be in 320..=65536"),
            ("[global_region]\nbuf_size = 319", "(buf_size) is 319, but must be in 320..=65536"),
            ("[global_region]\nbufs = 32", "bufs"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(word), "{text}: {said}");
        }
        for text in [
            "nic_slots = 2288",
            "[global_region]\nring_size = 256",
            "nic_slots = 8176\n[global_region]\nring_size = 131072",
            "[global_region]\nbuf_size = 320",
        ] {
            parse(text).unwrap();
        }
    }

    /// The manual names the keys that a private daemon does not take.
    #[test]
    fn the_manual_names_the_keys_of_the_system_daemon() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../man/ringwayd.8");
        let page = fs::read_to_string(path).unwrap();
        let (_, from) = page.split_once("It takes all keys but\n").unwrap();
        let (named, _) = from.split_once("\nand reads the file when it starts").unwrap();
        let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let mut named: Vec<&str> = named
            .lines()
            .flat_map(|line| line.trim_start_matches(".BR").split(|c| !is_of_name(c)))
            .filter(|word| !["", "and"].contains(word))
            .collect();
        named.sort_unstable();
        let mut keys = SYSTEM_KEYS.to_vec();
        keys.sort_unstable();
        assert_eq!(named, keys);
    }

    /// Only a folder that is not there adds nothing: all that one declared would go, otherwise, when it is mistaken.
    #[test]
    fn a_folder_that_cannot_be_read_is_an_error() {
        let folder = Folder::new();
        let (file, more) = (folder.path().join("x.toml"), folder.path().join("x.d"));
        fs::write(&file, "").unwrap();
        let read = || Config::read(&file).map_err(|error| error.to_string());
        assert!(read().is_ok());
        // The default file may be missing, too, and is no link to nothing either.
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        assert!(Error::unless_missing(&more, missing()).is_ok());
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink("nothing", &link).unwrap();
        assert!(Error::unless_missing(&link, missing()).is_err());
        let said = Config::read(&link).unwrap_err().to_string();
        assert!(said.contains("link.toml: a link to nothing, which is not there"), "{said}");
        fs::write(&more, "").unwrap();
        assert!(read().unwrap_err().contains("x.d: Not a directory"), "{:?}", read());
        fs::remove_file(&more).unwrap();
        std::os::unix::fs::symlink("elsewhere", &more).unwrap();
        let said = read().unwrap_err();
        assert!(said.contains("x.d: a link to elsewhere, which is not there"), "{said}");
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        assert!(read().is_ok());
    }

    /// A daemon that runs would not be given it, and the next one could not read its state.
    #[test]
    fn what_is_declared_has_an_end() {
        let one = Insn { code: 6, jt: 0, jf: 0, k: 1 };
        let Insn { code, jt, jf, k } = one;
        let program = format!("1024{}", format!(",{code} {jt} {jf} {k}").repeat(1024));
        let switch = |name: &str| {
            let mut text = format!("[[switch]]\nname = '{name}'\n");
            let filter = format!("{{ expression = 'x', bytecode = '{program}' }}");
            for port in 0..240 {
                let port = format!("[[switch.port]]\nname = 'p{port}'\nfilter_in = {filter}\n");
                text += &format!("{port}filter_out = {filter}\n");
            }
            text
        };
        let names: Vec<_> = (0..4).map(|n| format!("vale{n}")).collect();
        let text = |switches: usize| names.iter().take(switches).map(|name| switch(name)).collect();
        let (some, all): (String, String) = (text(2), text(4));
        parse(&some).unwrap();
        let said = parse(&all).unwrap_err();
        assert!(said.contains("25165824 is the most; shorten the filters"), "{said}");
    }

    /// Also of what is read well and cannot be, in the file and in those of the folder beside it.
    #[test]
    fn errors_have_their_file_and_line() {
        let folder = std::env::temp_dir().join(format!("ringwayd-lines-{}", std::process::id()));
        let more = folder.join("x.d");
        fs::create_dir_all(&more).unwrap();
        let said = |file: &str, text: &str| {
            for (name, text) in [("x.toml", ""), ("x.d/y.toml", ""), (file, text)] {
                fs::write(folder.join(name), text).unwrap();
            }
            let said = Config::read(&folder.join("x.toml")).unwrap_err().to_string();
            said.replace(&format!("{}/", folder.display()), "")
        };
        for (text, start) in [
            ("\nmode = '9'", "x.toml: line 2: mode: `9`"),
            ("# nic_users = []\nnic_users = ['nobody at all']", "x.toml: line 2: nic_users:"),
            ("socket = 'x.sock'", "x.toml: line 1: socket: `x.sock` does not begin with /"),
            (&format!("socket = '/{:0107}'", 0), "x.toml: line 1: socket: "),
            ("\n[[grant]]\ninterface = ''\nusers = []", "x.toml: line 3: grant.interface"),
        ] {
            let said = said("x.toml", text);
            assert!(said.starts_with(start), "{said}");
        }
        let grant = "[[grant]]\ninterface = 'e'\nusers = ['0']\n";
        for (text, start) in [
            ("[[grant]]\ninterface = 'f'\nusers = ['nobody at all']", "line 5: grant.users"),
            ("[[reserve]]\nname = 'eth0'", "line 5: reserve.name"),
            ("[[reserve]]\nname = 'vale0'\ngroups = ['no such']", "line 5: reserve.groups"),
        ] {
            let said = said("x.d/y.toml", &format!("{grant}{text}"));
            assert!(said.starts_with(&format!("x.d/y.toml: {start}")), "{said}");
        }
        // What to do fits where the file is from: only some files may be missing.
        for (file, remedy) in [
            ("x.toml", "; correct the file"),
            ("x.d/y.toml", "; correct the file, or remove it to be without what it adds"),
        ] {
            let said = said(file, "max_bridges =");
            assert!(said.ends_with(remedy), "{said}");
        }
        // A link adds what it leads to, and is an error if that is nothing.
        let (link, file) = (more.join("z.toml"), folder.join("elsewhere.toml"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let said = said("x.toml", "");
        let expected = format!(
            "x.d/z.toml: a link to {}, which is not there; remove the link",
            file.display()
        );
        assert!(
            said.starts_with(&expected.replace(&format!("{}/", folder.display()), "")),
            "{said}"
        );
        fs::write(&file, grant).unwrap();
        // An editor's lock, and a copy that it is still writing.
        std::os::unix::fs::symlink("root@lab.1234:5678", more.join(".#z.toml")).unwrap();
        fs::write(more.join(".z.toml"), "[[grant").unwrap();
        assert_eq!(Config::read(&folder.join("x.toml")).unwrap().grant.len(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
