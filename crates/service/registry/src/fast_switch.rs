//! The kernel path of a switch: a program that forwards between its interfaces, made with the first that
//! joins, and gone with the last.

use std::sync::{Arc, Mutex, PoisonError};

use ringway_fastpath::FastPath;
use ringway_nic_setup::{Error, SwitchProgram};
use ringway_vale::random_secret;

/// What the interfaces of a switch share, all in one network namespace: a program sends by the interfaces of
/// its own.
#[derive(Default)]
pub(crate) struct FastSwitch(Mutex<Option<Arc<Fast>>>);

/// Program and table.
pub(crate) struct Fast {
    pub program: SwitchProgram,
    pub table: Arc<FastPath>,
}

impl FastSwitch {
    /// The program. The first call loads it, which takes as long as the verifier does.
    pub fn get(&self) -> Result<Arc<Fast>, Error> {
        // What is there is whole: a panic leaves nothing behind.
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fast) = &*place {
            return Ok(fast.clone());
        }
        let (program, table) = SwitchProgram::new(random_secret())?;
        let fast = Arc::new(Fast { program, table: Arc::new(table) });
        *place = Some(fast.clone());
        Ok(fast)
    }
}
