//! A persistent port comes into being (S-VALE-12), as a [transaction](crate::transaction).
//!
//! Its name is held meanwhile, and its place among those that its user may have. Its memory is not: a region
//! comes with the commit, and is refused there if others have taken what the user may have.

use std::sync::Arc;

use ringway_nic_setup::{LinkWatch, OuterEnd, PairConfig, PrivatePair};
use ringway_proto::{Cause, Error, PortShape, Registration, Reply, Result};

use crate::{
    caller::Caller,
    charge::Charge,
    interfaces,
    keys::plain_key,
    kinds::{
        persistent::{Device, Persistent, Stack, hidden_bridge},
        vale::{SwitchSide, Vale},
    },
    lasting::{LastingDevice, LastingNetns},
    name::IFNAMSIZ,
    netns::{Netns, OpenNetns},
    port::{Ring, Shape, make_rings},
    ports::Ports,
    regions::{RegionKey, Regions},
    registry::Registry,
    settings::Settings,
    setup_error::nic_error,
    subject::Subject,
    transaction::{Answer, Failed, Makes, Needs, Plan, plain},
};

const MTU: u32 = 1500;

/// A port that is going to be made.
pub(crate) struct MakePersistent {
    uid: u32,
    name: String,
    /// By which the port, and its device, are found.
    key: String,
    /// The rings that were asked for.
    reg: Registration,
    /// Where its device will be.
    netns: Netns,
    lasting_netns: LastingNetns,
    /// The device that it had before it was lost.
    before: Option<LastingDevice>,
}

/// The device, which is one end of a pair, and what tells when it has gone.
pub(crate) struct NewDevice {
    pair: Arc<PrivatePair>,
    watch: LinkWatch,
    settings: Option<LastingDevice>,
    /// The inode number of its network namespace.
    netns: Option<u64>,
}

/// The memory of the port.
struct Memory {
    region: RegionKey,
    side: SwitchSide,
    rings: [Vec<Ring>; 2],
}

impl MakePersistent {
    pub fn plan(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        shape: PortShape,
    ) -> Result<MakePersistent> {
        if name.is_empty() || name.starts_with("vale") || name.len() >= IFNAMSIZ {
            let problem = "a persistent port has a name of 1 to 15 characters that does not begin \
                           with `vale`";
            return Err(Error::invalid(problem).at(name));
        }
        if name.contains(['{', '}', '%', '@', '^', '*']) {
            let problem = "a persistent port has none of `{ } % @ ^ *` in its name: these are for names of \
                           pipes, have the kernel choose a name, and say how a port is opened";
            return Err(Error::invalid(problem).at(name).remedy("choose another name"));
        }
        let key = plain_key(name, caller);
        let subject = Subject::Device(key.clone());
        if registry.deferred.is_busy(&subject) {
            // One of that name is being made, or closed: whether it is there is known after that.
            registry.deferred.await_turn(&subject)?;
        }
        if interfaces::exists(name, caller)? || registry.named(&key)?.is_some() {
            return Err(exists(name));
        }
        if shape.mem_id != 0 {
            registry.regions.check_id(shape.mem_id, caller.uid)?;
        }
        interfaces::allowed_all(caller, name)?;
        check_share(&registry.ports, &registry.settings, caller.uid, name)?;
        let reg = Registration {
            tx_slots: shape.tx_slots,
            rx_slots: shape.rx_slots,
            tx_rings: shape.tx_rings,
            rx_rings: shape.rx_rings,
            mem_id: shape.mem_id,
            ..Default::default()
        };
        Vale::check_side(&registry.regions, caller.uid, &reg)?;
        let before = registry.expected.device_before(caller, name);
        Ok(MakePersistent {
            uid: caller.uid,
            name: name.into(),
            key,
            reg,
            netns: caller.netns.clone(),
            lasting_netns: LastingNetns::of(&caller.netns),
            before,
        })
    }

    pub fn carry_out(self, registry: &mut Registry) -> Error {
        let step = self.step();
        registry.carry_out(self, step)
    }

    fn step(&self) -> impl Makes<NewDevice> + use<> {
        let (name, netns, before) = (self.name.clone(), self.netns.clone(), self.before);
        move || {
            let (name, outer) = (&name, OuterEnd::Device);
            let (mac, mtu) = before.map_or((None, MTU), |before| (Some(before.mac), before.mtu));
            let config = PairConfig { name, mtu, mac, queues: 1, outer };
            let netns = OpenNetns::of(&netns)?;
            let pair = netns.inside(|| PrivatePair::new(&config))?.map_err(nic_error)?;
            // Where the one end goes, with its namespace perhaps, the other goes too: and this one is in
            // a namespace that lives as long as we.
            let watch = pair.watch().map_err(nic_error)?;
            let settings = pair.device_settings().ok().map(LastingDevice::from);
            Ok(NewDevice { pair: Arc::new(pair), watch, settings, netns: netns.inode() })
        }
    }

