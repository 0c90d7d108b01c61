//! What became of the frames, for people and machines.

use crate::error::{Error, Result};
use crate::losses;
use crate::table::Table;
use serde::Serialize;
use std::fmt;

/// One mode of an interface.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "trial")]
pub struct Trial {
    pub interface: String,
    pub peer: String,
    pub mode: &'static str,
    /// Why it cannot be had.
    pub refused: Option<String>,
    /// To the peer, and back; none if the mode cannot be had.
    pub directions: Vec<Way>,
    /// What has counted losses since the ports of this trial were opened.
    pub ends: Vec<End>,
}

/// One end, and what was lost there.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct End {
    pub port: String,
    pub mtu: Option<u32>,
    #[serde(flatten)]
    pub losses: losses::Losses,
}

/// A direction with its ends.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Way {
    from: String,
    to: String,
    #[serde(flatten)]
    direction: Direction,
}

/// What has come by one direction.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Direction {
    /// In order.
    pub sizes: Vec<Size>,
    /// Slots of the sending port that the interface has not taken.
    pub kept: usize,
}

/// The frames of one size, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Size {
    /// Bytes, without the checksum that hardware adds.
    pub size: usize,
    pub sent: usize,
    /// As they were sent.
    pub arrived: usize,
    /// Otherwise.
    pub damaged: usize,
}

impl Direction {
    pub fn between(self, from: &str, to: &str) -> Way {
        Way { from: from.into(), to: to.into(), direction: self }
    }

    fn lost(&self) -> impl Iterator<Item = &Size> {
        self.sizes.iter().filter(|size| size.arrived < size.sent)
    }

    fn is_clean(&self) -> bool {
        self.lost().next().is_none()
    }
}

impl fmt::Display for Size {
    /// The size alone if no frame of it has come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { size, sent, arrived, damaged } = self;
        match (arrived, damaged) {
            (0, 0) => write!(f, "{size}"),
            (_, 0) => write!(f, "{size} ({arrived} of {sent} arrive)"),
            _ => write!(f, "{size} ({arrived} of {sent} arrive whole, {damaged} damaged)"),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return f.write_str("all arrive");
        }
        if self.sizes.iter().all(|size| size.arrived + size.damaged == 0) {
            f.write_str("nothing arrives")?;
        } else {
            let lost: Vec<_> = self.lost().map(Size::to_string).collect();
            write!(f, "lost: {}", lost.join(" "))?;
        }
        match self.kept {
            0 => Ok(()),
            kept => write!(f, "; {kept} not sent yet"),
        }
    }
}

impl Trial {
    fn is_clean(&self) -> bool {
        self.directions.iter().all(|way| way.direction.is_clean())
    }
}

/// All modes, best first.
pub struct Trials(pub Vec<Trial>);

impl Trials {
    /// Fails if something has not arrived, or there was no mode to try.
    pub fn verdict(&self) -> Result<()> {
        let Some(first) = self.0.first() else { return Ok(()) };
        if self.0.iter().all(|trial| trial.refused.is_some()) {
            return Err(Error::NotArrived {
                interface: first.interface.clone(),
                problem: "it can be had in no mode".into(),
                remedy: "see what each mode lacks".into(),
            });
        }
        let lossy: Vec<_> = self.0.iter().filter(|trial| !trial.is_clean()).collect();
        let Some(worst) = lossy.first() else { return Ok(()) };
        let modes: Vec<_> = lossy.iter().map(|trial| trial.mode).collect();
        Err(Error::NotArrived {
            interface: worst.interface.clone(),
            problem: format!("not all frames arrive in mode {}", modes.join(", ")),
            remedy: worst.remedy(),
        })
    }
}

impl Trial {
    /// What may be wrong, where frames are lost.
    fn remedy(&self) -> String {
        if let [End { port: a, mtu: Some(here), .. }, End { port: b, mtu: Some(there), .. }] =
            &self.ends[..]
            && here != there
        {
            return format!("{a} has an MTU of {here}, and {b} of {there}: make them the same");
        }
        let ends: Vec<_> = self.ends.iter().map(|end| end.port.as_str()).collect();
        format!(
            "look for filters and XDP programs at {} and on the way between (`ip -d link`, `tc filter show`), \
             and at the counters",
            ends.join(" and ")
        )
    }
}

