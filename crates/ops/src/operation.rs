//! The one interface of everything that can be trained through.

use crate::rows::{PIECE, add_to, block_rows, for_each_piece};
use bochner_numerics::memory::{Unwritten, written_by, written_into};
use bochner_numerics::product::Right;
use bochner_numerics::{ArgumentError, Mat, MatMut, Real, argument, matmul};
use ndarray::{Array, ArrayViewD, Dimension};
use std::ops::Range;

/// The error of an operation's forward pass: whatever its crate returns.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A function of arrays with its vector-Jacobian product, free of any tensor framework.
///
/// All arrays are in row-major order, and all inputs have at least one element.
///
/// # Why it has this form
/// A training step is to become one list of operations over arrays that stay in place from step to step.
/// Four properties make that possible, and nothing else is asked for:
///
/// * [`output_shapes`](Self::output_shapes) is known before anything is computed, so that all arrays of a
///   step can be laid out once.
/// * Outputs and gradients are written into a [`Slot`] that the caller gives. A slot may be a place that the
///   last step has used; a gradient that is there already is added to where it lives.
/// * The caller says which gradients it wants. The gradient of a target, a mask or a frozen weight is never
///   computed.
/// * Operations and what they save are `Send + Sync`, and they see no tape: several may run at once, in any
///   order that their arrays allow.
pub trait Operation<T: Real>: Send + Sync + 'static {
    /// The values that the forward pass keeps for the backward pass.
    type Saved: Send + Sync + 'static;

    /// The shape of each output, from those of the inputs.
    ///
    /// # Errors
    /// [`ArgumentError`] if the number or the shapes of the inputs do not fit each other or the operation.
    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError>;

    /// Writes the outputs, whose slots are empty, and returns what the backward pass needs.
    ///
    /// The shapes of the inputs are such that [`output_shapes`](Self::output_shapes) succeeds.
    ///
    /// # Errors
    /// The operation refuses values that it cannot work with. It has to find them here, see
    /// [`backward`](Self::backward).
    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError>;

    /// Writes or adds the gradient of each input that is wanted.
    ///
    /// There is one cotangent for each output, of the output's shape; it is zero where the output was not used. There
    /// is one entry of `gradients` for each input, `None` if that gradient is not requested. A gradient that the
    /// operation leaves untouched counts as zero.
    ///
    /// # Errors
    /// The method fails only through a bug of the operation: no caller is left by then who could act on an error.
    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError>;
}

/// The place of one array: an output of an operation, or the gradient of an input.
///
/// A place without elements stands for zeros. What is written then becomes the array, in the vector's own
/// memory if there is enough. If the place already holds an array, the new values are *added* to it. This is
/// how gradients accumulate when an input is used more than once. A caller who wants to overwrite clears the
/// vector first.
///
/// ```
/// use bochner_ops::Slot;
///
/// let mut gradient = Vec::new();
/// Slot::new(&mut gradient, 2).put(vec![1.0, 2.0]);
/// Slot::new(&mut gradient, 2).put(vec![10.0, 20.0]);
/// assert_eq!(gradient, [11.0, 22.0]);
/// ```
#[derive(Debug)]
pub struct Slot<'a, T> {
    values: &'a mut Vec<T>,
    len: usize,
}

impl<'a, T: Real> Slot<'a, T> {
    /// A place for `len` elements.
    ///
    /// # Panics
    /// If `values` holds another number of elements, but not none.
    pub fn new(values: &'a mut Vec<T>, len: usize) -> Self {
        let held = values.len();
        assert!(
            held == 0 || held == len,
            "a place of {held} elements for {len}"
        );
        Self { values, len }
    }

