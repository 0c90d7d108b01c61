//! Ethernet addresses, as texts.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Mac, String> {
        let wrong = || format!("{text:?} is no Ethernet address of one interface");
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(wrong)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        // A group's address is no interface's, and neither is none at all.
        let is_good = parts.next().is_none() && bytes[0] & 1 == 0 && bytes != [0; 6];
        is_good.then_some(Mac(bytes)).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Mac, String> {
        text.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> String {
        mac.to_string()
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ringway::mac_text(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        let mac: Mac = "02:00:00:00:0a:FF".parse().unwrap();
        assert_eq!(mac, Mac([2, 0, 0, 0, 10, 255]));
        assert_eq!(mac.to_string(), "02:00:00:00:0a:ff");
        assert_eq!("02-00-00-00-0a-ff".parse(), Ok(mac));
        for bad in
            ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "03:00:00:00:00:00", "2:0:0:0:0:1"]
        {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
        assert!("00:00:00:00:00:00".parse::<Mac>().is_err());
        assert!("02:00:00:00:00:+1".parse::<Mac>().is_err());
    }
}
