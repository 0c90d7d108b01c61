//! What is changed at an interface, told before it is done, so that any process can undo it.

use std::io;

use ringway_flow::Flow;
use serde::{Deserialize, Serialize};

use super::{
    Error,
    rule::rule,
    table::{is_default, without},
};
use crate::{
    helper,
    operation::{CarryOutPlan, MakePlan, UndoPlan},
    sys::flow_rules::{Ethtool, LOC_ANY},
};

/// The changes for one queue. [`Plan::make`] looks, [`Plan::carry_out`] acts, [`Plan::undo`]
/// undoes as much as was done. A plan is plain data: it can be written down in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    interface: String,
    /// Its number: its name may change before the end.
    index: u32,
    queue: u32,
    flows: Vec<Flow>,
    /// The RSS table before, and after; an empty one before is the driver's own.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Places of the table that change.
    moved: u32,
    /// Whether rules were in force.
    ntuple: bool,
    /// Where the rules are to be; empty if the driver chooses.
    places: Vec<u32>,
}

/// A part of carrying out a plan.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// The table, and that rules are in force.
    Prepare,
    /// The rule of the flow of that number, in that place.
    Rule { number: u32, place: u32 },
}

/// What was changed, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// Places of the RSS table that the queue had, of all.
    pub moved: u32,
    pub table: u32,
    /// Whether flow rules had to be turned on.
    pub rules_turned_on: bool,
    /// Each flow and the place of its rule.
    pub rules: Vec<(String, u32)>,
}

impl Plan {
    /// Plans to keep everything but `flows` off a queue, and to lead those to it.
    pub fn make(interface: &str, queue: u32, flows: &[Flow]) -> Result<Plan, Error> {
        let (interface, flows) = (interface.to_owned(), flows.to_vec());
        helper::run(MakePlan { interface, queue, flows })?
    }

    pub(crate) fn make_here(interface: &str, queue: u32, flows: &[Flow]) -> Result<Plan, Error> {
        let name = || interface.to_owned();
        let nic = open(interface)?;
        let no_table = |cause| Error::NoTable { interface: name(), cause };
        let table = nic.table().map_err(no_table)?;
        if table.is_empty() {
            return Err(no_table(std::io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        }
        let queues = nic.queues().map_err(no_table)?;
        if queue >= queues {
            return Err(Error::NoQueue { interface: name(), queue, queues });
        }
        let after = without(&table, queue);
        let after = after.ok_or_else(|| Error::OnlyQueue { interface: name(), queue, queues })?;
        let (mut ntuple, mut places) = (true, Vec::new());
        if !flows.is_empty() {
            let no_rules = |cause| Error::NoRules { interface: name(), cause };
            ntuple = nic.ntuple().map_err(no_rules)?;
            let found = nic.places().map_err(no_rules)?;
            if !found.special {
                let free = (0..found.size as u32).rev().filter(|at| !found.taken.contains(at));
                places = free.take(flows.len()).collect();
                if places.len() < flows.len() {
                    return Err(Error::Full { interface: name(), size: found.size });
                }
            }
        }
        let moved = table.iter().filter(|&&at| at == queue).count() as u32;
        let before = if is_default(&table, queues) { Vec::new() } else { table };
        let flows = flows.to_vec();
        let index = nic.index();
        Ok(Plan { interface: name(), index, queue, flows, before, after, moved, ntuple, places })
    }

    /// The interface that it is about.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Does it, all or nothing. Where the driver chooses places, `told` learns of each rule as soon
    /// as it is there: with them the plan can be undone.
    pub fn carry_out(&mut self, told: impl FnMut(&Plan)) -> Result<Steered, Error> {
        let done = self.try_carry_out(told);
        if done.is_err() {
            // What is lost of that is undone by what was told of it.
            let _ = self.undo();
        }
        done
    }

    fn try_carry_out(&mut self, mut told: impl FnMut(&Plan)) -> Result<Steered, Error> {
        self.step(Step::Prepare)?;
        let chosen = std::mem::take(&mut self.places);
        let mut rules = Vec::new();
        for (number, flow) in (0..).zip(self.flows.clone()) {
            let place = chosen.get(number as usize).copied().unwrap_or(LOC_ANY);
            let place = self.step(Step::Rule { number, place })?;
            self.places.push(place);
            if chosen.is_empty() {
                told(self);
            }
            rules.push((flow.to_string(), place));
        }
        Ok(Steered {
            moved: self.moved,
            table: self.after.len() as u32,
            rules_turned_on: !self.ntuple,
            rules,
        })
    }

    fn step(&self, step: Step) -> Result<u32, Error> {
        helper::run(CarryOutPlan { plan: self.clone(), step })?
    }

    /// Carries out a step; the place of the rule.
    pub(crate) fn carry_out_here(&self, step: Step) -> Result<u32, Error> {
        let nic = open(&self.interface)?;
        let interface = self.interface.clone();
        let refused = |what: &'static str| {
            let interface = interface.clone();
            move |cause| Error::Refused { interface, what: what.into(), cause }
        };
        match step {
            Step::Prepare => {
                nic.set_table(&self.after).map_err(refused("its RSS table cannot be set"))?;
                if !self.ntuple {
                    nic.set_ntuple(true).map_err(refused("flow rules cannot be turned on"))?;
                }
                Ok(0)
            }
            Step::Rule { number, place } => {
                let none = || io::Error::from_raw_os_error(libc::EINVAL);
                let flow = self.flows.get(number as usize);
                let flow = flow.ok_or_else(none).map_err(refused("there is no such flow"))?;
                let refused = |cause| Error::Rule { interface, flow: flow.to_string(), cause };
                nic.insert(rule(flow, self.queue, place)).map_err(refused)
            }
        }
    }

    /// Undoes what was done. What has been changed by others since stays: it is not ours. An
    /// interface that has gone needs nothing.
    ///
    /// # Errors
    /// The helper that was to do so has ended before.
    pub fn undo(&self) -> Result<(), crate::Error> {
        helper::run(UndoPlan { plan: self.clone() })
    }

    pub(crate) fn undo_here(&self) {
        let Ok(nic) = Ethtool::by_index(self.index) else { return };
        for &at in &self.places {
            // Not there: it was never added.
            let _ = nic.delete(at);
        }
        if !self.ntuple && nic.places().is_ok_and(|places| places.taken.is_empty()) {
            let _ = nic.set_ntuple(false);
        }
        if nic.table().is_ok_and(|table| table == self.after) {
            let _ = nic.set_table(&self.before);
        }
    }
}

fn open(interface: &str) -> Result<Ethtool, Error> {
    Ethtool::new(interface).map_err(|cause| Error::Refused {
        interface: interface.into(),
        what: "the kernel cannot be asked".into(),
        cause,
    })
}
