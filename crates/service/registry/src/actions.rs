//! Action programs of NICs' receive rings: asked for, and at work.

use std::sync::Arc;

use ringway_action::{MAX_TARGETS, Program};
use ringway_proto::{Action, ActionInfo, Error, Result};

use crate::{
    caller::Caller,
    interfaces::{allowed, granted, look_up, nic_key},
    rx_redirect::MAX_TEXT,
    setup_error::nic_error,
    subject::NicKey,
};

/// An action program that is asked for.
pub(crate) struct WantedAction {
    text: String,
    program: Program,
    redirects: Vec<String>,
    targets: Vec<NicKey>,
}

/// An action program at work.
pub(crate) struct InstalledAction {
    text: String,
    program: Program,
    targets: Vec<NicKey>,
    redirects: Vec<String>,
    pub kernel: Arc<ringway_nic_setup::Action>,
}

impl WantedAction {
    /// For port `name`. The interfaces that it redirects to are the caller's to use, as if it opened them: who is
    /// granted the port's by name is not granted these by that.
    pub fn new(caller: &Caller, name: &str, action: Action) -> Result<WantedAction> {
        let Action { text, insns, redirects } = action;
        let invalid = |problem: String| Err(Error::invalid(problem).at(name));
        if text.len() > MAX_TEXT {
            return invalid(format!("the name of an action program has {MAX_TEXT} bytes at most"));
        }
        if redirects.len() > MAX_TARGETS {
            return invalid(format!(
                "an action program redirects to {MAX_TARGETS} interfaces at most"
            ));
        }
        let program = match Program::new(insns) {
            Ok(program) => program,
            Err(error) => return invalid(error.to_string()),
        };
        let targets = redirects.iter().map(|target| usable(caller, target));
        let targets = targets.collect::<Result<_>>()?;
        Ok(WantedAction { text, program, redirects, targets })
    }

    /// The same for an interface of this network namespace, which no frame leaves.
    pub fn within(self, name: &str, (netns, _): NicKey) -> Result<WantedAction> {
        match self.redirects.iter().zip(&self.targets).find(|(_, (other, _))| *other != netns) {
            None => Ok(self),
            Some((target, _)) => {
                let problem = format!("{target} is in another network namespace");
                Err(Error::invalid(problem).at(name).remedy("redirect to interfaces beside it"))
            }
        }
    }
}

/// An interface that the caller could open.
fn usable(caller: &Caller, name: &str) -> Result<NicKey> {
    let by_name = granted(caller, name)?;
    let caller = by_name.as_ref().unwrap_or(caller);
    allowed(caller, name)?;
    Ok(nic_key(caller, &look_up(name, caller)?))
}

impl InstalledAction {
    /// Has the kernel verify the program by itself: that takes as long as it is complicated.
    pub fn new(interface: &str, wanted: WantedAction) -> Result<InstalledAction> {
        let WantedAction { text, program, redirects, targets } = wanted;
        let indices = targets.iter().map(|&(_, index)| index).collect();
        let kernel = ringway_nic_setup::Action::new(interface, program.clone(), indices);
        let kernel = Arc::new(kernel.map_err(nic_error)?);
        Ok(InstalledAction { text, program, targets, redirects, kernel })
    }

    /// Whether it does with frames what that program would do.
    pub fn is_like(&self, wanted: &WantedAction) -> bool {
        self.program == wanted.program && self.targets == wanted.targets
    }

    /// Whether both do the same with frames.
    pub fn is_like_other(&self, other: &InstalledAction) -> bool {
        self.program == other.program && self.targets == other.targets
    }

    /// In error messages.
    pub fn describe(&self) -> String {
        format!("the action program `{}`", self.text)
    }

    /// Instructions that the kernel's verifier looks at, wherever it is called.
    pub fn cost(&self) -> u32 {
        self.kernel.verified()
    }

    /// With what it has counted, for these receive queues.
    pub fn info(&self, queues: Vec<u32>) -> ActionInfo {
        let ringway_nic_setup::ActionCounters { passed, dropped, sent, to_stack, redirected } =
            self.kernel.counters().unwrap_or_default();
        let (text, redirects) = (self.text.clone(), self.redirects.clone());
        ActionInfo { text, queues, redirects, passed, dropped, sent, to_stack, redirected }
    }
}
