//! Where a packed queue goes on, by what is in it: for a monitor that does not know.
//!
//! When a back end has ended in the middle of things, QEMU tells the next one where a split queue is by the queue itself, and that
//! a packed queue is at its beginning. The descriptors know better. Each that the guest offers has the guest's round in one flag
//! and its opposite in the other; each that was given back has the device's round in both. From the device's place on there are
//! those that are offered, then those that were given back a round ago, up to the place itself.
//!
//! That holds where each chain is one descriptor: of a longer one the device gives back the first alone, and the others stay as
//! they were.

/// Rounds in the two flags of a descriptor: the guest's, and the device's.
pub(crate) type Flags = [bool; 2];

/// Steps from one descriptor to the next where the flags change, at most: the place itself, the end of what is offered, the end
/// of the ring.
const MOST_STEPS: usize = 4;

/// Whether the device can be at `index`, in the round `wrap`.
pub(crate) fn is_place(flags: &[Flags], index: usize, wrap: bool) -> bool {
    let (before, from) = flags.split_at(index.min(flags.len()));
    // In the order in which the guest offers them, each with the round that it is in.
    let order = from.iter().map(|one| (one, wrap)).chain(before.iter().map(|one| (one, !wrap)));
    // Those in front of the place were given back in this round, the others in the last one.
    let mut rest = order.skip_while(|(one, round)| **one == [*round, !*round]);
    rest.all(|(one, round)| *one == [!round; 2])
}

/// The only place where the device can be: index and round.
pub(crate) fn find(flags: &[Flags]) -> Option<(usize, bool)> {
    let steps = || (0..flags.len()).filter(|&at| at == 0 || flags[at] != flags[at - 1]);
    if steps().count() > MOST_STEPS {
        return None;
    }
    let mut places = steps()
        .flat_map(|index| [(index, true), (index, false)])
        .filter(|&(index, wrap)| is_place(flags, index, wrap));
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Wherever guest and device are, however far the guest is ahead.
        #[test]
        fn the_place_is_found(size in 1usize..200, given in 0usize..1000, ahead in 0usize..200) {
            let offered = given + ahead.min(size);
            let mut flags = vec![[false; 2]; size];
            let round = |number: usize| (number / size).is_multiple_of(2);
            for number in 0..offered {
                flags[number % size] = match round(number) {
                    wrap if number < given => [wrap; 2],
                    wrap => [wrap, !wrap],
                };
            }
            let (index, wrap) = (given % size, round(given));
            prop_assert!(is_place(&flags, index, wrap));
            prop_assert_eq!(find(&flags), Some((index, wrap)));
        }

        /// What no device can have left is nowhere.
        #[test]
        fn any_flags(flags in prop::collection::vec(any::<[bool; 2]>(), 0..20)) {
            if let Some((index, wrap)) = find(&flags) {
                prop_assert!(is_place(&flags, index, wrap));
            }
        }
    }
}
