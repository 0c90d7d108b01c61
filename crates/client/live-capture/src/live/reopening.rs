//! A filter that is set before the first read: the port of an interface is opened anew with it.
//!
//! The mode of an interface is chosen when it is opened. With a filter that is packet mode on a veth pair, and
//! where the alternative is generic mode, since XDP costs what the stack keeps. But libpcap's programs, and
//! PF_RING's, open a device first and set its filter then.
//!
//! ```text
//!   nothing is to come any more --> what has come is kept --> the port is closed --> opened with the filter
//! ```
//!
//! What arrives while no port is open goes to the stack, as what does not match. It is a part of the call that
//! sets the filter: libpcap, too, has the kernel drop all packets during that. What came before is kept, and
//! read first. While another program has the port or a monitor of it, it stays as it is.

use std::{process, sync::atomic::Ordering::Relaxed};

use ringway::{
    Control, Error, Filter, OpenOptions, Port, PortInfo, PortKind, PortSpec, Registration,
    RingSelection, mode_of_environment,
};
use ringway_abi::{Dir, NS_TXMON};
use ringway_filter::Insn;
use ringway_packet::socket::driver;

use super::{End, Live, Reader, Reading, gather, held};
use crate::{abi::*, metadata::Metadata, namespace::is_named_here};

/// The driver of veth pairs, as ethtool names it.
const VETH: &str = "veth";

/// `BPF_RET | BPF_K`: a filter's end, with how many bytes are wanted.
const RETURN: u16 = 6;

/// Slots of a port that is nothing but in another's place.
const FEW: u32 = 64;

/// What it takes to open a port anew.
struct Ready {
    control: Control,
    /// What is read meanwhile.
    placeholder: Port,
    options: OpenOptions,
    spec: String,
}

/// A packet that was received by a port which has been closed since.
pub(super) struct Early {
    header: pcap_pkthdr,
    bytes: Vec<u8>,
    /// A monitored port has sent it.
    was_sent: bool,
}

impl Live {
    /// Opens the port anew with a filter, if that has it in another mode, and nothing was read yet. False: it is
    /// as it was.
    ///
    /// # Errors
    /// The port was closed, and cannot be opened again.
    pub(super) fn reopen(&self, insns: &[Insn]) -> Result<bool, Error> {
        // A read or a send that is under way has the rings in use.
        let (Some(mut reader), Ok(_sending)) = (self.try_reader(), self.sending.try_lock()) else {
            return Ok(false);
        };
        if reader.began || reader.reopening.is_some() || takes_all(insns) {
            return Ok(false);
        }
        let Some(Ready { control, placeholder, options, spec }) = self.ready() else {
            return Ok(false);
        };
        self.keep(&mut reader);
        self.has_early.store(!reader.early.is_empty(), Relaxed);
        let Some(old) = self.replace_at(&mut reader, placeholder) else { return Ok(false) };
        drop(old);
        let filter = Filter::classic("libpcap", insns.to_vec());
        let port = open_again(&control, &options, &spec, filter).inspect_err(|error| {
            self.failed.set(error.to_string());
        })?;
        // Only a lack of descriptors keeps it from being there.
        let has_port = self.replace_at(&mut reader, port).is_some();
        drop(control);
        if !has_port {
            let text = format!("{spec}: no descriptors are left; see `ulimit -n`");
            self.failed.set(text);
        }
        Ok(true)
    }

    /// What it takes to open the port anew; `None` where it is better left alone. From here on nothing comes.
    fn ready(&self) -> Option<Ready> {
        let port = self.port();
        let (options, spec) = port.opened_as();
        let parsed = PortSpec::parse(spec).ok()?;
        let is_whole = port.kind() == PortKind::Nic && is_plain(spec, &parsed.registration);
        let has_sent = port.tx_stats().tx_packets > 0;
        let has_timestamps = port.binding().rings(Dir::Rx).iter().any(|ring| ring.has_timestamps());
        let has_forked = self.opened_by != process::id();
        if !is_whole || has_sent || has_timestamps || has_forked {
            return None;
        }
        if !matches!(mode_of_environment(), Ok(None)) {
            return None;
        }
        let (options, spec) = (options.clone(), spec.to_owned());
        // It keeps a private daemon while the port is closed.
        let control = Control::connect_running().ok()?;
        let ports = control.ports().ok()?;
        let others = |info: &&PortInfo| info.users > 0 && is_named_here(info, port.name());
        let mut same = ports.iter().filter(others);
        let (info, None) = (same.next()?, same.next()) else { return None };
        let is_watched = ports.iter().any(|info| {
            info.name.strip_prefix(port.name()).is_some_and(|rest| rest.starts_with('/'))
        });
        let mode = info.mode.as_deref()?.split(';').next()?;
        let driver = driver(port.name()).ok()?;
        let is_costly = mode == "generic" || mode == "copy" && driver == VETH;
        if info.users > 1 || is_watched || !is_costly {
            return None;
        }
        let region = Port::options().null().region(port.mem_id());
        let placeholder = region.tx_rings(1).rx_rings(1).tx_slots(FEW).rx_slots(FEW);
        let placeholder = placeholder.open(&format!("capture{}", process::id())).ok()?;
        // A program that has changed its user since, or given up rights, could not open the interface again.
        let owner = |name: &str| {
            let ports = control.ports().ok()?;
            ports.iter().rfind(|port| port.name == name).map(|port| port.uid)
        };
        if owner(placeholder.name()) != Some(info.uid) {
            return None;
        }
        let nothing = vec![Insn { code: RETURN, jt: 0, jf: 0, k: 0 }];
        port.set_filter(Filter::classic("nothing", nothing)).ok()?;
        Some(Ready { control, placeholder, options, spec })
    }

