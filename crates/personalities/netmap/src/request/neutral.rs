//! netmap's structures as Ringway's requests, and Ringway's answers as netmap's structures. Everything
//! else is neutral.

use ringway::Binding;
use ringway_abi::*;
use ringway_proto::{
    Extmem, Monitor, Polling, PoolShape, Pools, PortGeometry, PortShape, Registration,
    RingSelection, Sizes, SwitchPosition,
};

/// What a program asks for with a registration.
pub fn registration(reg: &nmreq_register) -> Registration {
    let has = |flag| reg.nr_flags & flag != 0;
    Registration {
        rings: match reg.nr_mode {
            NR_REG_ALL_NIC => RingSelection::All,
            NR_REG_SW => RingSelection::Host,
            NR_REG_NIC_SW => RingSelection::AllAndHost,
            NR_REG_ONE_NIC => RingSelection::One(reg.nr_ringid),
            NR_REG_ONE_SW => RingSelection::OneHost(reg.nr_ringid),
            NR_REG_NULL => RingSelection::Null { sink: has(NR_SINK) },
            NR_REG_PIPE_MASTER | NR_REG_PIPE_SLAVE => RingSelection::PipeEnd,
            mode => RingSelection::Other(mode),
        },
        without_tx: has(NR_RX_RINGS_ONLY),
        without_rx: has(NR_TX_RINGS_ONLY),
        exclusive: has(NR_EXCLUSIVE),
        monitor: Monitor {
            tx: has(NR_MONITOR_TX),
            rx: has(NR_MONITOR_RX),
            zero_copy: has(NR_ZCOPY_MON),
        },
        // S-REG-11.
        accept_header: has(NR_ACCEPT_VNET_HDR),
        tx_slots: reg.nr_tx_slots,
        rx_slots: reg.nr_rx_slots,
        tx_rings: reg.nr_tx_rings,
        rx_rings: reg.nr_rx_rings,
        host_tx_rings: reg.nr_host_tx_rings,
        host_rx_rings: reg.nr_host_rx_rings,
        mem_id: reg.nr_mem_id,
        extra_bufs: reg.nr_extra_bufs,
        // Those for poll are this library's matter, in whichever process the descriptor is.
        client_word: reg.nr_flags,
    }
}

/// The flags of the registration that a binding stands for.
pub fn flags(binding: &Binding) -> u64 {
    binding.registration().client_word
}

/// Stores what the program gets (S-REG-7); what it asked for stays.
pub fn store_granted(reg: &mut nmreq_register, binding: &Binding) {
    let granted = binding.registration();
    reg.nr_offset = binding.netif_offset();
    reg.nr_memsize = binding.region().layout().memsize();
    (reg.nr_tx_slots, reg.nr_rx_slots) = (granted.tx_slots, granted.rx_slots);
    (reg.nr_tx_rings, reg.nr_rx_rings) = (granted.tx_rings, granted.rx_rings);
    (reg.nr_host_tx_rings, reg.nr_host_rx_rings) = (granted.host_tx_rings, granted.host_rx_rings);
    (reg.nr_mem_id, reg.nr_extra_bufs) = (granted.mem_id, granted.extra_bufs);
    let Monitor { tx, rx, .. } = granted.monitor;
    for (monitors, flag) in [(tx, NR_MONITOR_TX), (rx, NR_MONITOR_RX)] {
        reg.nr_flags |= if monitors { flag } else { 0 };
    }
}

/// Stores the rings, slots and memory of a port.
pub fn store_geometry(info: &mut nmreq_port_info_get, port: &PortGeometry) {
    *info = nmreq_port_info_get {
        nr_memsize: port.memsize,
        nr_tx_slots: port.tx_slots,
        nr_rx_slots: port.rx_slots,
        nr_tx_rings: port.tx_rings,
        nr_rx_rings: port.rx_rings,
        nr_host_tx_rings: port.host_tx_rings,
        nr_host_rx_rings: port.host_rx_rings,
        nr_mem_id: port.mem_id,
        pad: info.pad,
    };
}

