//! Which of the frames that a NIC receives are redirected to its port; its stack gets the others.
//!
//! A queue is redirected while a program has its ring, unless a user withholds it. A filter selects
//! among a queue's frames. Both are forgotten when the last program lets the ring go.

use std::sync::Arc;

use ringway_filter::{Insn, Program};
use ringway_nic_setup::{Loader, QueueRule};
use ringway_proto::{ActionInfo, Error, Filter, FilterInfo, Result};

use crate::{
    actions::InstalledAction, kinds::nic_sockets::Sockets, queues::RxAttachment,
    setup_error::nic_error,
};

/// Bytes of the text of a filter, or of an action program, at most.
pub(crate) const MAX_TEXT: usize = Filter::MAX_TEXT;

/// A filter at work.
pub(crate) struct Installed {
    text: String,
    program: Program,
    one_in: u32,
    pub kernel: Arc<ringway_nic_setup::Filter>,
    /// Instructions that the kernel's verifier looks at for it, each attachment through it.
    cost: u32,
}

/// A filter that is asked for.
pub(crate) struct Wanted {
    interface: String,
    text: String,
    program: Program,
    one_in: u32,
}

impl Wanted {
    pub fn new(interface: &str, filter: Filter) -> Result<Wanted> {
        let Filter { text, insns, one_in } = filter;
        if text.len() > MAX_TEXT {
            return Err(Error::invalid(format!(
                "the text of a filter has {MAX_TEXT} bytes at most"
            ))
            .at(interface));
        }
        let program =
            Program::new(insns).map_err(|e| Error::invalid(format!("{interface}: {e}")))?;
        Ok(Wanted { interface: interface.into(), text, program, one_in: one_in.max(1) })
    }
}

/// What one receive queue has been told to do with its frames.
#[derive(Clone, Default)]
pub(crate) struct RxRule {
    pub action: Option<Arc<InstalledAction>>,
    pub filter: Option<Arc<Installed>>,
    pub withheld: bool,
    /// What the interface's XDP program does now.
    redirected: bool,
}

impl RxRule {
    /// What the interface's XDP program has of it.
    pub fn kernel(&self) -> QueueRule {
        QueueRule {
            action: self.action.as_ref().map(|action| action.kernel.clone()),
            filter: self.filter.as_ref().map(|filter| filter.kernel.clone()),
        }
    }

    /// Whether some of the frames may be left to others.
    pub fn selects(&self) -> bool {
        self.action.is_some() || self.filter.is_some()
    }

    fn cost(&self) -> u64 {
        let action = self.action.as_ref().map_or(0, |action| action.cost());
        let filter = self.filter.as_ref().map_or(0, |filter| filter.cost);
        u64::from(action) + u64::from(filter)
    }
}

impl Installed {
    /// Makes the filter, and has the kernel verify it by itself, for these queues of an interface: that
    /// takes as long as the filter is complicated.
    pub fn new(wanted: Wanted, loader: Option<&Loader>, queues: &[u16]) -> Result<Installed> {
        let Wanted { interface, text, program, one_in } = wanted;
        let kernel = ringway_nic_setup::Filter::new(&interface, program.clone(), one_in)
            .map_err(nic_error)?;
        let kernel = Arc::new(kernel);
        let mut cost = 0;
        if let Some(loader) = loader {
            let count = queues.iter().max().map_or(0, |&last| usize::from(last) + 1);
            let here = |queue: usize| queues.iter().any(|&at| usize::from(at) == queue);
            let filter = |queue| here(queue).then(|| kernel.clone());
            let alone = (0..count).map(|queue| QueueRule { action: None, filter: filter(queue) });
            cost = loader.load(alone.collect()).map_err(nic_error)?.verified();
        }
        Ok(Installed { text, program, one_in, kernel, cost })
    }

    /// Whether it takes the frames that one of these instructions and this sampling takes.
    pub fn is_like(&self, insns: &[Insn], one_in: u32) -> bool {
        self.program.insns() == insns && self.one_in == one_in.max(1)
    }

    /// Whether both take the same frames.
    pub fn is_like_other(&self, other: &Installed) -> bool {
        self.is_like(other.program.insns(), other.one_in)
    }

