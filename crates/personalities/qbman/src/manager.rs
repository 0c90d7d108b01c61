//! The manager: queues, channels, groups, pools and numbers together.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};

use crate::{
    Arbitration, Entry, Error, Group, GroupSettings, Ids, Message, Notifier, POOLS, Pools, QUEUES,
    WORK_QUEUES,
    channel::{Channel, Wake},
    congestion::{GROUPS, Groups},
    entry::Rows,
    message::Inbox,
    table::Table,
    take::Taker,
};

/// Portals that there are, each with a channel of its own of the same number.
pub const PORTALS: u8 = 32;
/// Channels have numbers below this.
pub const CHANNELS: u16 = 256;
/// Channels that several portals may take from: of the pools 1 to 15.
pub const POOL_CHANNELS: RangeInclusive<u16> = 0x21..=0x2f;
/// Channels that interfaces and other engines take from.
pub const DIRECT_CHANNELS: RangeInclusive<u16> = 0x40..=0xff;

/// A pool of portals: 1 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool(pub u8);

/// The channel of a pool.
pub fn pool_channel(pool: Pool) -> Option<u16> {
    let channel = POOL_CHANNELS.start() - 1 + u16::from(pool.0);
    POOL_CHANNELS.contains(&channel).then_some(channel)
}

/// Queues and buffers, and all that is between them. Nothing of it is shared between managers.
pub struct Manager {
    /// Buffers.
    pub pools: Pools,
    /// Numbers of queues: all can be reserved; those from 0x10000 to 0x1ffff are given out.
    pub queue_ids: Ids,
    /// Numbers of channels that portals share ([`POOL_CHANNELS`]): all are given out.
    pub channel_ids: Ids,
    /// Numbers of congestion groups: all are given out.
    pub group_ids: Ids,
    /// Numbers of pools of buffers: those from 32 are given out.
    pub pool_ids: Ids,
    pub(crate) queues: Table,
    pub(crate) groups: Groups,
    pub(crate) inboxes: Box<[Inbox]>,
    channels: Box<[Channel]>,
    /// The pools on whose channels something is: a bit for each.
    pub(crate) ready: Arc<AtomicU16>,
}

/// The manager of this process.
pub fn manager() -> &'static Manager {
    static MANAGER: OnceLock<Manager> = OnceLock::new();
    MANAGER.get_or_init(Manager::new)
}

impl Default for Manager {
    fn default() -> Manager {
        Manager::new()
    }
}

impl Manager {
    /// One with nothing in it.
    pub fn new() -> Manager {
        let ids = |limit, first, count| {
            let ids = Ids::new(limit);
            ids.seed(first, count);
            ids
        };
        let ready = Arc::new(AtomicU16::new(0));
        let channel = |number| match number {
            number if POOL_CHANNELS.contains(&number) => {
                Channel::of_pool((number - POOL_CHANNELS.start() + 1) as u8, ready.clone())
            }
            _ => Channel::default(),
        };
        Manager {
            pools: Pools::new(),
            queue_ids: ids(QUEUES, 0x1_0000, 0x1_0000),
            channel_ids: ids(0x30, 0x21, 15),
            group_ids: ids(GROUPS as u32, 0, GROUPS as u32),
            pool_ids: ids(POOLS as u32, 32, POOLS as u32 - 32),
            queues: Table::new(),
            groups: Groups::new(),
            inboxes: (0..PORTALS).map(|_| Inbox::default()).collect(),
            channels: (0..CHANNELS).map(channel).collect(),
            ready,
        }
    }

    /// A channel that queues can be put on.
    ///
    /// # Errors
    /// [`Error::NoChannel`].
    #[inline]
    pub(crate) fn channel(&self, number: u16) -> Result<&Channel, Error> {
        let exists = number < PORTALS.into()
            || POOL_CHANNELS.contains(&number)
            || DIRECT_CHANNELS.contains(&number);
        let channel = self.channels.get(usize::from(number)).filter(|_| exists);
        channel.ok_or(Error::NoChannel(number))
    }

    /// Takes frames from the queues of a channel, as the sender of an interface: how many. Each queue keeps its order,
    /// as long as one thread drains the channel; nothing is held active.
    pub fn drain(&self, channel: u16, entries: &mut [Entry]) -> usize {
        let Ok(channel) = self.channel(channel) else { return 0 };
        let mut rows = Rows::new(entries);
        Taker { manager: self, portal: None }.take_from(channel, &mut rows);
        self.groups.news().now();
        rows.taken()
    }

    /// Has `sleeper` raised by the next frame on a channel, once. Not if there is one already, which must be drained
    /// first: `false`.
    pub fn arm(&self, channel: u16, sleeper: &Arc<Notifier>) -> bool {
        self.channel(channel).is_ok_and(|channel| channel.arm(sleeper))
    }

    /// Takes a sleeper off a channel.
    pub fn disarm(&self, channel: u16, sleeper: &Arc<Notifier>) {
        if let Ok(channel) = self.channel(channel) {
            channel.disarm(sleeper);
        }
    }

    /// How many queues wait on each work queue of a channel.
    ///
    /// # Errors
    /// [`Error::NoChannel`].
    pub fn lengths(&self, channel: u16) -> Result<[u32; WORK_QUEUES], Error> {
        Ok(self.channel(channel)?.lengths())
    }

    /// How a channel chooses among its work queues.
    ///
    /// # Errors
    /// [`Error::NoChannel`].
    pub fn arbitrate(&self, channel: u16, arbitration: Arbitration) -> Result<(), Error> {
        self.channel(channel)?.arbitrate(arbitration);
        Ok(())
    }

    /// A congestion group.
    ///
    /// # Errors
    /// [`Error::NoGroup`].
    pub fn group(&self, number: u32) -> Result<&Group, Error> {
        self.groups.checked(number)
    }

    /// Changes a congestion group; what is in its queues stays counted.
    ///
    /// # Errors
    /// [`Error::NoGroup`].
    pub fn set_group(&self, number: u32, settings: GroupSettings) -> Result<(), Error> {
        self.groups.set(self.groups.checked(number)?, settings);
        self.groups.news().now();
        Ok(())
    }

    /// Tells a portal; `None` is an interface, which is told by results.
    pub(crate) fn post(&self, portal: Option<u8>, message: Message) -> Wake {
        let inbox = portal.and_then(|portal| self.inboxes.get(usize::from(portal)));
        inbox.map_or_else(Wake::default, |inbox| inbox.post(message))
    }

    /// Tells a portal, or the first that is in use, of a frame that an interface has enqueued and that was not taken:
    /// `false` where it is told of none, and the frame is still the caller's.
    pub fn post_rejected(&self, portal: Option<u8>, message: Message) -> bool {
        let inbox = match portal {
            Some(portal) => self.inboxes.get(usize::from(portal)),
            None => self.inboxes.iter().find(|inbox| inbox.is_bound.load(Relaxed)),
        };
        inbox.and_then(|inbox| inbox.offer_frame(message)).map(Wake::now).is_some()
    }
}
