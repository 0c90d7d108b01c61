//! Typed views of a region: what stands at a place in it, as atomics.
//!
//! Any party that maps the region may write there at any time, so nothing else than atomics is ever
//! borrowed; and a place is checked against the mapping once, when its view is made.
#![allow(unsafe_code)]

use std::{
    fmt, iter,
    ops::{Deref, Index},
    ptr::NonNull,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64},
    },
};

use crate::region::Region;

/// A type whose values may stand in shared memory: it consists of atomics alone.
///
/// Implemented for structures by [`shared_struct!`](crate::shared_struct).
///
/// # Safety
/// Every field is of such a type itself. Then any bytes are a value, and another process may write
/// them while it is borrowed.
pub unsafe trait Shared: Send + Sync {}

// SAFETY: an atomic, of which every pattern of bits is a value.
unsafe impl Shared for AtomicU8 {}
// SAFETY: as above.
unsafe impl Shared for AtomicU32 {}
// SAFETY: as above.
unsafe impl Shared for AtomicU64 {}
// SAFETY: made of such values, without anything between them.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}

/// Makes a structure [`Shared`]: `shared_struct!(Name { every, field })`. It does not compile when a
/// field is missing, or is of a type that is not shared. Attributes in front
/// of the name go to the `unsafe impl`.
#[macro_export]
macro_rules! shared_struct {
    ($name:ident { $($field:tt),* $(,)? }) => {
        const _: () = {
            #[allow(dead_code)]
            fn every_field_is_shared(value: &$name) {
                fn is_shared<T: $crate::Shared>(_: &T) {}
                let $name { $($field: _),* } = value;
                $(is_shared(&value.$field);)*
            }
        };
        #[allow(unsafe_code)]
        // SAFETY: every field is, as the function above shows.
        unsafe impl $crate::Shared for $name {}
    };
}

/// What stands at one place of a region. It keeps the mapping.
pub struct View<T> {
    at: NonNull<T>,
    region: Arc<Region>,
}

impl<T> View<T> {
    /// Whose memory it is.
    #[inline]
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }
}

impl<T: Shared> View<T> {
    /// The value at byte `offset`; `None` if it is not inside the region, or not aligned.
    pub(crate) fn new(region: &Arc<Region>, offset: u64) -> Option<View<T>> {
        let at = region.mapping().place(offset, size_of::<T>(), align_of::<T>())?.cast();
        Some(View { at, region: region.clone() })
    }
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        View { at: self.at, region: self.region.clone() }
    }
}

impl<T> fmt::Debug for View<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.at)
    }
}

impl<T: Shared> Deref for View<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: made inside the mapping, aligned; `region` keeps the mapping. Others may write
        // meanwhile: a shared type allows that.
        unsafe { self.at.as_ref() }
    }
}

// SAFETY: no more than a reference to a shared value, and an `Arc`; both may go to another thread.
unsafe impl<T: Shared> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for View<T> {}

/// Values side by side in a region, as many as this process knows. It keeps the mapping.
pub(crate) struct ArrayView<T> {
    first: NonNull<T>,
    len: u32,
    region: Arc<Region>,
}

impl<T: Shared> ArrayView<T> {
    /// `len` values from byte `offset` on; `None` if they are not inside the region, or not aligned.
    pub(crate) fn new(region: &Arc<Region>, offset: u64, len: u32) -> Option<ArrayView<T>> {
        let size = size_of::<T>().checked_mul(len as usize)?;
        let first = region.mapping().place(offset, size, align_of::<T>())?.cast();
        Some(ArrayView { first, len, region: region.clone() })
    }

    /// The `i`th value, if there is one.
    pub fn get(&self, i: u32) -> Option<&T> {
        (i < self.len).then(|| &self[i])
    }

    /// The values from `from` up to `to`, each with that of the other array at the same place; none where
    /// `from` is behind `to`, or where not both arrays have them. It is checked once, and not for each.
    #[inline]
    pub fn zip<'v>(
        &'v self,
        other: &'v ArrayView<T>,
        from: u32,
        to: u32,
    ) -> iter::Zip<slice::Iter<'v, T>, slice::Iter<'v, T>> {
        let fits = from <= to && to <= self.len && to <= other.len;
        let (from, count) = if fits { (from as usize, (to - from) as usize) } else { (0, 0) };
        let part = |array: &'v ArrayView<T>| {
            // SAFETY: the array has so many values from there on. The rest is as for one value.
            unsafe { slice::from_raw_parts(array.first.as_ptr().add(from), count) }
        };
        part(self).iter().zip(part(other))
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|i| &self[i])
    }
}

