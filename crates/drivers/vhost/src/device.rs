//! A network card as its front end sets it up, message by message.

use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat, readlink},
    io::Errno,
};

use crate::{
    chain::Way,
    features::{EVENTS, Features, LOG_ALL, OFFERED, PACKED, PROTOCOL},
    log::DirtyLog,
    memory::{GuestMemory, MAX_REGIONS, RegionAt},
    message::{Message, Payload, Request},
    queue::{Places, Queue},
    steering::Steering,
};

/// Pairs of queues of a card, at most.
pub const MAX_PAIRS: usize = 8;

/// Bytes of a log of dirty pages, at most: for 64 TiB of memory.
const MAX_LOG: u64 = 1 << 31;

/// Least and longest MTU that a card can be told of.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;

/// Features of the protocol.
mod protocol {
    pub const MQ: u64 = 1 << 0;
    pub const LOG_SHMFD: u64 = 1 << 1;
    pub const RARP: u64 = 1 << 2;
    pub const REPLY_ACK: u64 = 1 << 3;
    pub const MTU: u64 = 1 << 4;
    pub const RESET_DEVICE: u64 = 1 << 13;
    pub const MEM_SLOTS: u64 = 1 << 15;
    pub const OFFERED: u64 = MQ | LOG_SHMFD | RARP | REPLY_ACK | MTU | RESET_DEVICE | MEM_SLOTS;
}

/// The card.
#[derive(Debug)]
pub(crate) struct Device {
    pub features: Features,
    pub memory: Arc<GuestMemory>,
    /// Receiving and sending in turn, as virtio numbers them.
    pub queues: Vec<Queue>,
    pub steering: Steering,
    /// The address that a machine that has moved here is to be announced by.
    pub announce: Option<[u8; 6]>,
    acknowledges: bool,
}

/// The answer to a message.
type Answer = Option<Vec<u8>>;

/// Why a message is not obeyed, in words.
type Problem = String;

impl Device {
    pub fn new() -> Device {
        let ways = [Way::In, Way::Out].into_iter().cycle();
        Device {
            features: Features::default(),
            memory: Arc::default(),
            queues: ways.take(2 * MAX_PAIRS).map(Queue::new).collect(),
            steering: Steering::default(),
            announce: None,
            acknowledges: false,
        }
    }

    /// Whether a frame could go one way or the other.
    pub fn is_up(&self) -> bool {
        self.queues.iter().any(Queue::is_ready)
    }

    /// Obeys a message. The answer, if it takes one; with the reason why it was refused, where the answer says
    /// that it was.
    ///
    /// # Errors
    /// It is refused, and the front end does not wait to hear that.
    pub fn obey(&mut self, message: Message) -> Result<(Answer, Option<Problem>), Problem> {
        let Message { request, number, needs_reply, payload, files } = message;
        let done = match request {
            Some(request) => self.carry_out(request, &payload, files),
            None => Err(format!("message {number} is unknown")),
        };
        let acknowledges = needs_reply && self.acknowledges;
        let word = |word: u64| Some(word.to_ne_bytes().to_vec());
        match done {
            Ok(None) if acknowledges => Ok((word(0), None)),
            Ok(answer) => Ok((answer, None)),
            Err(problem) if acknowledges => Ok((word(1), Some(problem))),
            Err(problem) => Err(problem),
        }
    }

