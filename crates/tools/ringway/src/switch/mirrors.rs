//! `ringway switch mirror add`, `del` and `show`: mirrors that belong to a switch.

use super::{choose::switch_name, declared::State};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::table::Table;
use ringway::{
    BridgeInfo, Control, Declared, Filter, MirrorDirection, OwnOptions, SwitchMirror,
    SwitchMirrorInfo,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// What is copied of a port's frames.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Direction {
    Sent,
    Received,
    Both,
}

#[derive(clap::Subcommand)]
pub enum Action {
    /// Set a mirror that belongs to the switch: one of its ports gets copies of what others send and receive
    ///
    /// It stays until it is deleted, also when the daemon is restarted, and goes with the switch. Its ports may come
    /// and go. While it is there, the port of the mirror gets the copies and nothing else; what that port sends is
    /// forwarded, and not mirrored. It gets each frame once, however many of the mirrored ports send or receive it.
    /// Frames of mirrored interfaces go by the daemon's worker, not in the kernel.
    #[command(group(clap::ArgGroup::new("sources").required(true)))]
    Add {
        /// The switch: vale<id>
        switch: String,
        /// The mirror's name: letters, digits and -_.
        name: String,
        /// The ports that are mirrored, with commas between them: programs', or interfaces that are attached
        #[arg(long, value_name = "PORTS", value_delimiter = ',', group = "sources")]
        from: Vec<String>,
        /// Mirror all ports of the switch
        #[arg(long, group = "sources")]
        all: bool,
        /// The port of the switch that gets the copies
        #[arg(long, value_name = "PORT")]
        to: String,
        /// The user whose that port is, by name or number; yours without it
        #[arg(long, value_name = "USER", value_parser = user)]
        user: Option<u32>,
        /// What the ports send into the switch, what they receive from it, or both
        #[arg(long, value_enum, default_value_t = Direction::Both)]
        direction: Direction,
        /// Only frames that match, as `man pcap-filter` describes it
        #[arg(short, long, value_name = "EXPRESSION")]
        filter: Option<String>,
    },
    /// Delete a mirror of a switch
    Del {
        /// The switch: vale<id>
        switch: String,
        /// The mirror's name
        name: String,
    },
    /// Show the mirrors of a switch, or of all, and what has become of their copies
    Show {
        /// The switch: vale<id>
        switch: Option<String>,
    },
}

/// A user as the option of a port has it, `@user=alice`.
fn user(text: &str) -> Result<u32> {
    let known = (!text.contains('@')).then(|| OwnOptions::parse(&format!("@user={text}")).ok());
    known.flatten().and_then(|own| own.user).ok_or_else(|| {
        Error::Value(format!("there is no user `{text}` here; write a name or a number"))
    })
}

pub fn check(action: &Action) -> Result<()> {
    match action {
        Action::Add { switch, .. } | Action::Del { switch, .. } => switch_name(switch),
        Action::Show { switch } => switch.as_deref().map_or(Ok(()), switch_name),
    }
}

pub fn run(control: &Control, action: &Action) -> Result<()> {
    let done = |action: &str, switch: &str, name: Option<&str>| {
        let declared = State::of(control, switch).switch_changed();
        let shown = || {
            let switches = control.switches().ok()?;
            let it = switches.iter().find(|it| it.name == switch)?;
            let mirror = it.mirrors.iter().find(|it| Some(&*it.name) == name)?;
            serde_json::to_value(Line::of(it, mirror)).ok()
        };
        Output::chosen().done(action, switch, declared, shown)
    };
    match action {
        Action::Add { switch, name, from, all, to, user, direction, filter } => {
            let filter = filter.as_deref().map(Filter::new).transpose()?.map(Into::into);
            let from = (!all).then(|| from.clone());
            let direction = direction.of_switch();
            let (name, to, user) = (name.clone(), to.clone(), *user);
            let mirror = SwitchMirror { name: name.clone(), from, direction, to, user, filter };
            control.switch_mirror_add(switch, mirror)?;
            done("switch mirror add", switch, Some(&name))
        }
        Action::Del { switch, name } => {
            control.switch_mirror_delete(switch, name)?;
            done("switch mirror del", switch, None)
        }
        Action::Show { switch } => show(control, switch.as_deref()),
    }
}

/// A mirror of a switch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "mirror")]
pub struct Line<'a> {
    switch: &'a str,
    name: &'a str,
    /// None: all.
    from: Option<&'a [String]>,
    /// `sent`, `received` or `both`.
    direction: &'static str,
    /// The port that gets the copies, and the user whose it is.
    to: &'a str,
    user: u32,
    filter: Option<&'a str>,
    /// The user that has set it.
    set_by: u32,
    /// Those of its ports that are not there.
    absent: &'a [String],
    /// Ports of its names that other users have, and that it leaves out.
    foreign: &'a [String],
    /// Its port is there: it mirrors.
    active: bool,
    #[cfg_attr(test, schemars(with = "crate::schema::described::Declared"))]
    declared: Declared,
    copied_packets: u64,
    copied_bytes: u64,
    /// Copies that were lost, by reason.
    drops: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    by_hand: Option<&'static str>,
}

