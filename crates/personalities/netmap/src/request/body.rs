//! One request by its type: from the program's body to the daemon and back.

use std::os::fd::RawFd;

use ringway_abi::*;
use ringway_errno::errno;
use ringway_ipc::{Answer, HeaderLen, Index, SwitchFound};
use ringway_proto::Request;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    csb, kloop,
    netmap_fd::{NetmapFd, explain_as},
    request::{neutral, options::Options, register::register},
};

/// A request on its way: the descriptor that it is made on, and the port's name, which some
/// answers change.
pub struct Asked<'a> {
    pub netmap: &'a NetmapFd,
    pub fd: RawFd,
    pub name: &'a mut String,
}

impl Asked<'_> {
    // Once for each kind of answer, not for each request.
    #[inline(never)]
    fn call<T: Answer>(&self, request: Request) -> Result<T, i32> {
        self.netmap.call(self.fd, &request).map(|(answer, _)| answer)
    }

    /// NETMAP_REQ_PORT_INFO_GET.
    fn port_info(&self, info: &mut nmreq_port_info_get) -> Result<(), i32> {
        let request = Request::PortGeometry { name: self.name.clone(), mem_id: info.nr_mem_id };
        neutral::store_geometry(info, &self.call(request)?);
        Ok(())
    }

    /// NETMAP_REQ_VALE_ATTACH. Returns the port's index.
    fn attach(&self, reg: &nmreq_register) -> Result<u32, i32> {
        let mode = ringway::mode_of_environment().map_err(|e| explain_as(&e, errno(e.cause())))?;
        let stack = reg.nr_mode == NR_REG_NIC_SW;
        let attached = self.index(Request::SwitchAttach {
            name: self.name.clone(),
            stack,
            all_rings: reg.nr_ringid == 0 && (stack || reg.nr_mode == NR_REG_ALL_NIC),
            mem_id: reg.nr_mem_id,
            mode,
        });
        // S-VALE-16: an interface that is not there.
        attached.map_err(|errno| if errno == libc::ENXIO { libc::EINVAL } else { errno })
    }

    /// NETMAP_REQ_VALE_DETACH. Returns the index that the port had.
    fn detach(&self) -> Result<u32, i32> {
        self.index(Request::SwitchDetach { name: self.name.clone() })
    }

    fn index(&self, request: Request) -> Result<u32, i32> {
        self.call(request).map(|Index(index)| index)
    }

    /// NETMAP_REQ_VALE_LIST.
    fn list(&mut self, list: &mut nmreq_vale_list) -> Result<(), i32> {
        let from = neutral::position(list);
        let request = Request::SwitchFind { name: self.name.clone(), from };
        let SwitchFound { name, at } = self.call(request)?;
        *self.name = name;
        (list.nr_bridge_idx, list.nr_port_idx) = (at.switch, at.port);
        Ok(())
    }

    /// NETMAP_REQ_VALE_NEWIF.
    fn newif(&self, conf: &mut nmreq_vale_newif) -> Result<(), i32> {
        let shape = neutral::shape(conf);
        let request = Request::NewInterface { name: self.name.clone(), shape };
        neutral::store_shape(conf, &self.call(request)?);
        Ok(())
    }

    /// NETMAP_REQ_VALE_DELIF.
    fn delif(&self) -> Result<(), i32> {
        self.call(Request::DeleteInterface { name: self.name.clone() })
    }

    fn pools_info(&self, info: &mut nmreq_pools_info) -> Result<(), i32> {
        // netmap needs a port's name here (S-MEM-12).
        if self.name.is_empty() {
            return Err(libc::ENXIO);
        }
        let request = Request::Pools { name: self.name.clone(), mem_id: info.nr_mem_id };
        neutral::store_pools(info, &self.call(request)?);
        Ok(())
    }

    /// NETMAP_REQ_VALE_POLLING_ENABLE and _DISABLE.
    fn polling(&self, enable: bool, conf: &nmreq_vale_polling) -> Result<(), i32> {
        let polling = neutral::polling(conf);
        self.call(Request::SwitchPoll { name: self.name.clone(), enable, polling })
    }

    /// NETMAP_REQ_PORT_HDR_SET.
    fn set_header(&self, len: u32) -> Result<(), i32> {
        self.call(Request::SetHeaderLen { name: self.name.clone(), len })
    }

    /// NETMAP_REQ_PORT_HDR_GET.
    fn header(&self) -> Result<u32, i32> {
        self.call(Request::HeaderLen { name: self.name.clone() }).map(|HeaderLen(len)| len)
    }

    /// Carries out a request of the given type; `body` has [`size`](super::ctrl::size) bytes, and holds the
    /// outputs afterwards. Options get their status.
    pub fn carry_out(
        &mut self,
        reqtype: u16,
        body: &mut [u8],
        options: &mut Options,
    ) -> Result<(), i32> {
        match reqtype {
            // S-LIFE-8: what needs a binding looks for it; the others ask nothing of the descriptor.
            NETMAP_REQ_REGISTER => with(body, |reg| register(self, reg, options)),
            NETMAP_REQ_PORT_INFO_GET => with(body, |info| self.port_info(info)),
            NETMAP_REQ_VALE_ATTACH => with(body, |attach: &mut nmreq_vale_attach| {
                attach.port_index = self.attach(&attach.reg)?;
                Ok(())
            }),
            NETMAP_REQ_VALE_DETACH => with(body, |detach: &mut nmreq_vale_detach| {
                detach.port_index = self.detach()?;
                Ok(())
            }),
            NETMAP_REQ_VALE_LIST => with(body, |list| self.list(list)),
            NETMAP_REQ_VALE_NEWIF => with(body, |conf| self.newif(conf)),
            NETMAP_REQ_VALE_DELIF => self.delif(),
            NETMAP_REQ_POOLS_INFO_GET => with(body, |info| self.pools_info(info)),
            NETMAP_REQ_VALE_POLLING_ENABLE => with(body, |conf| self.polling(true, conf)),
            NETMAP_REQ_VALE_POLLING_DISABLE => with(body, |conf| self.polling(false, conf)),
            NETMAP_REQ_PORT_HDR_SET => {
                with(body, |header: &mut nmreq_port_hdr| self.set_header(header.nr_hdr_len))
            }
            NETMAP_REQ_PORT_HDR_GET => with(body, |header: &mut nmreq_port_hdr| {
                header.nr_hdr_len = self.header()?;
                Ok(())
            }),
            NETMAP_REQ_SYNC_KLOOP_START => with(body, |start: &mut nmreq_sync_kloop_start| {
                kloop::start(self.netmap, self.fd, start.sleep_us, options)
            }),
            NETMAP_REQ_SYNC_KLOOP_STOP => kloop::stop(self.netmap, self.fd),
            NETMAP_REQ_CSB_ENABLE => self.csb_enable(options),
            _ => Err(libc::EINVAL),
        }
    }

    /// S-CSB-5, S-CSB-6.
    fn csb_enable(&self, options: &mut Options) -> Result<(), i32> {
        let csb = options.get().ok_or(libc::EINVAL)?;
        let result = match self.netmap.binding(self.fd) {
            Some(binding) => csb::enable(self.netmap, binding, &csb),
            None => Ok(()),
        };
        options.settle(NETMAP_REQ_OPT_CSB, result)
    }
}

/// The body as its type, for the duration of `f`.
fn with<T: FromBytes + IntoBytes + Immutable>(
    body: &mut [u8],
    f: impl FnOnce(&mut T) -> Result<(), i32>,
) -> Result<(), i32> {
    let mut value = T::read_from_bytes(body).map_err(|_| libc::EINVAL)?;
    f(&mut value)?;
    body.copy_from_slice(value.as_bytes());
    Ok(())
}
