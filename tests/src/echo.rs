//! A program that answers frames, and goes on with the next daemon when its own has ended.

use std::time::Duration;

use ringway::{Cause, Error, Port};

/// What a daemon takes to be replaced, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Answers each frame with the addresses exchanged. Says "open" when the port is open, each time.
///
/// # Errors
/// Those of a port, but for the end of the daemon.
pub fn echo(name: &str) -> Result<(), Error> {
    let mut port = Port::open(name)?;
    loop {
        println!("open");
        match answer(&mut port) {
            Ok(()) => {}
            Err(error) if error.cause() == Cause::Gone => port = port.reopen(PATIENCE)?,
            Err(error) => return Err(error),
        }
    }
}

fn answer(port: &mut Port) -> Result<(), Error> {
    loop {
        port.wait_rx(None)?;
        let frames: Vec<Vec<u8>> = port.rx(0).batch(64).map(|frame| frame.to_vec()).collect();
        let mut tx = port.tx(0);
        for mut frame in frames {
            let (destination, rest) = frame.split_at_mut(6);
            destination.swap_with_slice(&mut rest[..6]);
            tx.push(&frame);
        }
        tx.sync();
    }
}
