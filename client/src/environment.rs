//! What the environment asks of interfaces: for programs that know of no such choices.

use std::str::FromStr;

use ringway_registry::{NicMode, Options};

use crate::error::Error;

/// Completes what is asked of an interface by the environment: `RINGWAY_NIC_MODE` by the
/// [mode](crate::NicMode), and no other than that; `RINGWAY_NIC_BUFFERS` by the bytes of its buffers,
/// where no region is asked for; `RINGWAY_NIC_TIMESTAMPS` by the [timestamps](crate::Timestamps) of
/// its frames.
///
/// Errors: [`Error::Name`] when a variable has a value that there is not.
pub fn ask_environment(options: &mut Options, mem_id: u16) -> Result<(), Error> {
    if options.mode.is_none() {
        options.mode = mode_of_environment()?;
    }
    if options.buf_size.is_none() && options.extmem.is_none() && mem_id == 0 {
        options.buf_size = variable("RINGWAY_NIC_BUFFERS")?;
    }
    if options.timestamps.is_none() {
        options.timestamps = variable("RINGWAY_NIC_TIMESTAMPS")?;
    }
    Ok(())
}

/// What `RINGWAY_NIC_MODE` asks for. Errors: as [`ask_environment`].
pub fn mode_of_environment() -> Result<Option<NicMode>, Error> {
    variable("RINGWAY_NIC_MODE")
}

/// The name of an interface for a switch without `@mode=MODE` behind it, and that mode; where there is
/// none, the environment's.
pub(crate) fn mode_of_name(name: &str) -> Result<(String, Option<NicMode>), Error> {
    match name.split_once("@mode=") {
        None => Ok((name.into(), mode_of_environment()?)),
        Some((plain, mode)) => {
            let wrong = |problem| Error::Name { name: name.into(), problem };
            Ok((plain.into(), Some(mode.parse().map_err(wrong)?)))
        }
    }
}

/// `None` where it is not set, or empty.
fn variable<T: FromStr<Err: ToString>>(name: &str) -> Result<Option<T>, Error> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong = |problem: T::Err| Error::Name { name: name.into(), problem: problem.to_string() };
    text.to_string_lossy().parse().map(Some).map_err(wrong)
}
