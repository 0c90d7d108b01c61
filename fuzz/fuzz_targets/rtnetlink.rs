//! Any answers of netlink: what is read of them is what stands there, and where they are cut or wrong,
//! nothing is.
//!
//! The input is a list of messages about links, each with any attributes; then some bytes of them all are
//! changed. Where none is, a reader of its own says what there is to be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringway_nic_setup::{
    LinkState,
    parsers::{LinkTold, News, general, link, news, outcome},
};

/// The link that is asked about, and another.
const INDEX: [u32; 2] = [7, 8];
const ERROR: u16 = 2;
const KINDS: [u16; 4] = [libc::RTM_NEWLINK, libc::RTM_DELLINK, ERROR, libc::RTM_NEWADDR];
/// Attributes that are looked for, and others.
const ATTRIBUTES: [u16; 6] =
    [libc::IFLA_IFNAME, libc::IFLA_MTU, libc::IFLA_ADDRESS, 0x8000 | libc::IFLA_MTU, 1, 0xffff];

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[derive(Default)]
struct Message {
    kind: u16,
    family: u8,
    hardware: u16,
    /// Of a message that the kernel sends about a failure it is the errno.
    index: i32,
    flags: i32,
    attributes: Vec<(u16, Vec<u8>)>,
}

impl Message {
    fn read(bytes: &mut &[u8]) -> Option<Message> {
        let [kind, family, index, flags, count] = take(bytes)?;
        let mut message = Message {
            kind: KINDS[usize::from(kind) % KINDS.len()],
            // Ports of bridges are told of beside links.
            family: if family & 7 == 1 { libc::AF_BRIDGE as u8 } else { 0 },
            hardware: u16::from(family >> 3),
            index: INDEX[usize::from(index) % 2] as i32,
            flags: i32::from(flags & 1) | i32::from(flags & 2) << 5,
            attributes: Vec::new(),
        };
        if message.kind == ERROR {
            let errnos = [0, -libc::ENODEV, -libc::EPERM, i32::MIN, i32::from(flags)];
            message.index = errnos[usize::from(index) % errnos.len()];
        }
        for _ in 0..count % 8 {
            let [kind, length] = take(bytes)?;
            let payload = bytes.get(..usize::from(length % 40))?;
            *bytes = &bytes[payload.len()..];
            message
                .attributes
                .push((ATTRIBUTES[usize::from(kind) % ATTRIBUTES.len()], payload.into()));
        }
        Some(message)
    }

    fn write(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend([0; 4]);
        to.extend(self.kind.to_ne_bytes());
        to.extend([0; 10]);
        if self.kind == ERROR {
            to.extend(self.index.to_ne_bytes());
        } else {
            to.extend([self.family, 0]);
            to.extend(self.hardware.to_ne_bytes());
            to.extend(self.index.to_ne_bytes());
            to.extend(self.flags.to_ne_bytes());
            to.extend([0; 4]);
        }
        for (kind, payload) in &self.attributes {
            to.extend((4 + payload.len() as u16).to_ne_bytes());
            to.extend(kind.to_ne_bytes());
            to.extend(payload);
            to.resize(to.len().next_multiple_of(4), 0);
        }
        let length = (to.len() - begin) as u32;
        to[begin..begin + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// The first attribute of that kind, without the bits that say how it is written.
    fn find(&self, kind: u16) -> Option<&[u8]> {
        let found = self.attributes.iter().find(|(this, _)| this & 0x3fff == kind);
        found.map(|(_, payload)| &payload[..])
    }

    fn name(&self) -> Option<String> {
        let text = self.find(libc::IFLA_IFNAME)?.strip_suffix(&[0])?;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    fn mtu(&self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.find(libc::IFLA_MTU)?.try_into().ok()?))
    }

    fn news(&self) -> Option<News> {
        let gone = News { state: LinkState::Gone, mtu: None, name: None };
        let is_it = self.family == 0 && self.index == INDEX[0] as i32;
        match self.kind {
            ERROR if self.index == -libc::ENODEV => Some(gone),
            libc::RTM_DELLINK if is_it => Some(gone),
            libc::RTM_NEWLINK if is_it => {
                let has = |flag| self.flags & flag != 0;
                let state = if !has(libc::IFF_UP) {
                    LinkState::Down
                } else if !has(libc::IFF_RUNNING) {
                    LinkState::NoCarrier
                } else {
                    LinkState::Up
                };
                Some(News { state, mtu: self.mtu(), name: self.name() })
            }
            _ => None,
        }
    }

    fn check(&self, datagram: &[u8]) {
        let (told, done) = (link(datagram), outcome(datagram));
        let error = |errno: i32| errno.checked_neg().filter(|errno| *errno != 0);
        match self.kind {
            ERROR => {
                assert_eq!(told.unwrap_err().raw_os_error(), error(self.index));
                assert_eq!(done.is_ok(), self.index == 0);
                assert_eq!(done.err().and_then(|e| e.raw_os_error()), error(self.index));
            }
            _ => {
                let (name, mtu) = (self.name(), self.mtu());
                let (hardware, index, flags) = (self.hardware, self.index as u32, self.flags);
                assert_eq!(told.ok(), Some(LinkTold { hardware, index, flags, name, mtu }));
                assert!(done.is_err());
            }
        }
    }
}

fn run(mut bytes: &[u8]) {
    let Some([count, changes]) = take(&mut bytes) else { return };
    let messages: Vec<_> = (0..count % 8).map_while(|_| Message::read(&mut bytes)).collect();
    let mut datagram = Vec::new();
    messages.iter().for_each(|message| message.write(&mut datagram));
    if let Some(first) = messages.first() {
        first.check(&datagram);
    }
    let expected: Vec<_> = messages.iter().filter_map(Message::news).collect();
    assert_eq!(news(&datagram, INDEX[0]), expected);

    for _ in 0..changes {
        let Some([at, more, value]) = take(&mut bytes) else { break };
        let at = usize::from(u16::from_ne_bytes([at, more]));
        match datagram.len() {
            0 => {}
            length if value == 0 => datagram.truncate(at % length),
            length => datagram[at % length] = value,
        }
    }
    // What is behind the messages, or all that there is, is as it comes.
    datagram.extend(bytes);
    let within =
        |text: &[u8]| text.is_empty() || datagram.windows(text.len()).any(|window| window == text);
    let _ = outcome(&datagram);
    let told = link(&datagram).ok().and_then(|told| told.name);
    let heard = news(&datagram, INDEX[0]);
    assert!(heard.len() <= datagram.len() / 16);
    for name in heard.into_iter().filter_map(|news| news.name).chain(told) {
        assert!(within(name.as_bytes()));
    }
    for kind in 0..16 {
        assert!(general(&datagram, kind).is_none_or(|payload| within(&payload)));
    }
}

fuzz_target!(|bytes: &[u8]| run(bytes));
