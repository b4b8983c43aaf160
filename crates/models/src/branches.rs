//! Residual branches with a layer norm behind or before them, and operations one after the other: the parts of layers.

use bochner_numerics::{ArgumentError, DropoutMask, Real};
use bochner_ops::rows::{add, for_each_piece};
use bochner_ops::{BoxError, LayerNorm, Normalised, Operation, ResidualNorm, Slot};
use ndarray::{ArrayD, ArrayViewD};

/// A branch behind a layer norm, $y = x + \mathrm{dropout}(f(\mathrm{LN}(x)))$.
///
/// Its inputs are `x`, the other inputs of the branch $f$ with its parameters, and the norm's gain and bias. Its
/// outputs are `y` and what the branch gives beside its first output.
pub(crate) struct PreNormBranch<O> {
    pub(crate) norm: LayerNorm,
    pub(crate) branch: O,
    /// The dropout of the branch's output, if anything is dropped.
    pub(crate) mask: Option<DropoutMask>,
}

/// The values that the backward pass of a [`PreNormBranch`] needs.
pub(crate) struct SavedBranch<T, S> {
    norm: Normalised<T>,
    /// The output of the norm, which the branch reads.
    normed: ArrayD<T>,
    branch: S,
}

impl<T: Real, O: Operation<T>> Operation<T> for PreNormBranch<O> {
    type Saved = SavedBranch<T, O::Saved>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (own, of_norm) = inputs.split_at(inputs.len().saturating_sub(2));
        let x = own.first().copied().unwrap_or_default();
        Operation::<T>::output_shapes(&self.norm, &chain([x], of_norm))?;
        self.branch.output_shapes(own)
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let (own, of_norm) = inputs.split_at(inputs.len() - 2);
        let (x, mut outputs) = (own[0].view(), outputs.into_iter());
        let mut normed = Vec::new();
        let place = vec![Slot::new(&mut normed, x.len())];
        let norm = self.norm.forward(&chain([x.view()], of_norm), place)?;
        let normed = ArrayD::from_shape_vec(x.raw_dim(), normed)?;
        let output = outputs.next().expect("the sequences");
        let mut values = Vec::new();
        let places = std::iter::once(Slot::new(&mut values, x.len())).chain(outputs);
        let branch = (self.branch).forward(&chain([normed.view()], &own[1..]), places.collect())?;
        add_residual(slice(&x), &mut values, self.mask.as_ref());
        output.put(values);
        Ok(SavedBranch {
            norm,
            normed,
            branch,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        mut gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let (own, of_norm) = inputs.split_at(inputs.len() - 2);
        let of_norm_wanted = gradients.split_off(own.len());
        let mut of_branch = gradients.into_iter();
        let x = own[0].view();
        let dropped = self.mask.as_ref().map(|mask| {
            let mut dbranch = cotangents[0].to_owned();
            drop_from(dbranch.as_slice_mut().expect("a row-major array"), mask);
            dbranch
        });
        let dbranch = dropped.as_ref().map_or(cotangents[0].view(), |d| d.view());
        let (mut dx, mut dnormed) = (of_branch.next().flatten(), Vec::new());
        let is_norm_wanted = dx.is_some() || of_norm_wanted.iter().any(Option::is_some);
        let place = is_norm_wanted.then(|| Slot::new(&mut dnormed, x.len()));
        self.branch.backward(
            &chain([saved.normed.view()], &own[1..]),
            &saved.branch,
            &chain([dbranch], &cotangents[1..]),
            std::iter::once(place).chain(of_branch).collect(),
        )?;
        if !is_norm_wanted {
            return Ok(());
        }
        drop(dropped);
        if let Some(dx) = &mut dx {
            dx.reborrow().put(slice(&cotangents[0]).to_vec());
        }
        self.norm.backward(
            &chain([x.view()], of_norm),
            &saved.norm,
            &[ArrayD::from_shape_vec(x.raw_dim(), dnormed)?.view()],
            std::iter::once(dx).chain(of_norm_wanted).collect(),
        )
    }
}

/// A branch before a layer norm, $y = \mathrm{LN}(x + \mathrm{dropout}(f(x)))$; its inputs and outputs are in the order of
/// [`PreNormBranch`].
pub(crate) struct PostNormBranch<O> {
    pub(crate) branch: O,
    pub(crate) norm: ResidualNorm,
}

impl<T: Real, O: Operation<T>> Operation<T> for PostNormBranch<O> {
    type Saved = (O::Saved, Normalised<T>);

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (own, of_norm) = inputs.split_at(inputs.len().saturating_sub(2));
        let shapes = self.branch.output_shapes(own)?;
        let x = shapes[0].as_slice();
        Operation::<T>::output_shapes(&self.norm, &chain([x, x], of_norm))?;
        Ok(shapes)
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let (own, of_norm) = inputs.split_at(inputs.len() - 2);
        let (x, mut outputs) = (own[0].view(), outputs.into_iter());
        let output = outputs.next().expect("the sequences");
        let mut values = Vec::new();
        let places = std::iter::once(Slot::new(&mut values, x.len())).chain(outputs);
        let branch = self.branch.forward(own, places.collect())?;
        let values = ArrayD::from_shape_vec(x.raw_dim(), values)?;
        let of_norm = chain([x, values.view()], of_norm);
        Ok((branch, self.norm.forward(&of_norm, vec![output])?))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        (branch, norm): &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        mut gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let (own, of_norm) = inputs.split_at(inputs.len() - 2);
        let of_norm_wanted = gradients.split_off(own.len());
        let is_branch_wanted = gradients.iter().any(Option::is_some);
        let (x, mut dbranch) = (own[0].view(), Vec::new());
        let ends = [
            gradients[0].as_mut().map(Slot::reborrow),
            is_branch_wanted.then(|| Slot::new(&mut dbranch, x.len())),
        ];
        // The norm keeps what it read: of the branch's output, it asks for the shape alone.
        self.norm.backward(
            &chain([x.view(), x.view()], of_norm),
            norm,
            &cotangents[..1],
            ends.into_iter().chain(of_norm_wanted).collect(),
        )?;
        if !is_branch_wanted {
            return Ok(());
        }
        let dbranch = ArrayD::from_shape_vec(x.raw_dim(), dbranch)?;
        let cotangents = chain([dbranch.view()], &cotangents[1..]);
        self.branch.backward(own, branch, &cotangents, gradients)
    }
}

