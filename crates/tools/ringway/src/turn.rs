//! Whose turn it is, of several rings that want more than there is room for.

/// The ring whose packets go first, and how many of its slots may go before the next ring's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    ring: usize,
    left: usize,
}

impl Turn {
    /// All rings in their order, each with the slots that it may have now: `batch`, or what was left
    /// of it for one that was cut short.
    pub fn order(self, rings: usize, batch: usize) -> impl Iterator<Item = (usize, usize)> {
        let begin = if self.ring < rings { self.ring } else { 0 };
        let first = if self.left > 0 { self.left.min(batch) } else { batch };
        let budget = move |ring| (ring, if ring == begin { first } else { batch });
        (begin..rings).chain(0..begin).map(budget)
    }

    /// The ring was cut short, for lack of room: it goes on with so many slots, or the next does.
    pub fn cut_short(ring: usize, left: usize) -> Turn {
        Turn { ring: if left > 0 { ring } else { ring + 1 }, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_goes_on() {
        let order = |turn: Turn| turn.order(3, 10).collect::<Vec<_>>();
        assert_eq!(order(Turn::default()), [(0, 10), (1, 10), (2, 10)]);
        assert_eq!(order(Turn::cut_short(1, 4)), [(1, 4), (2, 10), (0, 10)]);
        assert_eq!(order(Turn::cut_short(1, 0)), [(2, 10), (0, 10), (1, 10)]);
        assert_eq!(order(Turn::cut_short(2, 0)), [(0, 10), (1, 10), (2, 10)], "round about");
        assert_eq!(order(Turn::cut_short(7, 40)), [(0, 10), (1, 10), (2, 10)], "fewer rings");
    }
}