impl fmt::Display for Trials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = self.0.iter().find(|trial| trial.refused.is_none());
        let ways = tried.map_or(&[][..], |trial| &trial.directions);
        let headings: Vec<_> =
            ways.iter().map(|way| format!("{} -> {}", way.from, way.to)).collect();
        if let Some(way) = ways.first() {
            let sizes = &way.direction.sizes;
            let list: Vec<_> = sizes.iter().map(|size| size.size.to_string()).collect();
            let sent = sizes.iter().map(|size| size.sent).max().unwrap_or_default();
            writeln!(f, "\n{sent} frames each way of {} bytes:", list.join(", "))?;
        }
        let columns = headings.iter().map(String::as_str);
        let mut table = Table::new(&["mode"].into_iter().chain(columns).collect::<Vec<_>>());
        for trial in &self.0 {
            let mut cells = vec![trial.mode.to_string()];
            match trial.refused {
                Some(_) => cells.resize(1 + headings.len(), "-".into()),
                None => cells.extend(trial.directions.iter().map(|way| way.direction.to_string())),
            }
            table.row(cells);
        }
        let why = self.0.iter().map(|trial| trial.refused.clone()).collect();
        write!(f, "{}", table.with_last("cannot be had", why))?;
        for trial in self.0.iter().filter(|trial| !trial.is_clean()) {
            for End { port, losses, .. } in &trial.ends {
                for (what, counted) in
                    [("rings", losses.of_rings()), ("device", losses.of_device())]
                {
                    let Some(counted) = counted else { continue };
                    write!(f, "\n{}: {what} of {port}: {counted}", trial.mode)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mode: &'static str, arrived: &[(usize, usize, usize)]) -> Trial {
        let size = |&(size, arrived, damaged)| Size { size, sent: 16, arrived, damaged };
        let direction = |from, to| {
            let sizes = arrived.iter().map(size).collect();
            Direction { sizes, kept: 0 }.between(from, to)
        };
        let directions = vec![direction("a", "b"), direction("b", "a")];
        let (interface, peer) = ("a".into(), "b".into());
        Trial { interface, peer, mode, refused: None, directions, ends: Vec::new() }
    }

    #[test]
    fn what_is_lost_is_named() {
        for (arrived, text) in [
            (&[(60, 16, 0), (64, 16, 0)][..], "all arrive"),
            (&[(60, 0, 0), (64, 0, 0)], "nothing arrives"),
            (&[(60, 16, 0), (64, 0, 0), (65, 3, 0)], "lost: 64 65 (3 of 16 arrive)"),
            (&[(60, 0, 16), (64, 16, 0)], "lost: 60 (0 of 16 arrive whole, 16 damaged)"),
        ] {
            assert_eq!(trial("copy", arrived).directions[0].direction.to_string(), text);
        }
    }

    #[test]
    fn a_loss_is_a_failure_and_a_mode_that_is_not_there_is_none() {
        let good = || trial("copy", &[(60, 16, 0)]);
        let mut missing = trial("zerocopy", &[]);
        (missing.refused, missing.directions) = (Some("not here".into()), Vec::new());
        let trials = Trials(vec![missing, good()]);
        trials.verdict().unwrap();
        assert!(
            trials.to_string().contains("zerocopy  -           -           not here\n"),
            "{trials}"
        );
        let error = Trials(vec![good(), trial("packet", &[(60, 15, 0)])]).verdict().unwrap_err();
        assert!(
            error.to_string().starts_with("a: not all frames arrive in mode packet; "),
            "{error}"
        );
        let mut apart = trial("copy", &[(60, 0, 0)]);
        apart.ends = [("a", 1500), ("b", 900)]
            .map(|(port, mtu)| End {
                port: port.into(),
                mtu: Some(mtu),
                losses: losses::Losses::default(),
            })
            .into();
        let error = Trials(vec![apart]).verdict().unwrap_err().to_string();
        assert!(
            error.ends_with("a has an MTU of 1500, and b of 900: make them the same"),
            "{error}"
        );
    }
}