/// An operation, and a second one on its first output, which has the shape of its first input.
///
/// The inputs are those of the first operation and, after them, those of the second without its first. The outputs are
/// the first output of the second operation, then all further outputs of the first, then those of the second.
pub(crate) struct Then<A, B> {
    pub(crate) first: A,
    /// The number of outputs of the first operation after its first.
    pub(crate) further: usize,
    pub(crate) second: B,
    /// The number of inputs of the second operation after its first.
    pub(crate) of_second: usize,
}

/// The values that the backward pass of [`Then`] needs.
pub(crate) struct SavedThen<T, A, B> {
    first: A,
    /// The first output of the first operation.
    middle: ArrayD<T>,
    second: B,
}

impl<A, B> Then<A, B> {
    fn cut<'a, V>(&self, inputs: &'a [V]) -> (&'a [V], &'a [V]) {
        inputs.split_at(inputs.len().saturating_sub(self.of_second))
    }
}

impl<T: Real, A: Operation<T>, B: Operation<T>> Operation<T> for Then<A, B> {
    type Saved = SavedThen<T, A::Saved, B::Saved>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (of_first, of_second) = self.cut(inputs);
        let mut first = self.first.output_shapes(of_first)?;
        let middle = first.remove(0);
        let mut shapes = self.second.output_shapes(&chain([&*middle], of_second))?;
        shapes.splice(1..1, first);
        Ok(shapes)
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        mut outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let (of_first, of_second) = self.cut(inputs);
        let further: Vec<_> = outputs.drain(1..=self.further).collect();
        let (x, mut middle) = (inputs[0].view(), Vec::new());
        let places = std::iter::once(Slot::new(&mut middle, x.len())).chain(further);
        let first = self.first.forward(of_first, places.collect())?;
        let middle = ArrayD::from_shape_vec(x.raw_dim(), middle)?;
        let second = (self.second).forward(&chain([middle.view()], of_second), outputs)?;
        Ok(SavedThen {
            first,
            middle,
            second,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        mut gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let (of_first, of_second) = self.cut(inputs);
        let (first, second) = cotangents[1..].split_at(self.further);
        let of_second_wanted = gradients.split_off(of_first.len());
        let is_first_wanted = gradients.iter().any(Option::is_some);
        let mut dmiddle = Vec::new();
        let middle = is_first_wanted.then(|| Slot::new(&mut dmiddle, saved.middle.len()));
        self.second.backward(
            &chain([saved.middle.view()], of_second),
            &saved.second,
            &chain([cotangents[0].view()], second),
            std::iter::once(middle).chain(of_second_wanted).collect(),
        )?;
        if !is_first_wanted {
            return Ok(());
        }
        let dmiddle = ArrayD::from_shape_vec(saved.middle.raw_dim(), dmiddle)?;
        let cotangents = chain([dmiddle.view()], first);
        self.first
            .backward(of_first, &saved.first, &cotangents, gradients)
    }
}

/// Inputs that are computed here, and after them others.
pub(crate) fn chain<X: Clone, const N: usize>(own: [X; N], others: &[X]) -> Vec<X> {
    own.into_iter().chain(others.iter().cloned()).collect()
}

fn slice<'a, T>(x: &'a ArrayViewD<'_, T>) -> &'a [T] {
    x.as_slice().expect("a row-major array")
}

/// Elements that one thread drops from, or adds, at a time.
const PIECE: usize = 1 << 13;
/// Multiplications that take as long as drawing one element of a mask.
const DRAW: usize = 8;

/// Drops from a branch in place.
fn drop_from<T: Real>(branch: &mut [T], mask: &DropoutMask) {
    let work = branch.len() * DRAW;
    let pieces = branch.chunks_mut(PIECE).enumerate();
    for_each_piece(pieces, work, |(i, piece)| {
        mask.scale((i * PIECE) as u64, piece);
    });
}

/// The end of a residual branch, $x + \mathrm{dropout}(r)$, in the memory of the branch.
fn add_residual<T: Real>(x: &[T], branch: &mut [T], mask: Option<&DropoutMask>) {
    let work = branch.len() * mask.map_or(1, |_| DRAW);
    let pieces = branch.chunks_mut(PIECE).zip(x.chunks(PIECE)).enumerate();
    for_each_piece(pieces, work, |(i, (piece, x))| {
        if let Some(mask) = mask {
            mask.scale((i * PIECE) as u64, piece);
        }
        add(piece, x);
    });
}
