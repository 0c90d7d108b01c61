//! The requests of API versions before 14 (S-LEG): each is another way to say a new one.

use ringway_abi::*;
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    request::{
        ctrl::{CarryOut, name_of, other_version, put_name},
        options::Options,
    },
    user,
};

/// A port, and the function that carries out the new request.
struct Asked<'a> {
    name: String,
    carry_out: &'a mut CarryOut<'a>,
}

impl Asked<'_> {
    /// Asks for `reqtype`, whose body is `T`. Returns the name and the body with the outputs.
    fn ask<T: FromBytes + IntoBytes>(
        mut self,
        reqtype: u16,
        mut body: T,
    ) -> Result<(String, T), i32> {
        let bytes = body.as_mut_bytes();
        (self.carry_out)(reqtype, &mut self.name, bytes, &mut Options::default())?;
        Ok((self.name, body))
    }
}

/// NIOCREGIF.
pub fn register<'a>(arg: u64, carry_out: &'a mut CarryOut<'a>) -> Result<(), i32> {
    exchange(arg, carry_out, |asked, req| match req.nr_cmd {
        0 => bind(asked, req),
        NETMAP_BDG_ATTACH => {
            let host = req.nr_arg1 & NETMAP_BDG_HOST != 0;
            let nr_mode = if host { NR_REG_NIC_SW } else { NR_REG_ALL_NIC };
            let reg = nmreq_register { nr_mode, ..registration(req) };
            let body = nmreq_vale_attach { reg, ..Default::default() };
            asked.ask(NETMAP_REQ_VALE_ATTACH, body).map(drop)
        }
        NETMAP_BDG_DETACH => {
            asked.ask(NETMAP_REQ_VALE_DETACH, nmreq_vale_detach::default()).map(drop)
        }
        NETMAP_BDG_NEWIF => {
            let conf = nmreq_vale_newif {
                nr_tx_slots: req.nr_tx_slots,
                nr_rx_slots: req.nr_rx_slots,
                nr_tx_rings: req.nr_tx_rings,
                nr_rx_rings: req.nr_rx_rings,
                nr_mem_id: req.nr_arg2,
                pad1: 0,
            };
            asked.ask(NETMAP_REQ_VALE_NEWIF, conf).map(drop)
        }
        NETMAP_BDG_DELIF => asked.ask(NETMAP_REQ_VALE_DELIF, [0u8; 0]).map(drop),
        NETMAP_BDG_VNET_HDR => {
            let header = nmreq_port_hdr { nr_hdr_len: req.nr_arg1.into(), ..Default::default() };
            asked.ask(NETMAP_REQ_PORT_HDR_SET, header).map(drop)
        }
        NETMAP_VNET_HDR_GET => {
            let (_, header) = asked.ask(NETMAP_REQ_PORT_HDR_GET, nmreq_port_hdr::default())?;
            req.nr_arg1 = header.nr_hdr_len as u16;
            Ok(())
        }
        NETMAP_BDG_POLLING_ON => asked.ask(NETMAP_REQ_VALE_POLLING_ENABLE, polling(req)).map(drop),
        NETMAP_BDG_POLLING_OFF => {
            asked.ask(NETMAP_REQ_VALE_POLLING_DISABLE, polling(req)).map(drop)
        }
        NETMAP_PT_HOST_CREATE | NETMAP_PT_HOST_DELETE => Err(libc::ENOMEM),
        _ => Err(libc::EINVAL),
    })
}

/// NIOCGINFO.
pub fn info<'a>(arg: u64, carry_out: &'a mut CarryOut<'a>) -> Result<(), i32> {
    exchange(arg, carry_out, |asked, req| {
        // S-LEG-4.
        if req.nr_cmd == NETMAP_BDG_LIST {
            let list = nmreq_vale_list {
                nr_bridge_idx: req.nr_arg1,
                nr_port_idx: req.nr_arg2.into(),
                pad1: 0,
            };
            let (name, list) = asked.ask(NETMAP_REQ_VALE_LIST, list)?;
            (req.nr_arg1, req.nr_arg2) = (list.nr_bridge_idx, list.nr_port_idx as u16);
            put_name(&mut req.nr_name, &name);
            return Ok(());
        }
        let info = nmreq_port_info_get { nr_mem_id: req.nr_arg2, ..Default::default() };
        let (_, info) = asked.ask(NETMAP_REQ_PORT_INFO_GET, info)?;
        req.nr_memsize = info.nr_memsize as u32;
        (req.nr_tx_slots, req.nr_rx_slots) = (info.nr_tx_slots, info.nr_rx_slots);
        (req.nr_tx_rings, req.nr_rx_rings) = (info.nr_tx_rings, info.nr_rx_rings);
        req.nr_arg2 = info.nr_mem_id;
        Ok(())
    })
}

