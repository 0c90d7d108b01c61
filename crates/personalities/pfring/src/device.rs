//! What a program calls a device: interfaces and ports, with VLANs and channels.
//!
//! ```text
//!   eth0   eth0.7   eth0@0,2-3   eth0,eth1   vale0:a   netmap:eth0   pcap:file   stack:eth0   any   none
//! ```

/// One of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub target: Target,
    pub vlan: Option<u16>,
    /// A bit for each channel.
    pub channels: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An interface, which is listened to beside the stack.
    Interface(String),
    /// A port of Ringway's, by its name.
    Port(String),
    /// All interfaces.
    Any,
}

const ALL: u64 = u64::MAX;
/// `IFNAMSIZ`, with the zero.
const LONGEST: usize = 15;

/// The devices of a text; none for `none`. `None` where it names no devices.
pub fn parse(text: &str) -> Option<Vec<Element>> {
    if text == "none" {
        return Some(Vec::new());
    }
    if text.is_empty() {
        return None;
    }
    split(text).into_iter().map(|part| element(&part)).collect()
}

/// The parts of a list. A comma within a list of channels, and whatever is in brackets, parts nothing.
fn split(text: &str) -> Vec<Vec<(char, bool)>> {
    let mut parts = vec![Vec::new()];
    let (mut literal, mut in_channels) = (false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_listed = in_channels && rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            '(' if !literal => literal = true,
            ')' if literal => literal = false,
            ';' | ',' if !(literal || c == ',' && is_listed) => {
                parts.push(Vec::new());
                in_channels = false;
            }
            _ => {
                in_channels |= c == '@' && !literal;
                parts.last_mut().expect("there is one").push((c, literal));
            }
        }
    }
    parts
}

fn element(part: &[(char, bool)]) -> Option<Element> {
    let text: String = part.iter().map(|(c, _)| *c).collect();
    let last = |wanted: char| part.iter().rposition(|(c, literal)| *c == wanted && !literal);
    let cut = |at: usize| {
        let [before, after] = [&part[..at], &part[at + 1..]];
        [before, after].map(|part| part.iter().map(|(c, _)| *c).collect::<String>())
    };
    let (name, channels) = match last('@').map(cut) {
        Some([name, list]) => match channels(&list) {
            Some(channels) => (name, channels),
            // An option of a port's.
            None if is_port(&text) => (text.clone(), ALL),
            None => return None,
        },
        None => (text.clone(), ALL),
    };
    let target = |target| Some(Element { target, vlan: None, channels });
    if let Some(path) = name.strip_prefix("pcap:") {
        return target(Target::Port(format!("file:{path}@read")));
    }
    if let Some(interface) = name.strip_prefix("stack:") {
        return target(Target::Port(format!("netmap:{interface}^")));
    }
    if is_port(&name) {
        return target(Target::Port(name));
    }
    let name = name.strip_prefix("default:").unwrap_or(&name);
    if name == "any" {
        return target(Target::Any);
    }
    let (interface, vlan) = match name.split_once('.') {
        // Literal: of an interface that is called so.
        Some(_) if !part.iter().any(|(c, literal)| *c == '.' && !literal) => (name, None),
        Some((interface, vlan)) => (interface, Some(vlan.parse().ok()?)),
        None => (name, None),
    };
    let is_name = (1..=LONGEST).contains(&interface.len()) && !interface.contains([':', '/']);
    is_name.then(|| Element { target: Target::Interface(interface.into()), vlan, channels })
}

fn is_port(name: &str) -> bool {
    ringway_live_capture::name::is_port(name) || name.starts_with("file:")
}

/// `0`, `1,3`, `4-6`: a bit for each.
fn channels(list: &str) -> Option<u64> {
    list.split(',').try_fold(0, |mask, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bit = |number: &str| number.parse::<u32>().ok().filter(|bit| *bit < u64::BITS);
        let (first, last) = (bit(first)?, bit(last)?);
        Some((first..=last).fold(mask, |mask, bit| mask | 1 << bit))
    })
}

#[cfg(test)]
mod tests {
    use super::{Target::*, *};

    fn one(target: Target, vlan: Option<u16>, channels: u64) -> Element {
        Element { target, vlan, channels }
    }

    #[test]
    fn devices() {
        let interface = |name: &str| Interface(name.into());
        for (text, elements) in [
            ("eth0", vec![one(interface("eth0"), None, ALL)]),
            ("eth0.7", vec![one(interface("eth0"), Some(7), ALL)]),
            ("eth0@2", vec![one(interface("eth0"), None, 4)]),
            (
                "eth0@0,2-3,eth1.5;any",
                vec![
                    one(interface("eth0"), None, 0b1101),
                    one(interface("eth1"), Some(5), ALL),
                    one(Any, None, ALL),
                ],
            ),
            ("(eth0.x)", vec![one(interface("eth0.x"), None, ALL)]),
            ("none", vec![]),
            ("pcap:/tmp/a,b", vec![]),
            ("vale0:a", vec![one(Port("vale0:a".into()), None, ALL)]),
            ("vale0:a@1", vec![one(Port("vale0:a".into()), None, 2)]),
            ("netmap:eth0@mode=copy", vec![one(Port("netmap:eth0@mode=copy".into()), None, ALL)]),
            ("stack:eth0", vec![one(Port("netmap:eth0^".into()), None, ALL)]),
            ("pcap:(/tmp/a,b)", vec![one(Port("file:/tmp/a,b@read".into()), None, ALL)]),
        ] {
            match text {
                "pcap:/tmp/a,b" => assert_eq!(parse(text).unwrap().len(), 2),
                _ => assert_eq!(parse(text), Some(elements), "{text}"),
            }
        }
        for text in
            ["", "eth0.x", "eth0@x", "eth0,,eth1", "averyveryverylongname", "zc:eth0", "eth0@64"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
