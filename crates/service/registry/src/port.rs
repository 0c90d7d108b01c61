//! A port and its rings, on the registry's side.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_proto::{Error, Result};
use ringway_region::RingInit;
use ringway_vale::PortConfig;

use crate::{
    host_rings::HostRings,
    kinds::PortBackend,
    regions::{RegionBook, RegionKey, Regions},
    selection::Selection,
    settings::Settings,
};

/// Names a port in the registry's book.
pub(crate) type PortId = u64;

/// One ring of a port.
pub(crate) struct Ring {
    pub kring: Kring,
    /// What the program of this ring sleeps on.
    pub doorbell: Arc<Doorbell>,
    pub users: u32,
    pub exclusive: bool,
    /// Where packets begin in their buffers, if not at the start.
    pub offsets: Option<Offsets>,
    /// Whether its slots have buffers yet.
    pub filled: bool,
    /// Buffers that the driver has in place of those that the kernel does not reach.
    pub spares: Vec<u32>,
}

impl Ring {
    /// Whether a socket that reaches so many buffers reaches the spare ones, which is all that it has to: what slots
    /// name, clients may write, and the driver copies where that is out of reach.
    pub fn is_within(&self, reach: u32) -> bool {
        self.spares.iter().all(|&spare| spare < reach)
    }
}

/// A port.
pub(crate) struct Port {
    pub name: String,
    pub uid: u32,
    /// Another user whose it is, too.
    pub shared_with: Option<u32>,
    /// What makes it the kind of port that it is.
    pub backend: Box<dyn PortBackend>,
    pub region: RegionKey,
    /// They are the port's, whichever descriptors have them (S-NIFP-6).
    pub tx: Vec<Ring>,
    pub rx: Vec<Ring>,
    /// Which of them are host rings.
    pub host: HostRings,
    /// Its interface has gone: its rings are stopped, and no name finds it any more.
    pub gone: bool,
    /// Handles bound to it.
    pub bindings: u32,
    /// Pipes that have it as parent.
    pub children: u32,
    /// Requests that are setting it up, and not answered yet.
    pub awaited: u32,
    /// How a VALE port takes part in the bridge that it is on.
    pub config: PortConfig,
    /// Whether any program has its receive rings, those of the host apart.
    pub receives: Arc<AtomicBool>,
}

/// Counts of rings and slots, tx before rx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub rings: [u32; 2],
    pub slots: [u32; 2],
}

impl Shape {
    /// Whether any of a selection of rings, tx before rx, is a host ring.
    pub fn has_host(&self, rings: &Selection) -> bool {
        let beyond =
            |(chosen, count): (&Vec<u16>, u32)| chosen.iter().any(|&i| u32::from(i) >= count);
        rings.iter().zip(self.rings).any(beyond)
    }
}

impl Port {
    /// Whether its programs may hold what directs an interface's traffic, which is not theirs alone:
    /// those of root and of this process's own user.
    pub fn may_keep_traffic(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::getuid().as_raw()
    }

    /// Whether it is there for a program that is about to have it, and for nothing else.
    pub fn is_being_opened(&self) -> bool {
        self.awaited > 0 && self.bindings + self.children == 0 && !self.backend.is_set_up()
    }

    /// Whether no program has it, or is about to.
    pub fn is_unused(&self) -> bool {
        self.bindings == 0 && self.awaited == 0
    }

    pub fn rings(&self, dir: Dir) -> &[Ring] {
        match dir {
            Dir::Tx => &self.tx,
            Dir::Rx => &self.rx,
        }
    }

    pub fn rings_mut(&mut self, dir: Dir) -> &mut Vec<Ring> {
        match dir {
            Dir::Tx => &mut self.tx,
            Dir::Rx => &mut self.rx,
        }
    }

    /// The rings of one direction but for the host's.
    pub fn nic_rings(&self, dir: Dir) -> &[Ring] {
        split_host(self.rings(dir), self.host.made(dir)).0
    }

    /// The host rings of one direction, as far as they have been made.
    pub fn host_rings(&self, dir: Dir) -> &[Ring] {
        split_host(self.rings(dir), self.host.made(dir)).1
    }

    /// The host rings of both directions.
    pub fn all_host_rings(&self) -> impl Iterator<Item = &Ring> {
        [Dir::Tx, Dir::Rx].into_iter().flat_map(|dir| self.host_rings(dir))
    }

    /// The same, to change them.
    pub fn host_rings_mut(&mut self) -> impl Iterator<Item = &mut Ring> {
        let nic = [Dir::Tx, Dir::Rx].map(|dir| self.nic_rings(dir).len());
        self.tx.iter_mut().skip(nic[0]).chain(self.rx.iter_mut().skip(nic[1]))
    }

    /// Takes all rings out of the port.
    pub fn take_rings(&mut self) -> Vec<Ring> {
        self.host.open = false;
        self.tx.drain(..).chain(self.rx.drain(..)).collect()
    }

