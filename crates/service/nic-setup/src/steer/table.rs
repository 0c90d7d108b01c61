//! The RSS table: which queue gets the packets of each hash value.

/// The table without `queue`: its places go to the queues that have places already, in turn. All
/// other places stay as they are. `None` if no other queue has a place.
pub fn without(table: &[u32], queue: u32) -> Option<Vec<u32>> {
    let mut others: Vec<u32> = table.iter().copied().filter(|&at| at != queue).collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return None;
    }
    let mut next = others.iter().cycle();
    let place = |&at: &u32| if at == queue { next.next().copied() } else { Some(at) };
    table.iter().map(place).collect()
}

/// Whether it is the table that a driver has by itself, all queues in turn.
pub(crate) fn is_default(table: &[u32], queues: u32) -> bool {
    (0..queues).cycle().zip(table).all(|(queue, &at)| queue == at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_queue_is_left_out_and_its_share_divided(
            table in prop::collection::vec(0u32..8, 1..128), queue in 0u32..8,
        ) {
            let others = table.iter().any(|&at| at != queue);
            let Some(new) = without(&table, queue) else {
                prop_assert!(!others);
                return Ok(());
            };
            prop_assert!(others);
            prop_assert_eq!(new.len(), table.len());
            let mut more = [0; 8];
            for (&old, &new) in table.iter().zip(&new) {
                prop_assert!(new != queue && table.contains(&new));
                prop_assert!(old == new || old == queue);
                more[new as usize] += usize::from(old == queue);
            }
            let shares = (0..8).filter(|&at| at != queue && table.contains(&at));
            let shares: Vec<_> = shares.map(|at| more[at as usize]).collect();
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn the_default_is_known() {
        assert!(is_default(&[0, 1, 2, 0, 1, 2, 0], 3));
        assert!(!is_default(&[0, 1, 2, 0, 1, 1, 0], 3));
        assert!(!is_default(&[0, 0], 2));
    }
}
