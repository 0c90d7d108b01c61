//! The member that distributes: it has the port, and a pipe of it to each member, its own included.
//!
//! ```text
//!   the port --> sharing.rs: whose? --> its pipe --> the member's ring        what has no room there is its loss
//!            <-- what members send  <--
//! ```
//!
//! A packet's buffer changes hands, and nothing is copied. A member that comes says its queue at the
//! [rendezvous], and one that goes is seen there.

use std::{
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    sync::Arc,
    time::{Duration, Instant},
};

use ringway::{Error, Interest, Port, Prepared, prepare};
use ringway_balance::{Balancer, Counters, Output, Share};
use ringway_live_capture::Losses;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{
    QUEUES,
    file::{is_locked, loss, loss_at, read},
    news::News,
    outlet::Outlet,
    port_member::Context,
    rendezvous::{self, Listener, Said},
    sharing::Sharing,
};
use crate::source::sends;

/// Packets that are taken at once.
const BATCH: u32 = 256;
/// While packets come, how long a member waits at most until half of its ring is filled.
const WAIT: Duration = Duration::from_micros(400);
/// Between two looks at the members, and at what they send, while there are packets.
const INTERVAL: Duration = Duration::from_millis(1);
/// How long the members of the one before are waited for.
const GATHERING: Duration = Duration::from_millis(50);
/// How long to look for packets before sleeping: about as long as two wake-ups take.
const LOOK: Duration = Duration::from_micros(20);

pub struct Distributor {
    context: Arc<Context>,
    balancer: Balancer<Sharing>,
    /// Whether what members send goes out by the port.
    sends: bool,
    members: Vec<Member>,
    /// What queues have lost since there is the cluster.
    lost: [u64; QUEUES as usize],
    /// What has found no room in the port's rings since this is the distributor, and how much of it
    /// the queues have.
    input_losses: Losses,
    input_lost: u32,
    /// Closed last: then another is the distributor, and opens the port.
    listener: Listener,
}

/// A connected member.
struct Member {
    connection: OwnedFd,
    queue: Option<u32>,
    /// The pipe that it has.
    pipe: Option<String>,
}

/// Why it ends.
pub enum Ended {
    /// The member leaves.
    Quit,
    /// Nothing comes from the port any more.
    Failed,
}

impl Distributor {
    /// Of a port that is open, with the pipe for the member's own queue.
    pub fn new(context: Arc<Context>, listener: Listener, input: Port, own: Outlet) -> Distributor {
        let share = Share::One(Sharing::new(context.shared));
        let (sends, input_losses) = (sends(&input), Losses::of(&input));
        let balancer = Balancer::new(input, Vec::new(), vec![Vec::new()], share);
        let mut distributor = Distributor {
            sends,
            balancer: balancer.with_batch(BATCH, false),
            members: Vec::new(),
            lost: [0; QUEUES as usize],
            input_losses,
            input_lost: 0,
            listener,
            context,
        };
        distributor.add(own.queue, own.port);
        distributor
    }

    /// The port again, for a ring that goes on alone.
    pub fn into_input(self) -> Port {
        self.balancer.into_input()
    }

    /// Distributes, until it is to end or the port ends.
    pub fn run(&mut self) -> Ended {
        self.gather();
        let start = Instant::now();
        let mut now = start;
        let (mut looked, mut handed) = (now, now);
        loop {
            let received = self.balancer.receive(now - start);
            let waits = received > 0 && now - handed < WAIT;
            let moved = received
                + match waits {
                    true => self.balancer.hand_over_halves(),
                    false => self.balancer.hand_over(),
                };
            now = Instant::now();
            if !waits {
                handed = now;
            }
            if moved > 0 && now - looked < INTERVAL {
                continue;
            }
            looked = now;
            let sent = if self.sends { self.balancer.send() } else { 0 };
            if self.look_at_members(Some(Duration::ZERO)) {
                return Ended::Quit;
            }
            if moved == 0 && sent == 0 && !self.arrives() {
                if self.sleep().is_err() || self.balancer.input.poll_or_check(Interest::Rx).is_err()
                {
                    return Ended::Failed;
                }
                now = Instant::now();
            }
        }
    }

