//! Trying the modes of an interface, best first, until one is to be had.

use ringway_nic_setup::AttachMode;
use ringway_proto::{Cause, Error, NicMode, Refusal, Refusals, Result};
use ringway_region::Timestamps;

use crate::{
    nic_mode::{ModeRequest, refusal, xdp},
    setup_error::nic_error,
};

/// Why a mode was not to be had.
pub(crate) enum AttachFailure {
    /// Another may be.
    Refused(Error),
    /// Something prevents all modes, and the user has to remove it.
    Impossible(Error),
}

impl AttachFailure {
    pub fn xdp(error: ringway_nic_setup::Error) -> AttachFailure {
        use ringway_nic_setup::Error as Xdp;
        let kind = match &error {
            gone if gone.has_gone() => AttachFailure::Impossible,
            Xdp::Attach { .. } | Xdp::Refused { .. } => AttachFailure::Refused,
            // Packet mode gets what it passes on.
            Xdp::Occupied { program, .. } if program.is_foreign() => AttachFailure::Refused,
            _ => AttachFailure::Impossible,
        };
        kind(nic_error(error))
    }

    pub fn packet(error: ringway_nic_setup::Error) -> AttachFailure {
        use ringway_nic_setup::Error as Packet;
        let kind = match &error {
            gone if gone.has_gone() => AttachFailure::Impossible,
            Packet::Occupied { program, .. } if !program.is_foreign() => AttachFailure::Impossible,
            _ => AttachFailure::Refused,
        };
        kind(nic_error(error))
    }
}

/// Why packet mode comes before others, and what those have in front of it.
const CONVERTS: &str = "XDP would slow down what the stack keeps of this interface";
const SOONER: &str =
    "@mode=copy or @mode=generic (Linux 6.4 and newer) has a lone frame up to a millisecond sooner";

/// Why zero copy is left out where the stack gets some of a queue: the driver has no other buffers to receive into, and
/// a program has up to all of them.
const STARVES: &str =
    "a program that stands still would keep from the stack what it gets of the queue";
const BY_NAME: &str = "@mode=zerocopy has it";

/// Adds a refusal; one for the same reason as that before is said once.
fn add(refusals: &mut Refusals, new: Refusal) {
    match refusals.0.last_mut() {
        Some(last) if (&last.problem, &last.remedy) == (&new.problem, &new.remedy) => {
            last.tried = format!("{} or {}", last.tried, new.tried);
        }
        _ => refusals.0.push(new),
    }
}

impl ModeRequest {
    /// Opens interface `name` in the best mode that is asked for, and may be had; and says why it is no
    /// better one. `open` is given the modes that go together: those of one way to attach XDP, or packet
    /// mode alone. `converts`: the driver makes other buffers of all frames for an XDP program, those too that
    /// it lets pass, as the stack does in generic mode. [`shares_queue`](Self::shares_queue) is for drivers that have
    /// zero copy.
    pub fn select<T>(
        &self,
        name: &str,
        converts: bool,
        mut open: impl FnMut(Option<AttachMode>, &[NicMode]) -> Result<T, AttachFailure>,
    ) -> Result<(T, Refusals)> {
        let mut modes: Vec<NicMode> = match (self.mode, self.timestamps) {
            (Some(NicMode::Generic), Some(Timestamps::Hardware)) => {
                return Err(Error::invalid("generic mode has no hardware timestamps")
                    .at(name)
                    .remedy("open it in another mode"));
            }
            (Some(mode), _) => vec![mode],
            // Where the driver has none, there is no need to be slower as well.
            (None, Some(Timestamps::Hardware)) => vec![NicMode::ZeroCopy, NicMode::Copy],
            (None, _) => NicMode::ALL.into(),
        };
        let mut refusals = Refusals::default();
        if self.shares_queue && self.mode.is_none() {
            modes.retain(|mode| *mode != NicMode::ZeroCopy);
            add(&mut refusals, refusal(&[NicMode::ZeroCopy], STARVES, BY_NAME));
        }
        let mut last = None;
        let [native, generic] = [Some(AttachMode::Native), Some(AttachMode::Generic)];
        let order = match (self.stack_first, converts) {
            (true, true) => [None, native, generic],
            (true, false) => [native, None, generic],
            (false, _) => [native, generic, None],
        };
        let go_together = |attach| -> Vec<NicMode> {
            let is_one = |mode: &&NicMode| xdp(**mode).map(|(attach, _)| attach) == attach;
            modes.iter().filter(is_one).copied().collect()
        };
        for (attach, left) in order.into_iter().zip([&order[1..], &order[2..], &[]]) {
            let modes = go_together(attach);
            if modes.is_empty() {
                continue;
            }
            match open(attach, &modes) {
                Ok(opened) => {
                    let left: Vec<_> =
                        left.iter().flat_map(|attach| go_together(*attach)).collect();
                    if !left.is_empty() && attach.is_none() {
                        add(&mut refusals, refusal(&left, CONVERTS, SOONER));
                    }
                    return Ok((opened, refusals));
                }
                Err(AttachFailure::Impossible(error)) => return Err(error),
                Err(AttachFailure::Refused(error)) => {
                    add(&mut refusals, refusal(&modes, &error.problem, &error.remedy));
                    last = Some(error);
                }
            }
        }
        let Some(Error { cause, problem, remedy, .. }) = last else {
            return Err(Error::invalid("no mode to try").at(name));
        };
        Err(match self.mode {
            // What a kernel says of a mode that it has not got, it says of others, too.
            Some(mode) => Error::new(
                match cause {
                    Cause::System(libc::EIO) | Cause::Gone => Cause::Unsupported,
                    cause => cause,
                },
                format!("{mode} mode was asked for, and cannot be had"),
            )
            .at(name)
            .because(Refusals(vec![refusal(&[], problem, remedy)])),
            None => Error::new(cause, format!("{name} cannot be opened")).because(refusals),
        })
    }
}

