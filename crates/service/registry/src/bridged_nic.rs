//! An interface as a port of a bridge, in the best mode there is.

use std::sync::Arc;

use ringway_nic_setup::{
    AttachMode, INJECTED, IngressDrop, InjectMark, Interface, Promiscuous, STACK_PORT_MEMORY,
    SWITCHED_PORT_MEMORY, Source, SwitchedInterface, nic_port_memory, open_nic_port_as,
    open_packet_port,
};
use ringway_packet::Geometry;
use ringway_proto::{Error, NicMode, Refusal, Refusals, Result};
use ringway_switch_port::{Port as BridgePort, PortIndex};

use crate::{
    fast_switch::{Fast, FastSwitch},
    mode_select::AttachFailure,
    nic_mode,
    nic_mode::{ModeRequest, describe},
    setup_error::nic_error,
};

/// What the bridge gets of an interface, and what is held beside it.
pub(crate) struct BridgedNic {
    pub port: Box<dyn BridgePort>,
    pub held: Held,
    /// What would catch the frames that are sent to the stack.
    pub inject_mark: InjectMark,
    /// The switch's program, if that forwards for the interface.
    pub fast: Option<Arc<Fast>>,
}

/// What is held as long as a bridge has an interface.
pub(crate) struct Held {
    /// The mode, and why it is no better one.
    pub mode: String,
    /// How many its sockets are, and a namespace that its program may keep.
    pub descriptors: usize,
    /// Bytes that frames are received into and sent from.
    pub memory: u64,
    apart: Apart,
}

/// What keeps frames from the stack, and has the NIC take all there are.
enum Apart {
    /// The program of the sockets, which its port holds.
    Xdp,
    /// Where sockets only listen.
    Drop { _ingress: IngressDrop, _promiscuous: Promiscuous },
    /// The switch's program, which is there as long as an interface of the switch is.
    Switched { interface: Box<SwitchedInterface>, _fast: Arc<FastSwitch> },
}

impl Held {
    /// Whether each socket receives what comes by its queue, and no more.
    pub fn is_by_queue(&self) -> bool {
        matches!(self.apart, Apart::Xdp)
    }

    /// The interface has this place on its bridge.
    pub fn set_port(&self, port: PortIndex) {
        if let Apart::Switched { interface, .. } = &self.apart {
            interface.set_port(port);
        }
    }
}

impl BridgedNic {
    /// Takes all that an interface of the calling thread's network namespace receives. `injected`: the
    /// bridge sends to its stack. `fast`: what forwards for the bridge in the kernel, or why that cannot be.
    ///
    /// That is for interfaces whose driver does not hand over its buffers, and for those with their stack, unless
    /// a mode is asked for: frames come whole there, however long, and the kernel forwards most of them.
    pub fn open(
        interface: &Interface,
        request: ModeRequest,
        injected: bool,
        fast: std::result::Result<&Arc<FastSwitch>, &str>,
    ) -> Result<BridgedNic> {
        let is_wanted = is_kernels(interface, request, injected);
        let mut slow = Refusals::default();
        if is_wanted {
            let opened = match fast {
                Ok(fast) => by_program(interface, fast).map_err(AttachFailure::packet),
                Err(why) => Err(AttachFailure::Refused(Error::invalid(why))),
            };
            match opened {
                Ok(nic) => return Ok(nic),
                Err(AttachFailure::Impossible(error)) => return Err(error),
                Err(AttachFailure::Refused(error)) => {
                    let Error { problem, remedy, .. } = error;
                    slow.0.push(Refusal { tried: KERNEL.into(), problem, remedy });
                }
            }
        }
        let open = |attach, modes: &[NicMode]| match attach {
            Some(attach) => by_xdp(interface, attach, modes, injected).map_err(AttachFailure::xdp),
            None => by_packet(interface).map_err(AttachFailure::Refused),
        };
        let ((mut nic, own), before) = request.select(&interface.name, false, open)?;
        nic.held.mode = describe(&nic.held.mode, &slow.then(before.then(own)));
        Ok(nic)
    }
}

/// Whether the kernel is to forward for an interface that is opened so: also one with zero copy, if its `stack`
/// is on the bridge, which sends and receives by that twice as much.
fn is_kernels(interface: &Interface, request: ModeRequest, stack: bool) -> bool {
    match request.mode {
        None => stack || !interface.zero_copy,
        Some(mode) => mode == NicMode::Packet,
    }
}

/// Bytes that it will take to receive into and send from, if it is opened so, with its stack or without.
pub(crate) fn memory_of(interface: &Interface, request: ModeRequest, stack: bool) -> u64 {
    let (nic, of_stack) = match is_kernels(interface, request, stack) {
        true => (SWITCHED_PORT_MEMORY, SWITCHED_PORT_MEMORY),
        false => (nic_port_memory(interface), STACK_PORT_MEMORY),
    };
    nic + if stack { of_stack } else { 0 }
}

/// The mode of interfaces between which the kernel forwards.
const KERNEL: &str = "kernel";

/// Descriptors of such an interface besides: its sockets, and the switch's program.
const SWITCHED: usize = 5;

/// What the program of the switch does not forward comes by a socket.
fn by_program(
    interface: &Interface,
    fast: &Arc<FastSwitch>,
) -> Result<BridgedNic, ringway_nic_setup::Error> {
    let loaded = fast.get()?;
    let (switched, port) = loaded.program.attach(interface)?;
    let apart = Apart::Switched { interface: Box::new(switched), _fast: fast.clone() };
    let held =
        Held { mode: KERNEL.into(), descriptors: SWITCHED, memory: SWITCHED_PORT_MEMORY, apart };
    let (port, inject_mark) = (Box::new(port), InjectMark::IngressDrop);
    Ok(BridgedNic { port, held, inject_mark, fast: Some(loaded) })
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
    let held = Held { mode, descriptors, memory: nic_port_memory(interface), apart: Apart::Xdp };
    Ok((BridgedNic { port: Box::new(port), held, inject_mark, fast: None }, refused))
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
    let held = Held {
        mode,
        descriptors: 2,
        memory,
        apart: Apart::Drop { _ingress: ingress_drop, _promiscuous: promiscuous },
    };
    let nic =
        BridgedNic { port: Box::new(port), held, inject_mark: InjectMark::IngressDrop, fast: None };
    Ok((nic, Refusals::default()))
}
