//! The answer to a registration: what a client needs to run the rings of its binding.

use ringway_abi::Dir;
use ringway_proto::{Error, FdIndex, Grant, Reply, Result, RingGrant};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{caller::Caller, handles::Handle, kinds::RingAt, registry::Registry};

/// Descriptors of a reply; index 0 is the memfd's.
#[derive(Default)]
pub(crate) struct Fds(pub Vec<OwnedFd>);

impl Fds {
    pub fn add(&mut self, fd: impl AsFd) -> Result<FdIndex> {
        self.0.push(clone_fd(fd.as_fd())?);
        Ok(self.0.len() as FdIndex)
    }
}

fn clone_fd(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    fd.try_clone_to_owned()
        .map_err(|e| Error::io("cannot duplicate a descriptor (see `ulimit -n`)", e))
}

/// The reply for a bound handle: everything a client needs, in whichever process it is. `is_new`: it
/// has just been bound, and its client has to set up what is the client's to set up.
pub(crate) fn describe(
    registry: &Registry,
    handle: Handle,
    caller: &Caller,
    is_new: bool,
) -> Result<(Reply, Vec<OwnedFd>)> {
    let timestamps = registry.settings.timestamps;
    let binding = registry.handles.binding(handle)?;
    registry.port(binding.port).check_there()?;
    let port = registry.port(binding.port);
    let (registration, mut options) = (binding.registration, binding.options.clone());
    let extra_bufs = if is_new { binding.extra_bufs.clone() } else { Vec::new() };
    if let Some(extmem) = options.extmem.as_mut().filter(|_| !is_new) {
        extmem.copy_from = None;
    }
    let (region, netif_offset) = (binding.region, binding.netif.offset());
    let mut fds = Fds::default();
    let mut rings = Vec::new();
    for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&binding.rings) {
        for &index in taken {
            let ring = port.rings(dir).get(usize::from(index));
            let ring = ring.ok_or_else(|| Error::absent("the ring has gone"))?;
            let at = RingAt { registry, port, dir, index };
            let link = port.backend.link(&at, &mut fds)?;
            rings.push(RingGrant {
                dir,
                index,
                object: ring.kring.object(),
                num_slots: ring.kring.ring().num_slots(),
                doorbell: fds.add(ring.doorbell.as_ref())?,
                link,
            });
        }
    }
    let kind = port.backend.display_kind();
    let kind = kind.ok_or_else(|| Error::absent("no program can open this port"))?;
    let name = port.name.clone();
    let memory = registry.regions.region(region).clone();
    let mut all = vec![clone_fd(memory.memfd())?];
    all.append(&mut fds.0);
    let grant = Grant {
        name,
        kind,
        mem_id: memory.mem_id(),
        layout: *memory.layout(),
        netif_offset,
        registration,
        options,
        rings,
        timestamps,
        extra_bufs,
        switch_owner: registry.switch_owner(port).filter(|owner| ![0, caller.uid].contains(owner)),
    };
    Ok((Reply::Granted(Box::new(grant)), all))
}