/// Stores where the pools of a region are.
pub fn store_pools(info: &mut nmreq_pools_info, pools: &Pools) {
    let Pools { memsize, mem_id, ifs, rings, bufs } = *pools;
    (info.nr_memsize, info.nr_mem_id) = (memsize, mem_id);
    let PoolShape { offset, total, size } = ifs;
    (info.nr_if_pool_offset, info.nr_if_pool_objtotal, info.nr_if_pool_objsize) =
        (offset, total, size);
    let PoolShape { offset, total, size } = rings;
    (info.nr_ring_pool_offset, info.nr_ring_pool_objtotal, info.nr_ring_pool_objsize) =
        (offset, total, size);
    let PoolShape { offset, total, size } = bufs;
    (info.nr_buf_pool_offset, info.nr_buf_pool_objtotal, info.nr_buf_pool_objsize) =
        (offset, total, size);
}

/// A region of these pools in memory that `same` tells from other memory.
pub fn extmem(info: &nmreq_pools_info, same: Option<(u64, u64, u64)>) -> Extmem {
    Extmem {
        memory: info.nr_memsize,
        sizes: Sizes {
            if_size: info.nr_if_pool_objsize,
            if_num: info.nr_if_pool_objtotal,
            ring_size: info.nr_ring_pool_objsize,
            ring_num: info.nr_ring_pool_objtotal,
            buf_size: info.nr_buf_pool_objsize,
            buf_num: info.nr_buf_pool_objtotal,
        },
        mem_id: info.nr_mem_id,
        same,
        copy_from: None,
    }
}

/// Stores the pools that such a region has.
pub fn store_extmem(info: &mut nmreq_pools_info, granted: &Extmem) {
    let Extmem { memory, sizes, mem_id, .. } = granted;
    (info.nr_memsize, info.nr_mem_id) = (*memory, *mem_id);
    (info.nr_if_pool_objsize, info.nr_if_pool_objtotal) = (sizes.if_size, sizes.if_num);
    (info.nr_ring_pool_objsize, info.nr_ring_pool_objtotal) = (sizes.ring_size, sizes.ring_num);
    (info.nr_buf_pool_objsize, info.nr_buf_pool_objtotal) = (sizes.buf_size, sizes.buf_num);
}

/// The shape of a persistent port.
pub fn shape(conf: &nmreq_vale_newif) -> PortShape {
    PortShape {
        tx_slots: conf.nr_tx_slots,
        rx_slots: conf.nr_rx_slots,
        tx_rings: conf.nr_tx_rings,
        rx_rings: conf.nr_rx_rings,
        mem_id: conf.nr_mem_id,
    }
}

/// Stores the shape that it has become.
pub fn store_shape(conf: &mut nmreq_vale_newif, shape: &PortShape) {
    (conf.nr_tx_slots, conf.nr_rx_slots) = (shape.tx_slots, shape.rx_slots);
    (conf.nr_tx_rings, conf.nr_rx_rings) = (shape.tx_rings, shape.rx_rings);
    conf.nr_mem_id = shape.mem_id;
}

/// A position among the ports of switches.
pub fn position(list: &nmreq_vale_list) -> SwitchPosition {
    SwitchPosition { switch: list.nr_bridge_idx, port: list.nr_port_idx }
}

/// Which processors are to poll.
pub fn polling(conf: &nmreq_vale_polling) -> Polling {
    let (first, count) = (conf.nr_first_cpu_id, conf.nr_num_polling_cpus);
    match conf.nr_mode {
        NETMAP_POLLING_MODE_SINGLE_CPU => Polling::OneCpu { cpu: first, count },
        NETMAP_POLLING_MODE_MULTI_CPU => Polling::Cpus { first, count },
        mode => Polling::Other { mode, first, count },
    }
}