impl<T: Shared> Index<u32> for ArrayView<T> {
    type Output = T;

    #[inline]
    fn index(&self, i: u32) -> &T {
        assert!(i < self.len);
        // SAFETY: the values were found inside the mapping, aligned, and this is one of them. The
        // rest is as for a `View`.
        unsafe { self.first.add(i as usize).as_ref() }
    }
}

impl<T> Clone for ArrayView<T> {
    fn clone(&self) -> Self {
        ArrayView { first: self.first, len: self.len, region: self.region.clone() }
    }
}

impl<T> fmt::Debug for ArrayView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p} + {}", self.first, self.len)
    }
}

// SAFETY: as for a `View`.
unsafe impl<T: Shared> Send for ArrayView<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for ArrayView<T> {}

/// Two arrays of one length, in two places of a region: checking an index once is enough for both.
pub(crate) struct PairView<A, B> {
    first: ArrayView<A>,
    second: NonNull<B>,
}

impl<A: Shared, B: Shared> PairView<A, B> {
    /// Two arrays of the same length; `None` if they are not.
    pub(crate) fn new(first: ArrayView<A>, second: ArrayView<B>) -> Option<PairView<A, B>> {
        let same = first.len == second.len && Arc::ptr_eq(&first.region, &second.region);
        same.then_some(PairView { first, second: second.first })
    }

    /// How many pairs there are.
    #[inline]
    pub fn len(&self) -> u32 {
        self.first.len
    }

    /// As [`ArrayView::zip`], of the first arrays.
    #[inline]
    pub fn zip_first<'v>(
        &'v self,
        other: &'v PairView<A, B>,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = (&'v A, &'v A)> {
        self.first.zip(&other.first, from, to)
    }

    /// The `i`th value of the first array.
    #[inline]
    pub fn first(&self, i: u32) -> &A {
        &self.first[i]
    }

    /// The `i`th value of the second array.
    #[inline]
    pub fn second(&self, i: u32) -> &B {
        assert!(i < self.first.len);
        // SAFETY: the second array is as long as the first, and was found in the same way, in the same
        // region, which the first one keeps.
        unsafe { self.second.add(i as usize).as_ref() }
    }
}

impl<A, B> Clone for PairView<A, B> {
    fn clone(&self) -> Self {
        PairView { first: self.first.clone(), second: self.second }
    }
}

impl<A, B> fmt::Debug for PairView<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:p}", self.first, self.second)
    }
}

// SAFETY: as for a `View`.
unsafe impl<A: Shared, B: Shared> Send for PairView<A, B> {}
// SAFETY: as above.
unsafe impl<A: Shared, B: Shared> Sync for PairView<A, B> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Sizes};

    struct Pair {
        a: AtomicU32,
        b: [AtomicU32; 3],
    }
    shared_struct!(Pair { a, b });

    #[test]
    fn a_view_is_inside_and_aligned() {
        use std::sync::atomic::Ordering::Relaxed;
        let layout = Layout::new(&Sizes::PRIVATE, 0).unwrap();
        let region = Arc::new(Region::create(2, layout).unwrap());
        let end = layout.total();
        let pair = View::<Pair>::new(&region, end - 16).unwrap();
        pair.a.store(1, Relaxed);
        pair.b[2].store(7, Relaxed);
        let words = ArrayView::<AtomicU32>::new(&region, end - 16, 4).unwrap();
        assert_eq!([0, 1, 2, 3].map(|i| words[i].load(Relaxed)), [1, 0, 0, 7]);
        assert!(View::<Pair>::new(&region, end - 12).is_none());
        assert!(View::<Pair>::new(&region, u64::MAX - 3).is_none());
        assert!(View::<AtomicU64>::new(&region, 4).is_none());
        assert!(ArrayView::<AtomicU32>::new(&region, 0, u32::MAX).is_none());
        assert!(ArrayView::<AtomicU32>::new(&region, end - 16, 5).is_none());
        assert_eq!(ArrayView::<AtomicU32>::new(&region, end, 0).unwrap().len, 0);
        let shorter = ArrayView::<AtomicU32>::new(&region, end - 16, 3).unwrap();
        let zip = |from, to| {
            let pairs = words.zip(&shorter, from, to);
            pairs.map(|(a, b)| [a, b].map(|word| word.load(Relaxed))).collect::<Vec<_>>()
        };
        assert_eq!([zip(0, 2), zip(2, 3)], [vec![[1, 1], [0, 0]], vec![[0, 0]]]);
        assert!(
            [(0, 4), (2, 1), (3, 4), (u32::MAX, 0)].iter().all(|at| zip(at.0, at.1).is_empty())
        );
    }
}
