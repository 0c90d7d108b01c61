//! Versions of the CNI specification.

use crate::error::{Error, Kind};

/// In the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V0_3_0,
    V0_3_1,
    V0_4_0,
    V1_0_0,
    V1_1_0,
}

pub const ALL: [Version; 5] =
    [Version::V0_3_0, Version::V0_3_1, Version::V0_4_0, Version::V1_0_0, Version::V1_1_0];

impl Version {
    pub const NEWEST: Version = Version::V1_1_0;

    pub fn name(self) -> &'static str {
        match self {
            Version::V0_3_0 => "0.3.0",
            Version::V0_3_1 => "0.3.1",
            Version::V0_4_0 => "0.4.0",
            Version::V1_0_0 => "1.0.0",
            Version::V1_1_0 => "1.1.0",
        }
    }

    /// That of a configuration. One without has the first, which had no key for it.
    pub fn of(name: Option<&str>) -> Result<Version, Error> {
        let name = name.unwrap_or("0.1.0");
        ALL.into_iter().find(|version| version.name() == name).ok_or_else(|| {
            let known = ALL.map(Version::name).join(", ");
            let problem = format!("cniVersion: {name} is not known");
            Error::new(Kind::Version, problem, format!("choose one of {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_with_lists_of_plugins() {
        assert_eq!(Version::of(Some("1.0.0")), Ok(Version::V1_0_0));
        assert!(ALL.is_sorted() && ALL.last() == Some(&Version::NEWEST));
        for unknown in [None, Some("0.2.0"), Some("2.0.0"), Some("")] {
            assert_eq!(Version::of(unknown).unwrap_err().code(), 1);
        }
    }
}
