//! A NIC on a bridge (S-VALE-16): its rings are the kernel's, and the bridge has them.

use ringway_abi::{NR_REG_ALL_NIC, NR_REG_NIC_SW, nmreq_register};
use ringway_proto::{Error, NicMode, Result};
use ringway_vale::PortConfig;
use ringway_xdp::{EgressRedirect, HostEnd, Interface, Link, LinkState, NicPort, longest_frame};

use crate::{
    bridged_nic::{BridgedNic, Held},
    bridges::BridgePortRef,
    link_events::watch,
    name::plain_key,
    nic::{allowed, inside, look_up, nic_error},
    nic_mode::ModeRequest,
    persistent::stack_name,
    port::{Kind, PortId},
    registry::{Caller, Registry},
};

/// What keeps a NIC and its stack apart.
pub(crate) struct Attachment {
    /// The stack as a port of the bridge.
    stack: Option<(BridgePortRef, HostEnd)>,
    _diversion: EgressRedirect,
    nic: Held,
}

impl Attachment {
    /// The mode that the NIC is in, and why it is no better one.
    pub fn mode(&self) -> &str {
        &self.nic.mode
    }

    /// Descriptors that the NIC takes on top of what each one does.
    pub fn descriptors(&self) -> usize {
        self.nic.descriptors
    }

    /// Whether the stack is a port as well.
    pub fn has_stack(&self) -> bool {
        self.stack.is_some()
    }
}

impl Registry {
    /// A NIC joins a bridge, with or without the stack behind it as a second port; in `mode` and no
    /// other, or in the best there is.
    pub(crate) fn attach_nic(
        &mut self,
        caller: &Caller,
        bridge: &str,
        ifname: &str,
        full: &str,
        reg: &nmreq_register,
        mode: Option<NicMode>,
    ) -> Result<BridgePortRef> {
        let interface = look_up(ifname, caller).map_err(|e| Error { errno: libc::EINVAL, ..e })?;
        allowed(caller, ifname)?;
        if !interface.ethernet {
            // A loopback would give back what it is sent, to be sent round for ever.
            return Err(Error::invalid(format!(
                "{ifname}: no Ethernet interface, so it cannot be on a switch; attach one that \
                 `ip link` shows as link/ether"
            )));
        }
        let modes = [NR_REG_ALL_NIC, NR_REG_NIC_SW];
        if reg.nr_ringid != 0 || !modes.contains(&reg.nr_mode) {
            return Err(Error::invalid(format!("{full}: a NIC is attached with all its rings")));
        }
        let key = plain_key(&interface.name, caller);
        if self.names.contains_key(&key) {
            return Err(Error::busy(format!(
                "{ifname}: open, or attached to a bridge already; close or detach it first"
            )));
        }
        let with_stack = reg.nr_mode == NR_REG_NIC_SW;
        let watch = inside(caller, || watch(&interface))??;
        // Its sockets stay here, whoever asks for it.
        let wish = ModeRequest { mode, timestamps: None, may_have_packet: true };
        let opened = inside(caller, || open(&interface, wish, with_stack))??;
        let Opened { nic: BridgedNic { port, held, .. }, mut diversion, host } = opened;
        let region = self.regions.global(caller.uid)?;
        // Who sends longer frames with headers has them cut to what fits the interface.
        let config = PortConfig { max_frame: interface.longest_frame(), ..PortConfig::default() };
        let attached = self.bridges.attach(bridge, full, port, config.clone());
        let place = attached.inspect_err(|_| self.regions.drop_unused(region))?;
        let mut stack = None;
        if let Some((end, port)) = host {
            let led = diversion.redirect(Some(&end), None).map_err(nic_error);
            led.inspect_err(|_| {
                self.bridges.detach(&place);
                self.regions.drop_unused(region);
            })?;
            let attached =
                self.bridges.attach(bridge, &stack_name(full), Box::new(port), config.clone());
            let at = attached.inspect_err(|_| {
                self.bridges.detach(&place);
                self.regions.drop_unused(region);
            })?;
            stack = Some((at, end));
        }
        let kind = Kind::Attached {
            place: place.clone(),
            polling: None,
            link: Link { state: LinkState::Up, mtu: interface.mtu },
            rings: interface.queues(),
            attachment: Box::new(Attachment { stack, _diversion: diversion, nic: held }),
        };
        let id = self.add_port(full, Some(key), caller.uid, region, kind);
        self.names.insert(full.into(), id);
        if let Err(error) = self.tie(id, watch) {
            self.detach_nic(id);
            return Err(error);
        }
        Ok(place)
    }

    /// What the bridge sends to a NIC, and to the stack behind it, may be as long as the MTU allows
    /// now.
    pub(crate) fn settle_mtu(&mut self, id: PortId) {
        let Kind::Attached { place, link, attachment, .. } = &self.port(id).kind else { return };
        let (max_frame, stack) = (longest_frame(link.mtu), attachment.stack.as_ref());
        let places = [Some(place), stack.map(|(at, _)| at)].into_iter().flatten();
        for place in places.cloned().collect::<Vec<_>>() {
            self.bridges.change(&place.bridge, place.index, |config| config.max_frame = max_frame);
        }
    }

    /// Gives a NIC on a bridge back to the stack. Returns the place it had.
    pub(crate) fn detach_nic(&mut self, id: PortId) -> u32 {
        let Kind::Attached { place, attachment, .. } = &self.port(id).kind else {
            unreachable!("only attached NICs are detached")
        };
        let (place, stack) = (place.clone(), attachment.stack.as_ref().map(|(at, _)| at.clone()));
        for place in stack.iter().chain([&place]) {
            self.bridges.detach(place);
        }
        self.remove(id);
        place.index.into()
    }
}

/// The NIC, and the stack behind it, as ports of a bridge.
struct Opened {
    nic: BridgedNic,
    diversion: EgressRedirect,
    host: Option<(HostEnd, NicPort)>,
}

/// Opens them for the calling thread's network namespace.
fn open(interface: &Interface, wish: ModeRequest, with_stack: bool) -> Result<Opened> {
    let nic = BridgedNic::open(interface, wish)?;
    let diversion = EgressRedirect::begin(interface).map_err(nic_error)?;
    let host = with_stack.then(|| {
        let mut end = HostEnd::new(interface, 1)?;
        end.pass(nic.guard);
        let stack = end.inside(NicPort::open)?;
        Ok((end, stack))
    });
    let host = host.transpose().map_err(nic_error)?;
    Ok(Opened { nic, diversion, host })
}
