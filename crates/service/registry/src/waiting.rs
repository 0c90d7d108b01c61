//! Requests that wait for work of others, in the order in which they came: for each subject, the first of them
//! has the next turn. Without an order the user with the most requests is served, and others may never be.

use std::collections::{HashMap, VecDeque};

use crate::subject::Subject;

/// Where a request stands.
pub(crate) struct Place {
    subject: Subject,
    number: u64,
}

/// A line of requests for each subject that any wait for.
#[derive(Default)]
pub(crate) struct Waiting {
    lines: HashMap<Subject, VecDeque<u64>>,
    last: u64,
    /// Subjects whose first request has gone without its turn.
    stirred: Vec<Subject>,
}

impl Waiting {
    /// Whether no other request is to have the subject before the one at this place.
    pub fn is_next(&self, place: Option<&Place>, subject: &Subject) -> bool {
        let own = place.filter(|place| place.subject == *subject).map(|place| place.number);
        match self.lines.get(subject).and_then(VecDeque::front) {
            Some(first) => own == Some(*first),
            None => true,
        }
    }

    /// The place of a request that waits for the subject from here on; before it had this one.
    pub fn wait(&mut self, place: Option<Place>, subject: &Subject) -> Place {
        match place {
            Some(place) if place.subject == *subject => return place,
            Some(place) => self.leave(place),
            None => {}
        }
        self.last += 1;
        self.lines.entry(subject.clone()).or_default().push_back(self.last);
        Place { subject: subject.clone(), number: self.last }
    }

    /// A request has its turn. The next of the line waits for what is done in it.
    pub fn has_turn(&mut self, place: Option<Place>, subject: &Subject) {
        match place {
            Some(place) if place.subject == *subject => drop(self.strike(&place)),
            Some(place) => self.leave(place),
            None => {}
        }
    }

    /// A request waits no more. If it was the first, nobody tells the others that they may have their turn.
    pub fn leave(&mut self, place: Place) {
        if self.strike(&place) {
            self.stirred.push(place.subject);
        }
    }

    /// Subjects whose waiting requests are to be begun again although no work about them has ended.
    pub fn stirred(&mut self) -> Vec<Subject> {
        std::mem::take(&mut self.stirred)
    }

    /// Whether it was the first of others.
    fn strike(&mut self, place: &Place) -> bool {
        let Some(line) = self.lines.get_mut(&place.subject) else { return false };
        let first = line.front() == Some(&place.number);
        line.retain(|&number| number != place.number);
        let others = !line.is_empty();
        if !others {
            self.lines.remove(&place.subject);
        }
        first && others
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_waiting() {
        let (mut waiting, one, other) =
            (Waiting::default(), Subject::Names(1), Subject::Interface(0, 2));
        assert!(waiting.is_next(None, &one));
        let first = waiting.wait(None, &one);
        let second = waiting.wait(None, &one);
        // Its place stays its own, however often it is told to wait.
        let first = waiting.wait(Some(first), &one);
        assert!(waiting.is_next(Some(&first), &one) && !waiting.is_next(Some(&second), &one));
        assert!(!waiting.is_next(None, &one), "a later one comes after them");
        assert!(waiting.is_next(Some(&second), &other));
        waiting.has_turn(Some(first), &one);
        assert!(waiting.is_next(Some(&second), &one));
        assert_eq!(waiting.stirred(), [], "work will end");
        waiting.has_turn(Some(second), &one);
        assert!(waiting.is_empty());
    }

    #[test]
    fn the_next_is_told_when_the_first_goes_without_its_turn() {
        let (mut waiting, one, other) =
            (Waiting::default(), Subject::Names(1), Subject::Interface(0, 2));
        let [first, second, third] = [(); 3].map(|()| waiting.wait(None, &one));
        waiting.leave(second);
        assert_eq!(waiting.stirred(), [], "the first is there yet");
        // It waits for something else now.
        let first = waiting.wait(Some(first), &other);
        assert_eq!(waiting.stirred(), std::slice::from_ref(&one));
        assert_eq!(waiting.stirred(), []);
        assert!(waiting.is_next(Some(&third), &one));
        waiting.has_turn(Some(third), &other);
        assert_eq!(waiting.stirred(), [], "nobody is left");
        waiting.leave(first);
        assert!(waiting.is_empty() && waiting.stirred().is_empty());
    }
}
