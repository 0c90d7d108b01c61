//! What a runtime says in the environment.

use std::{env, fs::File, os::fd::OwnedFd, path::PathBuf};

use crate::{
    error::{Error, Kind},
    mac::Mac,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Version,
}

impl Command {
    pub const ALL: [Command; 6] = [
        Command::Add,
        Command::Del,
        Command::Check,
        Command::Gc,
        Command::Status,
        Command::Version,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Command::Add => "ADD",
            Command::Del => "DEL",
            Command::Check => "CHECK",
            Command::Gc => "GC",
            Command::Status => "STATUS",
            Command::Version => "VERSION",
        }
    }
}

/// The variables, as they are: which of them a command needs is its own affair.
#[derive(Debug, Default)]
pub struct Call {
    pub container: Option<String>,
    pub netns: Option<PathBuf>,
    pub interface: Option<String>,
    args: Option<String>,
    pub path: Vec<PathBuf>,
}

impl Call {
    /// The command, and the rest. `None`: it is no runtime that calls.
    pub fn read() -> Option<(Result<Command, Error>, Call)> {
        let text = |name: &str| {
            let value = env::var_os(name)?.to_string_lossy().into_owned();
            (!value.is_empty()).then_some(value)
        };
        let command = text("CNI_COMMAND")?;
        let known = Command::ALL.into_iter().find(|known| known.name() == command);
        let known = known.ok_or_else(|| {
            let names = Command::ALL.map(Command::name).join(", ");
            Error::new(
                Kind::Environment,
                format!("CNI_COMMAND: {command:?} is not known"),
                format!("it is one of {names}"),
            )
        });
        let call = Call {
            container: text("CNI_CONTAINERID"),
            netns: text("CNI_NETNS").map(PathBuf::from),
            interface: text("CNI_IFNAME"),
            args: text("CNI_ARGS"),
            path: text("CNI_PATH")
                .map(|path| env::split_paths(&path).collect())
                .unwrap_or_default(),
        };
        Some((known, call))
    }

    /// The container's network namespace, and its path.
    pub fn open_netns(&self) -> Result<(OwnedFd, String), Error> {
        let path = self.netns.as_ref().ok_or_else(|| missing("CNI_NETNS"))?;
        let shown = path.display().to_string();
        let netns = File::open(path).map_err(|e| {
            Error::new(
                Kind::Environment,
                format!("CNI_NETNS: {shown}: {e}"),
                "does the container run?",
            )
        })?;
        Ok((netns.into(), shown))
    }

    /// The interface's address among the arguments; the others are for the IPAM plugin, or other plugins.
    pub fn mac(&self) -> Result<Option<Mac>, Error> {
        let pairs = self.args.iter().flat_map(|args| args.split(';'));
        let mac = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == "MAC");
        let wrong = |e| Error::new(Kind::Environment, format!("CNI_ARGS: MAC: {e}"), "");
        mac.map(|(_, mac)| mac.parse().map_err(wrong)).transpose()
    }
}

/// A variable is missing.
pub fn missing(name: &str) -> Error {
    Error::new(Kind::Environment, format!("{name} is not set"), "runtimes set it for this command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_of_the_arguments() {
        let of = |args: &str| Call { args: Some(args.into()), ..Call::default() }.mac();
        assert_eq!(of("IgnoreUnknown=1;MAC=02:00:00:00:00:01"), Ok(Some(Mac([2, 0, 0, 0, 0, 1]))));
        assert_eq!(of("IP=10.0.0.1"), Ok(None));
        assert_eq!(of("MAC=x").unwrap_err().code(), 4);
        assert_eq!(Call::default().mac(), Ok(None));
        assert_eq!(Call::default().open_netns().unwrap_err().code(), 4);
    }
}
