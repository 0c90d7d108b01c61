//! The options of `lb`.

use crate::tools::getopt::{Arg, Getopt, count, seconds};
use crate::tools::portname::with_prefix;
use std::time::Duration;

pub const USAGE: &str = "\
usage: lb [options]
where options are:
  -h              view help text
  -i iface        interface name (required)
  -p [prefix:]npipes  add a group of npipes output pipes
  -B nbufs        number of extra buffers (default: 0)
  -b batch        batch size (default: 2048)
  -w seconds      wait for link up (default: 2)
  -W              enable busy waiting
  -s seconds      seconds between syslog stats messages (default: 0)
  -o seconds      seconds between stdout stats messages (default: 0)";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "hi:p:b:B:s:o:w:W";

/// The longest name of an input port.
const LONGEST: usize = 56;

#[derive(Debug)]
pub struct Options {
    /// With its subsystem.
    pub input: String,
    pub groups: Vec<Group>,
    pub extra: u32,
    pub batch: u32,
    pub link_wait: Duration,
    pub busy: bool,
    pub syslog: Option<Duration>,
    pub stdout: Option<Duration>,
}

/// Pipes among which the packets are shared out.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The name that the pipes' names begin with; `None` for the input's.
    pub base: Option<String>,
    pub pipes: u32,
}

/// What comes of the arguments.
pub enum Parsed {
    Run(Options),
    Help,
    Wrong(String),
}

pub fn parse(args: Vec<String>) -> Parsed {
    let mut options = Options {
        input: String::new(),
        groups: Vec::new(),
        extra: 0,
        batch: 2048,
        link_wait: Duration::from_secs(2),
        busy: false,
        syslog: None,
        stdout: None,
    };
    for arg in Getopt::new(LETTERS, args) {
        let (option, value) = match arg {
            Ok(Arg::Opt(option, value)) => (option, value),
            Ok(Arg::Operand(operand)) => return Parsed::Wrong(format!("what is `{operand}`?")),
            Err(wrong) => return Parsed::Wrong(format!("lb: {wrong}")),
        };
        match option {
            'i' if value.len() > LONGEST => {
                return Parsed::Wrong(format!("ifname too long {value}: at most {LONGEST}"));
            }
            'i' => options.input = with_prefix(&value),
            'p' => match group(&value) {
                Some(group) => options.groups.push(group),
                None => return Parsed::Wrong(format!("invalid number of pipes: {value}")),
            },
            'B' => options.extra = count(&value) as u32,
            'b' => options.batch = (count(&value) as u32).max(1),
            'w' => options.link_wait = seconds(&value),
            'W' => options.busy = true,
            's' => options.syslog = interval(&value),
            'o' => options.stdout = interval(&value),
            _ => return Parsed::Help,
        }
    }
    if options.input.is_empty() {
        return Parsed::Wrong("missing interface name".into());
    }
    if options.groups.is_empty() {
        options.groups.push(Group { base: None, pipes: 2 });
    }
    Parsed::Run(options)
}

fn group(text: &str) -> Option<Group> {
    // A name may have a colon of its own: `netmap:eth0:3`, `vale0:a:3`.
    let (base, pipes) = match text.rsplit_once(':') {
        Some((base, pipes)) => (Some(base).filter(|base| !base.is_empty()), pipes),
        None => (None, text),
    };
    let pipes = if pipes.is_empty() { 2 } else { count(pipes) as u32 };
    (pipes > 0).then(|| Group { base: base.map(with_prefix), pipes })
}

fn interval(text: &str) -> Option<Duration> {
    Some(seconds(text)).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups() {
        let group = |text| group(text).map(|group| (group.base, group.pipes));
        assert_eq!(group("4"), Some((None, 4)));
        assert_eq!(group(""), Some((None, 2)));
        assert_eq!(group("x:3"), Some((Some("netmap:x".into()), 3)));
        assert_eq!(group("x:"), Some((Some("netmap:x".into()), 2)));
        assert_eq!(group("vale0:a:3"), Some((Some("vale0:a".into()), 3)));
        assert_eq!(group("0"), None);
    }

    #[test]
    fn defaults() {
        let Parsed::Run(options) = parse(vec!["-i".into(), "eth0".into()]) else { panic!() };
        assert_eq!(options.input, "netmap:eth0");
        assert_eq!(options.groups, [Group { base: None, pipes: 2 }]);
        assert_eq!((options.batch, options.extra), (2048, 0));
        assert!(options.stdout.is_none() && options.syslog.is_none() && !options.busy);
        let long = vec!["-i".into(), "x".repeat(57)];
        assert!(matches!(parse(long), Parsed::Wrong(_)));
        assert!(matches!(parse(vec!["-h".into()]), Parsed::Help));
        assert!(matches!(parse(vec![]), Parsed::Wrong(_)));
    }
}