    /// What may be otherwise than when the plan was made: interfaces are renamed, operators change limits.
    fn check_again(&self, registry: &Registry) -> Result<()> {
        let Registry { ports, settings, .. } = registry;
        if ports.named(&self.key).is_some() {
            return Err(exists(&self.name));
        }
        check_share(ports, settings, self.uid, &self.name)?;
        registry.check_descriptors(self.uid, 1)
    }

    /// The memory of the port.
    fn make_rings(&self, regions: &mut Regions) -> Result<Memory> {
        let (region, side) = Vale::new_side(regions, self.uid, &self.reg)?;
        let rings =
            make_rings(regions, region, side.shape).inspect_err(|_| regions.drop_unused(region))?;
        Ok(Memory { region, side, rings })
    }

    /// Enters the port, and has it served, on a switch of its own.
    fn enter(
        self,
        registry: &mut Registry,
        Memory { region, side, rings }: Memory,
        NewDevice { pair, watch, settings, netns: netns_inode }: NewDevice,
    ) -> Result<PortShape, Failed> {
        let MakePersistent { uid, name, key, lasting_netns: netns, .. } = self;
        let Shape { rings: counts, slots } = side.shape;
        let device = Device { pair, settings, second: None, stack: Stack::Nobody };
        let backend = Persistent { key: key.clone(), side, device, netns, netns_inode };
        let id = registry.add_port(&name, Some(key), uid, region, backend);
        let port = registry.port_mut(id);
        port.set_rings(rings);
        port.host.counts = [1, 1];
        let watched = registry.watches.add(id, &name, watch);
        let served = watched
            .and_then(|()| registry.regions.check_asked(uid, 0))
            .and_then(|()| Vale::serve(registry, id, &hidden_bridge(id), &name));
        if let Err(error) = served {
            registry.regions.free_rings_of(registry.ports.port_mut(id));
            // Its device is closed off the loop.
            registry.remove(id);
            return Err(Failed::undone(error));
        }
        registry.expected.made_again(uid, netns, &name);
        Ok(PortShape {
            tx_slots: slots[0],
            rx_slots: slots[1],
            tx_rings: counts[0] as u16,
            rx_rings: counts[1] as u16,
            mem_id: registry.regions.get(region).region.mem_id(),
        })
    }
}

impl Plan for MakePersistent {
    type Made = NewDevice;

    fn subject(&self) -> Subject {
        Subject::Device(self.key.clone())
    }

    fn needs(&self) -> Needs {
        Needs { names: vec![self.key.clone()], persistent: true, ..Needs::nothing(self.uid) }
    }

    fn commit(
        self,
        registry: &mut Registry,
        device: NewDevice,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        let checked = self.check_again(registry);
        match checked.and_then(|()| self.make_rings(&mut registry.regions)) {
            Ok(made) => {
                self.enter(registry, made, device).map(|shape| plain(Reply::NewInterface(shape)))
            }
            Err(error) => Err(Failed::new(error, device)),
        }
    }
}

fn exists(name: &str) -> Error {
    Error::new(Cause::Exists, "there is such an interface").at(name).remedy("choose another name")
}

/// ENOMEM if there are as many persistent ports as there can be, or as user `uid` may have: each is a
/// thread, and stays when the program that made it has gone.
fn check_share(ports: &Ports, settings: &Settings, uid: u32, name: &str) -> Result<()> {
    let Settings { accounts, max_bridges, switches_per_user, .. } = settings;
    let count = |users: &dyn Fn(u32) -> bool| {
        let there = ports.of(users).filter(|port| port.is::<Persistent>()).count();
        there + ports.held_persistent(users)
    };
    let all = count(&|_| true);
    if all >= *max_bridges {
        let problem =
            format!("there are {all} persistent ports already, the most that this daemon keeps");
        return Err(Error::no_memory(problem)
            .at(name)
            .remedy("delete one or raise max_bridges in its configuration"));
    }
    let account = accounts.of(uid);
    let theirs = count(&|uid| accounts.of(uid) == account);
    if uid == 0 || theirs < *switches_per_user {
        return Ok(());
    }
    let whose = accounts.name(uid);
    let problem =
        format!("{whose} has {theirs} persistent ports already, the most that each may have");
    Err(Error::no_memory(problem)
        .at(name)
        .remedy("delete one, or raise switches_per_user in the daemon's configuration"))
}
