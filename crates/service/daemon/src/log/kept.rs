//! The last events, which clients ask for.

use std::collections::VecDeque;

use ringway_proto::{Event, EventPage};

/// As many are kept.
const KEPT: usize = 2048;
/// Events of a page: as many of the longest fit a message.
const PAGE: usize = 48;

/// See above.
pub struct Kept {
    events: VecDeque<Event>,
    next: u64,
}

impl Kept {
    pub const fn new() -> Kept {
        Kept { events: VecDeque::new(), next: 1 }
    }

    /// Numbers begin behind those of the daemon before, as time does.
    pub fn begin(&mut self, now: u64) {
        self.next = self.next.max(now);
    }

    pub fn add(&mut self, event: Event) {
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(Event { number: self.next, ..event });
        self.next += 1;
    }

    /// Those from a number on that a user may see; `None` sees all. 0: from the first on.
    pub fn page(&self, from: u64, seen_by: Option<u32>) -> EventPage {
        let first = self.next - self.events.len() as u64;
        // Another daemon, when the clock was ahead, had higher numbers.
        let from = if from > self.next { 0 } else { from };
        let missed = if from == 0 { 0 } else { first.saturating_sub(from) };
        let skipped = from.saturating_sub(first) as usize;
        let (mut events, mut next) = (Vec::new(), self.next);
        for event in self.events.iter().skip(skipped) {
            if events.len() == PAGE {
                next = event.number;
                break;
            }
            if seen_by.is_none_or(|uid| event.uid == Some(uid)) {
                events.push(event.clone());
            }
        }
        EventPage { events, next, more: next < self.next, missed }
    }
}

#[cfg(test)]
mod tests {
    use ringway_proto::Reply;

    use super::*;
    use crate::log::fixture;

    fn event(uid: u32, text: &str) -> Event {
        Event { uid: Some(uid), text: text.into(), ..fixture::event() }
    }

    fn texts(page: &EventPage) -> Vec<&str> {
        page.events.iter().map(|event| event.text.as_str()).collect()
    }

    #[test]
    fn pages_follow_each_other() {
        let mut kept = Kept::new();
        kept.begin(5_000);
        for at in 0..2 * PAGE + 1 {
            kept.add(event(at as u32 % 2, &at.to_string()));
        }
        let first = kept.page(0, None);
        assert_eq!((first.events.len(), first.missed, first.more), (PAGE, 0, true));
        assert_eq!(first.events[0].number, 5_000);
        let second = kept.page(first.next, None);
        let third = kept.page(second.next, None);
        assert_eq!((texts(&third), third.more), (vec!["96"], false));
        assert!(kept.page(third.next, None).events.is_empty());
        // Others see their own.
        let own = kept.page(0, Some(1));
        assert!(own.events.len() == PAGE && own.events.iter().all(|event| event.uid == Some(1)));
        assert_eq!(texts(&own)[..2], ["1", "3"]);
        // From a daemon that had higher numbers.
        assert_eq!(kept.page(u64::MAX, None).events.len(), PAGE);
    }

    #[test]
    fn what_is_not_kept_any_more_is_counted() {
        let mut kept = Kept::new();
        (0..KEPT + 10).for_each(|_| kept.add(event(0, "x")));
        assert_eq!(kept.page(0, None).missed, 0);
        let page = kept.page(3, None);
        assert_eq!((page.missed, page.events[0].number), (8, 11));
    }

    #[test]
    fn the_longest_page_fits_a_message() {
        let mut kept = Kept::new();
        let long = || "x".repeat(super::super::FIELD);
        for _ in 0..PAGE {
            let text = "x".repeat(super::super::TEXT);
            let texts = Event { port: long(), switch: long(), mode: long(), ..event(0, &text) };
            let texts = Event { cause: long(), netns: Some(u64::MAX), ..texts };
            kept.add(Event { number: u64::MAX, time: u64::MAX, ..texts });
        }
        let page = kept.page(0, None);
        assert_eq!(page.events.len(), PAGE);
        let bytes = postcard::to_allocvec(&Reply::Events(page)).unwrap();
        assert!(bytes.len() + 100 < ringway_ipc::MAX_MESSAGE, "{}", bytes.len());
    }
}
