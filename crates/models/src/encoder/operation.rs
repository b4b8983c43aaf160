//! A whole encoder layer as one operation on the tape.

use bochner_attention::{MultiHeadOperation, SavedHeads};
use bochner_nn::{BoxError, HiddenLayer, Normalised, Operation, ResidualNorm, TwoLayers, add_to};
use bochner_numerics::Real;
use ndarray::{ArrayD, ArrayViewD};

/// An encoder layer as an operation on `x` and the parameters of its four parts, in their order;
/// its outputs are the encoded sequences and the attention's penalty.
pub(super) struct EncoderLayerOperation {
    pub(super) attention: MultiHeadOperation,
    pub(super) attention_norm: ResidualNorm,
    pub(super) feed_forward: TwoLayers,
    pub(super) feed_forward_norm: ResidualNorm,
}

pub(super) struct Saved<T> {
    attention: SavedHeads<T>,
    attention_norm: Normalised<T>,
    /// Between the two halves.
    middle: ArrayD<T>,
    feed_forward: HiddenLayer<T>,
    feed_forward_norm: Normalised<T>,
}

/// The inputs of each part but for those that another part computes.
struct Cut<'i, 'a, T> {
    /// `x` and the attention's parameters.
    attention: &'i [ArrayViewD<'a, T>],
    attention_norm: &'i [ArrayViewD<'a, T>],
    feed_forward: &'i [ArrayViewD<'a, T>],
    feed_forward_norm: &'i [ArrayViewD<'a, T>],
}

impl<'i, 'a, T> Cut<'i, 'a, T> {
    fn new(inputs: &'i [ArrayViewD<'a, T>]) -> Self {
        let (rest, feed_forward_norm) = inputs.split_at(inputs.len() - 2);
        let (rest, feed_forward) = rest.split_at(rest.len() - 4);
        let (attention, attention_norm) = rest.split_at(rest.len() - 2);
        Self {
            attention,
            attention_norm,
            feed_forward,
            feed_forward_norm,
        }
    }
}

fn chain<'a, T>(
    own: impl IntoIterator<Item = ArrayViewD<'a, T>>,
    parameters: &[ArrayViewD<'a, T>],
) -> Vec<ArrayViewD<'a, T>> {
    own.into_iter().chain(parameters.iter().cloned()).collect()
}

/// The one output of an operation.
fn single<T>(mut outputs: Vec<ArrayD<T>>) -> ArrayD<T> {
    outputs.pop().expect("one output")
}

impl<T: Real> Operation<T> for EncoderLayerOperation {
    type Saved = Saved<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let cut = Cut::new(inputs);
        let (mut attended, attention) = self.attention.forward(cut.attention)?;
        let penalty = attended.pop().expect("two outputs");
        let attended = single(attended);
        let (middle, attention_norm) = self.attention_norm.forward(&chain(
            [inputs[0].view(), attended.view()],
            cut.attention_norm,
        ))?;
        let middle = single(middle);
        let (branch, feed_forward) = self
            .feed_forward
            .forward(&chain([middle.view()], cut.feed_forward))?;
        let (output, feed_forward_norm) = self.feed_forward_norm.forward(&chain(
            [middle.view(), single(branch).view()],
            cut.feed_forward_norm,
        ))?;
        let saved = Saved {
            attention,
            attention_norm,
            middle,
            feed_forward,
            feed_forward_norm,
        };
        Ok((vec![single(output), penalty], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let cut = Cut::new(inputs);
        let (x, middle) = (inputs[0].view(), saved.middle.view());
        // Of its branch a norm only wants the shape: the other summand stands in.
        let mut norm = self.feed_forward_norm.backward(
            &chain([middle.clone(), middle.clone()], cut.feed_forward_norm),
            &saved.feed_forward_norm,
            &cotangents[..1],
        )?;
        let last = norm.split_off(2);
        let [branch, dmiddle] = ends(norm);
        let mut feed_forward = self.feed_forward.backward(
            &chain([middle], cut.feed_forward),
            &saved.feed_forward,
            &[branch.view()],
        )?;
        drop(branch);
        let dmiddle = sum(dmiddle, feed_forward.remove(0));
        let mut norm = self.attention_norm.backward(
            &chain([x.clone(), x], cut.attention_norm),
            &saved.attention_norm,
            &[dmiddle.view()],
        )?;
        drop(dmiddle);
        let third = norm.split_off(2);
        let [branch, dx] = ends(norm);
        let mut gradients = self.attention.backward(
            cut.attention,
            &saved.attention,
            &[branch.view(), cotangents[1].view()],
        )?;
        gradients[0] = Some(sum(dx, gradients[0].take()));
        gradients.extend(third);
        gradients.extend(feed_forward);
        gradients.extend(last);
        Ok(gradients)
    }
}

/// The gradients of a norm's branch and of its other summand.
fn ends<T>(mut gradients: Vec<Option<ArrayD<T>>>) -> [ArrayD<T>; 2] {
    [(); 2].map(|()| gradients.pop().flatten().expect("a gradient"))
}

/// The sum of two gradients of one array.
fn sum<T: Real>(mut a: ArrayD<T>, b: Option<ArrayD<T>>) -> ArrayD<T> {
    let b = b.expect("a gradient");
    let more = b.as_slice().expect("a row-major array");
    add_to(a.as_slice_mut().expect("a row-major array"), more);
    a
}
