//! For this crate's examples only: ports of a registry in this process, so that they run
//! without a daemon.

use std::sync::{Arc, LazyLock, Mutex};

use ringway_registry::{Registry, Settings};

use crate::{Control, Error, OpenOptions, Port};

static REGISTRY: LazyLock<Arc<Mutex<Registry>>> =
    LazyLock::new(|| Arc::new(Mutex::new(Registry::new(Settings::default()))));

/// In place of [`Port::open`].
pub fn open(spec: &str) -> Result<Port, Error> {
    options().open(spec)
}

/// In place of [`Port::options`].
pub fn options() -> OpenOptions {
    Port::options().registry(&REGISTRY)
}

/// In place of [`Control::connect`].
pub fn control() -> Control {
    Control::local(&REGISTRY)
}
