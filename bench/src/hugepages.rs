//! Huge pages for DPDK, since Ringway's regions lie in some: reserved for the run, and given back.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// Pages of 2 MiB: 256 MiB for each of three processes, and as much again for those that are about to end.
const PAGES: u64 = 768;

/// Why there are none, or nothing if there are.
static MISSING: OnceLock<Option<String>> = OnceLock::new();

/// How many this process has added.
static ADDED: AtomicU64 = AtomicU64::new(0);

/// Reserves them. What DPDK is told is up to the result from then on.
pub fn reserve() {
    let missing = MISSING.get_or_init(|| add().err());
    if let Some(why) = missing {
        eprintln!("DPDK runs without huge pages: {why}");
    }
}

/// Takes back what was added.
pub fn give_back() {
    let added = ADDED.swap(0, Ordering::Relaxed);
    if added == 0 {
        return;
    }
    let less = reserved().and_then(|now| set(now.saturating_sub(added)));
    if let Err(why) = less {
        eprintln!("{added} huge pages stay reserved: {why}; take them back in {RESERVED}");
    }
}

/// EAL's options for them, or for doing without.
pub fn eal() -> &'static str {
    match MISSING.get() {
        Some(None) => "--in-memory --single-file-segments",
        _ => "--no-huge",
    }
}

fn add() -> Result<(), String> {
    let free = field("HugePages_Free:")?;
    if field("Hugepagesize:")? != 2048 {
        return Err("the machine's have not 2 MiB".into());
    }
    if free >= PAGES {
        return Ok(());
    }
    let before = reserved()?;
    set(before + PAGES - free)?;
    ADDED.store(reserved()?.saturating_sub(before), Ordering::Relaxed);
    match field("HugePages_Free:")? {
        enough if enough >= PAGES => Ok(()),
        free => {
            give_back();
            Err(format!("{free} of {PAGES} could be reserved"))
        }
    }
}

fn reserved() -> Result<u64, String> {
    let text = fs::read_to_string(RESERVED).map_err(|error| format!("{RESERVED}: {error}"))?;
    text.trim().parse().map_err(|_| format!("{RESERVED} has {text:?}"))
}

fn set(pages: u64) -> Result<(), String> {
    fs::write(RESERVED, pages.to_string()).map_err(|error| format!("{RESERVED}: {error}"))
}

fn field(name: &str) -> Result<u64, String> {
    let text = fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    value.and_then(|value| value.parse().ok()).ok_or_else(|| "the kernel has none".to_owned())
}
