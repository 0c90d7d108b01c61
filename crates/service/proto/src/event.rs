//! Events of the daemon's log.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};

use crate::{
    error::Error,
    version::{Shown, spoken},
};

/// How much an event matters: the first are the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work, and an operator is to see to it.
    Error,
    /// Something may not be as it is meant, or was refused by a limit or a rule.
    Warn,
    /// What was set up, and what was refused.
    Info,
    /// Ports of switches and pipes, too.
    Debug,
}

impl Level {
    const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(text: &str) -> Result<Level, Error> {
        Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            Error::invalid("there is no such level")
                .remedy("levels are error, warn, info and debug")
        })
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal)*) => {
        /// What an event is about. The names are for machines, and stay.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// All of them, with their names.
            pub const ALL: &[(EventKind, &str)] = &[$((EventKind::$kind, $name),)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// The daemon has started.
    DaemonStart "daemon-start"
    /// The daemon ends.
    DaemonStop "daemon-stop"
    /// Something about its configuration, or about the level of its log.
    Config "config"
    /// A program has opened a port.
    PortOpen "port-open"
    /// A program has closed a port, or has ended.
    PortClose "port-close"
    /// A persistent port was made.
    PortNew "port-new"
    /// A persistent port was deleted.
    PortDelete "port-delete"
    /// An interface or a persistent port was attached to a switch.
    Attach "attach"
    /// It was taken off the switch.
    Detach "detach"
    /// A switch was made, deleted or changed, or one of its ports.
    Switch "switch"
    /// The filter, the action program or the queues of an interface's port were changed.
    Filter "filter"
    /// Flows were steered to a queue.
    Steer "steer"
    /// A request, or a connection, was refused.
    Refused "refused"
    /// An interface that is in use has gone, or carries nothing.
    LinkLost "link-lost"
    /// It is up again, or what was set up before is back.
    LinkBack "link-back"
    /// What is to come back has not.
    NotBack "not-back"
    /// A request took long.
    SlowRequest "slow-request"
    /// What leaves a switch by one port comes back by another.
    Loop "loop"
    /// A port sends with addresses that were behind others.
    AddressMove "address-move"
    /// A name was asked for that is another user's.
    NameConflict "name-conflict"
    /// There was no memory.
    Memory "memory"
    /// One of the daemon's other processes has ended, or could not do its work.
    Process "process"
    /// What outlives the daemon could not be read or written.
    State "state"
    /// The daemon has met a bug.
    Bug "bug"
    /// A port of a switch loses frames, or does no more.
    Drops "drops"
    /// An interface receives frames of which its port gets none, or does no more.
    NotReceived "not-received"
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One event. Texts are printable, and on one line; those that do not apply are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Grows from one to the next, also from a daemon to the one after it.
    pub number: u64,
    /// Microseconds since 1970.
    pub time: u64,
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    #[serde(serialize_with = "known_kind")]
    pub kind: EventKind,
    /// Whether it tells of something granted or refused.
    pub audit: bool,
    /// The user that it concerns.
    pub uid: Option<u32>,
    /// That user's process, as the daemon's pid namespace has it.
    pub pid: Option<u32>,
    /// The port.
    pub port: String,
    /// The switch.
    pub switch: String,
    /// The mode of an interface, and why it is no better one.
    pub mode: String,
    /// Why something was refused, as its [`Cause`](crate::Cause).
    pub cause: String,
    /// Events of the same kind and user that were left out since the last one, because there were too many.
    pub left_out: u64,
    /// The sentence for a person.
    pub text: String,
    /// Of an interface's port: the inode number of its network namespace, as [`PortInfo`](crate::PortInfo) has it.
    #[serde(with = "Shown::<7>", default)]
    pub netns: Option<u64>,
}

/// A kind that there is in the version of the message.
fn known_kind<S: Serializer>(kind: &EventKind, to: S) -> Result<S::Ok, S::Error> {
    match kind {
        EventKind::NotReceived if spoken() < 7 => EventKind::Drops.serialize(to),
        kind => kind.serialize(to),
    }
}

/// A part of the daemon's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events that the user may see, the oldest first.
    pub events: Vec<Event>,
    /// Where the next page begins.
    pub next: u64,
    /// Whether the daemon may have more by now.
    pub more: bool,
    /// Events from the beginning of the page on that the daemon does not have any more, those of other users
    /// included.
    pub missed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::in_version;

    #[test]
    fn levels_are_told_by_their_names() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert!(Level::Error < Level::Debug);
        let error = "loud".parse::<Level>().unwrap_err();
        assert!(error.to_string().contains("error, warn, info and debug"), "{error}");
    }

    #[test]
    fn an_older_version_is_told_a_kind_that_it_has() {
        let event = Event {
            number: 1,
            time: 2,
            level: Level::Warn,
            kind: EventKind::NotReceived,
            audit: false,
            uid: None,
            pid: None,
            port: "eth1".into(),
            switch: String::new(),
            mode: String::new(),
            cause: String::new(),
            left_out: 0,
            text: "a text".into(),
            netns: None,
        };
        for (version, kind) in [(6, EventKind::Drops), (7, EventKind::NotReceived)] {
            let told = in_version(version, || {
                let bytes = postcard::to_allocvec(&event).unwrap();
                postcard::from_bytes::<Event>(&bytes).unwrap()
            });
            assert_eq!(told, Event { kind, ..event.clone() });
        }
    }

    #[test]
    fn names_of_kinds_are_kebab_case_and_differ() {
        let mut names: Vec<_> = EventKind::ALL.iter().map(|(_, name)| *name).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EventKind::ALL.len());
    }
}
