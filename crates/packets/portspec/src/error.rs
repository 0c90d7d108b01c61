//! Which part of a name is wrong, and what belongs there.

/// Every one is `EINVAL` to a C program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither `netmap:` nor `vale<switch>:` in front.
    #[error("a port is named netmap:<name> or vale<switch>:<port>")]
    Subsystem,
    /// The name is empty, or does not fit in a request.
    #[error("a port's name has 1 to 63 characters: vale0:a, netmap:eth0, a{{1")]
    Length,
    /// A character that no interface and no port has in its name.
    #[error("a port's name is made of letters, digits, `_`, `.` and `-`")]
    Character,
    /// What follows `{` or `}` is nothing, or no identifier.
    #[error("a pipe is named <name>{{<id> or <name>}}<id>, the id of letters, digits and `_`")]
    Pipe,
    /// No number after `-`, or a number that is too large.
    #[error("a ring number goes after the `-`")]
    Ring,
    /// No number after `~`, or a number that is too large.
    #[error("the number of a receive queue goes after the `~`")]
    Queue,
    /// Too large a number after `^`.
    #[error("no such host ring")]
    HostRing,
    /// Nothing after `/`, or an unknown letter.
    #[error("the flags after `/` are x, z, t, r, R and T")]
    Flag,
    /// Nothing after `@`, or a number that is no region's.
    #[error("the id of a region goes after the `@`")]
    Region,
    /// Two regions for one port.
    #[error("the port is in another region already")]
    OtherRegion,
    /// Something else after the ring.
    #[error("only `/flags` and `@region` may follow the ring")]
    Mode,
    /// A list of options that does not begin with `@`.
    #[error("an option begins with `@`")]
    List,
    /// An option without a name.
    #[error("the name of an option goes after the `@`")]
    Option,
    /// `NAME:` without a key, or a comma that none follows.
    #[error("after `:` go keys, as in @conf:rings=2,slots=512")]
    Key,
}
