//! The keys and values of a causal sequence that grows.

use super::{Exponents, Finite, Head, Packed, Rows};
use crate::bias::HeadBias;
use crate::normaliser::Normaliser;
use crate::score::{Raw, Score};
use crate::{Blocks, Workspace};
use bochner_numerics::scaling::largest;
use bochner_numerics::{Buffer, Mat, Panels, Real};

/// What the positions so far have left of one head for those that come.
///
/// Keys lie packed as the right factor of the scores' product, beside their exponentials relative
/// to the loudest one; both grow in place.
#[derive(Clone)]
pub(crate) struct Cache<T, S> {
    /// Rows of keys, unless features stand in their place.
    keys: Vec<T>,
    /// The largest number of each coordinate of the keys, without its sign.
    largest: Vec<T>,
    values: Vec<T>,
    /// The largest value, without its sign.
    largest_value: T,
    score: Option<S>,
    exponents: Option<Exponents>,
    packed: Packed<T>,
    finite: Finite,
    length: usize,
}

/// The next positions of one head.
pub(crate) struct Following<'a, T, S> {
    /// Keys, unless features stand in their place.
    pub(crate) keys: Option<Mat<'a, T>>,
    /// Keys, or what stands in their place.
    pub(crate) right: Mat<'a, T>,
    pub(crate) values: Mat<'a, T>,
    pub(crate) score: &'a S,
    pub(crate) exponents: Option<&'a Exponents>,
    pub(crate) finite: Finite,
}

impl<T: Real, S: Score<T>> Cache<T, S> {
    /// A cache without positions, for keys of `width` numbers.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            keys: Vec::new(),
            largest: vec![T::zero(); width],
            values: Vec::new(),
            largest_value: T::zero(),
            score: None,
            exponents: None,
            packed: Packed::default(),
            finite: Finite {
                left: true,
                right: true,
                values: true,
            },
            length: 0,
        }
    }

    pub(crate) fn append(&mut self, more: Following<T, S>) {
        let (from, added) = (self.length, more.right.shape().0);
        self.length += added;
        self.values.extend_from_slice(more.values.data());
        self.largest_value = self.largest_value.max(largest(more.values.data()));
        self.finite.left &= more.finite.left;
        self.finite.right &= more.finite.right;
        self.finite.values &= more.finite.values;
        match (&mut self.exponents, more.exponents) {
            (Some(exponents), Some(more)) => exponents.append(more),
            (none, more) => *none = more.cloned(),
        }
        if let Some(keys) = more.keys {
            self.keys.extend_from_slice(keys.data());
            raise(&mut self.largest, keys.data());
        }
        if S::RAW == Raw::Product {
            let right = self.packed.right.get_or_insert_default();
            right.append(more.right.t());
        }
        let score = self.score.get_or_insert_with(|| more.score.clone());
        let Some(exponents) = &self.exponents else {
            return;
        };
        let loudest = exponents.largest_from(from);
        match &mut self.packed.relative {
            Some((reference, all)) if reference.max(loudest) == *reference => {
                S::Norm::relative(score, exponents, None, from..self.length, *reference, all);
            }
            other => {
                let (reference, all) = other.get_or_insert_with(|| (loudest, Buffer::default()));
                *reference = reference.max(loudest);
                all.clear();
                S::Norm::relative(score, exponents, None, 0..self.length, *reference, all);
            }
        }
    }

    /// The last positions as queries.
    pub(crate) fn head<'a>(
        &'a self,
        left: Mat<'a, T>,
        rows: Rows<'a>,
        bias: Option<HeadBias<'a, T>>,
        blocks: Blocks,
        unit: i32,
        workspace: &'a Workspace<T>,
    ) -> Head<'a, T, S> {
        Head {
            left,
            right: self.keys(),
            values: self.values(),
            score: self.score.as_ref().expect("there are positions"),
            exponents: self.exponents.as_ref(),
            unit,
            bias,
            rows,
            dropout: None,
            finite: self.finite,
            blocks,
            packed: &self.packed,
            workspace,
        }
    }

    /// The number of positions.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The keys, or rows of no numbers where features stand in their place.
    pub(crate) fn keys(&self) -> Mat<'_, T> {
        let width = self.keys.len().checked_div(self.length).unwrap_or(0);
        Mat::new(&self.keys, self.length, width)
    }

    pub(crate) fn values(&self) -> Mat<'_, T> {
        let width = self.values.len().checked_div(self.length).unwrap_or(0);
        Mat::new(&self.values, self.length, width)
    }

    /// The largest finite number of each coordinate of the keys, without its sign.
    pub(crate) fn largest(&self) -> &[T] {
        &self.largest
    }

    /// The largest finite number of all values, without its sign.
    pub(crate) fn largest_value(&self) -> T {
        self.largest_value
    }

    /// Forgets all positions but the first ones.
    pub(crate) fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let Some(score) = &self.score else { return };
        let (keys, values) = (self.keys.len(), self.values.len());
        self.keys.truncate(keys / self.length * length);
        self.values.truncate(values / self.length * length);
        self.length = length;
        if let Some(right) = &mut self.packed.right {
            right.truncate(length);
        }
        self.largest.fill(T::zero());
        raise(&mut self.largest, &self.keys);
        self.largest_value = largest(&self.values);
        self.packed.relative = self.exponents.as_mut().map(|exponents| {
            exponents.truncate(length);
            // The loudest key may be gone.
            let (reference, mut all) = (exponents.largest_from(0), Buffer::default());
            S::Norm::relative(score, exponents, None, 0..length, reference, &mut all);
            (reference, all)
        });
    }

    /// The number of numbers that it holds.
    pub(crate) fn size(&self) -> usize {
        let packed = self.packed.right.as_ref().map(Panels::shape);
        let packed = packed.map_or(0, |(rows, columns)| rows * columns);
        self.keys.len() + self.values.len() + packed + 2 * self.length
    }
}

/// Raises each column's largest number to those of more rows.
fn raise<T: Real>(largest: &mut [T], rows: &[T]) {
    for row in rows.chunks_exact(largest.len()) {
        for (largest, x) in largest.iter_mut().zip(row) {
            if x.is_finite() {
                *largest = largest.max(x.abs());
            }
        }
    }
}