impl<'a> Line<'a> {
    pub(super) fn of(switch: &'a BridgeInfo, mirror: &'a SwitchMirrorInfo) -> Line<'a> {
        let SwitchMirrorInfo { name, from, direction, to, filter, absent, foreign, totals, .. } =
            mirror;
        let by_hand = match (switch.declared, mirror.declared) {
            (Declared::No, _) | (_, Declared::Yes) => None,
            (_, Declared::Changed) => Some("changed by hand"),
            (_, Declared::No) => Some("by hand"),
        };
        Line {
            switch: &switch.name,
            name,
            from: from.as_deref(),
            direction: direction.name(),
            to,
            user: mirror.user,
            filter: filter.as_deref(),
            set_by: mirror.uid,
            absent,
            foreign,
            active: ![absent, foreign].into_iter().flatten().any(|port| port == to),
            declared: mirror.declared,
            copied_packets: totals.copied_packets,
            copied_bytes: totals.copied_bytes,
            drops: totals.drops().into_iter().collect(),
            by_hand,
        }
    }

    /// A port's name without that of its switch.
    fn short<'p>(&self, port: &'p str) -> &'p str {
        port.strip_prefix(self.switch).and_then(|rest| rest.strip_prefix(':')).unwrap_or(port)
    }

    fn list(&self, ports: &[String]) -> String {
        ports.iter().map(|port| self.short(port)).collect::<Vec<_>>().join(", ")
    }

    /// What was lost, and what is missing.
    fn notes(&self) -> String {
        let lost = self.drops.iter().filter(|(_, count)| **count > 0);
        let lost = lost.map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")));
        let mut notes: Vec<String> = lost.collect();
        if !self.absent.is_empty() {
            notes.push(format!("not there: {}", self.list(self.absent)));
        }
        if !self.foreign.is_empty() {
            notes.push(format!("another user's: {}", self.list(self.foreign)));
        }
        notes.extend(self.filter.map(|filter| format!("`{filter}`")));
        notes.extend(self.by_hand.map(String::from));
        notes.join("; ")
    }
}

/// Among what a switch does.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = if self.active { "" } else { " (waits for its port)" };
        write!(f, "mirror {} to {}{waits}", self.name, self.short(self.to))
    }
}

fn show(control: &Control, switch: Option<&str>) -> Result<()> {
    let switches = control.switches()?;
    if let Some(name) = switch.filter(|name| !switches.iter().any(|it| it.name == *name)) {
        return Err(crate::error::Error::Value(format!(
            "{name}: there is no such switch; `ringway switch list` shows those there are"
        )));
    }
    let shown = switches.iter().filter(|it| switch.is_none_or(|name| it.name == name));
    let lines: Vec<_> = shown
        .flat_map(|switch| switch.mirrors.iter().map(move |mirror| Line::of(switch, mirror)))
        .collect();
    Output::chosen().write_all(&lines, || text(&lines))
}

fn text(lines: &[Line<'_>]) -> String {
    if lines.is_empty() {
        return "no mirrors".into();
    }
    let mut table = Table::new(&["switch", "mirror", "from", "direction", "to", "copied", "lost"]);
    let mut notes = Vec::new();
    for line in lines {
        let lost: u64 = line.drops.values().sum();
        table.row(vec![
            line.switch.into(),
            line.name.into(),
            line.from.map_or("all".into(), |ports| line.list(ports)),
            line.direction.into(),
            line.short(line.to).into(),
            line.copied_packets.to_string(),
            lost.to_string(),
        ]);
        notes.push(Some(line.notes()).filter(|notes| !notes.is_empty()));
    }
    table.with_last("notes", notes).to_string()
}

/// As the daemon is asked.
impl Direction {
    fn of_switch(self) -> MirrorDirection {
        match self {
            Direction::Sent => MirrorDirection::Sent,
            Direction::Received => MirrorDirection::Received,
            Direction::Both => MirrorDirection::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway::MirrorTotals;

    #[test]
    fn a_line_says_what_is_missing() {
        let mirror = SwitchMirrorInfo {
            name: "m".into(),
            from: Some(vec!["vale0:a".into(), "vale0:b".into()]),
            direction: MirrorDirection::Both,
            to: "vale0:c".into(),
            user: 0,
            filter: Some("ip".into()),
            uid: 0,
            absent: vec!["vale0:b".into()],
            foreign: vec!["vale0:c".into()],
            declared: Declared::No,
            totals: MirrorTotals { copied_packets: 5, ring_full: 2, ..MirrorTotals::default() },
        };
        let drops = mirror.totals.drops().into_iter().collect();
        let line = Line {
            switch: "vale0",
            name: "m",
            from: mirror.from.as_deref(),
            direction: "both",
            to: &mirror.to,
            user: 0,
            filter: mirror.filter.as_deref(),
            set_by: 0,
            absent: &mirror.absent,
            foreign: &mirror.foreign,
            active: false,
            declared: Declared::No,
            copied_packets: 5,
            copied_bytes: 300,
            drops,
            by_hand: Some("by hand"),
        };
        let notes = "2 ring full; not there: b; another user's: c; `ip`; by hand";
        assert_eq!(line.notes(), notes);
        let shown = text(&[line]);
        assert!(
            shown.contains("vale0   m       a, b  both       c   5       2     2 ring"),
            "{shown}"
        );
        assert_eq!(text(&[]), "no mirrors");
    }
}