    /// Waits for those that were connected to the distributor before, so that each gets its own.
    fn gather(&mut self) {
        let end = Instant::now() + GATHERING;
        let is_there = |queue: u32, members: &[Member]| {
            members.iter().any(|member| member.queue == Some(queue))
        };
        loop {
            let missing = (0..QUEUES).any(|queue| {
                !is_there(queue, &self.members) && is_locked(&self.context.file, queue)
            });
            let left = end.saturating_duration_since(Instant::now());
            if !missing || left.is_zero() || self.look_at_members(Some(left)) {
                return;
            }
        }
    }

    /// Whether something comes soon: so a steady stream is not slept through.
    fn arrives(&mut self) -> bool {
        let end = Instant::now() + LOOK;
        while Instant::now() < end {
            if self.balancer.input.poll(Interest::Rx) {
                return true;
            }
        }
        false
    }

    /// Sleeps until there are packets, of the port's or of members to send, or news of members.
    fn sleep(&mut self) -> Result<(), Error> {
        let Distributor { balancer, members, listener, context, .. } = self;
        let fds = members.iter().map(|member| member.connection.as_fd());
        let fds: Vec<_> = fds.chain([listener.as_fd(), context.quit.as_fd()]).collect();
        let ports = balancer.awaited_both_ways().into_iter();
        let ports = ports.map(|(port, interest)| port.waiter(interest)).collect();
        match prepare(&mut News { ports, fds: &fds }) {
            Prepared::Ready => Ok(()),
            Prepared::Armed(armed) => match armed.sleep(None) {
                Ok(_) => Ok(()),
                Err(source) => Err(Error::System { what: "waiting", source }),
            },
        }
    }

    /// Accepts new members and drops those that have left, waiting up to `timeout` for either. True: the distributor is
    /// to end.
    fn look_at_members(&mut self, timeout: Option<Duration>) -> bool {
        self.publish_losses();
        let fds = self.members.iter().map(|member| member.connection.as_fd());
        let fds = fds.chain([self.listener.as_fd(), self.context.quit.as_fd()]);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = timeout.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
        let has_news: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut news = has_news.iter();
        let mut gone = Vec::new();
        for (at, member) in self.members.iter_mut().enumerate() {
            if news.next() == Some(&true) {
                match rendezvous::request_of(&member.connection) {
                    Said::This((queue, pipe)) if member.queue.is_none() => {
                        (member.queue, member.pipe) = (Some(queue), pipe);
                    }
                    Said::Nothing => {}
                    _ => gone.push(at),
                }
            }
        }
        for at in gone.into_iter().rev() {
            if let Some(queue) = self.members.swap_remove(at).queue {
                self.remove(queue);
            }
        }
        while let Some(connection) = self.listener.next() {
            let (queue, pipe) = match rendezvous::request_of(&connection) {
                Said::This((queue, pipe)) => (Some(queue), pipe),
                Said::Nothing => (None, None),
                Said::Gone => continue,
            };
            self.members.push(Member { connection, queue, pipe });
        }
        self.add_new();
        has_news.last() == Some(&true)
    }

    /// Pipes for those that have said their queue.
    fn add_new(&mut self) {
        for at in 0..self.members.len() {
            let Some(queue) = self.members[at].queue else { continue };
            if self.balancer.outputs().any(|output| output.id == queue) {
                continue;
            }
            let mem_id = self.balancer.input.mem_id();
            let answer = match Outlet::open(queue, self.members[at].pipe.as_deref(), mem_id) {
                Ok(outlet) => {
                    let name = outlet.other(self.sends);
                    self.add(queue, outlet.port);
                    name
                }
                // It may ask again.
                Err(_) => {
                    self.members[at].queue = None;
                    rendezvous::NO_PIPE.into()
                }
            };
            rendezvous::say(&self.members[at].connection, answer.as_bytes());
        }
    }