    /// Takes the host rings out of the port, which has none from then on.
    pub fn take_host_rings(&mut self) -> Vec<Ring> {
        let mut taken = Vec::new();
        for dir in [Dir::Tx, Dir::Rx] {
            let nic = self.nic_rings(dir).len();
            taken.extend(self.rings_mut(dir).drain(nic..));
        }
        self.host.open = false;
        taken
    }

    /// The rings of both directions.
    pub fn all_rings(&self) -> impl Iterator<Item = &Ring> {
        self.tx.iter().chain(&self.rx)
    }

    pub fn set_rings(&mut self, [tx, rx]: [Vec<Ring>; 2]) {
        (self.tx, self.rx) = (tx, rx);
    }

    /// The state of its kind, if it is a `K`.
    pub fn get<K: PortBackend>(&self) -> Option<&K> {
        (self.backend.as_ref() as &dyn Any).downcast_ref()
    }

    pub fn get_mut<K: PortBackend>(&mut self) -> Option<&mut K> {
        state_mut(&mut self.backend)
    }

    pub fn is<K: PortBackend>(&self) -> bool {
        self.get::<K>().is_some()
    }

    /// Rings and slots, those of the host apart, in netmap mode or not.
    pub fn shape(&self, settings: &Settings) -> Shape {
        self.backend.shape(settings, self)
    }

    /// Fails when its interface has gone.
    pub fn check_there(&self) -> Result<()> {
        match self.gone {
            true => Err(Error::absent("the network interface has gone")
                .at(&self.name)
                .remedy("open the port again when it is back")),
            false => Ok(()),
        }
    }

    /// Rings and slots of those that have been made, those of the host apart.
    pub fn made_shape(&self) -> Shape {
        let rings = [Dir::Tx, Dir::Rx].map(|dir| self.nic_rings(dir));
        let slots = |rings: &[Ring]| rings.first().map_or(0, |r| r.kring.ring().num_slots());
        Shape { rings: rings.map(|rings| rings.len() as u32), slots: rings.map(slots) }
    }

    /// EBUSY if a program has one of these rings, tx before rx, for itself, or if they are wanted so and
    /// some program has one (S-REG-5, S-REG-6).
    pub fn check_free(&self, rings: &Selection, exclusive: bool) -> Result<()> {
        let wanted = [Dir::Tx, Dir::Rx].into_iter().zip(rings).flat_map(|(dir, rings)| {
            rings.iter().filter_map(move |&i| self.rings(dir).get(usize::from(i)))
        });
        for ring in wanted {
            if ring.exclusive || (exclusive && ring.users > 0) {
                return Err(Error::busy("in use by another program")
                    .at(&self.name)
                    .remedy("close it, or do not ask for exclusive use"));
            }
        }
        Ok(())
    }

    /// One more binding has these rings.
    pub fn add_binding(&mut self, rings: &Selection, exclusive: bool) {
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(rings) {
            for &i in taken {
                let Some(ring) = self.rings_mut(dir).get_mut(usize::from(i)) else { continue };
                ring.users += 1;
                ring.exclusive = exclusive;
            }
        }
        self.bindings += 1;
        self.update_receives();
    }

    /// A binding of these rings has gone.
    pub fn remove_binding(&mut self, rings: &Selection, exclusive: bool) {
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(rings) {
            for &i in taken {
                let Some(ring) = self.rings_mut(dir).get_mut(usize::from(i)) else { continue };
                ring.users -= 1;
                if exclusive {
                    ring.exclusive = false;
                    ring.kring.leave_csb();
                }
            }
        }
        self.bindings -= 1;
        self.update_receives();
    }

    /// Tells the bridge whether deliveries to this port make sense (S-VALE-10).
    pub fn update_receives(&self) {
        let bound = self.nic_rings(Dir::Rx).iter().any(|r| r.users > 0);
        self.receives.store(bound || self.backend.is_joined(), Relaxed);
    }
}

/// Rings of one direction, apart from the `host` last ones, which are host rings.
pub(crate) fn split_host(rings: &[Ring], host: usize) -> (&[Ring], &[Ring]) {
    rings.split_at_checked(rings.len().saturating_sub(host)).unwrap_or((rings, &[]))
}

/// The state of a port's kind, while the rest of the port is borrowed as well.
pub(crate) fn state_mut<K: PortBackend>(backend: &mut Box<dyn PortBackend>) -> Option<&mut K> {
    (backend.as_mut() as &mut dyn Any).downcast_mut()
}

impl Port {
    /// Makes the rings anew that the port has, in a region of which nothing is taken but by ports
    /// that are made anew as well. Nobody may have them, or serve them.
    #[expect(
        clippy::expect_used,
        reason = "the rings had as much of the region before it was cleared"
    )]
    pub fn renew_rings(&mut self, book: &mut RegionBook) {
        const AS_BEFORE: &str = "there was as much before";
        for (dir, rings) in [(Dir::Tx, &mut self.tx), (Dir::Rx, &mut self.rx)] {
            for (index, ring) in (0..).zip(rings) {
                let num_slots = ring.kring.ring().num_slots();
                let object = book.take_ring().expect(AS_BEFORE);
                let bufs = book.take_bufs(num_slots).expect(AS_BEFORE);
                let init = RingInit { dir, ringid: index, num_slots };
                ring.kring = Kring::create(&book.region, object, &init, &bufs).expect(AS_BEFORE);
                ring.offsets = None;
            }
        }
    }
}