    /// The place once more, for one of several parts that add up to its array.
    pub fn reborrow(&mut self) -> Slot<'_, T> {
        Slot {
            values: &mut *self.values,
            len: self.len,
        }
    }

    /// The number of elements to write.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes all elements at once; the vector is moved into an empty place.
    ///
    /// # Panics
    /// If there is another number of elements.
    pub fn put(self, values: Vec<T>) {
        assert_eq!(values.len(), self.len, "elements of an array");
        if self.values.is_empty() {
            *self.values = values;
        } else {
            add_to(self.values, &values);
        }
    }

    /// Writes an array, brought to row-major order.
    ///
    /// # Panics
    /// If it has another number of elements.
    pub fn put_array<D: Dimension>(self, array: Array<T, D>) {
        if !array.is_standard_layout() {
            return self.put(array.iter().copied().collect());
        }
        let n = array.len();
        let (values, offset) = array.into_raw_vec_and_offset();
        match offset.unwrap_or(0) {
            0 if values.len() == n => self.put(values),
            start => self.put(values[start..start + n].to_vec()),
        }
    }

    /// Writes `rows` rows block by block: `f(rows, piece)` has to write the whole piece.
    ///
    /// `work` is the number of multiplications in all, which says whether threads are worth it. The blocks
    /// depend on the number of rows alone.
    ///
    /// # Panics
    /// If `f` leaves something unwritten, or the rows do not divide the elements.
    pub fn by_blocks(
        self,
        rows: usize,
        work: usize,
        f: impl Fn(Range<usize>, Piece<'_, T>) + Send + Sync,
    ) {
        let (block, width) = (block_rows(rows), self.len / rows.max(1));
        assert_eq!(rows * width, self.len, "elements of whole rows");
        self.cut(block * width, work, |range, piece| {
            f(range.start / width..range.end / width, piece);
        });
    }

    /// Writes all elements piece by piece: `f(elements, piece)` has to write the whole piece.
    ///
    /// `work` is the number of multiplications in all.
    ///
    /// # Panics
    /// If `f` leaves something unwritten.
    pub fn by_pieces(self, work: usize, f: impl Fn(Range<usize>, Piece<'_, T>) + Send + Sync) {
        self.cut(PIECE, work, f);
    }

    fn cut(self, size: usize, work: usize, f: impl Fn(Range<usize>, Piece<'_, T>) + Send + Sync) {
        let len = self.len;
        if len == 0 {
            return;
        }
        let ranges = (0..len)
            .step_by(size)
            .map(|start| start..(start + size).min(len));
        if self.values.is_empty() {
            written_into(self.values, len, |all| {
                let pieces = ranges.zip(all.chunks(size).map(Piece::Empty));
                for_each_piece(pieces, work, |(range, piece)| f(range, piece));
            });
        } else {
            let pieces = ranges.zip(self.values.chunks_mut(size).map(Piece::Full));
            for_each_piece(pieces, work, |(range, piece)| f(range, piece));
        }
    }
}

/// Some rows of a [`Slot`].
#[derive(Debug)]
pub enum Piece<'a, T> {
    /// The rows are written.
    Empty(Unwritten<'a, T>),
    /// The rows are added to.
    Full(&'a mut [T]),
}

impl<'a, T: Real> Piece<'a, T> {
    /// Writes or adds what `f` writes, a whole piece.
    pub fn write(self, f: impl FnOnce(Unwritten<'_, T>)) {
        match self {
            Self::Empty(piece) => f(piece),
            Self::Full(piece) => {
                let [more] = written_by([piece.len()], |[more]| f(more));
                crate::rows::add(piece, &more);
            }
        }
    }

    /// Writes or adds a product of two matrices, and returns the piece.
    pub fn product<'b>(self, a: Mat<T>, b: impl Into<Right<'b, T>>) -> &'a mut [T] {
        match self {
            Self::Empty(piece) => piece.product(a, b),
            Self::Full(piece) => {
                let rows = a.shape().0;
                let target = MatMut::new(piece, rows, piece.len() / rows);
                matmul(T::one(), a, b, T::one(), target);
                piece
            }
        }
    }
}

/// New vectors of these lengths, each filled through a slot.
///
/// ```
/// let [x, y] = bochner_ops::filled([1, 2], |[x, y]| {
///     x.put(vec![1.0]);
///     y.put(vec![2.0, 3.0]);
/// });
/// assert_eq!((x, y), (vec![1.0], vec![2.0, 3.0]));
/// ```
///
/// # Panics
/// If a slot is left empty.
pub fn filled<T: Real, const N: usize>(
    lengths: [usize; N],
    f: impl FnOnce([Slot<'_, T>; N]),
) -> [Vec<T>; N] {
    let mut vectors = lengths.map(|_| Vec::new());
    let mut each = lengths.into_iter();
    f(vectors.each_mut().map(|values| {
        let len = each.next().expect("as many lengths as vectors");
        Slot::new(values, len)
    }));
    for (vector, len) in vectors.iter().zip(lengths) {
        assert_eq!(vector.len(), len, "elements of a filled vector");
    }
    vectors
}

/// A fixed number of arrays as slices.
///
/// # Panics
/// If there is another number of them, or one is not in row-major order.
pub fn slices<'a, T: Real, const N: usize>(arrays: &'a [ArrayViewD<'_, T>]) -> [&'a [T]; N] {
    assert_eq!(arrays.len(), N, "number of arrays");
    std::array::from_fn(|i| arrays[i].as_slice().expect("a row-major array"))
}

/// A fixed number of slots, of outputs or of gradients.
///
/// # Panics
/// If there is another number of them.
pub fn slots<S, const N: usize>(slots: Vec<S>) -> [S; N] {
    let got = slots.len();
    let all = slots.try_into();
    all.unwrap_or_else(|_| panic!("{got} slots where {N} are needed"))
}

/// The shapes of a fixed number of inputs.
///
/// # Errors
/// [`ArgumentError::Shape`] if there is another number of them.
pub fn given<'a, const N: usize>(
    inputs: &[&'a [usize]],
) -> Result<[&'a [usize]; N], ArgumentError> {
    argument::shape("inputs", &[N], &[inputs.len()])?;
    Ok(std::array::from_fn(|i| inputs[i]))
}

/// `dims` with another last axis.
pub fn with_last(dims: &[usize], last: usize) -> Vec<usize> {
    let mut dims = dims.to_vec();
    if let Some(dim) = dims.last_mut() {
        *dim = last;
    }
    dims
}
