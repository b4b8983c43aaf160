//! The whole layer as one operation on the tape.

use super::GraphConvolutionConfig;
use crate::layers::attention::Bias;
use crate::layers::nodes::{GivenNodes, OwnedFeatures, matrix, vector};
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{Graph, LayerError, convolve, convolve_vjp};
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, slots};
use ndarray::{Array2, ArrayViewD};

/// A [`GraphConvolution`](super::GraphConvolution) layer as an operation on the nodes' features, where
/// these are a tensor, the weight, and the bias, if there is one.
pub(super) struct GraphConvolutionOperation<T> {
    pub(super) config: GraphConvolutionConfig,
    pub(super) graph: Graph,
    pub(super) nodes: GivenNodes<T>,
}

impl<T: Real> Operation<T> for GraphConvolutionOperation<T> {
    /// The tensor after dropout, where there is any.
    type Saved = Vec<OwnedFeatures<T>>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let parameters = self.nodes.shapes_of_parameters(inputs)?;
        let GraphConvolutionConfig {
            inputs, outputs, ..
        } = self.config;
        let expected: &[&[usize]] = match self.config.bias {
            Bias::Learned => &[&[inputs, outputs], &[outputs]],
            Bias::None => &[&[inputs, outputs]],
        };
        argument::shape("parameters", &[expected.len()], &[parameters.len()])?;
        for (name, (expected, got)) in ["weight", "bias"]
            .into_iter()
            .zip(expected.iter().zip(parameters))
        {
            argument::shape(name, expected, got)?;
        }
        Ok(vec![vec![self.graph.targets(), outputs]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let (tensors, parameters) = inputs.split_at(self.nodes.tensor_count());
        let dropped = self.nodes.drop_out(tensors);
        let forward = || -> Result<Array2<T>, LayerError> {
            let x = &self.nodes.views(tensors, &dropped)[0];
            let h = x.product(matrix(&parameters[0]))?;
            Ok(convolve(&self.graph, h.view())?)
        };
        let mut output = forward()?;
        if let Some(bias) = parameters.get(1) {
            add_to_rows(&mut output, vector(bias));
        }
        let [slot] = slots(outputs);
        slot.put_array(output);
        Ok(dropped)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        dropped: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let (tensors, parameters) = inputs.split_at(self.nodes.tensor_count());
        let x = &self.nodes.views(tensors, dropped)[0];
        let output = matrix(&cotangents[0]);
        let mut wanted = gradients.into_iter();
        let mut along = wanted.by_ref().take(tensors.len()).collect::<Vec<_>>();
        let along = along.pop().flatten();
        let [weight, bias] = [wanted.next().flatten(), wanted.next().flatten()];
        if along.is_some() || weight.is_some() {
            let h = convolve_vjp(&self.graph, output)?;
            if let Some(slot) = along {
                let along = x.features_vjp(matrix(&parameters[0]), h.view())?;
                let along = along.expect("of dense features");
                slot.put_array(self.nodes.through_dropout(along));
            }
            if let Some(slot) = weight {
                slot.put_array(x.weight_vjp(h.view())?);
            }
        }
        if let Some(slot) = bias {
            slot.put_array(sum_of_rows(output));
        }
        Ok(())
    }
}