    fn add(&mut self, queue: u32, port: Port) {
        self.lost[queue as usize] = loss(&self.context.file, queue);
        let name = port.name().to_owned();
        let output = Output::new(port, name, queue, &self.balancer.input);
        let (outputs, _) = self.balancer.first_group();
        outputs.push(output);
        outputs.sort_by_key(|output| output.id);
        self.share_anew();
    }

    fn remove(&mut self, queue: u32) {
        self.publish_losses();
        self.balancer.first_group().0.retain(|output| output.id != queue);
        self.share_anew();
    }

    fn share_anew(&mut self) {
        let shared = read(&self.context.file).unwrap_or(self.context.shared);
        let (outputs, share) = self.balancer.first_group();
        let queues: Vec<u32> = outputs.iter().map(|output| output.id).collect();
        if let Share::One(sharing) = share {
            sharing.set(shared, &queues);
        }
    }

    /// Writes down what each has lost, if it is more than before. What found no room in the port's
    /// rings is nobody's: each queue has as much of it as it had of the packets since the last
    /// time.
    fn publish_losses(&mut self) {
        let all = self.input_losses.so_far(&self.balancer.input)[0];
        let of_input = all.wrapping_sub(std::mem::replace(&mut self.input_lost, all));
        let counters: Vec<_> = self.balancer.outputs_mut().map(Output::take_counters).collect();
        let packets = counters.iter().map(|counters| counters.forwarded + counters.dropped).sum();
        let mut spread = Spread::new(of_input.into(), packets);
        for (output, counters) in self.balancer.outputs().zip(counters) {
            let Counters { forwarded, dropped, .. } = counters;
            let dropped = dropped + spread.next(forwarded + dropped);
            if dropped > 0 {
                let lost = &mut self.lost[output.id as usize];
                *lost = lost.wrapping_add(dropped);
                // If it fails, `pfring_stats` shows too few; nothing else goes by it.
                let _ = self.context.file.write_all_at(&lost.to_ne_bytes(), loss_at(output.id));
            }
        }
    }
}

/// A number, shared out by the weights of those who share it: they have it all.
struct Spread {
    all: u64,
    weights: u64,
    /// Those that have had their share, and what that was.
    weighed: u64,
    given: u64,
}

impl Spread {
    /// Of those whose weights have this sum; if it is 0, the first has all.
    fn new(all: u64, weights: u64) -> Spread {
        Spread { all, weights, weighed: 0, given: 0 }
    }

    fn next(&mut self, weight: u64) -> u64 {
        self.weighed += weight;
        let share = u128::from(self.all) * u128::from(self.weighed);
        let until = share.checked_div(self.weights.into()).map_or(self.all, |share| share as u64);
        until - std::mem::replace(&mut self.given, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_out_is_all() {
        let cases: [(u64, &[u64], &[u64]); 7] = [
            (10, &[1, 1], &[5, 5]),
            (10, &[3, 1, 0], &[7, 3, 0]),
            (1, &[1, 1, 1], &[0, 0, 1]),
            (10, &[0, 0], &[10, 0]),
            (0, &[0, 0], &[0, 0]),
            (7, &[0, 9], &[0, 7]),
            (u64::from(u32::MAX), &[u64::MAX / 2, u64::MAX / 2], &[0x7fff_ffff, 0x8000_0000]),
        ];
        for (all, weights, expected) in cases {
            let mut spread = Spread::new(all, weights.iter().sum());
            let shares: Vec<u64> = weights.iter().map(|weight| spread.next(*weight)).collect();
            assert_eq!(shares, expected, "{all} by {weights:?}");
            assert_eq!(shares.iter().sum::<u64>(), all);
        }
    }
}
