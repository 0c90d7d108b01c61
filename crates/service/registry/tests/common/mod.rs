//! A registry in this process, and short ways to ask it.
#![allow(dead_code)] // Each test uses its own part.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_proto::{
    Error, Grant, Monitor, NicMode, Options, PortInfo, PortShape, RegionInfo, Registration, Reply,
    Request, RingSelection, SwitchPosition,
};
use ringway_region::{NetifView, Region, RingView};
use ringway_registry::{Caller, Handle, Registry, Settings};

pub mod asked;
pub mod faults;

/// A turn of a test with interfaces. A process that another test starts has copies of this one's sockets until it
/// executes its program: their queues are kept for so long, and listed.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct World {
    pub registry: Registry,
    pub caller: Caller,
}

/// A request for all rings, with defaults.
pub fn all() -> Registration {
    Registration::default()
}

/// A request for these rings, with defaults.
pub fn select(rings: RingSelection) -> Registration {
    Registration { rings, ..all() }
}

/// What monitors want.
pub const TX: Monitor = Monitor { tx: true, rx: false, zero_copy: false };
pub const RX: Monitor = Monitor { tx: false, rx: true, zero_copy: false };
pub const ZERO_COPY: Monitor = Monitor { tx: false, rx: false, zero_copy: true };

/// A request for a monitor of all rings.
pub fn monitor(monitor: Monitor) -> Registration {
    Registration { monitor, ..all() }
}

/// A request for all rings of a port to be made with `rings` and `slots`, tx before rx.
pub fn shaped(rings: [u16; 2], slots: [u32; 2]) -> Registration {
    Registration {
        tx_rings: rings[0],
        rx_rings: rings[1],
        tx_slots: slots[0],
        rx_slots: slots[1],
        ..all()
    }
}

impl World {
    /// In a network namespace of the test's own, if it may have one: persistent ports are
    /// interfaces.
    pub fn new() -> World {
        if ringway_testkit::is_root() {
            ringway_testkit::isolate_thread();
        }
        let settings = Settings { max_bridges: 8, ..Settings::default() };
        World { registry: Registry::new(settings), caller: Caller::myself() }
    }

    /// Asks on a handle of its own, for requests that need none.
    pub fn ask(&mut self, request: Request) -> Result<Reply, i32> {
        let handle = self.registry.open();
        let reply = self.registry.call(handle, &self.caller, request);
        self.registry.close(handle);
        reply.map(|(reply, _)| reply).map_err(told)
    }

    pub fn register_on(
        &mut self,
        handle: Handle,
        name: &str,
        reg: Registration,
    ) -> Result<Grant, i32> {
        self.register_with(handle, name, reg, Options::default())
    }