    /// Copies what has come.
    pub(super) fn keep(&self, reader: &mut Reader) {
        let port = self.port();
        for ring in port.binding().rings(Dir::Rx) {
            let view = ring.kring().ring();
            let mut bytes = Vec::new();
            loop {
                ring.sync();
                let (mut left, mut at) = (held(view), view.head());
                if left == 0 {
                    break;
                }
                let now = reader.clock.now();
                while left > 0
                    && let Some(slots) = gather(view, at, left, &mut bytes)
                {
                    let mut header = pcap_pkthdr { len: bytes.len() as u32, ..now };
                    if let Some(time) = ring.timestamp(at) {
                        reader.clock.stamp(&mut header, time.get());
                    }
                    let was_sent = view.plain_slot(at).flags & NS_TXMON != 0;
                    let bytes = std::mem::take(&mut bytes);
                    reader.early.push_back(Early { header, bytes, was_sent });
                    (left, at) = (left - slots, view.advance(at, slots));
                }
                let stays = view.head() == at;
                view.set_cur(at);
                view.set_head(at);
                if stays {
                    break;
                }
            }
        }
    }

    /// Hands on packets that came before the port was opened anew; returns how many. None, though there were
    /// some, is as after a timeout: another filter has been set since. As long as there are more, the descriptor
    /// is readable, as it is with a new port.
    ///
    /// It is apart from [`read`](Self::read), which would take more instructions for each packet with it.
    #[cold]
    pub(crate) fn read_early(
        &self,
        reading: Reading<'_>,
        mut sink: impl FnMut(&pcap_pkthdr, *const u8, Metadata),
    ) -> Result<u32, End> {
        let mut reader = self.reader.take().ok_or_else(End::nested)?;
        let reader = &mut *reader;
        reader.began = true;
        if reading.signals.take_break() {
            return Err(End::Broken);
        }
        let mut packets = 0;
        while reading.most.is_none_or(|most| packets < most)
            && let Some(Early { mut header, bytes, was_sent }) = reader.early.pop_front()
        {
            self.take_filter(reader, reading.signals);
            let direction = self.direction.load(Relaxed);
            reader.whole = bytes;
            let filter = reader.filter.as_ref();
            let wanted = filter.map_or(u32::MAX, |filter| filter.run_copied(&reader.whole));
            let is_wanted = match direction {
                PCAP_D_INOUT => true,
                direction => was_sent == (direction == PCAP_D_OUT),
            };
            if wanted == 0 || !is_wanted {
                continue;
            }
            header.caplen = header.len.min(wanted).min(self.snaplen);
            packets += 1;
            self.passed.fetch_add(1, Relaxed);
            sink(&header, reader.whole.as_ptr(), Metadata::of(was_sent));
            if reading.signals.any() {
                break;
            }
        }
        self.has_early.store(!reader.early.is_empty(), Relaxed);
        Ok(packets)
    }
}

/// Whether a filter lets everything pass, as tcpdump's without an expression: how much of it makes no difference.
fn takes_all(insns: &[Insn]) -> bool {
    matches!(insns, [Insn { code: RETURN, k: 1.., .. }])
}

/// Whether a name asks for all that an interface receives, and for nothing else: it may leave the way out to the
/// stack.
fn is_plain(spec: &str, reg: &Registration) -> bool {
    let without_tx = reg.without_tx;
    let plain = Registration { rings: RingSelection::All, without_tx, ..Registration::default() };
    *reg == plain && !spec.contains('@')
}

/// As the device was opened, and with a filter if it can have that. Where another program has it by now, that
/// program is monitored.
fn open_again(
    control: &Control,
    options: &OpenOptions,
    spec: &str,
    filter: Filter,
) -> Result<Port, Error> {
    let name = PortSpec::parse(spec)?.name;
    let monitor = || Port::options().open(&format!("{spec}/rt"));
    if control.ports()?.iter().any(|port| port.users > 0 && is_named_here(port, &name)) {
        return monitor();
    }
    let anew = options.clone().filter(filter).open(spec);
    anew.or_else(|error| options.open(spec).or_else(|_| monitor()).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_leave_nothing_out() {
        let takes = |text: &str| takes_all(ringway_filter::compile(text).unwrap().insns());
        assert!(takes(""));
        for some in ["udp", "not icmp", "greater 100"] {
            assert!(!takes(some), "{some}");
        }
        assert!(!takes_all(&[Insn { code: RETURN, jt: 0, jf: 0, k: 0 }]));
    }

    #[test]
    fn names_that_ask_for_no_more_than_what_is_received() {
        let is = |name: &str| is_plain(name, &PortSpec::parse(name).unwrap().registration);
        assert!(is("netmap:eth0") && is("netmap:eth0/R"));
        for more in [
            "netmap:eth0-1",
            "netmap:eth0^",
            "netmap:eth0*",
            "netmap:eth0/x",
            "netmap:eth0@mode=copy",
        ] {
            assert!(!is(more), "{more}");
        }
    }
}
