//! A whole post-LN layer as one operation on the tape.

use super::parts::{Cut, run};
use crate::pre_norm::chain;
use bochner_attention::layer::{MultiHeadOperation, SavedHeads};
use bochner_numerics::{ArgumentError, Real};
use bochner_ops::{
    BoxError, FeedForward, HiddenLayer, Normalised, Operation, ResidualNorm, Slot, slots,
};
use ndarray::{ArrayD, ArrayViewD};

/// A post-LN layer as an operation on `x` and the parameters of its four parts, in their order;
/// its outputs are the encoded sequences and the attention's penalty.
pub(super) struct PostNorm<T: Real> {
    pub(super) attention: MultiHeadOperation<T>,
    pub(super) attention_norm: ResidualNorm,
    pub(super) feed_forward: FeedForward,
    pub(super) feed_forward_norm: ResidualNorm,
}

pub(super) struct Saved<T> {
    attention: SavedHeads<T>,
    attention_norm: Normalised<T>,
    /// The sequences between the two halves.
    middle: ArrayD<T>,
    feed_forward: HiddenLayer<T>,
    feed_forward_norm: Normalised<T>,
}

impl<T: Real> Operation<T> for PostNorm<T> {
    type Saved = Saved<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let cut = Cut::new(inputs.iter().copied());
        let shapes = self.attention.output_shapes(&cut.attention)?;
        let x = shapes[0].as_slice();
        let norm = |norm: &ResidualNorm, parameters: &[&[usize]]| {
            Operation::<T>::output_shapes(norm, &chain([x, x], parameters))
        };
        norm(&self.attention_norm, &cut.attention_norm)?;
        Operation::<T>::output_shapes(&self.feed_forward, &chain([x], &cut.feed_forward))?;
        norm(&self.feed_forward_norm, &cut.feed_forward_norm)?;
        Ok(shapes)
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let cut = Cut::new(inputs.iter().map(|x| x.view()));
        let ([output, penalty], x) = (slots(outputs), inputs[0].view());
        let mut attended = Vec::new();
        let slots = vec![Slot::new(&mut attended, x.len()), penalty];
        let attention = self.attention.forward(&cut.attention, slots)?;
        let attended = ArrayD::from_shape_vec(x.raw_dim(), attended)?;
        let (attention_norm, middle) = run(
            &self.attention_norm,
            &chain([x.view(), attended.view()], &cut.attention_norm),
            x.shape(),
        )?;
        drop(attended);
        let (feed_forward, branch) = run(
            &self.feed_forward,
            &chain([middle.view()], &cut.feed_forward),
            x.shape(),
        )?;
        let feed_forward_norm = self.feed_forward_norm.forward(
            &chain([middle.view(), branch.view()], &cut.feed_forward_norm),
            vec![output],
        )?;
        Ok(Saved {
            attention,
            attention_norm,
            middle,
            feed_forward,
            feed_forward_norm,
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
        let in_attention = is_any(&wanted.attention) || is_any(&wanted.attention_norm);
        let below_last_norm = in_attention || is_any(&wanted.feed_forward);
        let (x, middle) = (inputs[0].view(), saved.middle.view());
        let shaped = |values: Vec<T>| ArrayD::from_shape_vec(x.raw_dim(), values);
        let (n, [mut dmiddle, mut branch]) = (x.len(), [(); 2].map(|()| Vec::new()));
        let ends = [
            in_attention.then(|| Slot::new(&mut dmiddle, n)),
            below_last_norm.then(|| Slot::new(&mut branch, n)),
        ];
        // The backward pass of a norm reads only the shape of its branch: the other summand stands in.
        self.feed_forward_norm.backward(
            &chain([middle.clone(), middle.clone()], &cut.feed_forward_norm),
            &saved.feed_forward_norm,
            &cotangents[..1],
            ends.into_iter().chain(wanted.feed_forward_norm).collect(),
        )?;
        if !below_last_norm {
            return Ok(());
        }
        let own = [in_attention.then(|| Slot::new(&mut dmiddle, n))];
        self.feed_forward.backward(
            &chain([middle], &cut.feed_forward),
            &saved.feed_forward,
            &[shaped(branch)?.view()],
            own.into_iter().chain(wanted.feed_forward).collect(),
        )?;
        if !in_attention {
            return Ok(());
        }
        let (dmiddle, mut branch) = (shaped(dmiddle)?, Vec::new());
        // The gradient of `x` is that of the norm, to which the attention adds.
        let dx = wanted.attention[0].as_mut().map(Slot::reborrow);
        let ends = [dx, Some(Slot::new(&mut branch, n))];
        self.attention_norm.backward(
            &chain([x.view(), x.view()], &cut.attention_norm),
            &saved.attention_norm,
            &[dmiddle.view()],
            ends.into_iter().chain(wanted.attention_norm).collect(),
        )?;
        drop(dmiddle);
        self.attention.backward(
            &cut.attention,
            &saved.attention,
            &[shaped(branch)?.view(), cotangents[1].view()],
            wanted.attention,
        )
    }
}

/// Whether some gradient is wanted.
fn is_any<T: Real>(slots: &[Option<Slot<'_, T>>]) -> bool {
    slots.iter().any(Option::is_some)
}
