//! What a client expects to be answered with.

use ringway_proto::{
    AddressInfo, BridgeInfo, DaemonInfo, DeviceCounter, EventPage, Grant, GroupInfo, MirrorGrant,
    NameConflict, Parameters, Pools, PortGeometry, PortInfo, PortShape, RegionInfo, RegionPosition,
    Reply, RingInfo, Steered, SwitchPosition,
};
use serde::Deserialize;

/// What one variant of [`Reply`] holds.
///
/// A client names the answer that it expects, by this type. So its program carries the decoders of
/// the answers that it asks for, and no others.
pub trait Answer: Sized {
    /// The number of the variant, as it is encoded.
    const VARIANT: u32;

    /// What the reply holds; `None` if it is another one.
    fn of(reply: Reply) -> Option<Self>;

    /// What is encoded behind the number, and what is left of the bytes.
    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])>;
}

/// The index of a port within its switch, in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Index(pub u32);

/// Bytes of the virtio-net header of a port, in an answer: 0, 10 or 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct HeaderLen(pub u32);

/// A port of a switch, in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SwitchFound {
    /// Its full name.
    pub name: String,
    /// Where it is.
    pub at: SwitchPosition,
}

/// A part of a list, in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Page<T, P> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<P>,
}

macro_rules! answers {
    ($($variant:literal $type:ty: $reply:pat => $held:expr;)*) => {$(
        impl Answer for $type {
            const VARIANT: u32 = $variant;

            fn of(reply: Reply) -> Option<Self> {
                match reply {
                    $reply => Some($held),
                    _ => None,
                }
            }

            fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
                postcard::take_from_bytes(bytes).ok()
            }
        }
    )*};
}

answers! {
    0 (): Reply::Done => ();
    1 Box<Grant>: Reply::Granted(grant) => grant;
    2 Vec<MirrorGrant>: Reply::Mirrors(grants) => grants;
    3 PortGeometry: Reply::PortGeometry(geometry) => geometry;
    4 Pools: Reply::Pools(pools) => pools;
    5 PortShape: Reply::NewInterface(made) => made;
    6 HeaderLen: Reply::HeaderLen(len) => HeaderLen(len);
    7 Index: Reply::Index(index) => Index(index);
    8 SwitchFound: Reply::SwitchFound { name, at } => SwitchFound { name, at };
    9 Page<BridgeInfo, SwitchPosition>:
        Reply::Switches { switches: items, next } => Page { items, next };
    10 Page<PortInfo, u64>: Reply::Ports { ports: items, next } => Page { items, next };
    11 Page<RingInfo, u32>: Reply::Rings { rings: items, next } => Page { items, next };
    12 Page<RegionInfo, RegionPosition>:
        Reply::Regions { regions: items, next } => Page { items, next };
    13 Steered: Reply::Steered(steered) => steered;
    14 Parameters: Reply::Parameters(parameters) => parameters;
    15 Vec<NameConflict>: Reply::NameConflicts(conflicts) => conflicts;
    16 Page<AddressInfo, u32>:
        Reply::SwitchAddresses { addresses: items, next } => Page { items, next };
    17 Page<DeviceCounter, u32>:
        Reply::DeviceCounters { counters: items, next } => Page { items, next };
    18 DaemonInfo: Reply::Daemon(info) => info;
    19 EventPage: Reply::Events(page) => page;
    20 Page<GroupInfo, u32>:
        Reply::SwitchGroups { groups: items, next } => Page { items, next };
}

#[cfg(test)]
mod tests {
    use ringway_proto::{Layout, Options, PortKind, Registration, Sizes};

    use super::*;

    fn replies() -> Vec<Reply> {
        let layout = Layout::new(&Sizes::private([2, 2], [1024, 1024], 2, 0), 0).expect("a layout");
        let (ifs, rings, bufs) = (layout.ifs, layout.rings, layout.bufs);
        let grant = Grant {
            name: "vale0:a".into(),
            kind: PortKind::Vale,
            mem_id: 2,
            layout,
            netif_offset: 0,
            registration: Registration::default(),
            options: Options::default(),
            rings: Vec::new(),
            extra_bufs: Vec::new(),
            timestamps: true,
            switch_owner: None,
        };
        let steered = Steered { moved: 0, table: 0, rules_turned_on: false, rules: Vec::new() };
        vec![
            Reply::Done,
            Reply::Granted(Box::new(grant)),
            Reply::Mirrors(Vec::new()),
            Reply::PortGeometry(PortGeometry::default()),
            Reply::Pools(Pools { memsize: layout.memsize(), mem_id: 2, ifs, rings, bufs }),
            Reply::NewInterface(PortShape::default()),
            Reply::HeaderLen(12),
            Reply::Index(1),
            Reply::SwitchFound { name: "vale0:a".into(), at: SwitchPosition::default() },
            Reply::Switches { switches: Vec::new(), next: None },
            Reply::Ports { ports: Vec::new(), next: None },
            Reply::Rings { rings: Vec::new(), next: None },
            Reply::Regions { regions: Vec::new(), next: None },
            Reply::Steered(steered),
            Reply::Parameters(Parameters { max_bridges: 0, nic_slots: 0, timestamps: true }),
            Reply::NameConflicts(Vec::new()),
            Reply::SwitchAddresses { addresses: Vec::new(), next: None },
            Reply::DeviceCounters { counters: Vec::new(), next: None },
            Reply::Daemon(DaemonInfo::default()),
            Reply::Events(EventPage { events: Vec::new(), next: 0, more: false, missed: 0 }),
            Reply::SwitchGroups { groups: Vec::new(), next: None },
        ]
    }

    /// The number of the reply, if `T` takes it. It takes then all that is encoded behind the number.
    fn taken<T: Answer>(reply: &Reply) -> Option<u32> {
        T::of(reply.clone())?;
        let bytes = postcard::to_allocvec(reply).expect("a reply");
        let (variant, held) = postcard::take_from_bytes::<u32>(&bytes).expect("a number");
        let rest = T::decode(held).map(|(_, rest)| rest.len());
        assert_eq!((variant, rest), (T::VARIANT, Some(0)), "{reply:?}");
        Some(variant)
    }

    #[test]
    fn each_reply_is_the_answer_of_one_type() {
        let types = [
            taken::<()>,
            taken::<Box<Grant>>,
            taken::<Vec<MirrorGrant>>,
            taken::<PortGeometry>,
            taken::<Pools>,
            taken::<PortShape>,
            taken::<HeaderLen>,
            taken::<Index>,
            taken::<SwitchFound>,
            taken::<Page<BridgeInfo, SwitchPosition>>,
            taken::<Page<PortInfo, u64>>,
            taken::<Page<RingInfo, u32>>,
            taken::<Page<RegionInfo, RegionPosition>>,
            taken::<Steered>,
            taken::<Parameters>,
            taken::<Vec<NameConflict>>,
            taken::<Page<AddressInfo, u32>>,
            taken::<Page<DeviceCounter, u32>>,
            taken::<DaemonInfo>,
            taken::<EventPage>,
            taken::<Page<GroupInfo, u32>>,
        ];
        for (variant, reply) in replies().iter().enumerate() {
            let takers: Vec<u32> = types.iter().filter_map(|taken| taken(reply)).collect();
            assert_eq!(takers, [variant as u32], "{reply:?}");
        }
    }
}
