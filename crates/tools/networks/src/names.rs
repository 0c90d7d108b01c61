//! Names that follow from a network and a container, so that nothing need be kept to find them again.

/// Longest name of an interface, of a switch, and of a port on it.
pub const LONGEST: usize = 15;
/// Longest alias of an interface.
const LONGEST_ALIAS: usize = 255;

/// What each switch's name begins with.
const SWITCH: &str = "vale";
/// The attached end of a container's veth pair begins with it.
const CONTAINER: &str = "rwc";
/// So does the attached end of a gateway's.
const GATEWAY: &str = "rwh";
/// And the end that has the gateway's addresses.
const GATEWAY_INTERFACE: &str = "rwg-";

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
/// Digits that tell the network in the name of a container's interface, and all digits there.
const NETWORK_DIGITS: usize = 4;
const ALL_DIGITS: usize = LONGEST - CONTAINER.len();

/// One interface of one container in one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment<'a> {
    pub network: &'a str,
    pub container: &'a str,
    /// The interface's name in the container.
    pub interface: &'a str,
}

impl Attachment<'_> {
    /// The end of the veth pair that is on the switch.
    pub fn port(&self) -> String {
        let rest = ALL_DIGITS - NETWORK_DIGITS;
        container_prefix(self.network) + &digits(&[self.container, self.interface], rest)
    }

    /// What the alias of that end says, for people and for `GC`.
    pub fn alias(&self) -> String {
        format!("{}{} {}", alias_prefix(self.network), self.container, self.interface)
    }
}

/// The ports of a network's containers have names that begin with it. Those of another network seldom do:
/// the alias says whose they are.
pub fn container_prefix(network: &str) -> String {
    format!("{CONTAINER}{}", digits(&[network], NETWORK_DIGITS))
}

/// The aliases of the interfaces of a network's containers begin with it.
pub fn alias_prefix(network: &str) -> String {
    format!("ringway {network} ")
}

/// The end of a gateway's veth pair that is on the switch.
pub fn gateway_port(network: &str) -> String {
    format!("{GATEWAY}{}", digits(&[network], ALL_DIGITS))
}

/// The end that has the addresses, unless the configuration names it.
pub fn gateway_interface(network: &str) -> String {
    let room = LONGEST - GATEWAY_INTERFACE.len();
    match network.len() <= room {
        true => format!("{GATEWAY_INTERFACE}{network}"),
        false => format!("{GATEWAY_INTERFACE}{}", digits(&[network], room)),
    }
}

/// The alias of both ends of a gateway's veth pair.
pub fn gateway_alias(network: &str) -> String {
    format!("ringway gateway of {network}")
}

/// The switch of a network, unless the configuration names it: `vale` and the network's name, if that can be
/// the name of a switch.
pub fn switch(network: &str) -> String {
    let room = LONGEST - SWITCH.len();
    match network.len() <= room && is_switch_part(network) {
        true => format!("{SWITCH}{network}"),
        false => format!("{SWITCH}{}", digits(&[network], room)),
    }
}

/// Whether it is the name of a switch.
pub fn is_switch(name: &str) -> bool {
    name.len() <= LONGEST && name.strip_prefix(SWITCH).is_some_and(is_switch_part)
}

fn is_switch_part(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether an interface can have that name.
pub fn is_interface(name: &str) -> bool {
    let is_bad = |byte: u8| byte == b'/' || byte == b':' || !byte.is_ascii_graphic();
    !name.is_empty()
        && name.len() <= LONGEST
        && name != "."
        && name != ".."
        && !name.bytes().any(is_bad)
}

/// Whether a network or a container can have that name: a letter or digit, then also `_`, `.` and `-`.
pub fn is_identifier(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Whether the kernel keeps all of an alias.
pub fn alias_fits(alias: &str) -> bool {
    alias.len() <= LONGEST_ALIAS
}

/// A number that stands for a name.
pub fn number(name: &str) -> u32 {
    (hash(&[name]) >> 32) as u32
}

/// `count` digits (at most 12) that stand for the texts.
fn digits(texts: &[&str], count: usize) -> String {
    let hash = hash(texts);
    (0..count).map(|place| char::from(DIGITS[(hash >> (5 * place) & 31) as usize])).collect()
}

/// FNV-1a, and a mixing of its bits. The same in each version, for a container may outlive the plugin that made
/// its interface.
fn hash(texts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    // The byte between two texts is in no text.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names that a released version has given to interfaces stay as they are.
    #[test]
    fn names_are_those_of_earlier_versions() {
        let one = Attachment { network: "red", container: "0123456789ab", interface: "eth0" };
        assert_eq!(one.port(), "rwceq6be6ar85r9");
        assert_eq!(one.alias(), "ringway red 0123456789ab eth0");
        assert_eq!(gateway_port("red"), "rwheq6bgkv1slcm");
        assert_eq!(gateway_interface("red"), "rwg-red");
        assert_eq!(switch("red"), "valered");
    }

    #[test]
    fn names_are_short_enough_and_differ() {
        let mut seen = BTreeSet::new();
        for network in ["a", "a-network-with-a-long-name", "b.c"] {
            for container in ["a", "b", &"c".repeat(64)] {
                for interface in ["eth0", "eth1"] {
                    let name = Attachment { network, container, interface }.port();
                    assert!(is_interface(&name) && name.len() == LONGEST, "{name}");
                    assert!(name.starts_with(&container_prefix(network)));
                    assert!(seen.insert(name));
                }
            }
            for name in [gateway_port(network), gateway_interface(network)] {
                assert!(is_interface(&name), "{name}");
                assert!(seen.insert(name));
            }
            assert!(is_switch(&switch(network)));
            assert!(seen.insert(switch(network)));
        }
        // Where one text ends and the next begins makes a difference.
        assert_ne!(digits(&["ab", "c"], 12), digits(&["a", "bc"], 12));
    }

    #[test]
    fn what_is_a_name() {
        for good in ["eth0", "a", "x@y"] {
            assert!(is_interface(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a:b", "a b", "0123456789abcdef", "é"] {
            assert!(!is_interface(bad), "{bad}");
        }
        assert!(is_identifier("a_.-b") && !is_identifier("-a") && !is_identifier("a b"));
        assert!(is_switch("vale") && is_switch("vale_0") && !is_switch("vale-0"));
        assert!(!is_switch("br0") && !is_switch("vale012345678901"));
    }
}
