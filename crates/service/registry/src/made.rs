//! Objects that work has made for a request. Those that the request does not take are closed off the loop, as
//! they were made.

use std::{
    any::Any,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::subject::Subject;

/// Something that is to be [taken](Self::take), with the subject of the work that made it.
pub(crate) struct Made<T: Send + 'static> {
    what: Option<T>,
    subject: Subject,
    untaken: Untaken,
}

/// What was not taken. A request that fails drops it wherever it is; it is closed when the request ends.
#[derive(Clone, Default)]
pub(crate) struct Untaken(Arc<Mutex<Vec<Left>>>);

/// Something, and what it is about.
type Left = (Subject, Box<dyn Any + Send>);

impl<T: Send + 'static> Made<T> {
    pub fn new(what: T, subject: Subject, untaken: &Untaken) -> Made<T> {
        Made { what: Some(what), subject, untaken: untaken.clone() }
    }

    /// From here on it is its owner's to close.
    #[expect(clippy::expect_used, reason = "`take` alone empties it, and consumes it")]
    pub fn take(mut self) -> T {
        self.what.take().expect("it is there until it is taken")
    }
}

impl<T: Send + 'static> Deref for Made<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "`take` alone empties it, and consumes it")]
    fn deref(&self) -> &T {
        self.what.as_ref().expect("it is there until it is taken")
    }
}

impl<T: Send + 'static> DerefMut for Made<T> {
    #[expect(clippy::expect_used, reason = "`take` alone empties it, and consumes it")]
    fn deref_mut(&mut self) -> &mut T {
        self.what.as_mut().expect("it is there until it is taken")
    }
}

impl<T: Send + 'static> Drop for Made<T> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            self.untaken.all().push((self.subject.clone(), Box::new(what)));
        }
    }
}

impl Untaken {
    fn all(&self) -> MutexGuard<'_, Vec<Left>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is anything about this.
    pub fn is_about(&self, subject: &Subject) -> bool {
        self.all().iter().any(|(about, _)| about == subject)
    }

    /// Takes all.
    pub fn drain(&self) -> Vec<Left> {
        std::mem::take(&mut *self.all())
    }
}
