//! The modes in which an interface is driven, and their choice.

use ringway_nic_setup::{AttachMode, Mode};
use ringway_proto::{NicMode, Refusal, Refusals};
use ringway_region::Timestamps;

/// The mode of AF_XDP sockets, and how the XDP program is attached for them; `None` for AF_PACKET.
pub(crate) fn xdp(mode: NicMode) -> Option<(AttachMode, Mode)> {
    match mode {
        NicMode::ZeroCopy => Some((AttachMode::Native, Mode::ZeroCopy)),
        NicMode::Copy => Some((AttachMode::Native, Mode::Copy)),
        NicMode::Generic => Some((AttachMode::Generic, Mode::Generic)),
        NicMode::Packet => None,
    }
}

/// Those among `modes` that AF_XDP sockets have.
pub(crate) fn of_sockets(modes: &[NicMode]) -> Vec<Mode> {
    modes.iter().filter_map(|mode| xdp(*mode)).map(|(_, mode)| mode).collect()
}

/// The mode of an AF_XDP socket.
pub(crate) fn of_socket(mode: Mode) -> NicMode {
    match mode {
        Mode::ZeroCopy => NicMode::ZeroCopy,
        Mode::Copy => NicMode::Copy,
        Mode::Generic => NicMode::Generic,
    }
}

/// What a program wants of an interface that it opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeRequest {
    /// This mode and no other.
    pub mode: Option<NicMode>,
    /// These timestamps, or none.
    pub timestamps: Option<Timestamps>,
    /// Whether it leaves some of what the interface receives to the stack, by a filter or in other queues.
    pub leaves_some: bool,
    /// Whether that is to cost little, rather than what it takes.
    pub stack_first: bool,
    /// Whether the stack gets some of what a queue receives that it has, by a filter.
    pub shares_queue: bool,
    /// Whether it may have an AF_PACKET socket, which reaches all interfaces of the namespace.
    pub may_have_packet: bool,
}

impl ModeRequest {
    /// The best mode there is.
    pub const ANY: ModeRequest = ModeRequest {
        mode: None,
        timestamps: None,
        leaves_some: false,
        stack_first: false,
        shares_queue: false,
        may_have_packet: true,
    };
}

/// Why these modes were not to be had.
pub(crate) fn refusal(
    modes: &[NicMode],
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> Refusal {
    let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    Refusal { tried: names.join(" or "), problem: problem.into(), remedy: remedy.into() }
}

/// The better modes that a socket was refused.
pub(crate) fn refused_to_socket(refused: &[(Mode, String)]) -> Refusals {
    let one = |(mode, why): &(Mode, String)| refusal(&[of_socket(*mode)], why.as_str(), "");
    Refusals(refused.iter().map(one).collect())
}

/// A mode with the reasons why it is no better one.
pub(crate) fn describe(mode: &str, refused: &Refusals) -> String {
    if refused.0.is_empty() { mode.into() } else { format!("{mode}; {refused}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let native = refusal(&[NicMode::ZeroCopy, NicMode::Copy], "no hook", "");
        let refusals =
            Refusals(vec![native]).then(refused_to_socket(&[(Mode::Generic, "no socket".into())]));
        assert_eq!(
            describe("packet", &refusals),
            "packet; not zerocopy or copy: no hook; not generic: no socket"
        );
        assert_eq!(describe("packet", &Refusals::default()), "packet");
    }
}
