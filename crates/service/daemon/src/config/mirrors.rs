//! `[[switch.mirror]]`: copies of what ports of a switch send and receive, for another of its ports.

use std::collections::BTreeSet;

use ringway_proto::MirrorDirection;
use ringway_registry::{DeclaredPort, LastingMirror};
use serde::Deserialize;
use toml::Spanned;

use super::text::FilterText;

/// A mirror of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Mirror {
    /// What it is called: letters, digits and -_.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = "^[A-Za-z0-9_.-]+$")))]
    pub name: Spanned<String>,
    /// The ports that it shows: a list, or "all".
    from: Shown,
    /// The port that gets the copies, and nothing else.
    to: String,
    /// The user whose that port is. Without it: as a `[[switch.port]]` says, or root.
    user: Option<String>,
    /// What of the ports it shows: "sent", "received" or "both".
    #[serde(default)]
    direction: Direction,
    /// Which frames it shows.
    filter: Option<FilterText>,
    /// The file and the line.
    #[serde(skip)]
    pub place: String,
}

/// `"all"`, or a list of ports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "write \"all\", or a list of ports")]
enum Shown {
    All(All),
    Ports(#[cfg_attr(test, schemars(length(min = 1)))] Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum All {
    All,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Direction {
    /// What they send into the switch.
    Sent,
    /// What they receive from it.
    Received,
    /// Both.
    #[default]
    Both,
}

impl Mirror {
    /// The same for the registry, of a switch with these ports. `uid`: the number of a user.
    pub fn declared(
        &self,
        switch: &str,
        uid: impl Fn(&str) -> Result<u32, String>,
        ports: &[DeclaredPort],
    ) -> Result<LastingMirror, String> {
        let full = |port: &String| match port.contains(':') {
            true => port.clone(),
            false => format!("{switch}:{port}"),
        };
        let to = full(&self.to);
        // What is declared for any user is nobody's.
        let is_someones = |port: &DeclaredPort| {
            port.for_user_alone || port.interface.is_some() || port.settings.name.ends_with('^')
        };
        let its = ports.iter().find(|port| port.settings.name == to && is_someones(port));
        let to_uid = match &self.user {
            Some(user) => uid(user)?,
            None => its.map_or(0, |port| port.settings.uid),
        };
        if let Some(port) = its.filter(|port| port.settings.uid != to_uid) {
            return Err(format!(
                "{to} is user {}'s there, and the mirror {} is for user {to_uid}",
                port.settings.uid,
                self.name.get_ref()
            ));
        }
        let from = match &self.from {
            Shown::All(All::All) => None,
            Shown::Ports(ports) => {
                let ports: BTreeSet<_> = ports.iter().map(full).collect();
                Some(ports.into_iter().collect())
            }
        };
        Ok(LastingMirror {
            name: self.name.get_ref().clone(),
            uid: 0,
            from,
            direction: match self.direction {
                Direction::Sent => MirrorDirection::Sent,
                Direction::Received => MirrorDirection::Received,
                Direction::Both => MirrorDirection::Both,
            },
            to,
            to_uid,
            filter: self.filter.as_ref().map(FilterText::filter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn declared(mirror: &str) -> Result<Vec<LastingMirror>, String> {
        let text = format!(
            "[[switch]]\nname = 'vale0'\n[[switch.port]]\nname = 'ids'\nuser = '7'\n{mirror}"
        );
        let config = Config::take_in("x.toml", &text, "").map_err(|error| error.to_string())?;
        let mut switches = config.declared().map_err(|error| error.to_string())?;
        Ok(switches.remove(0).mirrors)
    }

    #[test]
    fn a_mirror_is_as_requests_have_it() {
        let text = "[[switch.mirror]]\nname = 'm'\nfrom = ['b', 'vale0:a', 'b']\nto = 'ids'\n\
                    [[switch.mirror]]\nname = 'n'\nfrom = 'all'\nto = 'x'\ndirection = 'sent'\n\
                    filter = { expression = 'ip', bytecode = '1,6 0 0 1' }\n";
        let both = format!(
            "{text}[[switch.port]]\nname = 'any'\n[[switch.mirror]]\nname = 'o'\nfrom = ['a']\n\
             to = 'any'\nuser = '9'\n[[switch.mirror]]\nname = 'p'\nfrom = ['a']\nto = 'any'\n"
        );
        let [m, n, o, p] = &declared(&both).unwrap()[..] else { panic!("four") };
        let from = ["vale0:a", "vale0:b"].map(String::from).to_vec();
        let expected = LastingMirror {
            name: "m".into(),
            uid: 0,
            from: Some(from),
            direction: MirrorDirection::Both,
            to: "vale0:ids".into(),
            to_uid: 7,
            filter: None,
        };
        assert_eq!(*m, expected);
        assert_eq!((&n.from, &n.to[..], n.to_uid), (&None, "vale0:x", 0));
        // A port that any user may open is nobody's.
        assert_eq!(
            [o, p].map(|mirror| (&mirror.to[..], mirror.to_uid)),
            [("vale0:any", 9), ("vale0:any", 0)]
        );
        assert_eq!(n.direction, MirrorDirection::Sent);
        assert_eq!(n.filter.as_ref().unwrap().text, "ip");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let mirror = |keys: &str| format!("[[switch.mirror]]\n{keys}\n");
        let good = "name = 'm'\nfrom = ['a']\nto = 'b'\n";
        for (text, word) in [
            (mirror("name = 'm'\nto = 'b'"), "from"),
            (mirror("name = 'm'\nfrom = []\nto = 'b'"), "no ports"),
            (mirror("name = 'm'\nfrom = 'some'\nto = 'b'"), "\"all\", or a list"),
            (mirror("name = 'm'\nfrom = ['b']\nto = 'b'"), "copies of its own"),
            (mirror("name = 'm'\nfrom = ['vale1:a']\nto = 'b'"), "no port of it"),
            (mirror("name = 'm'\nfrom = ['a']\nto = 'vale1:b'"), "no port of it"),
            (mirror("name = 'm m'\nfrom = ['a']\nto = 'b'"), "no mirror can be called"),
            (
                mirror(&format!("{good}direction = 'out'")),
                "expected one of `sent`, `received`, `both`",
            ),
            (mirror("name = 'm'\nfrom = ['a']\nto = 'ids'\nuser = '8'"), "user 7's"),
            (mirror(good) + &mirror(good), "stands there twice"),
            (
                mirror(&format!("{good}filter = {{ expression = '', bytecode = '1,9 9 9 9' }}")),
                "vale0",
            ),
        ] {
            let said = declared(&text).unwrap_err();
            // Not that of the switch, or of its port.
            let line = said.strip_prefix("x.toml: line ").and_then(|rest| rest.split_once(':'));
            let line: usize = line.expect("it has a line").0.parse().unwrap();
            assert!(line > 5 && said.contains(word), "{text}\n{said}");
        }
        assert!(declared(&mirror(good)).is_ok());
    }
}
