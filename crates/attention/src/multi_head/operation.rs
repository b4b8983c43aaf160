//! All heads as one operation on the tape.

use crate::Mask;
use crate::mechanism::{Cotangents, Forward, Inputs, Pass};
use crate::registry::Variant;
use bochner_nn::{BoxError, Operation};
use bochner_numerics::Real;
use ndarray::{Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewD, Ix3, IxDyn};

/// All heads as one operation on projected queries, keys, values and the kernel's parameters.
pub(super) struct Heads {
    pub(super) variant: Variant,
    pub(super) heads: usize,
    pub(super) mask: Mask,
    pub(super) pass: Pass,
}

/// The three sequences split into heads, and the forward pass over them.
pub(super) struct Saved<T> {
    sequences: [Array4<T>; 3],
    forward: Forward<T>,
}

impl Heads {
    fn inputs<'a, T: Real>(&'a self, sequences: &'a [Array4<T>; 3]) -> Inputs<'a, T> {
        let [q, k, v] = sequences.each_ref().map(|x| x.view());
        Inputs {
            q,
            k,
            v,
            mask: &self.mask,
        }
    }
}

/// The fourth input, if there is one.
fn kernel<'a, T>(inputs: &'a [ArrayViewD<'_, T>]) -> &'a [T] {
    inputs
        .get(3)
        .map_or(&[], |x| x.as_slice().expect("one contiguous axis"))
}

impl<T: Real> Operation<T> for Heads {
    type Saved = Saved<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let sequences = [0, 1, 2].map(|i| split_heads(inputs[i].view(), self.heads));
        let forward = self.variant.mechanism::<T>().forward(
            &self.inputs(&sequences),
            kernel(inputs),
            &self.pass,
        )?;
        let output = join_heads(forward.output.view());
        let penalty = ArrayD::from_elem(IxDyn(&[]), forward.penalty.sum());
        Ok((vec![output, penalty], Saved { sequences, forward }))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        Saved { sequences, forward }: &Saved<T>,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let output = split_heads(cotangents[0].view(), self.heads);
        let penalty = forward.penalty.mapv(|_| cotangents[1][IxDyn(&[])]);
        let gradients = self.variant.mechanism::<T>().backward(
            &self.inputs(sequences),
            kernel(inputs),
            &self.pass,
            forward,
            Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            },
        )?;
        let mut all: Vec<_> = [gradients.q, gradients.k, gradients.v]
            .map(|g| Some(join_heads(g.view())))
            .into();
        if let Some(x) = inputs.get(3) {
            all.push(Some(ArrayD::from_shape_vec(
                x.raw_dim(),
                gradients.parameters,
            )?));
        }
        Ok(all)
    }
}

/// `[B, T, M w]` to `[B, M, T, w]`.
pub(super) fn split_heads<T: Real>(x: ArrayViewD<'_, T>, heads: usize) -> Array4<T> {
    let x: ArrayView3<T> = x.into_dimensionality::<Ix3>().expect("batch, time, width");
    let (batch, time, width) = x.dim();
    let split: ArrayView4<T> = x
        .into_shape_with_order((batch, time, heads, width / heads))
        .expect("contiguous, and the heads divide the width");
    split
        .permuted_axes([0, 2, 1, 3])
        .as_standard_layout()
        .into_owned()
}

/// `[B, M, T, w]` to `[B, T, M w]`.
fn join_heads<T: Real>(x: ArrayView4<'_, T>) -> ArrayD<T> {
    let (batch, heads, time, width) = x.dim();
    let joined = x
        .permuted_axes([0, 2, 1, 3])
        .as_standard_layout()
        .into_owned();
    joined
        .into_shape_with_order(IxDyn(&[batch, time, heads * width]))
        .expect("contiguous")
}
