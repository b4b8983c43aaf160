//! Slices cut into blocks of one size.

use super::arithmetic::Arithmetic;
use super::instruction_set::Task;
use super::lane::Lane;

/// Elements in a block: enough to fill the widest registers several times over, few enough that
/// padding a short slice costs little.
pub(crate) const BLOCK: usize = 32;

/// A function of one variable with `N` values, on a block at a time.
///
/// The fixed size leaves the compiler no remainder to compute in another way, and the values in
/// arrays of their own leave it no overlap to fear.
pub(crate) trait Blockwise<T, const N: usize> {
    /// The values at each element. The function must be `#[inline(always)]`, see [`Task::run`].
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; N];

    /// Whether [`block`](Self::block) does not hold for `x`.
    #[inline(always)]
    fn is_beyond(&self, _x: T) -> bool {
        false
    }

    /// The values where [`block`](Self::block) does not hold.
    fn beyond(&self, _x: T) -> [T; N] {
        unreachable!("nothing is beyond")
    }
}

/// One function of one slice, into `N` others.
pub(super) struct Map<'a, T, F, const N: usize> {
    pub(super) function: F,
    pub(super) x: &'a [T],
    pub(super) out: [&'a mut [T]; N],
}

impl<T: Lane, F: Blockwise<T, N>, const N: usize> Task for Map<'_, T, F, N> {
    #[inline(always)]
    fn run<A: Arithmetic>(mut self, _: A) {
        let (blocks, rest) = self.x.as_chunks();
        let any = |any, &x: &T| any | self.function.is_beyond(x);
        let mut beyond = rest.iter().fold(false, any);
        for (i, x) in blocks.iter().enumerate() {
            beyond |= x.iter().fold(false, any);
            let values = self.function.block::<A>(x);
            for (out, values) in self.out.iter_mut().zip(&values) {
                out.as_chunks_mut().0[i] = *values;
            }
        }
        if !rest.is_empty() {
            let values = self.function.block::<A>(&padded(rest));
            for (out, values) in self.out.iter_mut().zip(&values) {
                let out = out.as_chunks_mut::<BLOCK>().1;
                out.copy_from_slice(&values[..out.len()]);
            }
        }
        if beyond {
            self.replace_beyond();
        }
    }
}

impl<T: Lane, F: Blockwise<T, N>, const N: usize> Map<'_, T, F, N> {
    #[cold]
    fn replace_beyond(mut self) {
        for (i, &x) in self.x.iter().enumerate() {
            if self.function.is_beyond(x) {
                let values = self.function.beyond(x);
                for (out, value) in self.out.iter_mut().zip(values) {
                    out[i] = value;
                }
            }
        }
    }
}

/// One function of one slice, in place.
pub(super) struct MapInPlace<'a, T, F> {
    pub(super) function: F,
    pub(super) x: &'a mut [T],
}

impl<T: Lane, F: Blockwise<T, 1>> Task for MapInPlace<'_, T, F> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (blocks, rest) = self.x.as_chunks_mut();
        for x in blocks {
            [*x] = self.function.block::<A>(x);
        }
        if rest.is_empty() {
            return;
        }
        let [values] = self.function.block::<A>(&padded(rest));
        rest.copy_from_slice(&values[..rest.len()]);
    }
}

#[inline(always)]
fn padded<T: Lane>(x: &[T]) -> [T; BLOCK] {
    let mut block = [T::one(); BLOCK];
    block[..x.len()].copy_from_slice(x);
    block
}
