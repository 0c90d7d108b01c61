//! A NIC on a bridge (S-VALE-16): its rings are the kernel's, and the bridge has them.

use ringway_abi::{NR_REG_ALL_NIC, NR_REG_NIC_SW, nmreq_register};
use ringway_vale::PortConfig;
use ringway_xdp::{AttachMode, Diversion, Guard, HostEnd, Interface, NicPort};

use crate::{
    bridges::Place,
    error::{Error, Result},
    name::plain_key,
    nic::{allowed, inside, look_up, nic_error},
    persistent::stack_name,
    port::{Kind, PortId},
    registry::{Caller, Registry},
    vanish::watch,
};

/// What keeps a NIC and its stack apart.
pub(crate) struct Attachment {
    /// The stack as a port of the bridge.
    stack: Option<(Place, HostEnd)>,
    _diversion: Diversion,
}

impl Attachment {
    /// Whether the stack is a port as well.
    pub fn has_stack(&self) -> bool {
        self.stack.is_some()
    }
}

impl Registry {
    /// A NIC joins a bridge, with or without the stack behind it as a second port.
    pub(crate) fn attach_nic(
        &mut self,
        caller: &Caller,
        bridge: &str,
        ifname: &str,
        full: &str,
        reg: &nmreq_register,
    ) -> Result<Place> {
        let interface = look_up(ifname, caller).map_err(|e| Error { errno: libc::EINVAL, ..e })?;
        allowed(caller, ifname)?;
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
        let opened = inside(caller, || open(&interface, with_stack))?.map_err(nic_error)?;
        let (port, mut diversion, host) = opened;
        let region = self.regions.global(caller.uid)?;
        // Who sends longer frames with headers has them cut to what fits the interface.
        let config = PortConfig { max_frame: interface.mtu + 14, ..PortConfig::default() };
        let attached = self.bridges.attach(bridge, full, Box::new(port), config.clone());
        let place = attached.inspect_err(|_| self.regions.drop_unused(region))?;
        let mut stack = None;
        if let Some((end, port)) = host {
            diversion.lead_to(Some(&end));
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
            up: true,
            rings: interface.queues(),
            attachment: Box::new(Attachment { stack, _diversion: diversion }),
        };
        let id = self.add_port(full, Some(key), caller.uid, region, kind);
        self.names.insert(full.into(), id);
        if let Err(error) = self.tie(id, watch) {
            self.detach_nic(id);
            return Err(error);
        }
        Ok(place)
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

type Opened = (NicPort, Diversion, Option<(HostEnd, NicPort)>);

/// The NIC, and the stack behind it, as ports of a bridge.
fn open(interface: &Interface, with_stack: bool) -> Result<Opened, ringway_xdp::Error> {
    let port = NicPort::open(interface)?;
    let diversion = Diversion::begin(interface)?;
    if !with_stack {
        return Ok((port, diversion, None));
    }
    let mut end = HostEnd::new(interface, 1)?;
    if port.attach_mode() == AttachMode::Generic {
        end.pass(Guard::GenericXdp);
    }
    let stack = end.inside(NicPort::open)?;
    Ok((port, diversion, Some((end, stack))))
}
