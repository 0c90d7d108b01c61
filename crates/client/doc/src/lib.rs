//! For examples and tests: ports of a registry in this process, so that they run without a daemon.
#![forbid(unsafe_code)]

pub mod fairness;

use std::sync::LazyLock;

use ringway::{Control, Error, OpenOptions, Port};
use ringway_registry::{LocalRegistry, Settings};

static REGISTRY: LazyLock<LocalRegistry> =
    LazyLock::new(|| LocalRegistry::new(Settings::default()));

/// In place of [`Port::open`].
///
/// # Errors
/// As there.
pub fn open(spec: &str) -> Result<Port, Error> {
    options().open(spec)
}

/// In place of [`Port::options`].
pub fn options() -> OpenOptions {
    Port::options().over(REGISTRY.clone())
}

/// In place of [`Control::connect`].
///
/// # Errors
/// As there.
pub fn connect() -> Result<Control, Error> {
    Ok(control())
}

/// The same, which cannot fail.
pub fn control() -> Control {
    Control::over(&*REGISTRY)
}