/// NIOCCONFIG: no bridge has a configuration callback (S-LEG-5).
pub fn config(arg: u64) -> Result<(), i32> {
    user::read(arg, &mut [0; size_of::<nm_ifreq>()])?;
    Err(libc::EINVAL)
}

/// Reads the argument, has it answered, and writes it back whatever the answer.
fn exchange<'a>(
    arg: u64,
    carry_out: &'a mut CarryOut<'a>,
    answer: impl FnOnce(Asked<'a>, &mut nmreq) -> Result<(), i32>,
) -> Result<(), i32> {
    let mut req: nmreq = user::get(arg)?;
    // S-LEG-1.
    let result = if req.nr_version < u32::from(NETMAP_MIN_API) {
        Err(other_version(req.nr_version))
    } else {
        req.nr_name[15] = 0;
        name_of(&req.nr_name).and_then(|name| answer(Asked { name, carry_out }, &mut req))
    };
    user::put(arg, &req)?;
    result
}

/// S-LEG-2.
fn bind(mut asked: Asked<'_>, req: &mut nmreq) -> Result<(), i32> {
    let mut reg = registration(req);
    match req.nr_flags & NR_REG_MASK {
        NR_REG_DEFAULT => {
            reg.nr_ringid = req.nr_ringid & NETMAP_RING_MASK;
            reg.nr_mode = match req.nr_ringid {
                id if id & NETMAP_SW_RING != 0 => NR_REG_SW,
                id if id & NETMAP_HW_RING != 0 => NR_REG_ONE_NIC,
                _ => NR_REG_ALL_NIC,
            };
        }
        mode @ (NR_REG_PIPE_MASTER | NR_REG_PIPE_SLAVE) => {
            let brace = if mode == NR_REG_PIPE_MASTER { '{' } else { '}' };
            asked.name = format!("{}{brace}{}", asked.name, req.nr_ringid & NETMAP_RING_MASK);
            (reg.nr_mode, reg.nr_ringid) = (NR_REG_ALL_NIC, 0);
        }
        mode => (reg.nr_mode, reg.nr_ringid) = (mode, req.nr_ringid & NETMAP_RING_MASK),
    }
    let (_, reg) = asked.ask(NETMAP_REQ_REGISTER, reg)?;
    req.nr_offset = reg.nr_offset as u32;
    req.nr_memsize = reg.nr_memsize as u32;
    (req.nr_tx_slots, req.nr_rx_slots) = (reg.nr_tx_slots, reg.nr_rx_slots);
    (req.nr_tx_rings, req.nr_rx_rings) = (reg.nr_tx_rings, reg.nr_rx_rings);
    (req.nr_arg2, req.nr_arg3) = (reg.nr_mem_id, reg.nr_extra_bufs);
    Ok(())
}

/// S-LEG-3: the mode of a registration tells that of polling.
fn polling(req: &nmreq) -> nmreq_vale_polling {
    nmreq_vale_polling {
        nr_mode: match req.nr_flags & NR_REG_MASK {
            NR_REG_ALL_NIC => NETMAP_POLLING_MODE_SINGLE_CPU,
            NR_REG_ONE_NIC => NETMAP_POLLING_MODE_MULTI_CPU,
            _ => 0,
        },
        nr_first_cpu_id: (req.nr_ringid & NETMAP_RING_MASK).into(),
        nr_num_polling_cpus: req.nr_arg1.into(),
        pad1: 0,
    }
}

/// What the two kinds of registration have in common.
fn registration(req: &nmreq) -> nmreq_register {
    let mut nr_flags = u64::from(req.nr_flags & !NR_REG_MASK);
    if req.nr_ringid & NETMAP_NO_TX_POLL != 0 {
        nr_flags |= NR_NO_TX_POLL;
    }
    if req.nr_ringid & NETMAP_DO_RX_POLL != 0 {
        // S-POLL-5: kept with the flags, and read by nothing.
        nr_flags |= NR_DO_RX_POLL;
    }
    nmreq_register {
        nr_tx_slots: req.nr_tx_slots,
        nr_rx_slots: req.nr_rx_slots,
        nr_tx_rings: req.nr_tx_rings,
        nr_rx_rings: req.nr_rx_rings,
        nr_mem_id: req.nr_arg2,
        nr_extra_bufs: req.nr_arg3,
        nr_flags,
        ..Default::default()
    }
}
