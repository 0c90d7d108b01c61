//! An interface as a port of a bridge, in the best mode there is.

use ringway_nic_setup::{
    AttachMode, INJECTED, IngressDrop, InjectMark, Interface, Promiscuous, Source, nic_port_memory,
    open_nic_port_as, open_packet_port,
};
use ringway_packet::Geometry;
use ringway_proto::{NicMode, Refusals, Result};
use ringway_switch_port::Port as BridgePort;

use crate::{
    interfaces::nic_error,
    mode_select::AttachFailure,
    nic_mode,
    nic_mode::{ModeRequest, describe},
};

/// What the bridge gets of an interface, and what is held beside it.
pub(crate) struct BridgedNic {
    pub port: Box<dyn BridgePort>,
    pub held: Held,
    /// What would catch the frames that are sent to the stack.
    pub inject_mark: InjectMark,
}

/// What is held as long as a bridge has an interface.
pub(crate) struct Held {
    /// The mode, and why it is no better one.
    pub mode: String,
    /// How many its sockets are, and a namespace that its program may keep.
    pub descriptors: usize,
    /// Bytes that frames are received into and sent from.
    pub memory: u64,
    /// What keeps frames from the stack, and has the NIC take all there are, where sockets only listen.
    _apart: Option<(IngressDrop, Promiscuous)>,
}

impl BridgedNic {
    /// Takes all that an interface of the calling thread's network namespace receives. `injected`: the
    /// bridge sends to its stack.
    pub fn open(interface: &Interface, request: ModeRequest, injected: bool) -> Result<BridgedNic> {
        let open = |attach, modes: &[NicMode]| match attach {
            Some(attach) => by_xdp(interface, attach, modes, injected).map_err(AttachFailure::xdp),
            None => by_packet(interface).map_err(AttachFailure::Refused),
        };
        let ((mut nic, own), before) = request.select(&interface.name, open)?;
        nic.held.mode = describe(&nic.held.mode, &before.then(own));
        Ok(nic)
    }
}

/// And the modes that its sockets were refused.
type Opened = (BridgedNic, Refusals);

fn by_xdp(
    interface: &Interface,
    attach: AttachMode,
    modes: &[NicMode],
    injected: bool,
) -> Result<Opened, ringway_nic_setup::Error> {
    let port = open_nic_port_as(interface, attach, &nic_mode::of_sockets(modes), injected)?;
    let attached = port.held();
    let (mode, refused) = match attached.mode() {
        Some((mode, refused)) => {
            (nic_mode::of_socket(mode).to_string(), nic_mode::refused_to_socket(refused))
        }
        None => ("no queues".into(), Refusals::default()),
    };
    let inject_mark = attached.inject_mark();
    let descriptors = interface.queues() as usize + usize::from(attached.is_bound());
    let held = Held { mode, descriptors, memory: nic_port_memory(interface), _apart: None };
    Ok((BridgedNic { port: Box::new(port), held, inject_mark }, refused))
}

/// One socket receives from all queues.
fn by_packet(interface: &Interface) -> Result<Opened> {
    let whole = Interface { rx_queues: 1, tx_queues: 1, ..interface.clone() };
    let source = Source {
        interface: &whole.name,
        ifindex: whole.index,
        queue: 0,
        queues: 1,
        ignored_mark: INJECTED,
        hardware_time: false,
    };
    let mut ingress_drop = IngressDrop::begin(&whole).map_err(nic_error)?;
    let promiscuous = Promiscuous::hold(&whole).map_err(nic_error)?;
    let port = open_packet_port(&source, whole.longest_frame()).map_err(nic_error)?;
    // First the port receives the frames, then the stack does not.
    ingress_drop.set_queue(0, true);
    let mode = NicMode::Packet.to_string();
    let Geometry { block_size, blocks } = Geometry::DEFAULT;
    let memory = u64::from(block_size) * u64::from(blocks);
    let held = Held { mode, descriptors: 2, memory, _apart: Some((ingress_drop, promiscuous)) };
    let nic = BridgedNic { port: Box::new(port), held, inject_mark: InjectMark::IngressDrop };
    Ok((nic, Refusals::default()))
}
