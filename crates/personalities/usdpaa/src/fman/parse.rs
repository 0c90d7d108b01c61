//! Where the headers of a frame are: what distributions ask for.

/// A header, or a part of one, by which a frame is told apart. The values are bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layer {
    Ethernet,
    /// The type in front of the payload, behind the tags.
    EtherType,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    Sctp,
    Esp,
    /// ESP in UDP.
    UdpEsp,
}

const LAYERS: usize = Layer::UdpEsp as usize + 1;

impl Layer {
    #[inline]
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// The headers of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers {
    /// Bits of the layers that there are.
    pub present: u16,
    /// Where each of them begins.
    at: [u16; LAYERS],
    /// A header is cut off, or not what it says.
    pub malformed: bool,
}

/// Bytes of a frame that are looked at.
pub const LOOKED_AT: usize = 256;

impl Headers {
    #[inline]
    fn add(&mut self, layer: Layer, at: usize) {
        self.present |= layer.bit();
        self.at[layer as usize] = at as u16;
    }

    /// Where a layer begins that is there.
    #[inline]
    pub fn at(&self, layer: Layer) -> usize {
        self.at[layer as usize].into()
    }

    /// Reads a frame.
    #[inline]
    pub fn parse(frame: &[u8]) -> Headers {
        let frame = &frame[..frame.len().min(LOOKED_AT)];
        let mut headers = Headers::default();
        headers.malformed = headers.ethernet(frame).is_none();
        headers
    }

    /// `None` where a header is malformed.
    #[inline]
    fn ethernet(&mut self, frame: &[u8]) -> Option<()> {
        let mut kind = word(frame, 12)?;
        self.add(Layer::Ethernet, 0);
        let mut at = 14;
        while matches!(kind, 0x8100 | 0x88a8) {
            if self.present & Layer::Vlan.bit() == 0 {
                self.add(Layer::Vlan, at);
            }
            kind = word(frame, at + 2)?;
            at += 4;
        }
        self.add(Layer::EtherType, at - 2);
        match kind {
            0x0800 => self.ipv4(frame, at),
            0x86dd => self.ipv6(frame, at),
            0x0806 => {
                frame.get(at..at + 28)?;
                self.add(Layer::Arp, at);
                Some(())
            }
            _ => Some(()),
        }
    }

    #[inline]
    fn ipv4(&mut self, frame: &[u8], at: usize) -> Option<()> {
        let header: &[u8; 20] = frame.get(at..)?.first_chunk()?;
        let length = usize::from(header[0] & 0xf) * 4;
        if header[0] >> 4 != 4 || length < 20 {
            return None;
        }
        self.add(Layer::Ipv4, at);
        let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
        if is_later_fragment {
            return Some(());
        }
        self.transport(frame, at + length, header[9]);
        Some(())
    }

    /// Extension headers are walked over; what is behind a later fragment's is nothing.
    fn ipv6(&mut self, frame: &[u8], at: usize) -> Option<()> {
        let header: &[u8; 40] = frame.get(at..)?.first_chunk()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        self.add(Layer::Ipv6, at);
        let (mut protocol, mut at) = (header[6], at + 40);
        while let (Some(next), Some(length)) = (frame.get(at), frame.get(at + 1)) {
            at += match protocol {
                0 | 43 | 60 => 8 + 8 * usize::from(*length),
                44 if word(frame, at + 2).is_some_and(|offset| offset & !7 != 0) => return Some(()),
                44 => 8,
                _ => break,
            };
            protocol = *next;
        }
        self.transport(frame, at, protocol);
        Some(())
    }

    #[inline]
    fn transport(&mut self, frame: &[u8], at: usize, protocol: u8) {
        let (layer, least) = match protocol {
            6 => (Layer::Tcp, 20),
            17 => (Layer::Udp, 8),
            132 => (Layer::Sctp, 12),
            50 => (Layer::Esp, 8),
            _ => return,
        };
        if frame.len() < at + least {
            return;
        }
        self.add(layer, at);
        const IPSEC: u16 = 4500;
        if layer == Layer::Udp
            && [0, 2].iter().any(|port| word(frame, at + port) == Some(IPSEC))
            && frame.len() >= at + 16
        {
            self.add(Layer::UdpEsp, at + 8);
        }
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
