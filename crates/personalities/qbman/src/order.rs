//! Order restoration: frames that several threads have worked on leave by their sequence numbers.

use std::collections::VecDeque;

use crate::{Frame, OrderKind, Rejection, queue::SEQUENCE};

/// Numbers from here on, seen from what is expected, are behind it.
const HALF: u16 = 1 << 13;
/// Frames that are kept back at most: pieces of one number are without a bound of their own.
const MOST_KEPT: usize = 1 << 14;

/// How a queue restores order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderSettings {
    /// How many numbers ahead of the expected one are kept back.
    pub window: u16,
    /// What is ahead of the window moves it on, instead of being rejected.
    pub advances: bool,
    /// What is behind the expected number by this much or less goes out at once. 0: all that is behind is rejected.
    pub late: u16,
}

impl Default for OrderSettings {
    fn default() -> OrderSettings {
        OrderSettings { window: 32, advances: false, late: 0 }
    }
}

/// A frame on its way through an order restoration point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered {
    pub queue: u32,
    pub frame: Frame,
    pub tag: u32,
    /// The portal that is told of a rejection.
    pub origin: Option<u8>,
    pub sequence: u16,
}

struct Kept {
    sequence: u16,
    is_last: bool,
    what: Option<Ordered>,
}

#[derive(Default)]
pub(crate) struct Window {
    expected: u16,
    /// In the order in which they leave.
    kept: VecDeque<Kept>,
}

fn ahead(sequence: u16, of: u16) -> u16 {
    sequence.wrapping_sub(of) & SEQUENCE
}

impl Window {
    pub fn expected(&self) -> u16 {
        self.expected
    }

    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Begins anew, with what was kept back.
    pub fn reset(&mut self) -> impl Iterator<Item = Ordered> {
        self.expected = 0;
        std::mem::take(&mut self.kept).into_iter().filter_map(|kept| kept.what)
    }

    /// Lets a frame through, or keeps it back; `out` gets all that leave now.
    ///
    /// # Errors
    /// [`Rejection::Early`], [`Rejection::Late`]. A hole and an advance are never rejected.
    pub fn admit(
        &mut self,
        settings: OrderSettings,
        kind: OrderKind,
        is_last: bool,
        what: Ordered,
        mut out: impl FnMut(Ordered),
    ) -> Result<(), Rejection> {
        let sequence = what.sequence & SEQUENCE;
        let distance = ahead(sequence, self.expected);
        if kind == OrderKind::Advance {
            if distance < HALF {
                self.advance(sequence, &mut out);
            }
            return Ok(());
        }
        let is_frame = kind == OrderKind::Frame;
        if distance >= HALF {
            let behind = ahead(self.expected, sequence);
            return match is_frame {
                true if behind > settings.late => Err(Rejection::Late),
                true => {
                    out(what);
                    Ok(())
                }
                false => Ok(()),
            };
        }
        if distance >= settings.window {
            if !settings.advances {
                return if is_frame { Err(Rejection::Early) } else { Ok(()) };
            }
            let first = sequence.wrapping_sub(settings.window.saturating_sub(1)) & SEQUENCE;
            self.advance(first, &mut out);
        }
        let what = is_frame.then_some(what);
        if sequence == self.expected {
            what.map(&mut out);
            if is_last {
                self.expected = (self.expected + 1) & SEQUENCE;
                self.leave(&mut out);
            }
            return Ok(());
        }
        if self.kept.len() >= MOST_KEPT {
            return if is_frame { Err(Rejection::Early) } else { Ok(()) };
        }
        let distance = ahead(sequence, self.expected);
        let place =
            self.kept.iter().rposition(|kept| ahead(kept.sequence, self.expected) <= distance);
        self.kept.insert(place.map_or(0, |place| place + 1), Kept { sequence, is_last, what });
        Ok(())
    }

    /// Expects `sequence`: what is before it leaves.
    fn advance(&mut self, sequence: u16, out: &mut impl FnMut(Ordered)) {
        let distance = ahead(sequence, self.expected);
        while let Some(kept) = self.kept.front()
            && ahead(kept.sequence, self.expected) < distance
        {
            self.kept.pop_front().and_then(|kept| kept.what).map(&mut *out);
        }
        self.expected = sequence;
        self.leave(out);
    }

