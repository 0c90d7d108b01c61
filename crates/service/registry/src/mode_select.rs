//! Trying the modes of an interface, best first, until one is to be had.

use ringway_nic_setup::AttachMode;
use ringway_proto::{Cause, Error, NicMode, Refusal, Refusals, Result};
use ringway_region::Timestamps;

use crate::{
    interfaces::nic_error,
    nic_mode::{ModeRequest, refusal, xdp},
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
        let kind = match error {
            Xdp::Attach { .. } | Xdp::Refused { .. } => AttachFailure::Refused,
            _ => AttachFailure::Impossible,
        };
        kind(nic_error(error))
    }

    pub fn packet(error: ringway_nic_setup::Error) -> AttachFailure {
        let kind = match error {
            ringway_nic_setup::Error::Occupied { .. } => AttachFailure::Impossible,
            _ => AttachFailure::Refused,
        };
        kind(nic_error(error))
    }
}

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
    /// mode alone.
    pub fn select<T>(
        &self,
        name: &str,
        mut open: impl FnMut(Option<AttachMode>, &[NicMode]) -> Result<T, AttachFailure>,
    ) -> Result<(T, Refusals)> {
        let modes: Vec<NicMode> = match (self.mode, self.timestamps) {
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
        let mut last = None;
        for attach in [Some(AttachMode::Native), Some(AttachMode::Generic), None] {
            let go_together = |mode: &&NicMode| xdp(**mode).map(|(attach, _)| attach) == attach;
            let modes: Vec<_> = modes.iter().filter(go_together).copied().collect();
            if modes.is_empty() {
                continue;
            }
            match open(attach, &modes) {
                Ok(opened) => return Ok((opened, refusals)),
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
    use super::*;

    #[test]
    fn a_reason_is_said_once() {
        let request = ModeRequest { mode: None, timestamps: None, may_have_packet: true };
        let open = |attach: Option<AttachMode>, _: &[NicMode]| match attach {
            Some(_) => {
                Err(AttachFailure::Refused(Error::invalid("an old kernel").remedy("a newer one")))
            }
            None => Ok(()),
        };
        let ((), refusals) = request.select("n0", open).unwrap();
        assert_eq!(
            refusals.to_string(),
            "not zerocopy or copy or generic: an old kernel; a newer one"
        );
    }
}
