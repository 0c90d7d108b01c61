//! A front end's connection: its messages, and the turns in between.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use ringway_region::RingView;

use crate::{
    chain::Fault,
    device::Device,
    features::Features,
    inbound::{self, Finisher},
    message,
    moved::Moved,
    outbound,
    queue::Queue,
};

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The front end has closed it: the machine is off, or its monitor has ended.
    #[error("the front end has closed the connection")]
    Closed,
    #[error("the front end's message cannot be obeyed: {0}")]
    Refused(String),
    #[error("the machine's memory was taken away: its file has become shorter")]
    MemoryLost,
}

/// A ring of a port, and the bytes of the header in front of each of its frames.
pub type PortRing<'r> = (&'r RingView, usize);

/// A card whose front end is connected.
#[derive(Debug)]
pub struct Connection {
    device: Device,
    socket: UnixStream,
    finisher: Option<Finisher>,
    /// The pair of queues that the next turn begins with.
    turn: usize,
    /// Whether queues are to tell when something is offered: sending and receiving ones.
    listening: [bool; 2],
}

impl Connection {
    /// Over a socket that is connected.
    ///
    /// # Errors
    /// Those of `fcntl(2)` and `setsockopt(2)`.
    pub fn new(socket: UnixStream) -> io::Result<Connection> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(message::PATIENCE))?;
        socket.set_write_timeout(Some(message::PATIENCE))?;
        let device = Device::new();
        Ok(Connection { device, socket, finisher: None, turn: 0, listening: [true; 2] })
    }

    /// Readable when there is a message for [`handle`](Self::handle).
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Obeys one message, and waits for it, where there is none. Returns why it was refused, if the front end was
    /// told that it was, and may go on.
    ///
    /// # Errors
    /// The connection is over. All that the front end has handed over is let go with it.
    pub fn handle(&mut self) -> Result<Option<String>, End> {
        let refused = |error: io::Error| End::Refused(error.to_string());
        let message = match message::read(&self.socket) {
            Ok(message) => message.ok_or(End::Closed)?,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(End::Closed);
            }
            Err(error) => return Err(refused(error)),
        };
        let number = message.number;
        let (answer, problem) = self.device.obey(message).map_err(End::Refused)?;
        if let Some(answer) = answer {
            message::reply(&self.socket, number, &answer).map_err(|_| End::Closed)?;
        }
        // What has been found anew has told nobody yet.
        self.listening = [true; 2];
        Ok(problem)
    }

    /// The frame that announces a machine which has moved here, if its monitor has asked for that: RARP, as QEMU
    /// sends it.
    pub fn take_announcement(&mut self) -> Option<[u8; 60]> {
        let address = self.device.announce.take()?;
        let mut frame = [0; 60];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&address);
        frame[12..22].copy_from_slice(&[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
        frame[22..28].copy_from_slice(&address);
        frame[32..38].copy_from_slice(&address);
        Some(frame)
    }

    /// What guest and front end make use of.
    pub fn features(&self) -> Features {
        self.device.features
    }

    /// Whether the guest's driver is there: frames go by a queue at least.
    pub fn is_up(&self) -> bool {
        self.device.is_up()
    }

    /// Whether a queue takes frames for the machine.
    pub fn can_receive(&self) -> bool {
        self.device.queues.iter().step_by(2).any(|queue| queue.is_ready())
    }

    /// After what time another [`receive`](Self::receive) is of use although no queue offers more: where there are several,
    /// those of a queue without buffers are dropped then.
    pub fn patience(&self) -> Option<Duration> {
        let ready = self.device.queues.iter().step_by(2).filter(|queue| queue.is_ready());
        (ready.count() > 1).then_some(inbound::PATIENCE)
    }

    /// Fails where the machine's memory is not there any more.
    pub fn check_memory(&self) -> Result<(), End> {
        if self.device.memory.is_lost() { Err(End::MemoryLost) } else { Ok(()) }
    }

    /// A queue that is not used any more, as its guest has spoiled it.
    pub fn fault(&self) -> Option<(usize, Fault)> {
        let device = &self.device;
        device.queues.iter().enumerate().find_map(|(index, queue)| Some((index, queue.fault()?)))
    }

    /// Moves frames from the machine into the free slots of a ring, up to `budget` of each queue. The caller
    /// syncs the ring.
    pub fn send(&mut self, ring: PortRing<'_>, budget: u32) -> Moved {
        self.listen(0, false);
        let Device { features, memory, queues, steering, .. } = &mut self.device;
        let pairs = queues.len() / 2;
        let several = queues.iter().skip(1).step_by(2).filter(|queue| queue.is_ready()).count() > 1;
        let mut moved = Moved::default();
        // Where there is no room, the next turn begins with another.
        for pair in (0..pairs).map(|pair| (self.turn + pair) % pairs) {
            let queue = &mut queues[2 * pair + 1];
            if !queue.is_running() {
                continue;
            }
            let discard = !queue.is_ready();
            // The message that enables it was sent before the frame was offered, and is read next.
            if discard && queue.is_offered() && message::is_there(&self.socket) {
                continue;
            }
            let learn = several.then_some((&mut *steering, pair));
            moved += outbound::send(queue, memory, *features, ring, budget, discard, learn);
            if moved.no_room {
                break;
            }
        }
        self.turn = (self.turn + 1) % pairs;
        moved
    }

    /// Moves frames from the filled slots of a ring to the machine, up to `budget`. The caller syncs the ring.
    pub fn receive(&mut self, ring: PortRing<'_>, budget: u32) -> Moved {
        self.listen(1, false);
        let Device { features, memory, queues, steering, .. } = &mut self.device;
        let pairs = queues.iter().step_by(2).zip(0..).filter(|(queue, _)| queue.is_ready());
        let pairs = pairs.fold(0, |pairs, (_, pair)| pairs | 1 << pair);
        if pairs == 0 {
            return Moved::default();
        }
        let mut ready: Vec<_> =
            queues.iter_mut().step_by(2).filter(|queue| queue.is_ready()).collect();
        let choose = |begin: &[u8]| steering.find(begin, pairs);
        inbound::receive(&mut ready, memory, *features, ring, budget, &mut self.finisher, choose)
    }

    /// Frames that the guest offers to be sent, and that have not been.
    pub fn unsent(&mut self) -> u64 {
        let Device { memory, queues, .. } = &mut self.device;
        let sending = queues.iter_mut().skip(1).step_by(2).filter(|queue| queue.is_running());
        sending.map(|queue| queue.count_offered(memory)).sum()
    }

    /// So many frames the guest can offer at once, at most.
    pub fn most_unsent(&self) -> u64 {
        let sending = self.device.queues.iter().skip(1).step_by(2);
        sending.filter(|queue| queue.is_running()).map(|queue| u64::from(queue.size())).sum()
    }

    /// Whether the guest offers a frame to be sent, or, the other way, a buffer for receiving.
    pub fn offers(&mut self, to_send: bool) -> bool {
        let first = usize::from(to_send);
        let device = &mut self.device;
        // What has kept others from going on is alone of interest.
        let starved = device.queues.iter().skip(first).step_by(2).any(Queue::is_starved);
        let mut queues = device.queues.iter_mut().skip(first).step_by(2);
        queues.any(|queue| match to_send {
            true => queue.is_running() && queue.is_offered(),
            false => queue.is_ready() && queue.is_starved() == starved && queue.is_offered(),
        })
    }

    /// From now on a [kick](Self::kicks) tells what the guest offers: frames to be sent, or buffers. Forgets those
    /// that came before; true if there were any. The caller looks once more.
    pub fn arm(&mut self, to_send: bool) -> bool {
        let first = usize::from(to_send);
        let drained = {
            let queues = self.device.queues.iter_mut().skip(first).step_by(2);
            queues.fold(false, |drained, queue| drained | queue.drain_kick())
        };
        // Each time: the place that the guest is to tell of has moved.
        self.listening[usize::from(!to_send)] = false;
        self.listen(usize::from(!to_send), true);
        drained
    }

    /// Descriptors that are readable when the guest has something new to offer.
    pub fn kicks(&self, to_send: bool) -> Vec<Arc<OwnedFd>> {
        let first = usize::from(to_send);
        let device = &self.device;
        let queues = device.queues.iter().skip(first).step_by(2);
        queues.filter(|queue| queue.is_running()).filter_map(|queue| queue.kick.clone()).collect()
    }

    fn listen(&mut self, way: usize, on: bool) {
        if self.listening[way] == on {
            return;
        }
        self.listening[way] = on;
        let device = &mut self.device;
        let first = usize::from(way == 0);
        device.queues.iter_mut().skip(first).step_by(2).for_each(|queue| queue.listen(on));
    }
}