#[cfg(test)]
mod tests {
    use ringway_nic_setup::AttachedProgram;

    use super::*;

    /// Another project's program leaves packet mode; one of ours takes all frames, and so may one without a name.
    #[test]
    fn an_xdp_program_of_others_leaves_packet_mode() {
        let select = |name: Option<&str>| {
            let program = AttachedProgram {
                mode: Some(AttachMode::Native),
                id: 7,
                name: name.map(Into::into),
                holder: None,
            };
            let occupied = || ringway_nic_setup::Error::Occupied {
                interface: "n0".into(),
                program: program.clone(),
            };
            let open = |attach: Option<AttachMode>, _: &[NicMode]| match attach {
                Some(_) => Err(AttachFailure::xdp(occupied())),
                None => Ok(()),
            };
            let kernel_way = AttachFailure::packet(occupied());
            let goes_on = matches!(kernel_way, AttachFailure::Refused(_));
            let selected = ModeRequest::ANY.select("n0", false, open);
            assert_eq!(selected.is_ok(), goes_on);
            selected.map(|((), why)| why.to_string()).map_err(|error| error.cause)
        };
        let why = select(Some("foreign")).unwrap();
        assert!(why.starts_with("not zerocopy or copy or generic: another XDP program"), "{why}");
        assert_eq!(select(Some("ringway_xdp")), Err(Cause::Busy));
        assert_eq!(select(None), Err(Cause::Busy));
    }

    #[test]
    fn a_reason_is_said_once() {
        let request = ModeRequest::ANY;
        let open = |attach: Option<AttachMode>, _: &[NicMode]| match attach {
            Some(_) => {
                Err(AttachFailure::Refused(Error::invalid("an old kernel").remedy("a newer one")))
            }
            None => Ok(()),
        };
        let ((), refusals) = request.select("n0", false, open).unwrap();
        assert_eq!(
            refusals.to_string(),
            "not zerocopy or copy or generic: an old kernel; a newer one"
        );
    }

    /// In zero copy the buffers of a queue are the program's: not where the stack gets some of it, unless asked for by name.
    #[test]
    fn what_the_stack_shares_is_not_zero_copy() {
        use NicMode::*;
        let select = |request: ModeRequest| {
            let open = |_: Option<AttachMode>, modes: &[NicMode]| Ok(modes[0]);
            let (mode, refusals) = request.select("n0", false, open).unwrap();
            (mode, refusals.to_string())
        };
        let shares = ModeRequest { shares_queue: true, ..ModeRequest::ANY };
        for request in [shares, ModeRequest { stack_first: true, ..shares }] {
            let (mode, why) = select(request);
            assert_eq!(mode, Copy);
            assert!(why.starts_with("not zerocopy: a program that stands still"), "{why}");
            assert!(why.ends_with("; @mode=zerocopy has it"), "{why}");
        }
        let timed = ModeRequest { timestamps: Some(Timestamps::Hardware), ..shares };
        assert_eq!(select(timed).0, Copy);
        let asked = ModeRequest { mode: Some(ZeroCopy), ..shares };
        assert_eq!(select(asked), (ZeroCopy, String::new()));
        assert_eq!(select(ModeRequest::ANY), (ZeroCopy, String::new()));
    }

    /// Where the rest is the stack's, what makes other buffers of all frames comes last.
    #[test]
    fn what_the_stack_keeps_is_not_converted() {
        use NicMode::*;
        let request = ModeRequest { stack_first: true, ..ModeRequest::ANY };
        let select = |request: ModeRequest, converts, refused: &[NicMode]| {
            let open = |_: Option<AttachMode>, modes: &[NicMode]| {
                let mode = modes.iter().find(|mode| !refused.contains(mode));
                mode.copied().ok_or(AttachFailure::Refused(Error::invalid("no")))
            };
            let (mode, refusals) = request.select("n0", converts, open).unwrap();
            (mode, refusals.to_string())
        };
        let (mode, why) = select(request, true, &[]);
        assert_eq!(mode, Packet);
        assert!(why.starts_with("not zerocopy or copy or generic: XDP would"), "{why}");
        assert_eq!(select(request, true, &[Packet]), (ZeroCopy, "not packet: no".into()));
        assert_eq!(select(request, false, &[]), (ZeroCopy, String::new()));
        let (mode, why) = select(request, false, &[ZeroCopy, Copy]);
        assert_eq!(mode, Packet);
        assert!(why.starts_with("not zerocopy or copy: no; not generic: XDP would"), "{why}");
        let asked = ModeRequest { mode: Some(Copy), ..request };
        assert_eq!(select(asked, true, &[]), (Copy, String::new()));
    }
}
