//! Why there is no port any more, which each read asks for.

use std::sync::{
    Mutex, PoisonError,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

/// Why there is no port, if that is so.
#[derive(Debug, Default)]
pub struct Failure {
    is_there: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Failure {
    /// A read costs a load, as long as there is none.
    pub fn get(&self) -> Option<String> {
        if !self.is_there.load(Acquire) {
            return None;
        }
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes it, unless another is known; returns the first.
    pub fn set(&self, why: String) -> String {
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let why = known.get_or_insert(why).clone();
        self.is_there.store(true, Release);
        why
    }

    /// There is a port again.
    pub fn clear(&self) {
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_there.store(false, Release);
        *known = None;
    }
}
