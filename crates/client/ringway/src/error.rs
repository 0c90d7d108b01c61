//! What can go wrong, in sentences that say what to do.

use ringway_proto::Cause;

use std::{fmt, io};

/// An error of the client. The texts name the port, the cause and the remedy. It is shown in the same
/// way by `{:?}`, since that is what a `main` that returns it prints.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{Cause, Error};
///
/// fn open(name: &str) -> Result<ringway::Port, Error> {
///     Port::open(name).inspect_err(|error| match (error.cause(), error.refusal()) {
///         (Cause::Invalid, _) => eprintln!("{:?} is no name of a port", error.port()),
///         (_, Some(refusal)) => eprintln!("refused: {}; {}", refusal.problem, refusal.remedy),
///         _ => eprintln!("{error}"),
///     })
/// }
///
/// assert!(open("vale0:a").is_ok() && open("vale0").is_err());
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Error {
    /// A name that is no port's.
    #[error("{name}: {problem}")]
    Name { name: String, problem: String },
    /// The daemon refused, or is not to be had.
    #[error(transparent)]
    Daemon(#[from] ringway_ipc::Error),
    /// A registry that is no daemon's refused.
    #[error(transparent)]
    Registry(#[from] ringway_proto::Error),
    /// What the daemon granted cannot be used here.
    #[error(
        "{name}: cannot map the port: {problem}; start the program again with the library of this ringwayd"
    )]
    Grant { name: String, problem: String },
    /// The process may not have as much memory as the port has, or as many mappings.
    #[error(
        "{name}: cannot map the port's memory: {source}; raise the program's limit (ulimit -v, RLIMIT_AS; \
         vm.max_map_count for thousands of mappings), or open fewer ports"
    )]
    Memory { name: String, source: io::Error },
    /// The daemon that serves the port has gone.
    #[error("{name}: ringwayd has ended; open the port again")]
    Gone { name: String },
    /// The network interface was deleted, or moved to another network namespace.
    #[error("{name}: the network interface has gone; open the port again when it is back")]
    NoInterface { name: String },
    /// A filter that does not compile.
    #[error(transparent)]
    Filter(#[from] ringway_filter::Error),
    /// An object file that has no action program to be used.
    #[error("{file}: {problem}")]
    Action { file: String, problem: String },
    /// A capture file has been read to its end. `cut`: where the last block begins, if the file ends in
    /// the middle of it. `skipped`: frames of other link types, which were left out, and the first
    /// of these types.
    #[error("{name}: this is the end of the file")]
    End { name: String, cut: Option<u64>, skipped: (u64, i32) },
    /// Something is wrong with a capture file.
    #[cfg(feature = "files")]
    #[error(transparent)]
    File(Box<ringway_file::Error>),
    /// A monitor has nothing to wait for.
    #[error("{name}: {problem}")]
    Monitor { name: String, problem: &'static str },
    /// The system refused something else.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

#[cfg(feature = "files")]
impl From<ringway_file::Error> for Error {
    fn from(error: ringway_file::Error) -> Error {
        Error::File(Box::new(error))
    }
}

impl Error {
    /// Whether a wait or a check says that the port's daemon has ended, or that the program has
    /// [shut](crate::Port::shut) the port. It can be [opened again](crate::Port::reopening).
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// port.shut();
    /// assert!(port.check(ringway::Interest::Rx).unwrap_err().is_gone());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        match self {
            Error::Gone { .. } => true,
            Error::Registry(error) => error.cause == Cause::Gone,
            _ => false,
        }
    }

    /// Of which kind it is.
    pub fn cause(&self) -> Cause {
        match self {
            Error::Name { .. } | Error::Filter(_) | Error::Action { .. } => Cause::Invalid,
            Error::Daemon(error) => error.cause(),
            Error::Registry(error) => error.cause,
            Error::Grant { .. } => Cause::Version,
            Error::Memory { .. } => Cause::NoRoom,
            Error::Gone { .. } | Error::NoInterface { .. } | Error::Monitor { .. } => Cause::Gone,
            Error::End { .. } => Cause::Gone,
            #[cfg(feature = "files")]
            Error::File(error) => error.io().map_or(Cause::Invalid, Cause::of),
            Error::System { source, .. } => Cause::of(source),
        }
    }

    /// What a daemon or a registry said, if one has refused.
    pub fn refusal(&self) -> Option<&ringway_proto::Error> {
        match self {
            Error::Daemon(error) => error.refusal(),
            Error::Registry(error) => Some(error),
            _ => None,
        }
    }

    /// The port that it is about, where that is known; texts begin with it.
    pub fn port(&self) -> Option<&str> {
        match self {
            Error::Name { name, .. }
            | Error::Grant { name, .. }
            | Error::Memory { name, .. }
            | Error::Gone { name }
            | Error::NoInterface { name }
            | Error::End { name, .. }
            | Error::Monitor { name, .. } => Some(name),
            _ => self.refusal().map(|refusal| &*refusal.port).filter(|port| !port.is_empty()),
        }
    }

    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |e| Error::System { what, source: e.into() }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_fails_says_the_sentence() {
        let error = Error::Gone { name: "vale0:a".into() };
        assert_eq!(format!("{error:?}"), "vale0:a: ringwayd has ended; open the port again");
    }
}
