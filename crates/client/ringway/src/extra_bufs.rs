//! Buffers of a region that are in no slot: a stock to exchange with those of slots.

use ringway_region::next_extra_buf;

use crate::port::Port;

impl Port {
    /// Takes the buffers that [`OpenOptions::extra_bufs`](crate::OpenOptions::extra_bufs) asked
    /// for, or as many as were granted. Each is for exchanging with the buffers of
    /// [slots](crate::Slots) of any port of this region. Give back as many, with
    /// [`return_extra_bufs`](Self::return_extra_bufs): what is not listed there when the port
    /// closes stays taken as long as the region lives (S-MEM-9).
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().extra_bufs(8).open("vale0:a")?;
    /// let bufs = port.take_extra_bufs();
    /// assert_eq!(bufs.len(), 8);
    /// port.return_extra_bufs(bufs);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn take_extra_bufs(&mut self) -> Vec<u32> {
        let Some(netif) = self.binding().netif() else { return Vec::new() };
        let region = self.binding().region().clone();
        let total = region.layout().bufs.total as usize;
        let mut taken = Vec::new();
        let mut next = netif.bufs_head();
        // The list is shared memory: it may be a circle, or lead nowhere.
        while next >= 2 && taken.len() < total {
            let Some(behind) = next_extra_buf(&region, next) else { break };
            taken.push(next);
            next = behind;
        }
        netif.set_bufs_head(0);
        taken
    }

    /// Puts buffers into the list that is freed when the port closes, before those that are
    /// in it.
    pub fn return_extra_bufs(&mut self, bufs: impl IntoIterator<Item = u32>) {
        let Some(netif) = self.binding().netif() else { return };
        let region = self.binding().region();
        for index in bufs {
            if let Some(buf) = region.buf(index) {
                buf.store(0, netif.bufs_head().to_ne_bytes());
                netif.set_bufs_head(index);
            }
        }
    }
}
