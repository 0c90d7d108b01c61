//! Command lines that cannot be read: what is said of them beside what clap says.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Commands, what users of other programs write there, and what there is in its place.
const INSTEAD: [(&[&str], &[&str], &str); 7] = [
    (
        &["capture", "gen", "ping", "recv", "replay"],
        &["-c"],
        "'-n' or '--count' ends after so many",
    ),
    (
        &["bridge", "capture", "gen", "lb", "ping", "pong", "shape"],
        &["-i", "--interface"],
        "a port stands by itself: vale0:a, or netmap:eth0 for an interface",
    ),
    (&["capture"], &["-r"], "'ringway recv file:x.pcap --print' prints a file"),
    (&["ping"], &["--interval"], "'--rate 10pps' sends ten a second"),
    (&["switch port"], &["--vlan"], "'--access 10' or '--trunk 10,20' puts the port into VLANs"),
    (&["shape"], &["--rate"], "'--bandwidth 10Mbps' limits the rate"),
    (&["shape"], &["--limit"], "'--queue 64kB' limits what waits for the bandwidth"),
];

/// Takes out the tip to write `-- -x`: no port and no file begins so. Says what there is in place of what other
/// programs have.
pub fn improve(error: &mut Error, cli: &Command, args: impl IntoIterator<Item = String>) {
    if error.kind() == ErrorKind::InvalidUtf8 {
        let tip = "names are UTF-8; call a file that has another name by a link to it (ln -s)";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return;
    }
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidArg).cloned() else {
        return;
    };
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().contains(" as a value, use "));
    let command = command(cli, args);
    let option = written.split('=').next().unwrap_or(&written);
    let instead = INSTEAD
        .iter()
        .find(|(commands, options, _)| commands.contains(&&*command) && options.contains(&option));
    if let Some((_, _, instead)) = instead {
        error.remove(ContextKind::SuggestedArg);
        tips.push(StyledStr::from(*instead));
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// The subcommand that a command line names: `switch port`.
fn command(cli: &Command, args: impl IntoIterator<Item = String>) -> String {
    let (mut at, mut names) = (cli, Vec::new());
    for arg in args {
        if let Some(found) = at.find_subcommand(&arg) {
            names.push(found.get_name());
            at = found;
        }
    }
    names.join(" ")
}

/// The tips in what clap says, as one sentence.
pub fn tips(said: &str) -> Option<String> {
    let tips = said.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
    let tips: Vec<_> = tips.collect();
    (!tips.is_empty()).then(|| tips.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn said(args: &[&str]) -> String {
        let mut cli = crate::Cli::command();
        let words = std::iter::once("ringway").chain(args.iter().copied());
        let mut error = cli.try_get_matches_from_mut(words.map(String::from)).unwrap_err();
        improve(&mut error, &cli, args.iter().map(|arg| arg.to_string()));
        error.render().to_string()
    }

    #[test]
    fn what_other_programs_have_is_answered_with_what_there_is() {
        for (args, tip) in [
            (&["capture", "vale0:a", "-c", "1", "--print"][..], Some("'--count' ends after")),
            (&["recv", "vale0:a", "-c", "1"], Some("'--count' ends after")),
            (&["capture", "-i", "eth0", "--print"], Some("netmap:eth0 for an interface")),
            (&["capture", "-r", "x.pcap", "--print"], Some("'ringway recv file:x.pcap --print'")),
            (&["ping", "vale0:a", "--interval", "1s"], Some("'--rate 10pps'")),
            (&["switch", "port", "vale0:a", "--vlan", "10"], Some("'--access 10'")),
            (&["shape", "vale0:a", "vale1:a", "--rate", "1Mbps"], Some("'--bandwidth 10Mbps'")),
            (&["shape", "vale0:a", "vale1:a", "--rate=1Mbps"], Some("'--bandwidth 10Mbps'")),
            // What clap finds by itself stays.
            (&["gen", "vale0:a", "--cuont", "1"], Some("a similar argument exists: '--count'")),
            (&["recv", "vale0:a", "--duration", "-5s"], None),
            (&["bridge", "vale0:a", "-c", "1"], None),
        ] {
            let said = said(args);
            assert!(!said.contains("as a value"), "{args:?}: {said}");
            assert_eq!(
                said.matches("tip:").count(),
                usize::from(tip.is_some()),
                "{args:?}: {said}"
            );
            let shown = tips(&said);
            match tip {
                Some(tip) => assert!(shown.unwrap().contains(tip), "{args:?}: {said}"),
                None => assert_eq!(shown, None),
            }
        }
    }

    /// None of them is there by now.
    #[test]
    fn what_there_is_in_its_place_is_not_there_itself() {
        let cli = crate::Cli::command();
        for (commands, options, _) in INSTEAD {
            for name in commands {
                let find = |at: &Command, name: &str| at.find_subcommand(name).cloned();
                let found = name.split(' ').try_fold(cli.clone(), |at, name| find(&at, name));
                let found = found.unwrap_or_else(|| panic!("no command {name}"));
                let has = |option: &str| {
                    found.get_arguments().any(|arg| {
                        let long = arg.get_long().map(|long| format!("--{long}"));
                        let short = arg.get_short().map(|short| format!("-{short}"));
                        [long, short].contains(&Some(option.to_owned()))
                    })
                };
                assert!(!options.iter().any(|option| has(option)), "{name}: {options:?}");
            }
        }
    }
}