    /// What is expected leaves, as long as it is there.
    fn leave(&mut self, out: &mut impl FnMut(Ordered)) {
        while let Some(kept) = self.kept.front() {
            let distance = ahead(kept.sequence, self.expected);
            if distance != 0 && distance < HALF {
                break;
            }
            let Some(kept) = self.kept.pop_front() else { break };
            kept.what.map(&mut *out);
            if distance == 0 && kept.is_last {
                self.expected = (self.expected + 1) & SEQUENCE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Point {
        window: Window,
        settings: OrderSettings,
        left: Vec<u16>,
    }

    impl Point {
        fn new(settings: OrderSettings) -> Point {
            Point { window: Window::default(), settings, left: Vec::new() }
        }

        fn send(&mut self, kind: OrderKind, sequence: u16, is_last: bool) -> Result<(), Rejection> {
            let frame = Frame::default();
            let what = Ordered { queue: 1, frame, tag: 0, origin: None, sequence };
            let left = &mut self.left;
            self.window.admit(self.settings, kind, is_last, what, |it| left.push(it.sequence))
        }
    }

    #[test]
    fn frames_leave_in_order_and_holes_let_others_pass() {
        let mut point = Point::new(OrderSettings::default());
        for sequence in [2, 1, 4, 0] {
            point.send(OrderKind::Frame, sequence, true).unwrap();
        }
        assert_eq!(point.left, [0, 1, 2]);
        point.send(OrderKind::Hole, 3, true).unwrap();
        assert_eq!(point.left, [0, 1, 2, 4]);
        assert_eq!(point.window.expected(), 5);
    }

    #[test]
    fn early_and_late_are_rejected_or_accepted_as_set() {
        let mut point = Point::new(OrderSettings::default());
        assert_eq!(point.send(OrderKind::Frame, 32, true), Err(Rejection::Early));
        assert_eq!(point.send(OrderKind::Frame, 31, true), Ok(()));
        assert_eq!(point.send(OrderKind::Frame, SEQUENCE, true), Err(Rejection::Late));
        point.settings = OrderSettings { window: 32, advances: true, late: 1 };
        assert_eq!(point.send(OrderKind::Frame, SEQUENCE, true), Ok(()));
        assert_eq!(point.send(OrderKind::Frame, SEQUENCE - 1, true), Err(Rejection::Late));
        assert_eq!(point.left, [SEQUENCE]);
        assert_eq!(point.send(OrderKind::Frame, 63, true), Ok(()));
        assert_eq!(point.window.expected(), 32);
        assert_eq!(point.left, [SEQUENCE, 31]);
    }

    #[test]
    fn pieces_of_one_number_leave_before_the_next() {
        let mut point = Point::new(OrderSettings::default());
        point.send(OrderKind::Frame, 1, true).unwrap();
        point.send(OrderKind::Frame, 0, false).unwrap();
        point.send(OrderKind::Frame, 0, false).unwrap();
        assert_eq!(point.left, [0, 0]);
        point.send(OrderKind::Frame, 0, true).unwrap();
        assert_eq!(point.left, [0, 0, 0, 1]);
        point.send(OrderKind::Frame, 5, true).unwrap();
        point.send(OrderKind::Advance, 4, true).unwrap();
        assert_eq!(point.left.len(), 4);
        point.send(OrderKind::Advance, 5, true).unwrap();
        assert_eq!(point.left.last(), Some(&5));
        assert_eq!(point.window.expected(), 6);
    }

    proptest! {
        /// Whatever the order of arrival within the window, and wherever the numbers start: order is restored.
        #[test]
        fn order_is_restored(start in 0..=SEQUENCE, holes in prop::collection::vec(any::<bool>(), 32), seed in any::<u64>()) {
            let mut point = Point::new(OrderSettings::default());
            point.window.expected = start;
            let mut numbers: Vec<u16> = (0..32).collect();
            let mut random = seed | 1;
            for last in (1..numbers.len()).rev() {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                numbers.swap(last, (random >> 33) as usize % (last + 1));
            }
            let at = |number: u16| (start + number) & SEQUENCE;
            for number in &numbers {
                // A frame that arrives when the window has moved on is still within it.
                let kind = if holes[*number as usize] { OrderKind::Hole } else { OrderKind::Frame };
                prop_assert!(point.send(kind, at(*number), true).is_ok());
            }
            let expected: Vec<u16> = (0..32).filter(|number| !holes[*number as usize]).map(at).collect();
            prop_assert_eq!(point.left, expected);
            prop_assert_eq!(point.window.expected(), at(32));
            prop_assert_eq!(point.window.kept(), 0);
        }
    }
}