    fn carry_out(
        &mut self,
        request: Request,
        payload: &Payload,
        files: Vec<OwnedFd>,
    ) -> Result<Answer, Problem> {
        let word = |word: u64| Ok(Some(word.to_ne_bytes().to_vec()));
        match request {
            Request::GetFeatures => return word(OFFERED),
            Request::GetProtocolFeatures => return word(protocol::OFFERED),
            Request::GetQueueNum => return word(MAX_PAIRS as u64),
            Request::GetMaxMemSlots => return word(MAX_REGIONS as u64),
            Request::GetVringBase => {
                let [index, _] = payload.pair()?;
                let base = self.queue(index)?.stop();
                return Ok(Some([index, base].map(u32::to_ne_bytes).concat()));
            }
            Request::SetFeatures => self.set_features(payload.words::<1>()?[0])?,
            Request::SetProtocolFeatures => {
                self.acknowledges = payload.words::<1>()?[0] & protocol::REPLY_ACK != 0;
            }
            // The card has a front end; which is the connection itself.
            Request::SetOwner => {}
            // It would tell the front end that something was written; which looks by itself.
            Request::SetLogFd => {}
            Request::ResetOwner => self.stop_all(),
            Request::ResetDevice => {
                self.stop_all();
                self.features = Features::default();
            }
            Request::SetMemTable => self.set_mem_table(payload, files)?,
            Request::AddMemReg => self.add_mem_region(payload, files)?,
            Request::RemMemReg => {
                let [_, guest, size, _, _] = payload.words()?;
                let memory = self.memory.without(guest, size).map_err(|e| e.to_string())?;
                self.set_memory(memory)?;
            }
            Request::SetLogBase => {
                self.set_log(payload.words()?, files)?;
                // The front end waits for an answer, and does not read it.
                return Ok(Some(Vec::new()));
            }
            Request::SetVringNum => {
                let [index, num] = payload.pair()?;
                if !self.queue(index)?.set_size(num) {
                    return Err(format!("queue {index} is to have {num} descriptors"));
                }
            }
            Request::SetVringAddr => {
                let [first, descriptors, used, available, _log] = payload.words()?;
                // The queue's number, and flags behind it.
                let [index, _flags] = Payload(first.to_ne_bytes().to_vec()).pair()?;
                self.queue(index)?.set_places(Places { descriptors, available, used });
                self.find_queue(index as usize)?;
            }
            Request::SetVringBase => {
                let [index, base] = payload.pair()?;
                self.queue(index)?.set_base(base);
            }
            Request::SetVringKick => {
                let (index, kick) = event(payload, files)?;
                if kick.is_none() {
                    return Err(format!(
                        "queue {index} has no descriptor to tell by; give it one: it is not polled"
                    ));
                }
                kick.as_ref().map_or(Ok(()), check_kick)?;
                let queue = self.queue(index)?;
                queue.kick = kick.map(Arc::new);
                queue.start();
                self.find_queue(index as usize)?;
            }
            Request::SetVringCall => {
                let (index, call) = event(payload, files)?;
                let queue = self.queue(index)?;
                queue.call = call;
                // What the guest was not told of by the one before.
                queue.tell_guest();
            }
            Request::SetVringErr => {
                let (index, error) = event(payload, files)?;
                self.queue(index)?.error = error;
            }
            Request::SetVringEnable => {
                let [index, enabled] = payload.pair()?;
                self.queue(index)?.set_enabled(enabled != 0);
            }
            Request::SendRarp => {
                let [a, b, c, d, e, f, ..] = payload.words::<1>()?[0].to_ne_bytes();
                self.announce = Some([a, b, c, d, e, f]);
            }
            Request::NetSetMtu => {
                // The monitor tells the guest; frames of any length pass here.
                let mtu = payload.words::<1>()?[0];
                if !MTU.contains(&mtu) {
                    return Err(format!("its MTU is to be {mtu}"));
                }
            }
        }
        Ok(None)
    }

    fn queue(&mut self, index: u32) -> Result<&mut Queue, Problem> {
        let there = self.queues.get_mut(index as usize);
        there.ok_or_else(|| {
            format!("it has a queue {index}, and a card has {MAX_PAIRS} pairs of queues at most")
        })
    }

    fn set_memory(&mut self, memory: GuestMemory) -> Result<(), Problem> {
        self.memory = Arc::new(memory);
        self.find_queues()
    }

    /// Finds all queues in the memory that there is now.
    fn find_queues(&mut self) -> Result<(), Problem> {
        (0..self.queues.len()).try_for_each(|index| self.find_queue(index))
    }

    fn find_queue(&mut self, index: usize) -> Result<(), Problem> {
        let queue = &mut self.queues[index];
        // Memory may come in several messages; a queue runs once it is there.
        if queue.find(&self.memory, self.features) || self.memory.is_empty() {
            return Ok(());
        }
        Err(format!(
            "queue {index} is not in the memory that was handed over, or has a size that such a queue cannot have"
        ))
    }

    fn stop_all(&mut self) {
        self.queues.iter_mut().for_each(|queue| {
            queue.stop();
            queue.set_enabled(false);
        });
    }

    fn set_features(&mut self, features: u64) -> Result<(), Problem> {
        if features & !OFFERED != 0 {
            let unknown = features & !OFFERED;
            return Err(format!("it wants features that were not offered: {unknown:#x}"));
        }
        let before = std::mem::replace(&mut self.features, Features(features));
        self.memory.set_logging(self.features.has(LOG_ALL));
        // Migration begins and ends by these while the queues run.
        let layout = |features: Features| [PACKED, EVENTS].map(|feature| features.has(feature));
        if layout(before) != layout(self.features) {
            self.find_queues()?;
        }
        if !self.features.has(PROTOCOL) {
            self.queues.iter_mut().for_each(|queue| queue.set_enabled(true));
        }
        Ok(())
    }

