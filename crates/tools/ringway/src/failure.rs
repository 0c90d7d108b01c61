//! Why a command failed, for machines: `ringway --json` prints it on standard error.

use crate::error::Error;
use crate::usage;
use ringway::Cause;
use serde::Serialize;
use std::fmt;

/// Why a command has failed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "error")]
pub struct Failure {
    /// Of which kind it is, one of a fixed set.
    pub cause: &'static str,
    /// The number of the operating system's error, where one is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The port, interface or switch that it is about; empty if that is not known apart.
    pub port: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it; empty if that is plain.
    pub remedy: String,
    /// The sentence for people.
    pub text: String,
}

impl Failure {
    pub fn of(error: &Error) -> Failure {
        let (cause, errno) = match error {
            Error::Ringway(error) => by_cause(error.cause()),
            Error::Value(_) => ("invalid", None),
            Error::NoPort { .. } => by_cause(Cause::NoPort),
            Error::File(error) => match (&**error, error.io()) {
                (ringway_file::Error::Exists { .. }, _) => ("exists", None),
                (ringway_file::Error::InUse { .. }, _) => ("busy", None),
                (ringway_file::Error::Deleted { .. }, _) => ("not_found", None),
                (_, Some(error)) => ("system", error.raw_os_error()),
                (_, None) => ("invalid", None),
            },
            Error::NoPreload { .. } => ("not_found", None),
            Error::Unloadable { .. } | Error::Static { .. } | Error::MoreRights { .. } => {
                ("unsupported", None)
            }
            Error::Exec { source, .. } | Error::System { source, .. } => {
                ("system", source.raw_os_error())
            }
            Error::Left { .. } => ("not_taken", None),
            Error::TooFew { .. } => ("too_few", None),
            Error::Unverified { .. } => ("unverified", None),
            Error::NoAnswer { .. } => ("no_answer", None),
            Error::NotArrived { .. } => ("not_arrived", None),
            Error::InUse { .. } => ("busy", None),
            Error::NoRights { .. } => ("denied", None),
            Error::Unread => ("unread", None),
            Error::Unusable(_) => ("unusable", None),
        };
        let text = error.to_string();
        if let Error::Ringway(error) = error
            && let Some(refusal) = error.refusal()
        {
            let (port, remedy) = (refusal.port.clone(), refusal.remedy.clone());
            let tail = refusal.without_port().to_string();
            let problem = tail.strip_suffix(&format!("; {remedy}")).unwrap_or(&tail).to_string();
            return Failure { cause, errno, port, problem, remedy, text };
        }
        let port = port_of(error).unwrap_or_default().to_string();
        let tail = text.strip_prefix(&port).and_then(|tail| tail.strip_prefix(": "));
        let tail = tail.unwrap_or(&text);
        let (problem, remedy) = tail.split_once("; ").unwrap_or((tail, ""));
        let [problem, remedy] = [problem, remedy].map(str::to_string);
        Failure { cause, errno, port, problem, remedy, text }
    }

    /// A command line that cannot be understood: what clap says of it.
    pub fn of_usage(said: &str) -> Failure {
        let first = said.split("\n\n").next().unwrap_or_default();
        let words: Vec<_> = first.split_whitespace().collect();
        let problem = words.join(" ");
        let problem = problem.strip_prefix("error: ").unwrap_or(&problem).to_string();
        let remedy = usage::tips(said).unwrap_or_else(|| "--help shows how to write it".into());
        let text = format!("{problem}; {remedy}");
        Failure { cause: "usage", errno: None, port: String::new(), problem, remedy, text }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The name that the text of an error begins with.
fn port_of(error: &Error) -> Option<&str> {
    match error {
        Error::Ringway(error) => error.port(),
        Error::NoPort { port, .. }
        | Error::Left { port, .. }
        | Error::TooFew { port, .. }
        | Error::Unverified { port, .. }
        | Error::NoAnswer { port, .. } => Some(port),
        Error::InUse { interface, .. }
        | Error::NoRights { interface, .. }
        | Error::NotArrived { interface, .. } => Some(interface),
        _ => None,
    }
}

fn by_cause(cause: Cause) -> (&'static str, Option<i32>) {
    let name = match cause {
        Cause::Invalid => "invalid",
        Cause::Busy => "busy",
        Cause::NoRoom => "no_room",
        Cause::NoPort => "no_port",
        Cause::NotFound => "not_found",
        Cause::NoDevice => "no_device",
        Cause::Exists => "exists",
        Cause::Unsupported => "unsupported",
        Cause::Denied => "denied",
        Cause::HeadersNotAccepted => "headers_not_accepted",
        Cause::Closed => "closed",
        Cause::AlreadySo => "already_so",
        Cause::BadMemory => "bad_memory",
        Cause::TooManyDescriptors => "too_many_descriptors",
        Cause::TooLong => "too_long",
        Cause::Unreachable => "unreachable",
        Cause::Untrusted => "untrusted",
        Cause::Gone => "gone",
        Cause::Version => "version",
        Cause::System(errno) => return ("system", Some(errno)),
    };
    (name, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_taken_apart() {
        let gone = ringway::Error::Gone { name: "vale0:a".into() };
        let failure = Failure::of(&gone.into());
        assert_eq!((failure.cause, &failure.port[..]), ("gone", "vale0:a"));
        assert_eq!(
            (&failure.problem[..], &failure.remedy[..]),
            ("ringwayd has ended", "open the port again")
        );
        assert_eq!(failure.text, "vale0:a: ringwayd has ended; open the port again");
        let value = Failure::of(&Error::Value("--files counts files".into()));
        assert_eq!(
            (&value.port[..], &value.problem[..], &value.remedy[..]),
            ("", "--files counts files", "")
        );
    }

    #[test]
    fn usage_is_one_sentence() {
        let said =
            "error: the following required arguments were not provided:\n  <PORT>\n\nUsage: x\n";
        let failure = Failure::of_usage(said);
        let problem = "the following required arguments were not provided: <PORT>";
        assert_eq!((failure.cause, &failure.problem[..]), ("usage", problem));
    }
}
