//! The answer to a registration: what a client needs to run the rings of its binding.

use ringway_abi::Dir;
use ringway_proto::{Error, FdIndex, Grant, Reply, Result, RingBackend, RingGrant};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    port::{Kind, Port},
    queues::LinkPlace,
    registry::{Handle, Registry},
};

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

impl Registry {
    /// The reply for a bound handle: everything a client needs, in whichever process it is.
    pub(crate) fn describe(&mut self, handle: Handle) -> Result<(Reply, Vec<OwnedFd>)> {
        let timestamps = self.settings.timestamps;
        let binding = self.binding(handle)?;
        self.check_there(binding.port)?;
        let port = self.port(binding.port);
        let (reg, options, region) = (binding.reg, binding.options.clone(), binding.region);
        let mut fds = Fds::default();
        let mut rings = Vec::new();
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&binding.rings) {
            for &index in taken {
                let ring = &port.rings(dir)[usize::from(index)];
                let link = self.link(port, dir, index, &mut fds)?;
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
        let (name, kind) = (port.name.clone(), port.display_kind());
        let memory = self.regions.get(region).region.clone();
        let mut all = vec![clone_fd(memory.memfd())?];
        all.append(&mut fds.0);
        let grant = Grant {
            name,
            kind: kind.expect("parents of pipes cannot be bound"),
            mem_id: memory.mem_id(),
            layout: *memory.layout(),
            reg,
            options,
            rings,
            timestamps,
        };
        Ok((Reply::Granted(Box::new(grant)), all))
    }

    fn link(&self, port: &Port, dir: Dir, index: u16, fds: &mut Fds) -> Result<RingBackend> {
        let i = usize::from(index);
        if let Kind::Monitor { watch } = &port.kind {
            return Ok(RingBackend::Monitor { served: self.is_served(watch.as_ref()) });
        }
        if i >= port.nic_rings(dir).len() {
            return self.host_link(port, dir, i, fds);
        }
        Ok(match &port.kind {
            Kind::Vale { worker, .. } => RingBackend::Served { worker: fds.add(worker.as_ref())? },
            Kind::Pipe { peer, .. } => {
                let other = match dir {
                    Dir::Tx => Dir::Rx,
                    Dir::Rx => Dir::Tx,
                };
                let ring = &self.port(*peer).rings(other)[i];
                RingBackend::Pipe {
                    object: ring.kring.object(),
                    num_slots: ring.kring.ring().num_slots(),
                    doorbell: fds.add(ring.doorbell.as_ref())?,
                }
            }
            Kind::Nic(nic) => {
                let sockets = nic.sockets.as_ref().expect("a bound NIC is in netmap mode");
                let shared = &self.shared[&nic.key];
                // Each ring holds what it needs: frames led to it, or the stack kept away.
                let program = match (dir, &shared.diversion) {
                    (Dir::Tx, Some(diversion)) => diversion.link_fd(),
                    _ => shared.way().link_fd(),
                };
                let program = port.may_keep_traffic().then_some(program);
                let queue = index.into();
                let place = LinkPlace { dir, queue, host: false, timestamps: shared.timestamps };
                sockets.of_ring(queue).link(place, program, fds)?
            }
            Kind::Null { sink: true } => RingBackend::Sink,
            Kind::Null { .. } | Kind::Parent | Kind::Attached { .. } | Kind::Monitor { .. } => {
                RingBackend::Null
            }
        })
    }
}