    fn set_mem_table(&mut self, payload: &Payload, files: Vec<OwnedFd>) -> Result<(), Problem> {
        let odd = || "its table of memory does not match its descriptors".to_string();
        let (count, regions) = payload.0.split_first_chunk::<8>().ok_or_else(odd)?;
        let [count, _] = Payload(count.to_vec()).pair()?;
        if regions.len() != count as usize * 32 || files.len() != count as usize {
            return Err(odd());
        }
        let mut memory = self.memory.cleared();
        for (region, file) in regions.chunks_exact(32).zip(files) {
            let [guest, size, user, offset] = Payload(region.to_vec()).words()?;
            let at = RegionAt { guest, user, size, offset };
            memory = memory.with(at, &File::from(file)).map_err(|e| e.to_string())?;
        }
        self.set_memory(memory)
    }

    fn add_mem_region(&mut self, payload: &Payload, files: Vec<OwnedFd>) -> Result<(), Problem> {
        let [_, guest, size, user, offset] = payload.words()?;
        let file = one(files)?.ok_or("a region of memory came without its descriptor")?;
        let at = RegionAt { guest, user, size, offset };
        let memory = self.memory.with(at, &File::from(file)).map_err(|e| e.to_string())?;
        self.memory = Arc::new(memory);
        // What is not found yet may be in the next region.
        let _ = self.find_queues();
        Ok(())
    }

    fn set_log(&mut self, [size, offset]: [u64; 2], files: Vec<OwnedFd>) -> Result<(), Problem> {
        if size > MAX_LOG {
            return Err(format!("its log of dirty pages has {size} bytes"));
        }
        if !offset.is_multiple_of(4) {
            return Err(format!("its log of dirty pages begins at {offset}, amid a word"));
        }
        if !size.is_multiple_of(4) {
            return Err(format!("its log of dirty pages has {size} bytes, and ends amid a word"));
        }
        let file = one(files)?.ok_or("its log of dirty pages came without its descriptor")?;
        let log = DirtyLog::new(&File::from(file), offset, size);
        let log = log.map_err(|error| format!("its log of dirty pages: {error}"))?;
        self.set_memory(self.memory.logged(log))
    }
}

/// The only descriptor, if there is one.
fn one(mut files: Vec<OwnedFd>) -> Result<Option<OwnedFd>, Problem> {
    match files.len() {
        0 | 1 => Ok(files.pop()),
        more => Err(format!("{more} descriptors came with it, and one belongs to it")),
    }
}

/// A queue's number, and the descriptor for it, which is written or read without waiting: an eventfd or a pipe.
fn event(payload: &Payload, files: Vec<OwnedFd>) -> Result<(u32, Option<OwnedFd>), Problem> {
    const WITHOUT: u64 = 1 << 8;
    let [word] = payload.words()?;
    let file = one(files)?.filter(|_| word & WITHOUT == 0);
    if let Some(file) = &file {
        check_event(file)?;
        let set = fcntl_getfl(file.as_fd())
            .and_then(|flags| fcntl_setfl(file.as_fd(), flags | OFlags::NONBLOCK));
        set.map_err(|error| format!("its descriptor cannot be used: {error}"))?;
    }
    Ok(((word & 0xff) as u32, file))
}

/// Fails for what is no eventfd and no pipe. A socket could be the front end's own, which would never hang up then; and a
/// device may be readable for ever.
fn check_event(file: &OwnedFd) -> Result<(), Problem> {
    let look = |error: Errno| format!("its descriptor cannot be looked at: {error}");
    let is_pipe = FileType::from_raw_mode(fstat(file).map_err(look)?.st_mode) == FileType::Fifo;
    if is_pipe {
        return Ok(());
    }
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let what = readlink(link, Vec::new()).map_err(look)?;
    match what.as_bytes() {
        b"anon_inode:[eventfd]" => Ok(()),
        _ => Err(format!(
            "its descriptor is neither an eventfd nor a pipe, but {}; give one of these",
            what.to_string_lossy()
        )),
    }
}

/// Fails for a kick of which each read takes one: it can be readable for ever.
fn check_kick(kick: &OwnedFd) -> Result<(), Problem> {
    let is_pipe = fstat(kick).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo);
    if is_pipe {
        return Ok(());
    }
    // Full, it is read all the same.
    let _ = rustix::io::write(kick, &2u64.to_ne_bytes());
    let mut count = [0; 8];
    match rustix::io::read(kick, &mut count) {
        Ok(8) if count == 1u64.to_ne_bytes() => Err(
            "its descriptor is an eventfd that counts as a semaphore (EFD_SEMAPHORE); give one without".into()
        ),
        // The queue is looked at as it starts, whether it was told or not.
        _ => Ok(()),
    }
}
