//! The mode of interfaces that the environment asks for: for programs that know of no modes.

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
