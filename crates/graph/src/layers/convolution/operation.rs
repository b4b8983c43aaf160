//! The whole layer as one operation on the tape.

use crate::layers::nodes::{GivenNodes, OwnedFeatures, matrix, vector};
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{Graph, LayerError, convolve, convolve_vjp};
use bochner_nn::{BoxError, Operation};
use bochner_numerics::Real;
use ndarray::{Array2, ArrayD, ArrayViewD};

/// A [`GraphConvolution`](super::GraphConvolution) layer as an operation on the nodes' features, where
/// these are a tensor, the weight, and the bias, if there is one.
pub(super) struct GraphConvolutionOperation<T> {
    pub(super) graph: Graph,
    pub(super) nodes: GivenNodes<T>,
}

impl<T: Real> Operation<T> for GraphConvolutionOperation<T> {
    /// The tensor after dropout, where there is any.
    type Saved = Vec<OwnedFeatures<T>>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
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
        Ok((vec![output.into_dyn()], dropped))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        dropped: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let (tensors, parameters) = inputs.split_at(self.nodes.tensor_count());
        let x = &self.nodes.views(tensors, dropped)[0];
        let output = matrix(&cotangents[0]);
        let h = convolve_vjp(&self.graph, output)?;
        let mut all = Vec::with_capacity(inputs.len());
        if !tensors.is_empty() {
            let along = x.features_vjp(matrix(&parameters[0]), h.view())?;
            let along = along.expect("of dense features");
            all.push(self.nodes.through_dropout(along).into_dyn());
        }
        all.push(x.weight_vjp(h.view())?.into_dyn());
        if parameters.len() > 1 {
            all.push(sum_of_rows(output).into_dyn());
        }
        Ok(all.into_iter().map(Some).collect())
    }
}
