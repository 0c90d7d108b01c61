//! How much shared memory a port has: the pages of memfds that the kernel has allocated, whichever process has touched them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use ringway::Port;

use crate::bench::Bench;
use crate::c_program::number_behind;
use crate::nic::stage::Stage;
use crate::record::Road;
use crate::roles::{self, Seat};

const WORD: &str = "kibibytes";

/// Bytes of a block of `stat(2)`.
const BLOCK: u64 = 512;

/// KiB of each of so many ports.
pub fn once(bench: &Bench, road: Road, count: usize) -> io::Result<f64> {
    let stage = (road == Road::MemoryVeth).then(|| Stage::new(count, 1)).transpose()?;
    let seat = Seat::default();
    let seat = stage.as_ref().map_or(seat, |stage| seat.inside(&stage.near));
    let names: Vec<String> = (0..count)
        .flat_map(|number| match road {
            // Both ends.
            Road::MemoryPipe => vec![format!("bench{number}{{1"), format!("bench{number}}}1")],
            Road::MemoryVale => vec![format!("valebench:memory{number}")],
            _ => vec![format!("netmap:near{number}")],
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut child = roles::command(seat, &[&["memory"], &names[..]].concat())?;
    let mut child = child.env("RINGWAY_DIR", bench.scratch.folder("memory")?).spawn()?;
    let mut output = String::new();
    child.stdout.take().expect("stdout is piped").read_to_string(&mut output)?;
    child.wait()?;
    Ok(number_behind(WORD, &output)? / count as f64)
}

/// The process that opens the ports. It says how much they have all together.
pub fn play(names: &[String]) -> io::Result<()> {
    let open = |name: &String| Port::open(name).map_err(io::Error::other);
    // It keeps the daemon, and has what all ports of a user share.
    let _daemon = open(&"bench{8".to_owned())?;
    let before = allocated()?;
    let ports = names.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    println!("{WORD} {:.1}", allocated()?.saturating_sub(before) as f64 / 1024.0);
    drop(ports);
    Ok(())
}

/// Bytes of all memfds that this process maps.
fn allocated() -> io::Result<u64> {
    let mut memfds = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/map_files")? {
        let path = entry?.path();
        let is_memfd = fs::read_link(&path)?.to_string_lossy().starts_with("/memfd:");
        if is_memfd {
            // Of the file itself, which may be mapped in several pieces.
            let file = fs::metadata(&path)?;
            memfds.insert((file.dev(), file.ino()), file.blocks() * BLOCK);
        }
    }
    Ok(memfds.values().sum())
}
