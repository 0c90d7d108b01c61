//! Clusters: programs that share the packets of a device.
//!
//! On a port one member [distributes](distributor): each of the others has a pipe of it, and when it ends the next
//! member does. On an interface, which is listened to, and on several devices each member has all packets, and takes its
//! share by what [`ringway_flow`] makes of them. What they have to agree on is a small [file].
//!
//! A queue whose member has gone, however it ended, is served by the member of the next queue that is held, until
//! somebody takes it. One that never had a member is served by none, as PF_RING has it.

mod distributor;
mod file;
mod news;
mod outlet;
mod port_member;
mod rendezvous;
mod sharing;
mod turns;

use std::{
    ffi::c_int,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    time::Duration,
};

use ringway_flow::{Cluster, ClusterType, Headers};
use ringway_live_capture::Opened;
use rustix::fs::{FlockOperation, flock};

use crate::source::Source;
use file::{Place, Shared, hold, is_locked, lock, loss, open_locked, read, write};
use port_member::PortMember;

pub use file::sweep;

/// The most that there can be.
const QUEUES: u32 = 64;
/// How old may be what a member knows of the others, in nanoseconds of its packets' times.
const FRESH: u64 = 1_000_000;

/// The `cluster_type` by source and by destination, which may be two queues; before it come those of [`ClusterType`].
const WITH_DUPLICATES: u32 = ClusterType::InnerIpFiveTuple as u32 + 1;
const ROUND_ROBIN: u32 = ClusterType::RoundRobin as u32;

/// A ring's place in a cluster, until it is dropped.
pub struct Member {
    pub id: u16,
    pub queue: u32,
    file: File,
    shared: Shared,
    cluster: Cluster,
    /// Queues whose packets are this member's, a bit for each: its own, and those of members that have gone.
    serves: u64,
    /// When the file was last read, and how much time has passed by then: nanoseconds of packets' times.
    read: u64,
    age: u64,
    /// Another hands each member its packets: the kernel, or the member that distributes.
    pub is_shared_out: bool,
    on_port: Option<PortMember>,
    /// What the queue had lost before the ring was enabled.
    lost_before: u64,
    /// Dropped when the file has been closed.
    place: Place,
}

impl Member {
    /// Joins a cluster; `queue` beyond all is the first that is free. An error number else.
    pub fn join(
        id: u16,
        queue: u32,
        kind: u32,
        options: u32,
        device: &str,
    ) -> Result<Member, c_int> {
        if id == 0 || kind > WITH_DUPLICATES {
            return Err(libc::EINVAL);
        }
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let (place, file) = open_locked(id).map_err(number)?;
        let joined = Member::join_locked(&file, queue, (kind, options), device);
        let unlocked = flock(&file, FlockOperation::Unlock);
        let (queue, shared) = joined?;
        unlocked.map_err(|error| error.raw_os_error())?;
        Ok(Member {
            serves: serves(shared.used, queue, |other| is_locked(&file, other)),
            id,
            queue,
            file,
            shared,
            cluster: cluster(shared),
            read: 0,
            age: 0,
            is_shared_out: false,
            on_port: None,
            lost_before: 0,
            place,
        })
    }

    /// Has packets of a ring's only device handed out, where that can be done.
    pub fn share_out(&mut self, source: &Source) -> Result<(), c_int> {
        match &source.opened {
            Opened::Port(live) if !source.is_file() => {
                let port = (source.name.as_str(), source.settings);
                let reader = (live, &source.signals);
                let file = (&self.file, self.place.socket());
                let begun = PortMember::begin(file, self.shared, self.queue, port, reader)?;
                self.on_port = Some(begun);
                self.is_shared_out = true;
                self.forget_lost();
            }
            Opened::Port(_) => {}
            Opened::Tap(tap) if self.shared.kind == ROUND_ROBIN => {
                lock(&self.file).map_err(|error| error.raw_os_error())?;
                self.is_shared_out = turns::take(&self.file, tap.as_fd());
                let _ = flock(&self.file, FlockOperation::Unlock);
            }
            Opened::Tap(_) => {}
        }
        Ok(())
    }

    /// The ring goes on alone, with these devices.
    pub fn leave(mut self, sources: &[Source]) -> Result<(), c_int> {
        match (self.on_port.take(), sources) {
            (Some(on_port), _) => on_port.leave(),
            (None, [Source { opened: Opened::Tap(tap), signals, .. }]) if self.is_shared_out => {
                // The kernel lets no socket out of a group.
                tap.listen_anew(signals).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
            }
            _ => Ok(()),
        }
    }

    /// Packets of the queue that found no room.
    pub fn lost(&self) -> u64 {
        let lost = if self.on_port.is_some() { loss(&self.file, self.queue) } else { 0 };
        lost.saturating_sub(self.lost_before)
    }

    /// Those before do not count.
    pub fn forget_lost(&mut self) {
        self.lost_before = 0;
        self.lost_before = self.lost();
    }

