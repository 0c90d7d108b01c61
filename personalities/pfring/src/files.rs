//! What `/proc/net/pf_ring` has of a ring: files below the folder of the daemon's socket, or in `/dev/shm`, for as
//! long as the ring is open.
//!
//! ```text
//!   pf_ring/<pid>-<device>.<ring>         what the ring is and what it has counted
//!   pf_ring/stats/<pid>-<device>.<ring>   what its program says of itself
//! ```

use std::{
    fmt::Write,
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use ringway::SocketPath;

use crate::{
    abi::*,
    ring::{Ring, lock},
};

/// Where files of rings are, and which rights they have.
pub fn folder() -> io::Result<(PathBuf, u32)> {
    match SocketPath::find() {
        SocketPath::Private { dir } => {
            fs::DirBuilder::new().mode(0o700).recursive(true).create(&dir)?;
            Ok((dir, 0o600))
        }
        // For programs of several users.
        _ => Ok(("/dev/shm".into(), 0o666)),
    }
}

/// The files of a ring, which go with it.
pub struct Files {
    name: String,
    folder: Option<PathBuf>,
}

impl Files {
    pub fn new(device: &str, id: u32) -> Files {
        // What is named may be longer than a file's name is, and have its separators.
        let device: String = device.replace('/', "_").chars().take(100).collect();
        let name = format!("{}-{device}.{id}", std::process::id());
        // In a folder that others can write to, a link may lie in wait: there are none.
        let folder = folder().ok().filter(|(_, mode)| *mode == 0o600);
        Files { name, folder: folder.map(|(folder, _)| folder.join("pf_ring")) }
    }

    fn info(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(&self.name))
    }

    pub fn statistics(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("stats").join(&self.name))
    }

    pub fn write_statistics(&self, text: &str) -> io::Result<()> {
        self.statistics().map_or(Ok(()), |path| write(&path, text))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [self.info(), self.statistics()].into_iter().flatten() {
            // It may never have been written.
            let _ = fs::remove_file(path);
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

impl Ring {
    /// Shows what the ring is and what it has counted.
    pub fn publish(&self) {
        if let Some(path) = self.files.info() {
            // Nobody waits for it.
            let _ = write(&path, &self.describe());
        }
    }

    /// As PF_RING has it, without what a ring in shared memory has.
    fn describe(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: &dyn std::fmt::Display| {
            // A string takes everything.
            let _ = writeln!(text, "{label:<23}: {value}");
        };
        let texts = lock(&self.texts);
        let mode = self.mode.load(Relaxed);
        let name =
            |names: [&'static str; 3], at: i32| names[usize::try_from(at).unwrap_or(0).min(2)];
        line("Bound Device(s)", texts.bound_to.as_ref().unwrap_or(&self.device));
        line("Active", &u8::from(self.enabled.load(Relaxed)));
        line("Breed", &"Standard");
        let application = &texts.application;
        line("Appl. Name", if application.is_empty() { &"<unknown>" } else { application });
        match mode {
            MANAGEMENT_ONLY => line("Socket Mode", &"Management only"),
            mode => line("Socket Mode", &name(["RX+TX", "TX only", "RX only"], mode)),
        }
        if mode != SEND_ONLY {
            let direction = self.direction.load(Relaxed);
            line("Capture Direction", &name(["RX+TX", "RX only", "TX only"], direction));
            let is_filtered = lock(&self.filter).is_some();
            line("BPF Filtering", if is_filtered { &"Enabled" } else { &"Disabled" });
            let rules = lock(&self.admission.rules);
            line("Sw Filt Hash Rules", &rules.table.len());
            line("Sw Filt WC Rules", &rules.list.len());
            line("Sw Filt Hash Match", &rules.table.matched);
            line("Sw Filt Hash Miss", &rules.table.missed);
            line("Sw Filt Hash Filtered", &rules.table.filtered);
            line("Poll Pkt Watermark", &self.watermark.load(Relaxed));
            line("Poll Watermark Timeout", &self.watermark_timeout.load(Relaxed));
        }
        if let Some(member) = lock(&self.admission.cluster).as_ref() {
            line("Cluster Id", &member.id);
        }
        line("Slot Version", &"21 [8.9.0]");
        if mode != SEND_ONLY {
            let (read, lost) = (self.received.load(Relaxed), self.lost());
            line("Tot Packets", &(read + lost));
            line("Tot Pkt Lost", &lost);
            line("Tot Insert", &read);
            line("Tot Read", &read);
        }
        if mode != RECV_ONLY {
            line("TX: Send Ok", &self.sent.load(Relaxed));
            line("TX: Send Errors", &self.send_errors.load(Relaxed));
        }
        if mode != SEND_ONLY {
            line("Reflect: Fwd Ok", &self.admission.forwarded.load(Relaxed));
            line("Reflect: Fwd Errors", &self.admission.not_forwarded.load(Relaxed));
        }
        text
    }
}
