//! Which of the configuration's interfaces a program takes: the list of its option `-i`.
//!
//! The names are those of the SDK: Frame Managers are counted from 1, `gb` and `10g` have the configuration's numbers (`10g`
//! alone is 0), and MACs are counted from 1: 1 to 8 are 1 Gbit/s, 9 and 10 are 10 Gbit/s.

use crate::ports::{MacType, Place};

/// The places of a list that commas separate.
///
/// # Errors
/// A line for the user.
pub fn parse(list: &str) -> Result<Vec<Place>, String> {
    list.split(',').map(place).collect()
}

fn place(name: &str) -> Result<Place, String> {
    let found = || {
        let (fman, mac) = name.strip_prefix("fm")?.split_once('-')?;
        let fman = fman.parse::<u8>().ok()?.checked_sub(1)?;
        let (mac_type, number) = if let Some(number) = mac.strip_prefix("gb") {
            (MacType::OneGigabit, number.parse().ok()?)
        } else if let Some(number) = mac.strip_prefix("10g") {
            (MacType::TenGigabit, if number.is_empty() { 0 } else { number.parse().ok()? })
        } else {
            match mac.strip_prefix("mac")?.parse::<u8>().ok()? {
                mac @ 1..=8 => (MacType::OneGigabit, mac - 1),
                mac @ 9..=10 => (MacType::TenGigabit, mac - 9),
                _ => return None,
            }
        };
        Some(Place { fman, mac_type, number })
    };
    found().ok_or_else(|| {
        format!("{name:?} is no interface of a Frame Manager: write fm1-gb0, fm1-10g or fm2-mac9")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_sdk() {
        let names = |list| {
            parse(list).map(|places| places.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            names("fm1-gb0,fm2-gb4,fm1-10g,fm2-10g1").unwrap(),
            ["fm0-1g0", "fm1-1g4", "fm0-10g0", "fm1-10g1"]
        );
        assert_eq!(
            names("fm1-mac1,fm1-mac8,fm2-mac9,fm1-mac10").unwrap(),
            ["fm0-1g0", "fm0-1g7", "fm1-10g0", "fm0-10g1"]
        );
    }

    #[test]
    fn what_is_no_name() {
        for list in [
            "",
            "fm0-gb0",
            "fm1",
            "fm1-",
            "fm1-gb",
            "fm1-mac0",
            "fm1-mac11",
            "fm1-gb0,",
            "fm1-gb999",
        ] {
            assert!(parse(list).is_err(), "{list}");
        }
        assert!(parse("veth0:[02-00-00-00-00-01]").is_err(), "there is none without a MAC");
    }
}
