//! Who has an interface already.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::rtnl::{find, link_by_index};
use crate::{AttachMode, Error, Interface, ingress_drop, switch, sys, tc};

/// A program that is there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedProgram {
    /// Of an XDP program; `None` for one of ours that keeps frames from the stack, in packet mode.
    pub mode: Option<AttachMode>,
    /// The kernel's id of the program, as `bpftool prog` shows it.
    pub id: u32,
    /// The program's name; needs CAP_SYS_ADMIN to be read.
    pub name: Option<String>,
    /// A process that holds its link, with its name, among those that may be looked at.
    pub holder: Option<(u32, String)>,
}

/// Begins the names of our own programs, which the sources in `bpf/` and the filters have.
const OURS: &str = "ringway_";

impl AttachedProgram {
    /// Whether it is one of ours: of another daemon, or of a client that outlived its daemon.
    pub fn is_ours(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.starts_with(OURS))
    }

    /// Whether it is known to be another project's: such a program passes some frames on, or all. One of ours takes
    /// them. A program whose name may not be read can be either.
    pub fn is_foreign(&self) -> bool {
        self.name.is_some() && !self.is_ours()
    }

    /// How to be rid of it.
    pub(crate) fn remedy(&self, interface: &str) -> String {
        match &self.holder {
            Some((pid, name)) if self.is_ours() => {
                return format!("end process {pid} ({name}), which holds it");
            }
            // Its holders have a socket, which says nothing of what it is for.
            None if self.name.as_deref() == Some(tc::SLOT) => {
                return "end the programs that have had the interface from a daemon that has ended"
                    .into();
            }
            None if self.is_ours() => {
                // The threads, too: of a killed process that is held up, they alone show what it holds.
                return format!(
                    "end the process that holds it: `sudo grep -ls '^prog_id:.{}$' \
                     /proc/[0-9]*/task/*/fdinfo/*` names it; a ringwayd that was killed and does not end is held up \
                     by a file system in user space, to be aborted at /sys/fs/fuse/connections/*/abort",
                    self.id
                );
            }
            _ => {}
        }
        let mode = match self.mode {
            Some(AttachMode::Generic) => "xdpgeneric",
            _ => "xdpdrv",
        };
        format!(
            "detach it with `ip link set dev {interface} {mode} off`, or, when a link holds it, end \
             the program that owns it"
        )
    }
}

impl fmt::Display for AttachedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, id) = (self.mode.map_or("packet".into(), |mode| mode.to_string()), self.id);
        match &self.name {
            Some(_) if self.is_ours() => write!(
                f,
                "a Ringway program ({mode} mode, id {id}) of another daemon, or of a client that \
                 outlived its daemon,"
            ),
            Some(name) => write!(f, "another XDP program ({mode} mode, id {id}, {name:?})"),
            None => write!(f, "another XDP program ({mode} mode, id {id})"),
        }
    }
}

const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;

/// The program on the hook of interface `index`, if there is one.
pub(crate) fn attached_to(index: u32) -> io::Result<Option<AttachedProgram>> {
    let link = link_by_index(index)?;
    let xdp = link.find(libc::IFLA_XDP).unwrap_or_default();
    let modes =
        [(IFLA_XDP_DRV_PROG_ID, AttachMode::Native), (IFLA_XDP_SKB_PROG_ID, AttachMode::Generic)];
    Ok(modes.into_iter().find_map(|(attribute, mode)| {
        let id = u32::from_ne_bytes(find(xdp, attribute)?.try_into().ok()?);
        let name = sys::program_name(id).ok().filter(|n| !n.is_empty());
        Some(AttachedProgram { mode: Some(mode), id, name, holder: holder(id) })
    }))
}

/// The program that keeps from the stack what interface `index` receives, if there is one, and the
/// revision of the list of programs that tells so. Others beside the traffic control do no harm.
fn ingress_drop(index: u32, but: &[u32]) -> io::Result<(Option<AttachedProgram>, u64)> {
    let (programs, revision) = match sys::tcx_programs(index, sys::BPF_TCX_INGRESS) {
        // The kernel has no tcx.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            return Ok((tc::occupant(index, tc::Hook::Ingress)?, 0));
        }
        listed => listed?,
    };
    let named = programs.into_iter().filter_map(|id| Some((id, sys::program_name(id).ok()?)));
    // The kernel keeps the first 15 bytes of a name.
    let is_ours =
        |name: &str| [ingress_drop::PROGRAM.get(..15), Some(switch::PROGRAM)].contains(&Some(name));
    let found = named.into_iter().find(|(id, name)| is_ours(name) && !but.contains(id));
    let found = found.map(|(id, name)| AttachedProgram {
        mode: None,
        id,
        name: Some(name),
        holder: holder(id),
    });
    Ok((found, revision))
}

/// Fails if another daemon, or a client that outlived its own, has the interface in packet mode: two
/// who listen would both get every frame, and who listens gets none that XDP takes. Else the revision of
/// the interface's programs that this is true of, or 0 where the kernel does not tell.
pub(crate) fn check_no_ingress_drop(interface: &Interface) -> Result<u64, Error> {
    check_no_ingress_drop_but(interface, &[])
}

/// The same if it is none of these programs, by their ids.
pub(crate) fn check_no_ingress_drop_but(interface: &Interface, but: &[u32]) -> Result<u64, Error> {
    // A program that cannot be looked at is taken for another's.
    match ingress_drop(interface.index, but) {
        Ok((Some(program), _)) => {
            Err(Error::Occupied { interface: interface.name.clone(), program })
        }
        Ok((None, revision)) => Ok(revision),
        Err(_) => Ok(0),
    }
}

/// Fails if an XDP program takes frames before any other.
pub(crate) fn check_no_program(interface: &Interface) -> Result<(), Error> {
    match attached_to(interface.index) {
        Ok(Some(program)) => Err(Error::Occupied { interface: interface.name.clone(), program }),
        // The next step says what is wrong.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// The same, unless the program is known to be [another project's](AttachedProgram::is_foreign): what that passes on
/// comes to those behind it.
pub(crate) fn check_no_program_but_foreign(interface: &Interface) -> Result<(), Error> {
    match check_no_program(interface) {
        Err(Error::Occupied { program, .. }) if program.is_foreign() => Ok(()),
        checked => checked,
    }
}

/// A process that holds the link of program `id`. Those of other users, and those with more
/// privileges, do not show what they hold.
fn holder(id: u32) -> Option<(u32, String)> {
    holder_of(&format!("prog_id:\t{id}"), "link_type:")
}

/// The same of the map of that id, which a program [calls](tc::Slot).
pub(crate) fn holder_of_map(id: u32) -> Option<(u32, String)> {
    holder_of(&format!("map_id:\t{id}"), "map_type:")
}

/// A process that has a descriptor of which the kernel says `line`, and what begins with `kind`.
fn holder_of(line: &str, kind: &str) -> Option<(u32, String)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let holds = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.starts_with("pos:") && text.lines().any(|l| l == line) && text.contains(kind)
    };
    entries(Path::new("/proc")).find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let folder = process.path();
        entries(&folder.join("fdinfo")).any(|file| holds(&file.path())).then(|| {
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            (pid, name.trim_end().into())
        })
    })
}
