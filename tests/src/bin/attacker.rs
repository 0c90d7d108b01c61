//! A hostile client process for tests, which attacks until it is killed.
//!
//! ```text
//! attacker NAME SWITCH INTERFACE   the attack of that name, again and again; says "attacking" and
//!                                  what it got after the first time
//! ```
//!
//! The daemon is the one of RINGWAY_SOCKET.
#![allow(clippy::disallowed_methods, reason = "a program reads its own environment")]

use std::cell::RefCell;

use ringway_tests::{
    Random,
    attacks::{Attacker, find},
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, switch, interface] = &args[..] else {
        panic!("see the head of this program for its arguments")
    };
    let attack = find(name).unwrap_or_else(|| panic!("{name}: not an attack"));
    let socket = std::env::var_os("RINGWAY_SOCKET").expect("RINGWAY_SOCKET is set").into();
    let attacker = Attacker {
        switch: switch.into(),
        interface: interface.into(),
        socket,
        random: RefCell::new(Random::seeded()),
    };
    let got = (attack.run)(&attacker).unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("attacking: {}", got.replace('\n', " "));
    loop {
        // What was granted may be refused by now.
        let _ = (attack.run)(&attacker);
    }
}
