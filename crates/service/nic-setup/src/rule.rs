//! What the frames of each queue go through on their way to its socket: an action program, then a filter.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Action, Filter};

/// What the frames of one queue go through. Without either, the queue is led whole.
#[derive(Clone, Default)]
pub struct QueueRule {
    /// Decides what becomes of each frame.
    pub action: Option<Arc<Action>>,
    /// Selects among those that it lets pass.
    pub filter: Option<Arc<Filter>>,
}

/// By queue. Queues beyond the last are led whole.
pub type QueueRules = Vec<QueueRule>;

impl From<Arc<Filter>> for QueueRule {
    fn from(filter: Arc<Filter>) -> QueueRule {
        QueueRule { action: None, filter: Some(filter) }
    }
}

impl From<Arc<Action>> for QueueRule {
    fn from(action: Arc<Action>) -> QueueRule {
        QueueRule { action: Some(action), filter: None }
    }
}

impl QueueRule {
    pub fn is_empty(&self) -> bool {
        self.action.is_none() && self.filter.is_none()
    }

    /// Whether it is the very same.
    pub fn is(&self, other: &QueueRule) -> bool {
        fn at<T>(of: &Option<Arc<T>>) -> Option<*const T> {
            of.as_ref().map(Arc::as_ptr)
        }
        at(&self.action) == at(&other.action) && at(&self.filter) == at(&other.filter)
    }
}

/// Whether these are the same for each queue.
pub(crate) fn same(a: &[QueueRule], b: &[QueueRule]) -> bool {
    let none = QueueRule::default();
    let at = |i| (a.get(i).unwrap_or(&none), b.get(i).unwrap_or(&none));
    (0..a.len().max(b.len())).map(at).all(|(a, b)| a.is(b))
}

/// Rules on their way to the helper: each action and each filter once.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct PackedRules {
    actions: Vec<Arc<Action>>,
    filters: Vec<Arc<Filter>>,
    /// The places of each queue's.
    by_queue: Vec<(Option<u32>, Option<u32>)>,
}

impl PackedRules {
    pub fn of(rules: &[QueueRule]) -> PackedRules {
        let mut packed = PackedRules::default();
        for QueueRule { action, filter } in rules {
            let action = action.as_ref().map(|action| place(&mut packed.actions, action));
            let filter = filter.as_ref().map(|filter| place(&mut packed.filters, filter));
            packed.by_queue.push((action, filter));
        }
        packed
    }

    pub fn queues(&self) -> usize {
        self.by_queue.len()
    }

    pub fn unpack(&self) -> QueueRules {
        let rule = |&(action, filter): &(Option<u32>, Option<u32>)| QueueRule {
            action: action.and_then(|at| self.actions.get(at as usize)).cloned(),
            filter: filter.and_then(|at| self.filters.get(at as usize)).cloned(),
        };
        self.by_queue.iter().map(rule).collect()
    }
}

fn place<T>(all: &mut Vec<Arc<T>>, one: &Arc<T>) -> u32 {
    let known = all.iter().position(|other| Arc::ptr_eq(other, one));
    known.unwrap_or_else(|| {
        all.push(one.clone());
        all.len() - 1
    }) as u32
}