    /// In error messages.
    pub fn describe(&self) -> String {
        match (self.text.as_str(), self.one_in) {
            ("", one_in) => format!("a sample of one in {one_in} frames"),
            (text, 1) => format!("the filter `{text}`"),
            (text, one_in) => format!("the filter `{text}`, one in {one_in} of what matches"),
        }
    }

    /// With what it has counted, for these receive queues.
    pub fn info(&self, queues: Vec<u32>) -> FilterInfo {
        let ringway_nic_setup::FilterCounters { matched, taken, passed } =
            self.kernel.counters().unwrap_or_default();
        let (text, one_in) = (self.text.clone(), self.one_in);
        FilterInfo { text, one_in, queues, host: false, matched, taken, passed }
    }
}

impl Sockets {
    /// Redirects the frames of the queues whose rings programs have, and forgets the rules of the others.
    /// `attachment` is that of the interface.
    pub fn redirect(&mut self, attachment: &mut RxAttachment, used: &[bool]) {
        crate::fault::step();
        for (queue, &used) in (0..).zip(used) {
            let Some(rule) = self.rx_rules.get_mut(queue as usize) else { return };
            rule.withheld &= used;
            let redirected = used && !rule.withheld;
            match (std::mem::replace(&mut rule.redirected, redirected), redirected, self.get(queue))
            {
                // The queue was looked at when it was opened.
                (false, true, Some(socket)) => drop(attachment.set_queue(queue, socket)),
                (true, false, socket) => {
                    attachment.unset_queue(queue);
                    socket.inspect(|socket| socket.stop_listening());
                }
                _ => {}
            }
        }
        // The interface's program goes on asking these filters and action programs, for queues whose frames are the stack's in
        // any case, until it is made anew: that takes the verifier's time, and nobody waits for it here.
        for (rule, used) in self.rx_rules.iter_mut().zip(used) {
            if !used {
                (rule.action, rule.filter) = (None, None);
            }
        }
    }

    /// What the verifier looks at for all queues, each rule counted once, if those of `queues` were changed so.
    pub fn cost_with(&self, queues: &[u16], change: impl Fn(&mut RxRule)) -> u64 {
        let mut counted: Vec<(QueueRule, u64)> = Vec::new();
        for (queue, rule) in (0..).zip(&self.rx_rules) {
            let mut rule = rule.clone();
            if queues.contains(&queue) {
                change(&mut rule);
            }
            let kernel = rule.kernel();
            if !counted.iter().any(|(other, _)| other.is(&kernel)) {
                counted.push((kernel, rule.cost()));
            }
        }
        counted.iter().map(|(_, cost)| cost).sum()
    }

    /// Whether frames of any queue are redirected to programs.
    pub fn is_any_redirected(&self) -> bool {
        self.rx_rules.iter().any(|rule| rule.redirected)
    }

    /// The queues whose frames are redirected to programs, all or some.
    pub fn redirected_queues(&self) -> Vec<u32> {
        (0..)
            .zip(&self.rx_rules)
            .filter(|(_, rule)| rule.redirected)
            .map(|(queue, _)| queue)
            .collect()
    }

    /// All filters, with what they have counted.
    pub fn filters(&self) -> Vec<FilterInfo> {
        let found = by_queues(&self.rx_rules, |rule| rule.filter.as_ref());
        found.into_iter().map(|(filter, queues)| filter.info(queues)).collect()
    }

    /// All action programs, with what they have counted.
    pub fn actions(&self) -> Vec<ActionInfo> {
        let found = by_queues(&self.rx_rules, |rule| rule.action.as_ref());
        found.into_iter().map(|(action, queues)| action.info(queues)).collect()
    }
}

/// What the rules have, each once, with the queues that have it.
fn by_queues<'a, T>(
    rules: &'a [RxRule],
    of: impl Fn(&'a RxRule) -> Option<&'a Arc<T>>,
) -> Vec<(&'a Arc<T>, Vec<u32>)> {
    let mut found: Vec<(&Arc<T>, Vec<u32>)> = Vec::new();
    for (queue, rule) in (0..).zip(rules) {
        let Some(one) = of(rule) else { continue };
        match found.iter_mut().find(|(other, _)| Arc::ptr_eq(other, one)) {
            Some((_, queues)) => queues.push(queue),
            None => found.push((one, vec![queue])),
        }
    }
    found
}