    pub fn register_with(
        &mut self,
        handle: Handle,
        name: &str,
        reg: Registration,
        options: Options,
    ) -> Result<Grant, i32> {
        let request =
            Request::Register { name: name.into(), registration: reg, options: Box::new(options) };
        match self.registry.call(handle, &self.caller, request).map_err(told)? {
            (Reply::Granted(grant), fds) => {
                let most = grant.rings.iter().map(|r| r.doorbell).max().unwrap_or(0);
                assert!(fds.len() > most.into(), "every descriptor that the grant names is there");
                Ok(*grant)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Registers on a new handle, which is closed again if that fails.
    pub fn register(&mut self, name: &str, reg: Registration) -> Result<(Handle, Grant), i32> {
        let handle = self.registry.open();
        match self.register_on(handle, name, reg) {
            Ok(grant) => Ok((handle, grant)),
            Err(errno) => {
                self.registry.close(handle);
                Err(errno)
            }
        }
    }

    pub fn open(&mut self, name: &str) -> (Handle, Grant) {
        self.register(name, all()).unwrap_or_else(|errno| panic!("{name}: errno {errno}"))
    }

    pub fn close<const N: usize>(&mut self, handles: [Handle; N]) {
        handles.into_iter().for_each(|handle| self.registry.close(handle));
    }

    /// A ring of an open port, as its program has it.
    pub fn ring(&mut self, handle: Handle, dir: Dir) -> Kring {
        let described = self.registry.call(handle, &self.caller, Request::Describe);
        let Ok((Reply::Granted(grant), mut fds)) = described else { panic!("{described:?}") };
        let Grant { mem_id, layout, rings, .. } = *grant;
        let region: Arc<Region> = Region::open(fds.swap_remove(0), mem_id, layout).unwrap().into();
        let ring = rings.iter().find(|ring| ring.dir == dir).unwrap();
        Kring::open(&region, ring.object, dir, ring.num_slots).unwrap()
    }

    /// Loses what a program with that handle can lose: its extra buffers, and those in some slots.
    pub fn lose_buffers(&mut self, handle: Handle) {
        let described = self.registry.call(handle, &self.caller, Request::Describe);
        let Ok((Reply::Granted(grant), mut fds)) = described else { panic!("{described:?}") };
        let region = Region::open(fds.swap_remove(0), grant.mem_id, grant.layout).unwrap().into();
        for ring in &grant.rings {
            let view = RingView::new(&region, ring.object, ring.num_slots).unwrap();
            (0..ring.num_slots.min(8)).for_each(|slot| view.set_slot(slot, 0, 0, 0));
        }
        let ifs = &grant.layout.ifs;
        let netif = (grant.netif_offset - ifs.offset) / u64::from(ifs.size);
        NetifView::new(&region, netif as u32).unwrap().set_bufs_head(0);
    }

    pub fn newif(&mut self, name: &str) -> Result<PortShape, i32> {
        let shape = PortShape::default();
        match self.ask(Request::NewInterface { name: name.into(), shape })? {
            Reply::NewInterface(made) => Ok(made),
            other => panic!("{other:?}"),
        }
    }

    pub fn delif(&mut self, name: &str) -> Result<(), i32> {
        self.ask(Request::DeleteInterface { name: name.into() }).map(drop)
    }

    pub fn attach(&mut self, name: &str) -> Result<u32, i32> {
        self.attach_as(name, false)
    }

    pub fn attach_as(&mut self, name: &str, stack: bool) -> Result<u32, i32> {
        self.attach_in(name, stack, None)
    }

    pub fn attach_in(
        &mut self,
        name: &str,
        stack: bool,
        mode: Option<NicMode>,
    ) -> Result<u32, i32> {
        index(self.ask(Request::SwitchAttach {
            name: name.into(),
            stack,
            all_rings: true,
            mem_id: 0,
            mode,
        })?)
    }

    pub fn detach(&mut self, name: &str) -> Result<u32, i32> {
        index(self.ask(Request::SwitchDetach { name: name.into() })?)
    }

    pub fn list(&mut self, name: &str, bridge: u16, port: u32) -> Result<(String, u16, u32), i32> {
        let from = SwitchPosition { switch: bridge, port };
        match self.ask(Request::SwitchFind { name: name.into(), from })? {
            Reply::SwitchFound { name, at } => Ok((name, at.switch, at.port)),
            other => panic!("{other:?}"),
        }
    }

    pub fn ports(&mut self) -> Vec<PortInfo> {
        match self.ask(Request::Ports { from: 0 }) {
            Ok(Reply::Ports { ports, next: None }) => ports,
            other => panic!("{other:?}"),
        }
    }

    /// As they are now: what was ever in use at once is not taken back.
    pub fn regions(&mut self) -> Vec<RegionInfo> {
        match self.ask(Request::Regions { from: Default::default() }) {
            Ok(Reply::Regions { regions, next: None }) => {
                regions.into_iter().map(|region| RegionInfo { asked: 0, ..region }).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn bridges(&mut self) -> Vec<String> {
        match self.ask(Request::Switches { from: SwitchPosition::default() }) {
            Ok(Reply::Switches { switches, next: None }) => {
                switches.into_iter().map(|b| b.name).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn assert_empty(&mut self) {
        let names: Vec<String> = self.ports().into_iter().map(|p| p.name).collect();
        assert_eq!(names, [""; 0]);
        assert_eq!(self.regions(), []);
        assert_eq!(self.bridges(), [""; 0]);
        assert_eq!(self.registry.handles(), 0);
    }
}

/// The errno of a refusal, which has a sentence for people too.
fn told(error: Error) -> i32 {
    assert!(error.to_string().len() > 10, "{error:?}");
    ringway_errno::errno(error.cause)
}

fn index(reply: Reply) -> Result<u32, i32> {
    match reply {
        Reply::Index(index) => Ok(index),
        other => panic!("{other:?}"),
    }
}
