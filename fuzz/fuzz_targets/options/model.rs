//! What NIOCCTRL is to answer, by the rules.

use libc::{EFAULT, EINVAL, EMSGSIZE, EOPNOTSUPP};

use crate::{Plan, memory::Memory, request::ctrl};

/// Bytes of the header.
pub const HEADER: usize = 88;
/// Of the head of an option.
const HEAD: usize = 24;
const CSB: u32 = 3;
const UNKNOWN: u32 = 6;

/// An option that is written back.
pub struct Written {
    /// Its place in the memory.
    pub at: usize,
    kind: u32,
    pub status: i32,
    /// Bytes that were read behind its head.
    pub body: usize,
}

impl Written {
    pub fn is_csb(&self) -> bool {
        self.kind == CSB
    }
}

pub struct Model {
    pub answer: Result<(), i32>,
    pub reqtype: u16,
    /// The header is one: its name is ended.
    pub understood: bool,
    pub options: Vec<Written>,
    /// Header, body and options lie across each other: what is written back last is what remains.
    pub overlaps: bool,
}

impl Model {
    pub fn of(memory: &Memory, bytes: &[u8], plan: Plan) -> Model {
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let (reqtype, first, body) = (half(2), word(72), word(80));
        let understood = [14, 15].contains(&half(0)) && bytes[4..8] == [0; 4];
        let mut options = Vec::new();
        let size = ctrl::size(reqtype);
        // S-CTRL-1..3.
        let answer = match memory.place(body, size) {
            _ if !understood || (body != 0) != (size != 0) => Err(EINVAL),
            None if size != 0 => Err(EFAULT),
            _ => list(memory, bytes, first, size, &mut options),
        };
        let answer = answer.and_then(|()| {
            // S-CTRL-9.
            for option in &mut options {
                let settled = if option.kind < UNKNOWN { plan.of(option.kind) } else { None };
                option.status = settled.map_or(EOPNOTSUPP, |settled| settled.err().unwrap_or(0));
            }
            plan.result()
        });
        let mut places = vec![(0, HEADER), (memory.place(body, size).unwrap_or(HEADER), size)];
        places.extend(options.iter().map(|option| (option.at, HEAD + option.body)));
        places.sort();
        let overlaps = places.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0);
        Model { answer, reqtype, understood, options, overlaps }
    }
}

/// S-CTRL-5..8: reads the list that begins at `next`, behind a body of `size` bytes.
fn list(
    memory: &Memory,
    bytes: &[u8],
    mut next: u64,
    size: usize,
    options: &mut Vec<Written>,
) -> Result<(), i32> {
    let mut bodies = 0;
    while next != 0 {
        if size + 32 * (options.len() + 1) + bodies > 4144 {
            options.clear();
            return Err(EMSGSIZE);
        }
        let at = memory.place(next, HEAD).ok_or(EFAULT)?;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let (kind, asked) = (word(at + 8) as u32, word(at + 16));
        next = word(at);
        let same = options.iter_mut().find(|option| option.kind == kind);
        let (status, twice) = match same {
            _ if kind == 0 => (EINVAL, false),
            Some(first) if kind < UNKNOWN => {
                first.status = EINVAL;
                (EINVAL, true)
            }
            _ => (0, false),
        };
        options.push(Written { at, kind, status, body: 0 });
        if kind == 0 || twice {
            return Err(EINVAL);
        }
        if kind >= UNKNOWN {
            continue;
        }
        let body = match kind {
            1 => 72,
            2 => asked.saturating_sub(24),
            CSB => 16,
            4 => 8,
            _ => 32,
        };
        if asked > 4096 {
            return Err(EMSGSIZE);
        }
        bodies += body as usize;
        let count = options.len();
        if size + 24 * count + bodies > 4096 || size + 32 * count + bodies > 4144 {
            return Err(EMSGSIZE);
        }
        memory.place(at as u64 + 24 + memory.base(), body as usize).ok_or(EFAULT)?;
        options[count - 1].body = body as usize;
    }
    Ok(())
}
