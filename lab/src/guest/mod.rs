//! What runs in a guest: the checks, for each mode of the card.

mod cable;
pub(crate) mod checks;
mod frames;
mod stack;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ringway::{Control, NicMode, Port};
use ringway_testkit::{NicState, Proc};

use crate::card::Card;
use crate::kernel::Version;
use crate::report::{Entry, Line, Verdict};
use cable::Cable;

/// What came of a check: what was found, for people.
type Outcome = Result<String, String>;

/// A check that is made in each mode.
type Check = (&'static str, fn(&Cable, &str) -> Outcome);

/// No mode is asked for.
const ANY: &str = "any";

/// In this order; the last leave the interface for a while.
const CHECKS: [Check; 10] = [
    ("in", checks::frames_in),
    ("out", checks::frames_out),
    ("jumbo", checks::jumbo),
    ("host-rings", checks::host_rings),
    ("switch", checks::switch),
    ("kill", checks::kill_program),
    ("kill-daemon", checks::kill_daemon),
    ("flap", checks::flap),
    ("queues", checks::queues),
    ("unbind", checks::unbind),
];

/// The names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    ["doctor", "open"].into_iter().chain(CHECKS.map(|(name, _)| name))
}

fn print(line: &Line) {
    println!("{}", serde_json::to_string(line).expect("texts"));
}

/// Makes the check; one that panics has failed.
fn judged(mode: &str, check: &str, make: impl FnOnce() -> Outcome) -> bool {
    print(&Line::Begin { mode: mode.into(), check: check.into() });
    let begun = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(said(&*panic)));
    let (verdict, detail) = match outcome {
        Ok(detail) => (Verdict::Pass, detail),
        Err(detail) => (Verdict::Fail, detail),
    };
    entry(mode, check, verdict, detail, begun);
    verdict == Verdict::Pass
}

fn entry(mode: &str, check: &str, verdict: Verdict, detail: String, begun: Instant) {
    let [mode, check] = [mode, check].map(String::from);
    let seconds = begun.elapsed().as_secs();
    print(&Line::Entry(Entry { mode, check, verdict, detail, seconds }));
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").into()
}

/// The modes that can be asked for, and `any`: the one that an interface gets by itself.
pub fn modes() -> impl Iterator<Item = &'static str> {
    [ANY].into_iter().chain(NicMode::ALL.map(NicMode::name))
}

/// Runs a script in a guest with both cards: `$NEAR` is the interface here, `$FAR` the other in the namespace
/// `$FAR_NETNS`.
pub fn run_script(card: Card, script: &Path) {
    judged("", "script", || {
        let cable = Cable::new(card)?;
        let mut command = Command::new("sh");
        command.arg(script).env("NEAR", &cable.near).env("FAR", &cable.far);
        command.env("FAR_NETNS", cable.there.name().expect("it was made"));
        let (status, said) = Proc::spawn(command).wait();
        if status.success() { Ok(said) } else { Err(format!("{said}{status}")) }
    });
    print(&Line::End);
}

/// Makes the checks of these names, in these modes, and prints what came of them. Of either all, where
/// none is named.
pub fn run(card: Card, chosen: &[String]) {
    let [some_checks, some_modes] = [names().collect(), modes().collect::<Vec<_>>()]
        .map(|names| chosen.iter().any(|one| names.contains(&one.as_str())));
    let is_among = |name: &str| chosen.iter().any(|one| one == name);
    let is_chosen = |name: &str| !some_checks || is_among(name);
    let mut cable = None;
    if !judged("", "cable", || Cable::new(card).map(|one| cable = Some(one)).map(ok)) {
        return print(&Line::End);
    }
    let cable = cable.expect("it is laid");
    if is_chosen("doctor") {
        judged("", "doctor", || checks::doctor(&cable));
    }
    let untouched = NicState::take(&cable.here, &cable.near);
    let modes = [None].into_iter().chain(NicMode::ALL.map(Some));
    let mut seen = Vec::new();
    for asked in modes {
        if some_modes && !is_among(asked.map_or(ANY, NicMode::name)) {
            continue;
        }
        let joins = match asked {
            None | Some(NicMode::Packet) => Vec::new(),
            // XDP is refused with these, and an administrator has to turn them off.
            Some(_) => cable.turn_joins_off(),
        };
        let opened = opens(&cable, asked);
        if asked.is_none() {
            judged(ANY, "restored", || {
                untouched.assert_restored(&cable.here);
                Ok("all is as before".into())
            });
        }
        // By itself an interface has one of those that can be asked for.
        if let Some(mode) = opened.filter(|mode| !seen.contains(mode)) {
            seen.push(mode.clone());
            let spec = spec(&cable, asked);
            for (name, check) in CHECKS.iter().filter(|(name, _)| is_chosen(name)) {
                judged(&mode, name, || check(&cable, &spec));
            }
        }
        cable.turn_on(&joins);
    }
    print(&Line::End);
}

fn ok(_: ()) -> String {
    String::new()
}

fn spec(cable: &Cable, asked: Option<NicMode>) -> String {
    let near = &cable.near;
    asked.map_or_else(|| format!("netmap:{near}"), |mode| format!("netmap:{near}@mode={mode}"))
}

/// What `ringway ports` says of the mode of the interface, which is open.
fn mode(cable: &Cable) -> Result<String, String> {
    let ports =
        Control::connect().and_then(|control| control.ports()).map_err(|e| e.to_string())?;
    let ours = ports.into_iter().find(|info| info.name == cable.near);
    Ok(ours.and_then(|port| port.mode).unwrap_or_default())
}

/// Opens the interface, and gives the mode that it got.
fn opens(cable: &Cable, asked: Option<NicMode>) -> Option<String> {
    let wanted = asked.map_or(ANY, NicMode::name).to_string();
    print(&Line::Begin { mode: wanted.clone(), check: "open".into() });
    let begun = Instant::now();
    let opened = Port::open(&spec(cable, asked));
    let port = match opened {
        Ok(port) => port,
        Err(error) => {
            let must = asked.is_none_or(|mode| cable.card.has(mode, Version::running()));
            let verdict = if must { Verdict::Fail } else { Verdict::Refused };
            entry(&wanted, "open", verdict, error.to_string(), begun);
            return None;
        }
    };
    let mode = mode(cable);
    drop(port);
    let mode = match mode {
        Ok(mode) => mode,
        Err(error) => {
            entry(&wanted, "open", Verdict::Fail, error, begun);
            return None;
        }
    };
    let got = mode.split([';', ',', ' ']).next().unwrap_or_default().to_string();
    match asked {
        Some(asked) if asked.to_string() != got => {
            entry(&wanted, "open", Verdict::Fail, format!("the mode is {mode}"), begun);
            None
        }
        _ => {
            entry(&wanted, "open", Verdict::Pass, mode, begun);
            Some(got)
        }
    }
}
