//! Whose turn it is among rings, or ports, that share room.

/// Serves several rings that share what there is too little of: room to send, buffers, a slow
/// reader's time. Each pass begins with another ring, so that a busy one does not keep the others
/// from having their share.
///
/// ```
/// use ringway::Turns;
///
/// let (mut turns, mut served) = (Turns::default(), [0; 3]);
/// for _ in 0..30 {
///     let mut room = 1;
///     turns.each(3, |ring| {
///         let gets = std::mem::take(&mut room);
///         served[ring] += gets;
///         gets > 0
///     });
/// }
/// assert_eq!(served, [10; 3]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    next: usize,
}

impl Turns {
    /// Calls `serve` for each of so many rings. It says whether the ring has had something: the
    /// next pass begins behind the first that has.
    #[inline]
    pub fn each(&mut self, count: usize, mut serve: impl FnMut(usize) -> bool) {
        let first = if self.next < count { self.next } else { 0 };
        let mut served = false;
        for at in (first..count).chain(0..first) {
            if serve(at) && !served {
                (served, self.next) = (true, at + 1);
            }
        }
    }
}
