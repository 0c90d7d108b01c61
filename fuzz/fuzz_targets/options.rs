//! Any bytes as what a program hands to NIOCCTRL, or to one of the requests before that: nothing is
//! read or written where there is no memory, every list ends, and each answer is that of a plain
//! model of S-CTRL-1..9.
//!
//! The first byte says which request it is, the next eight what becomes of it when it is carried
//! out, and the others are the program's memory.
#![no_main]

#[path = "options/memory.rs"]
mod memory;
#[path = "options/model.rs"]
mod model;
#[path = "../../crates/personalities/netmap/src/request"]
#[allow(dead_code)]
mod request {
    pub mod ctrl;
    pub mod legacy;
    pub mod options;
}

use libfuzzer_sys::fuzz_target;
use ringway_abi::{NETMAP_REQ_VALE_LIST, nmreq, nmreq_opt_csb};
use ringway_interpose::uaccess as user;
use zerocopy::IntoBytes;

use crate::{
    memory::{Memory, SIZE},
    model::{HEADER, Model},
    request::{ctrl, legacy, options::Options},
};

/// What a handler leaves in the body of an option.
const LEFT: u8 = 0xa5;

/// What becomes of a request: from two bits for each kind of option, and one for the whole.
#[derive(Clone, Copy)]
struct Plan(u64);

impl Plan {
    /// What a handler says of an option, if it looks at it.
    fn of(self, kind: u32) -> Option<Result<(), i32>> {
        match self.0 >> (2 * kind) & 3 {
            0 => None,
            1 => Some(Ok(())),
            _ => Some(Err(libc::ENOMEM)),
        }
    }

    fn result(self) -> Result<(), i32> {
        if self.0 & 1 == 0 { Ok(()) } else { Err(libc::ENXIO) }
    }

    fn carry_out(self, reqtype: u16, body: &[u8], options: &mut Options) -> Result<(), i32> {
        assert_eq!(body.len(), ctrl::size(reqtype));
        for (kind, settled) in (1..6).filter_map(|kind| Some((kind, self.of(kind)?))) {
            let _ = options.settle(kind, settled);
        }
        if let Some(mut csb) = options.get::<nmreq_opt_csb>() {
            csb.as_mut_bytes().fill(LEFT);
            options.put(&csb);
        }
        self.result()
    }
}

/// NIOCCTRL, with the header where the memory begins.
fn control(memory: &Memory, plan: Plan) {
    let before = memory.bytes();
    let model = Model::of(memory, &before, plan);
    let answer = ctrl::answer(memory.base(), &mut |reqtype, _, body, options| {
        plan.carry_out(reqtype, body, options)
    });
    assert_eq!(answer, model.answer);
    if model.overlaps {
        return;
    }
    let after = memory.bytes();
    let renamed = answer.is_ok() && model.reqtype == NETMAP_REQ_VALE_LIST;
    if !renamed {
        let last = if model.understood { 71 } else { HEADER };
        assert!(after[..last] == before[..last] && after[72..HEADER] == before[72..HEADER]);
        assert!(!model.understood || after[71] == 0);
    }
    for option in &model.options {
        let (head, body) =
            (option.at..option.at + 16, option.at + 24..option.at + 24 + option.body);
        assert_eq!(after[head.start..head.start + 12], before[head.start..head.start + 12]);
        let status = u32::from_ne_bytes(after[option.at + 12..head.end].try_into().unwrap());
        assert_eq!(status, option.status as u32);
        if option.is_csb() && answer.is_ok() && option.status == 0 {
            assert!(after[body].iter().all(|byte| *byte == LEFT));
        } else {
            assert!(after[body.clone()] == before[body]);
        }
    }
}

/// NIOCREGIF, NIOCGINFO or NIOCCONFIG, with the structure anywhere.
fn old(which: u8, memory: &Memory, at: u64, plan: Plan) {
    let (before, mut asked) = (memory.bytes(), 0);
    let mut carry_out = |reqtype, _: &mut String, body: &mut [u8], options: &mut Options| {
        asked += 1;
        body.fill(LEFT);
        plan.carry_out(reqtype, body, options)
    };
    let answer = match which {
        0 => legacy::register(memory.base() + at, &mut carry_out),
        1 => legacy::info(memory.base() + at, &mut carry_out),
        _ => legacy::config(memory.base() + at),
    };
    let there = at as usize..at as usize + size_of::<nmreq>();
    if which > 1 {
        let errno = if at as usize + 272 > SIZE { libc::EFAULT } else { libc::EINVAL };
        assert_eq!((answer, memory.bytes() == before), (Err(errno), true));
    } else if there.end > SIZE {
        assert_eq!((answer, asked), (Err(libc::EFAULT), 0));
    } else {
        let after = memory.bytes();
        assert!(before[..there.start] == after[..there.start]);
        assert!(before[there.end..] == after[there.end..]);
        assert!(asked <= 1 && (asked == 0 || answer == plan.result()));
        assert!(asked == 1 || answer.is_err());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[which, ref plan @ ..], bytes)) = bytes.split_first_chunk::<9>() else { return };
    let plan = Plan(u64::from_le_bytes(*plan));
    match which % 4 {
        3 => control(&Memory::of_request(bytes), plan),
        old_one => old(old_one, &Memory::of(bytes), plan.0 >> 32 & 0x1fff, plan),
    }
});