/// Makes one fresh ring. `bufs`: its buffers, or `None` to take new ones.
pub(crate) fn make_ring(
    book: &mut RegionBook,
    dir: Dir,
    index: u32,
    slots: u32,
    bufs: Option<&[u32]>,
) -> Result<(Ring, Vec<u32>)> {
    let doorbell = Doorbell::charged_to(&book.signals)
        .map_err(|e| Error::io("cannot create a doorbell", e))?;
    book.check_slots(slots)?;
    let object = book.take_ring()?;
    let taken = match bufs {
        Some(bufs) => Ok(bufs.to_vec()),
        None => book.take_bufs(slots),
    };
    let taken = match taken {
        Ok(bufs) => bufs,
        Err(error) => {
            book.give_ring(object);
            return Err(error);
        }
    };
    let init = RingInit { dir, ringid: index as u16, num_slots: slots };
    #[expect(clippy::expect_used, reason = "the object is the pool's, and the slots fit it")]
    let kring = Kring::create(&book.region, object, &init, &taken)
        .expect("object and slots were checked above");
    let ring = Ring {
        kring,
        doorbell: Arc::new(doorbell),
        users: 0,
        exclusive: false,
        offsets: None,
        filled: true,
        spares: Vec::new(),
    };
    Ok((ring, taken))
}

/// Makes a fresh ring whose slots have no buffers, as long as no program has it.
pub(crate) fn make_empty_ring(
    book: &mut RegionBook,
    dir: Dir,
    index: u32,
    slots: u32,
) -> Result<Ring> {
    let none = vec![0; slots as usize];
    let (ring, _) = make_ring(book, dir, index, slots, Some(&none))?;
    Ok(Ring { filled: false, ..ring })
}

/// Gives such a ring its buffers, and spare ones.
pub(crate) fn fill_ring(book: &mut RegionBook, ring: &mut Ring) -> Result<()> {
    if !ring.filled {
        let view = ring.kring.ring();
        let bufs = book.take_bufs(view.num_slots())?;
        for (i, buf) in (0..view.num_slots()).zip(bufs) {
            let slot = view.slot(i);
            view.set_slot(i, buf, slot.len, slot.flags);
        }
        ring.filled = true;
    }
    add_spares(book, ring)
}

/// Gives a ring of a socket spare buffers, if it has none yet.
pub(crate) fn add_spares(book: &mut RegionBook, ring: &mut Ring) -> Result<()> {
    let places: Vec<_> = ring.kring.ring().spares().collect();
    if ring.spares.is_empty() && !places.is_empty() {
        ring.spares = book.take_bufs(places.len() as u32)?;
        places.iter().zip(&ring.spares).for_each(|(place, &spare)| place.store(spare, Relaxed));
        ring.kring.owner().spares.store(ring.spares.len() as u32, Relaxed);
    }
    Ok(())
}

/// Makes all rings of a port, or none.
pub(crate) fn make_rings(
    regions: &mut Regions,
    region: RegionKey,
    shape: Shape,
) -> Result<[Vec<Ring>; 2]> {
    make_all_rings(regions, region, shape, |book, dir, index, slots| {
        make_ring(book, dir, index, slots, None).map(|(ring, _)| ring)
    })
}

/// The same of rings that `make_one` makes.
pub(crate) fn make_all_rings(
    regions: &mut Regions,
    region: RegionKey,
    shape: Shape,
    make_one: impl Fn(&mut RegionBook, Dir, u32, u32) -> Result<Ring>,
) -> Result<[Vec<Ring>; 2]> {
    let book = regions.get(region);
    let ([tx_rings, rx_rings], [tx_slots, rx_slots]) = (shape.rings, shape.slots);
    let mut make = |dir, rings: u32, slots| {
        let mut made = Vec::new();
        for index in 0..rings {
            match make_one(book, dir, index, slots) {
                Ok(ring) => made.push(ring),
                Err(error) => {
                    made.iter().for_each(|ring| free_ring(book, ring));
                    return Err(error);
                }
            }
        }
        Ok(made)
    };
    let tx = make(Dir::Tx, tx_rings, tx_slots)?;
    let rx = make(Dir::Rx, rx_rings, rx_slots);
    let rx = rx.inspect_err(|_| tx.iter().for_each(|ring| free_ring(book, ring)))?;
    Ok([tx, rx])
}

/// Frees a ring with the buffers that are in its slots now (S-MEM-10).
pub(crate) fn free_ring(book: &mut RegionBook, ring: &Ring) {
    let view = ring.kring.ring();
    for i in 0..view.num_slots() {
        book.give_buf(view.slot(i).buf_idx);
    }
    ring.spares.iter().for_each(|&spare| {
        book.give_buf(spare);
    });
    book.give_ring(ring.kring.object());
}
