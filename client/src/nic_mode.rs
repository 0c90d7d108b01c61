//! The mode of interfaces that is asked for: by the environment, for programs that know of no modes,
//! or behind the name of an interface for a switch.

use ringway_registry::NicMode;

use crate::error::Error;

const VARIABLE: &str = "RINGWAY_NIC_MODE";

/// What `RINGWAY_NIC_MODE` asks for: `zerocopy`, `copy`, `generic` or `packet`, and no other mode than
/// that. Errors: [`Error::Name`] when it says anything else.
pub fn mode_of_environment() -> Result<Option<NicMode>, Error> {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong = |problem| Error::Name { name: VARIABLE.into(), problem };
    text.to_string_lossy().parse().map(Some).map_err(wrong)
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
