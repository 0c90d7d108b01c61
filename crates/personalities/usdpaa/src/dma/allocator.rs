//! What is taken of a map, and what is free.

use std::io;

use super::{first_fit::FirstFit, shared::Shared, shared_fit::SharedFit, words::Words};

/// How a map is allocated from.
#[derive(Default)]
pub enum Allocator {
    /// It is not.
    #[default]
    None,
    /// By this process alone: addresses.
    Private(FirstFit),
    /// By all that have it: offsets, behind an address.
    Shared(usize, Words),
}

impl Allocator {
    /// For a map of so many bytes at an address.
    pub fn new(address: usize, length: usize, shared: Option<&Shared>) -> io::Result<Allocator> {
        Ok(match shared {
            Some(shared) => Allocator::Shared(address, shared.words()?),
            None => Allocator::Private(FirstFit::new(address, length)),
        })
    }
}

/// An allocator, alone with it.
fn with<T>(words: &Words, shared: Option<&Shared>, run: impl FnOnce(SharedFit) -> T) -> Option<T> {
    let _alone = shared?.lock().ok()?;
    SharedFit::new(words.get()).map(run)
}

impl super::maps::Inner {
    /// A place of `size` bytes at a multiple of `boundary`, a power of two.
    pub fn take(&mut self, boundary: usize, size: usize) -> Option<usize> {
        match &mut self.allocator {
            Allocator::None => None,
            Allocator::Private(fit) => fit.take(boundary, size),
            Allocator::Shared(base, words) => {
                let take = |fit: SharedFit| fit.take(*base, boundary, size);
                with(words, self.shared.as_ref(), take).flatten().map(|offset| *base + offset)
            }
        }
    }

    /// Gives a place back, if it was taken.
    pub fn give(&mut self, place: usize) {
        match &mut self.allocator {
            Allocator::None => {}
            Allocator::Private(fit) => _ = fit.give(place),
            Allocator::Shared(base, words) => {
                let Some(offset) = place.checked_sub(*base) else { return };
                with(words, self.shared.as_ref(), |fit| fit.give(offset));
            }
        }
    }

    /// Bytes that are free, and how many places are taken.
    pub fn counts(&self) -> (usize, usize) {
        match &self.allocator {
            Allocator::None => (0, 0),
            Allocator::Private(fit) => fit.counts(),
            Allocator::Shared(_, words) => {
                with(words, self.shared.as_ref(), |fit| fit.counts()).unwrap_or_default()
            }
        }
    }
}
