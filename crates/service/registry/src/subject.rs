//! What work is about.

/// Which interface: the number of its network namespace, 0 for this process's, and its own there.
pub(crate) type NicKey = (u64, u32);

/// What work changes: of two pieces about one subject, the second begins when the first is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A network interface: the number of its network namespace, 0 for this process's, and its own.
    Interface(u64, u32),
    /// The device of a persistent port, by what the port is known by.
    Device(String),
    /// What a user has verified.
    User(u32),
    /// Memory that is being freed of what the programs of an account have closed.
    Memory(u32),
    /// Interfaces that an account's programs have named, which are looked up.
    Names(u32),
    /// Counters of interfaces that an account's programs ask for.
    Counters(u32),
    /// What interfaces have received, which is compared with what their ports have got.
    Received,
    /// What the worker of a switch is asked for, by the switch's name.
    Switch(String),
}

impl From<NicKey> for Subject {
    fn from((netns, index): NicKey) -> Subject {
        Subject::Interface(netns, index)
    }
}