    fn join_locked(
        file: &File,
        queue: u32,
        (kind, options): (u32, u32),
        device: &str,
    ) -> Result<(u32, Shared), c_int> {
        let mut hasher = DefaultHasher::new();
        device.hash(&mut hasher);
        let device = hasher.finish();
        let taken: Vec<bool> = (0..QUEUES).map(|queue| is_locked(file, queue)).collect();
        let new = Shared { kind, queues: 0, options, device, used: 0 };
        let shared = match taken.contains(&true) {
            // The first of a cluster says how it is shared out.
            false => new,
            true => read(file).unwrap_or(new),
        };
        if shared.device != device {
            return Err(libc::EINVAL);
        }
        let free = (0..QUEUES).find(|queue| !taken[*queue as usize]);
        let queue = match queue {
            queue if queue >= QUEUES => free.ok_or(libc::EPERM)?,
            queue if taken[queue as usize] => return Err(libc::EBUSY),
            queue => queue,
        };
        hold(file, queue)?;
        let (queues, used) = (shared.queues.max(queue + 1), shared.used | 1 << queue);
        let shared = Shared { queues, used, ..shared };
        write(file, shared).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        if !taken.contains(&true) {
            turns::forget(file);
        }
        Ok((queue, shared))
    }

    /// Whether a packet that begins so, and came at that time in nanoseconds, is this member's.
    pub fn takes(&mut self, window: &[u8], time: u64) -> bool {
        // The clock of packets may go back.
        if time.abs_diff(self.read) >= FRESH {
            self.age += time.saturating_sub(self.read);
            self.read = time;
            self.refresh();
        }
        let headers = Headers::parse(window);
        let queues = self.shared.queues;
        let serves = |queue: u32| self.serves >> queue & 1 != 0;
        match self.shared.kind {
            WITH_DUPLICATES => {
                let network = headers.tunnel.map_or(headers.network, |tunnel| tunnel.network);
                network.address_sums().iter().any(|sum| serves(sum % queues))
            }
            // Members do not count alike: what a packet is says whose turn it is.
            ROUND_ROBIN => {
                let mut hasher = DefaultHasher::new();
                window.hash(&mut hasher);
                serves((hasher.finish() % u64::from(queues)) as u32)
            }
            _ => serves(self.cluster.queue(&headers, Duration::from_nanos(self.age))),
        }
    }

    fn refresh(&mut self) {
        let Some(shared) = read(&self.file) else { return };
        if shared != self.shared {
            self.shared = shared;
            self.cluster = cluster(shared);
        }
        self.serves = serves(shared.used, self.queue, |queue| is_locked(&self.file, queue));
    }
}

/// The queues that the member with `own` serves, of those that were `used`: a bit for each.
fn serves(used: u64, own: u32, is_held: impl Fn(u32) -> bool) -> u64 {
    let mut served = 1 << own;
    // Backwards from its own, as far as the next that is held.
    for step in 1..QUEUES {
        let queue = (own + QUEUES - step) % QUEUES;
        if used >> queue & 1 != 0 {
            if is_held(queue) {
                break;
            }
            served |= 1 << queue;
        }
    }
    served
}

fn cluster(shared: Shared) -> Cluster {
    let kind = ClusterType::from_number(shared.kind).unwrap_or(ClusterType::PerFlow);
    Cluster::new(kind, shared.queues)
}

/// What distributes by flow among so many queues, which all have their members.
#[cfg(feature = "stepped")]
pub fn by_flow(queues: u32) -> sharing::Sharing {
    let used = (1 << queues) - 1;
    let shared = Shared { kind: 0, queues, options: 0, device: 0, used };
    let mut sharing = sharing::Sharing::new(shared);
    sharing.set(shared, &(0..queues).collect::<Vec<_>>());
    sharing
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, os::fd::AsRawFd};

    use super::{file::tests::file, *};

    #[test]
    fn queues_are_held_by_the_living() {
        let (one, other) = file();
        let join = |file: &File, queue| Member::join_locked(file, queue, (2, 0), "eth0");
        assert_eq!(join(&one, 64).unwrap().0, 0);
        assert_eq!(join(&other, 0).unwrap_err(), libc::EBUSY);
        assert_eq!(Member::join_locked(&other, 64, (2, 0), "eth1").unwrap_err(), libc::EINVAL);
        let (queue, shared) = Member::join_locked(&other, 3, (4, 0), "eth0").unwrap();
        assert_eq!((queue, shared.queues, shared.kind), (3, 4, 2), "the first has said how");
        drop(one);
        let again = other.try_clone().unwrap();
        drop(other);
        // Held as long as any descriptor of it is open.
        let path = format!("/proc/self/fd/{}", again.as_raw_fd());
        let third = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let (queue, shared) = join(&third, 64).unwrap();
        assert_eq!((queue, shared.queues), (0, 4), "the place of the one that has gone");
        assert_eq!(shared.used, 0b1001);
    }

    #[test]
    fn the_next_serves_the_queue_of_one_that_has_gone() {
        // Five queues, of which the third never had a member.
        let used = 0b11011;
        let all = |held: u64| -> Vec<u64> {
            let of = |own| match held >> own & 1 {
                0 => 0,
                _ => serves(used, own, |queue| held >> queue & 1 != 0),
            };
            (0..5).map(of).collect()
        };
        assert_eq!(all(used), [1, 2, 0, 8, 16]);
        assert_eq!(all(0b11001), [1, 0, 0, 0b1010, 16], "the second has gone");
        assert_eq!(all(0b01010), [0, 0b10011, 0, 8, 0], "the last and the first");
        assert_eq!(all(0b01000), [0, 0, 0, used, 0], "one is left");
    }
}
