//! A whole pre-LN layer as one operation on the tape.

use super::parts::{Cut, add_residual, chain, drop_from, run};
use bochner_attention::{MultiHeadOperation, SavedHeads};
use bochner_numerics::{ArgumentError, DropoutMask, Real};
use bochner_ops::{
    BoxError, FeedForward, HiddenLayer, LayerNorm, Normalised, Operation, Slot, slots,
};
use ndarray::{ArrayD, ArrayViewD};

/// A pre-LN layer as an operation on `x` and the parameters of its four parts: the attention, its norm, the
/// feed-forward part, its norm. Its outputs are the encoded sequences and the attention's penalty.
pub(super) struct PreNorm<T: Real> {
    pub(super) attention: MultiHeadOperation<T>,
    pub(super) attention_norm: LayerNorm,
    pub(super) feed_forward: FeedForward,
    pub(super) feed_forward_norm: LayerNorm,
    /// The masks of the two residual branches, if anything is dropped.
    pub(super) masks: [Option<DropoutMask>; 2],
}

pub(super) struct Saved<T> {
    attention: Normed<T, SavedHeads<T>>,
    feed_forward: Normed<T, HiddenLayer<T>>,
    /// The sequences between the two halves.
    middle: ArrayD<T>,
}

/// What the backward pass of one half needs.
struct Normed<T, S> {
    norm: Normalised<T>,
    /// The output of the norm, which is the input of the branch.
    input: ArrayD<T>,
    branch: S,
}

impl<T: Real> Operation<T> for PreNorm<T> {
    type Saved = Saved<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let cut = Cut::new(inputs.iter().copied());
        let shapes = self.attention.output_shapes(&cut.attention)?;
        let x = shapes[0].as_slice();
        let norm = |norm: &LayerNorm, parameters: &[&[usize]]| {
            Operation::<T>::output_shapes(norm, &chain([x], parameters))
        };
        norm(&self.attention_norm, &cut.attention_norm)?;
        norm(&self.feed_forward_norm, &cut.feed_forward_norm)?;
        Operation::<T>::output_shapes(&self.feed_forward, &chain([x], &cut.feed_forward))?;
        Ok(shapes)
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let cut = Cut::new(inputs.iter().map(|x| x.view()));
        let ([output, penalty], x) = (slots(outputs), inputs[0].view());
        let normed = |norm: &LayerNorm, x: ArrayViewD<'_, T>, parameters: &[ArrayViewD<'_, T>]| {
            let shape = x.shape().to_vec();
            run(norm, &chain([x.view()], parameters), &shape)
        };
        let (norm, input) = normed(&self.attention_norm, x.view(), &cut.attention_norm)?;
        let mut middle = Vec::new();
        let inputs = chain([input.view()], &cut.attention[1..]);
        let places = vec![Slot::new(&mut middle, x.len()), penalty];
        let branch = self.attention.forward(&inputs, places)?;
        drop(inputs);
        let attention = Normed {
            norm,
            branch,
            input,
        };
        add_residual(slice(&x), &mut middle, self.masks[0].as_ref());
        let middle = ArrayD::from_shape_vec(x.raw_dim(), middle)?;

        let (norm, input) = normed(
            &self.feed_forward_norm,
            middle.view(),
            &cut.feed_forward_norm,
        )?;
        let inputs = chain([input.view()], &cut.feed_forward);
        let mut encoded = Vec::new();
        let places = vec![Slot::new(&mut encoded, x.len())];
        let branch = self.feed_forward.forward(&inputs, places)?;
        drop(inputs);
        add_residual(slice(&middle.view()), &mut encoded, self.masks[1].as_ref());
        output.put(encoded);
        Ok(Saved {
            attention,
            feed_forward: Normed {
                norm,
                branch,
                input,
            },
            middle,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let cut = Cut::new(inputs.iter().map(|x| x.view()));
        let mut wanted = Cut::new(gradients);
        let (x, n) = (inputs[0].view(), inputs[0].len());
        // The gradient of the residual stream, to which each half adds that of its branch.
        let mut stream = slice(&cotangents[0]).to_vec();
        let branch = |stream: &[T], mask: Option<&DropoutMask>| {
            let mut branch = stream.to_vec();
            drop_from(&mut branch, mask);
            ArrayD::from_shape_vec(x.raw_dim(), branch)
        };

        let Normed {
            norm,
            input,
            branch: hidden,
        } = &saved.feed_forward;
        let mut normed = Vec::new();
        self.feed_forward.backward(
            &chain([input.view()], &cut.feed_forward),
            hidden,
            &[branch(&stream, self.masks[1].as_ref())?.view()],
            behind(Slot::new(&mut normed, n), wanted.feed_forward),
        )?;
        self.feed_forward_norm.backward(
            &chain([saved.middle.view()], &cut.feed_forward_norm),
            norm,
            &[ArrayD::from_shape_vec(x.raw_dim(), normed)?.view()],
            behind(Slot::new(&mut stream, n), wanted.feed_forward_norm),
        )?;

        let Normed {
            norm,
            input,
            branch: heads,
        } = &saved.attention;
        let (mut normed, mut dx) = (Vec::new(), wanted.attention.remove(0));
        self.attention.backward(
            &chain([input.view()], &cut.attention[1..]),
            heads,
            &[
                branch(&stream, self.masks[0].as_ref())?.view(),
                cotangents[1].view(),
            ],
            behind(Slot::new(&mut normed, n), wanted.attention),
        )?;
        if let Some(dx) = &mut dx {
            dx.reborrow().put(stream);
        }
        self.attention_norm.backward(
            &chain([x.view()], &cut.attention_norm),
            norm,
            &[ArrayD::from_shape_vec(x.raw_dim(), normed)?.view()],
            std::iter::once(dx).chain(wanted.attention_norm).collect(),
        )
    }
}

fn slice<'a, T>(x: &'a ArrayViewD<'_, T>) -> &'a [T] {
    x.as_slice().expect("a row-major array")
}

/// The places of a part's gradients, the first of which is inside the layer.
fn behind<'a, T>(
    first: Slot<'a, T>,
    parameters: Vec<Option<Slot<'a, T>>>,
) -> Vec<Option<Slot<'a, T>>> {
    std::iter::once(Some(first)).chain(parameters).collect()
}
