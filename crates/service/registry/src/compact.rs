//! Short forms of what is long in a file: the filters and the VLANs of a port. With them a bound of the bytes can be
//! told without writing them ([`filter_bytes`], [`vlan_bytes`]).

/// Bytes of a filter in the file, at most.
pub(crate) fn filter_bytes(text: &str, insns: usize) -> usize {
    // A control character takes six bytes in JSON.
    const NAMES: usize = 64;
    NAMES + 6 * text.len() + filter::DIGITS * insns
}

/// Bytes of VLANs in the file, at most; `allowed`: how many a trunk has.
pub(crate) fn vlan_bytes(allowed: usize) -> usize {
    // A range takes ten bytes, `1000-2000,`, and there are as many gaps as ranges.
    const NAMES: usize = 64;
    NAMES + 10 * allowed.min(4095_usize.saturating_sub(allowed))
}

/// Bytes of the settings of a port in the file, at most; `sources`: how many addresses it may send from.
pub(crate) fn port_bytes(allowed: usize, sources: usize, filters: usize) -> usize {
    const MAC: usize = 32;
    NUMBERS + vlan_bytes(allowed) + MAC * sources + filters
}

/// Bytes of a mirror in the file, at most; `from`: how many ports it names.
pub(crate) fn mirror_bytes(from: usize, filter: usize) -> usize {
    // A name of 63 printable characters, of which each may take two bytes in JSON.
    const NAME: usize = 130;
    NUMBERS + NAME * from + filter
}

/// Of the keys and the numbers of one port or mirror, and its name.
const NUMBERS: usize = 1200;

/// `#[serde(with)]` of a filter: a string of its instructions in hexadecimal. A list of them is read, too.
pub(crate) mod filter {
    use std::borrow::Cow;

    use ringway_filter::Insn;
    use ringway_proto::Filter;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    /// Hexadecimal digits of an instruction: of `code`, `jt`, `jf` and `k`.
    pub(super) const DIGITS: usize = 16;

    #[derive(Serialize, Deserialize)]
    struct Written<'a> {
        text: Cow<'a, str>,
        #[serde(default)]
        program: String,
        #[serde(default, skip_serializing)]
        insns: Vec<Insn>,
        one_in: u32,
    }

    pub fn serialize<S: Serializer>(filter: &Option<Filter>, to: S) -> Result<S::Ok, S::Error> {
        let written = filter.as_ref().map(|Filter { text, insns, one_in }| Written {
            text: text.into(),
            program: digits(insns),
            insns: Vec::new(),
            one_in: *one_in,
        });
        written.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Filter>, D::Error> {
        let filter = |Written { text, program, mut insns, one_in }| {
            let more =
                insns_of(&program).ok_or_else(|| D::Error::custom("no program of a filter"))?;
            insns.extend(more);
            Ok(Filter { text: text.into_owned(), insns, one_in })
        };
        Option::<Written<'_>>::deserialize(from)?.map(filter).transpose()
    }

    fn digits(insns: &[Insn]) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(DIGITS * insns.len());
        for Insn { code, jt, jf, k } in insns {
            // Writing to a string does not fail.
            let _ = write!(text, "{code:04x}{jt:02x}{jf:02x}{k:08x}");
        }
        text
    }

    fn insns_of(digits: &str) -> Option<Vec<Insn>> {
        let insn = |digits: &[u8]| {
            let all = std::str::from_utf8(digits).ok().filter(|it| it.len() == DIGITS)?;
            let [ch, cl, jt, jf, k @ ..] = u64::from_str_radix(all, 16).ok()?.to_be_bytes();
            let code = u16::from_be_bytes([ch, cl]);
            Some(Insn { code, jt, jf, k: u32::from_be_bytes(k) })
        };
        digits.as_bytes().chunks(DIGITS).map(insn).collect()
    }
}

/// `#[serde(with)]` of VLANs: those of a trunk as text, `10,20-29`. A list of them is read, too.
pub(crate) mod vlan {
    use std::collections::BTreeSet;

    use ringway_proto::{Vlan, parse_vids};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Written {
        Unaware,
        Access(u16),
        Trunk { allowed: Vids, native: Option<u16> },
    }

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Vids {
        Text(String),
        List(BTreeSet<u16>),
    }

    pub fn serialize<S: Serializer>(vlan: &Vlan, to: S) -> Result<S::Ok, S::Error> {
        let written = match vlan {
            Vlan::Unaware => Written::Unaware,
            Vlan::Access(vid) => Written::Access(*vid),
            Vlan::Trunk { allowed, native } if allowed.is_empty() => {
                Written::Trunk { allowed: Vids::List(BTreeSet::new()), native: *native }
            }
            Vlan::Trunk { allowed, native } => {
                Written::Trunk { allowed: Vids::Text(vids_text(allowed)), native: *native }
            }
        };
        written.serialize(to)
    }

    fn vids_text(vids: &BTreeSet<u16>) -> String {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for &vid in vids {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(vid) => *last = vid,
                _ => ranges.push((vid, vid)),
            }
        }
        let text = |(first, last)| match first == last {
            true => format!("{first}"),
            false => format!("{first}-{last}"),
        };
        ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vlan, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Unaware => Vlan::Unaware,
            Written::Access(vid) => Vlan::Access(vid),
            Written::Trunk { allowed: Vids::List(allowed), native } => {
                Vlan::Trunk { allowed, native }
            }
            Written::Trunk { allowed: Vids::Text(text), native } => {
                Vlan::Trunk { allowed: parse_vids(&text).map_err(D::Error::custom)?, native }
            }
        })
    }
}
