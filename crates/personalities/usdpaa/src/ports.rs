//! Which interface of the Frame Manager is which port of Ringway's: the configuration in the place of a device tree.
//!
//! ```text
//!   fm0-10g0 = vale0:a      # the 10 Gbit/s interface 0 of the first Frame Manager
//!   fm1-1g2 = netmap:eth1
//! ```
//!
//! These words come from the environment variable `RINGWAY_USDPAA_PORTS`, without blanks around the equals sign;
//! else from the file that `RINGWAY_USDPAA_CONFIG` names; else from `/etc/ringway/usdpaa.conf`.

use std::{ffi::OsString, fmt, fs, path, str::FromStr};

pub const PORTS: &str = "RINGWAY_USDPAA_PORTS";
pub const CONFIG: &str = "RINGWAY_USDPAA_CONFIG";
pub const DEFAULT_CONFIG: &str = "/etc/ringway/usdpaa.conf";

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MacType {
    /// Without a wire: what it transmits it receives.
    Offline = 0,
    OneGigabit = 1,
    TenGigabit = 2,
}

/// An interface's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub fman: u8,
    pub mac_type: MacType,
    pub number: u8,
}

/// An interface, and the port that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub place: Place,
    pub port: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.mac_type {
            MacType::Offline => "offline",
            MacType::OneGigabit => "1g",
            MacType::TenGigabit => "10g",
        };
        write!(f, "fm{}-{kind}{}", self.fman, self.number)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let parts = || {
            let (fman, rest) = text.strip_prefix("fm")?.split_once('-')?;
            let fman = fman.parse().ok().filter(|fman| *fman < 10)?;
            let kinds = [
                ("10g", MacType::TenGigabit),
                ("1g", MacType::OneGigabit),
                ("offline", MacType::Offline),
            ];
            let named = |(word, mac_type)| {
                let number = rest.strip_prefix(word)?.parse().ok()?;
                Some(Place { fman, mac_type, number })
            };
            kinds.into_iter().find_map(named)
        };
        parts().ok_or_else(|| {
            format!("{text:?} is no interface: write fm0-10g0, fm1-1g2 or fm0-offline1")
        })
    }
}

/// The interfaces that `text` names, by place.
pub fn parse(text: &str, separated_by_blanks: bool) -> Result<Vec<Named>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words: Vec<&str> = match separated_by_blanks {
        true => lines.flat_map(str::split_whitespace).collect(),
        false => lines.map(str::trim).filter(|line| !line.is_empty()).collect(),
    };
    let mut found: Vec<Named> = Vec::new();
    for word in words {
        let (place, port) = word.split_once('=').ok_or_else(|| {
            let blanks = if separated_by_blanks { ", without blanks" } else { "" };
            format!("{word:?} names no port: write INTERFACE=PORT{blanks}, as in fm0-10g0=vale0:a")
        })?;
        let (place, port) = (Place::from_str(place.trim())?, port.trim());
        if port.is_empty() && place.mac_type != MacType::Offline {
            return Err(format!("{place} has no port: write {place}=vale0:a"));
        }
        if found.iter().any(|named| named.place == place) {
            return Err(format!("{place} is there twice"));
        }
        found.push(Named { place, port: port.into() });
    }
    found.sort_by_key(|named| named.place);
    Ok(found)
}

/// The interfaces of this process.
///
/// # Errors
/// A line for the user, with the remedy.
pub fn configured() -> Result<Vec<Named>, String> {
    let variable = ringway_environment::variable;
    configured_by(variable(PORTS), variable(CONFIG))
}

fn configured_by(text: Option<OsString>, file: Option<OsString>) -> Result<Vec<Named>, String> {
    let (from, found) = match (text, file) {
        (Some(text), _) => (PORTS.into(), parse(&text.to_string_lossy(), true)),
        (_, file) => {
            let file = file.unwrap_or_else(|| DEFAULT_CONFIG.into());
            // The user may not know which folder the program is in now.
            let whole = path::absolute(&file).unwrap_or_else(|_| file.clone().into());
            let from = whole.display().to_string();
            let text = fs::read_to_string(&file).map_err(|error| {
                format!(
                    "which ports are the interfaces? Set {PORTS}, as in {PORTS}='fm0-10g0=vale0:a', or write \
                     such lines into {from}: {error}"
                )
            })?;
            let found = parse(&text, false);
            (from, found)
        }
    };
    match found {
        Ok(found) if found.is_empty() => {
            Err(format!("{from} names no interface: write fm0-10g0=vale0:a"))
        }
        Ok(found) => Ok(found),
        Err(problem) => Err(format!("{from}: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::ffi::OsStringExt, process};

    use super::*;

    /// A file of any name is read, and a file that is missing is named with its folder.
    #[test]
    fn files_have_any_names() {
        let name = [b"interfaces-\xff", process::id().to_string().as_bytes()].concat();
        let file = env::current_exe().unwrap().with_file_name(OsString::from_vec(name));
        fs::write(&file, "fm0-10g0 = vale0:a\n").unwrap();
        let found = configured_by(None, Some(file.clone().into()));
        fs::remove_file(&file).unwrap();
        assert_eq!(found.map(|found| found.len()), Ok(1));
        let said = configured_by(None, Some("none/of.conf".into())).unwrap_err();
        let whole = env::current_dir().unwrap().join("none/of.conf");
        assert!(said.contains(&format!("{}: ", whole.display())), "{said}");
    }

    #[test]
    fn interfaces_are_sorted_by_place() {
        let found =
            parse("fm1-1g2=netmap:eth1 fm0-10g0=vale0:a@x=1,y fm0-offline1=", true).unwrap();
        let said: Vec<String> =
            found.iter().map(|named| format!("{} {}", named.place, named.port)).collect();
        assert_eq!(said, ["fm0-offline1 ", "fm0-10g0 vale0:a@x=1,y", "fm1-1g2 netmap:eth1"]);
        let lines = "# two\n fm1-1g2 = netmap:eth1 # a comment\n\nfm0-10g0 = vale0:a\n";
        assert_eq!(parse(lines, false).unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, problem) in [
            ("vale0:a", "names no port"),
            ("fm0-10g0 = vale0:a", "without blanks"),
            ("fm0-10g0=", "has no port"),
            ("fm0-100g0=x{1", "is no interface"),
            ("fm11-1g0=x{1", "is no interface"),
            ("eth0=x{1", "is no interface"),
            ("fm0-1g1=x{1 fm0-1g1=x{2", "is there twice"),
        ] {
            let said = parse(text, true).unwrap_err();
            assert!(said.contains(problem), "{text}: {said}");
        }
    }
}
