//! A network card as its front end sets it up, by the messages of vhost-user.

use std::{fs::File, os::fd::OwnedFd, sync::Arc};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use vhost::{
    VhostUserMemoryRegionBase,
    vhost_user::{
        Error, GpuBackend, Result, VhostUserBackendReqHandlerMut, VhostUserProtocolFeatures,
        message::{
            VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags,
            VhostUserInflight, VhostUserLog, VhostUserMemoryRegion, VhostUserShMemConfig,
            VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVringAddrFlags,
            VhostUserVringState,
        },
    },
};

use crate::{
    chain::Way,
    features::{EVENTS, Features, LOG_ALL, OFFERED, PACKED, PROTOCOL},
    log::DirtyLog,
    memory::{GuestMemory, MAX_REGIONS, RegionAt},
    queue::{Places, Queue},
    steering::Steering,
};

/// Pairs of queues of a card, at most.
pub const MAX_PAIRS: usize = 8;

/// Bytes of a log of dirty pages, at most: for 64 TiB of memory.
const MAX_LOG: u64 = 1 << 31;

/// The card.
#[derive(Debug)]
pub(crate) struct Device {
    pub features: Features,
    pub memory: Arc<GuestMemory>,
    /// Receiving and sending in turn, as virtio numbers them.
    pub queues: Vec<Queue>,
    pub steering: Steering,
    /// What was wrong with a message, in words.
    pub problem: Option<String>,
}

impl Device {
    pub fn new() -> Device {
        let ways = [Way::In, Way::Out].into_iter().cycle();
        Device {
            features: Features::default(),
            memory: Arc::default(),
            queues: ways.take(2 * MAX_PAIRS).map(Queue::new).collect(),
            steering: Steering::default(),
            problem: None,
        }
    }

    /// Whether a frame could go one way or the other.
    pub fn is_up(&self) -> bool {
        self.queues.iter().any(Queue::is_ready)
    }

    fn queue(&mut self, index: u32) -> Result<&mut Queue> {
        if index as usize >= self.queues.len() {
            let problem =
                format!("it has set up queue {index}, and there are {MAX_PAIRS} pairs at most");
            return Err(self.refuse(problem));
        }
        Ok(&mut self.queues[index as usize])
    }

    /// Notes in words what is wrong.
    fn refuse(&mut self, problem: String) -> Error {
        self.problem.get_or_insert(problem);
        Error::InvalidParam
    }

    fn set_memory(&mut self, memory: GuestMemory) -> Result<()> {
        self.memory = Arc::new(memory);
        self.find_queues()
    }

    /// Finds all queues in the memory that there is now.
    fn find_queues(&mut self) -> Result<()> {
        (0..self.queues.len()).try_for_each(|index| self.find_queue(index))
    }

    fn find_queue(&mut self, index: usize) -> Result<()> {
        let [packed, events] = [PACKED, EVENTS].map(|feature| self.features.has(feature));
        let queue = &mut self.queues[index];
        if queue.find(&self.memory, packed, events) {
            return Ok(());
        }
        // Memory may come in several messages; the queue runs once it is there.
        if self.memory.is_empty() {
            return Ok(());
        }
        Err(self.refuse(format!(
            "queue {index} is not in the memory that it has handed over, or has no size that such a queue can have"
        )))
    }

    fn stop_all(&mut self) {
        self.queues.iter_mut().for_each(|queue| {
            queue.stop();
            queue.set_enabled(false);
        });
    }
}

/// A descriptor that is written or read without waiting, whatever it is.
fn ready(file: Option<File>) -> Result<Option<OwnedFd>> {
    let Some(file) = file else { return Ok(None) };
    let set = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NONBLOCK));
    set.map_err(|error| Error::ReqHandlerError(error.into()))?;
    Ok(Some(file.into()))
}

fn region_at(guest: u64, user: u64, size: u64, offset: u64) -> RegionAt {
    RegionAt { guest, user, size, offset }
}

impl VhostUserBackendReqHandlerMut for Device {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.stop_all();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.stop_all();
        self.features = Features::default();
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(OFFERED)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !OFFERED != 0 {
            let unknown = features & !OFFERED;
            return Err(
                self.refuse(format!("it wants features that were not offered: {unknown:#x}"))
            );
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

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let mut memory = self.memory.cleared();
        for (region, file) in regions.iter().zip(&files) {
            let (size, offset) = (region.memory_size, region.mmap_offset);
            let at = region_at(region.guest_phys_addr, region.user_addr, size, offset);
            memory = memory.with(at, file).map_err(|error| self.refuse(error.to_string()))?;
        }
        self.set_memory(memory)?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        if self.queue(index)?.set_size(num) {
            return Ok(());
        }
        Err(self.refuse(format!("queue {index} is to have {num} descriptors")))
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        self.queue(index)?.set_places(Places { descriptors, available, used });
        self.find_queue(index as usize)
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.queue(index)?.set_base(base);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let base = self.queue(index)?.stop();
        Ok(VhostUserVringState::new(index, base))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let kick = ready(file)?.map(Arc::new);
        if kick.is_none() {
            let problem = format!("queue {index} has no descriptor to tell by; it is not polled");
            return Err(self.refuse(problem));
        }
        let queue = self.queue(index.into())?;
        queue.kick = kick;
        queue.start();
        self.find_queue(index.into())
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let call = ready(file)?;
        let queue = self.queue(index.into())?;
        queue.call = call;
        // What the guest was not told of by the one before.
        queue.tell_guest();
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let error = ready(file)?;
        self.queue(index.into())?.error = error;
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::LOG_SHMFD
            | VhostUserProtocolFeatures::RESET_DEVICE
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(MAX_PAIRS as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.queue(index)?.set_enabled(enable);
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(MAX_REGIONS as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        let (size, offset) = (region.memory_size, region.mmap_offset);
        let at = region_at(region.guest_phys_addr, region.user_addr, size, offset);
        let memory = self.memory.with(at, &file).map_err(|error| self.refuse(error.to_string()))?;
        self.memory = Arc::new(memory);
        // Others may follow that the queues are in.
        let _ = self.find_queues();
        self.problem = None;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let memory = self.memory.without(region.guest_phys_addr, region.memory_size);
        let memory = memory.map_err(|error| self.refuse(error.to_string()))?;
        self.set_memory(memory)
    }

    fn set_log_base(&mut self, log: &VhostUserLog, file: File) -> Result<()> {
        if log.mmap_size > MAX_LOG {
            let size = log.mmap_size;
            return Err(self.refuse(format!("its log of dirty pages has {size} bytes")));
        }
        let made = DirtyLog::new(&file, log.mmap_offset, log.mmap_size);
        let log = made.map_err(|error| self.refuse(format!("its log of dirty pages: {error}")))?;
        let memory = self.memory.logged(log);
        self.set_memory(memory)
    }

    fn get_config(&mut self, _: u32, _: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        Err(Error::InvalidOperation("the monitor has the configuration"))
    }

    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        Err(Error::InvalidOperation("the monitor has the configuration"))
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("it is a network card"))
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("nothing is shared"))
    }

    fn get_inflight_fd(&mut self, _: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        Err(Error::InvalidOperation("frames are not kept between two connections"))
    }

    fn set_inflight_fd(&mut self, _: &VhostUserInflight, _: File) -> Result<()> {
        Err(Error::InvalidOperation("frames are not kept between two connections"))
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation("a card has no state beside its queues"))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidOperation("a card has no state beside its queues"))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation("nothing is shared"))
    }
}
