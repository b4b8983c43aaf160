//! The keys and values of a causal sequence that grows.

use super::{Exponents, Finite, Head, Level, Packed, Rows};
use crate::bias::HeadBias;
use crate::normaliser::Normaliser;
use crate::score::Score;
use crate::{Blocks, Workspace};
use bochner_numerics::elementary::max_norm;
use bochner_numerics::memory::remove_first;
use bochner_numerics::scaling::largest;
use bochner_numerics::{Buffer, Mat, Panels, Real};

/// What the positions so far have left of one head of keys for those that come.
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
    values_are_finite: bool,
    /// How many positions came before those that are held.
    forgotten: usize,
    /// How many positions are held.
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
    pub(crate) values_are_finite: bool,
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
            values_are_finite: true,
            forgotten: 0,
            length: 0,
        }
    }

    pub(crate) fn append(&mut self, more: Following<T, S>) {
        let (from, added) = (self.length, more.right.shape().0);
        self.length += added;
        self.values.extend_from_slice(more.values.data());
        self.largest_value = self.largest_value.max(largest(more.values.data()));
        self.values_are_finite &= more.values_are_finite;
        match (&mut self.exponents, more.exponents) {
            (Some(exponents), Some(more)) => exponents.append(more),
            (none, more) => *none = more.cloned(),
        }
        if let Some(keys) = more.keys {
            self.keys.extend_from_slice(keys.data());
            raise(&mut self.largest, keys.data());
        }
        if S::RAW.is_product() {
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
            Some((reference, _)) => {
                let loudest = reference.max(loudest);
                self.relate_all(loudest);
            }
            None => self.relate_all(loudest),
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
            ternary: None,
            values: self.values(),
            score: self.score.as_ref().expect("there are positions"),
            exponents: self.exponents.as_ref(),
            unit,
            bias,
            rows,
            dropout: None,
            // The backward pass alone asks for the operands, and a decoder has none.
            finite: Finite {
                values: self.values_are_finite,
                ..Finite::default()
            },
            blocks,
            packed: &self.packed,
            workspace,
        }
    }

    /// The number of positions that are held.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The number of positions that came before those that are held.
    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten
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

    /// Forgets the first of the positions that are held, `unseen` of which no later position sees, once they are
    /// enough to pay for moving the others.
    ///
    /// Between calls the cache holds at most a quarter more positions than are seen, or a panel more where that is
    /// more; memory that a call of many positions has left is given back.
    pub(crate) fn forget_first(&mut self, unseen: usize) {
        let (panel, seen) = (Panels::<T>::ALIGNMENT, self.length - unseen);
        let spare = (seen / 4).max(panel);
        if unseen < spare {
            return;
        }
        // Keys that stay begin a panel, as they did.
        let (gone, most) = (unseen - unseen % panel, seen + spare);
        for rows in [&mut self.keys, &mut self.values] {
            let width = rows.len() / self.length;
            remove_first(rows, gone * width, most * width);
        }
        if let Some(right) = &mut self.packed.right {
            right.remove_first(gone, most);
        }
        if let Some(exponents) = &mut self.exponents {
            exponents.remove_first(gone, most);
        }
        if let Some((_, relative)) = &mut self.packed.relative {
            remove_first(relative, gone, most);
        }
        self.forgotten += gone;
        self.length -= gone;
        self.find_largest();
    }

    /// Forgets all positions but the first ones of those that are held.
    pub(crate) fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let (keys, values) = (self.keys.len(), self.values.len());
        self.keys.truncate(keys / self.length * length);
        self.values.truncate(values / self.length * length);
        self.length = length;
        if let Some(right) = &mut self.packed.right {
            right.truncate(length);
        }
        if let Some(exponents) = &mut self.exponents {
            exponents.truncate(length);
        }
        self.find_largest();
    }

    /// Forgets the positions that are not marked.
    #[cfg(feature = "dfdx")]
    pub(crate) fn keep(&mut self, marks: &[bool]) {
        keep_marked(&mut self.keys, marks);
        keep_marked(&mut self.values, marks);
        if let Some(right) = &mut self.packed.right {
            right.keep(marks);
        }
        if let Some(exponents) = &mut self.exponents {
            exponents.keep(marks);
        }
        self.length = marks.iter().filter(|&&kept| kept).count();
        self.find_largest();
    }

    /// Finds what is largest of the positions that are left, and relates them to it: the loudest key may be gone.
    fn find_largest(&mut self) {
        self.largest.fill(T::zero());
        raise(&mut self.largest, &self.keys);
        self.largest_value = largest(&self.values);
        self.values_are_finite = max_norm(&self.values).is_finite();
        if let Some(exponents) = &self.exponents {
            self.relate_all(exponents.largest_from(0));
        }
    }

    /// Takes the keys' exponents relative to the loudest one.
    fn relate_all(&mut self, loudest: Level) {
        let (Some(score), Some(exponents)) = (&self.score, &self.exponents) else {
            return;
        };
        let place = (loudest, Buffer::default());
        let (reference, all) = self.packed.relative.get_or_insert(place);
        *reference = loudest;
        all.clear();
        S::Norm::relative(score, exponents, None, 0..self.length, loudest, all);
    }

    /// The number of numbers that it holds.
    pub(crate) fn size(&self) -> usize {
        let packed = self.packed.right.as_ref().map(Panels::shape);
        let packed = packed.map_or(0, |(rows, columns)| rows * columns);
        self.keys.len() + self.values.len() + packed + 2 * self.length
    }
}

/// Keeps the rows of a list that are marked, one mark a row.
#[cfg(feature = "dfdx")]
pub(crate) fn keep_marked<X: Copy>(list: &mut Vec<X>, marks: &[bool]) {
    let width = list.len().checked_div(marks.len()).unwrap_or(0);
    let mut end = 0;
    for (from, _) in marks.iter().enumerate().filter(|&(_, &kept)| kept) {
        list.copy_within(from * width..(from + 1) * width, end);
        end += width;
    }
    list.truncate(end);
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
