//! The whole layer as one operation.

use super::GraphConvolutionConfig;
use crate::layers::check_parameters;
use crate::layers::nodes::{GivenNodes, OwnedFeatures, matrix, vector};
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{Features, Graph, LayerError, convolve, convolve_vjp};
use bochner_numerics::{ArgumentError, Real};
use bochner_ops::{BoxError, Mode, Operation, Slot, slots};
use ndarray::{Array2, ArrayViewD};

/// A graph convolution, $\hat A X W + b$ with the sum over neighbours $\hat A$ of
/// [`convolve`](crate::convolve()), as an operation without a tape or a framework.
///
/// Its inputs are the nodes' features, `[N, Fin]`, where gradients along these are asked for, and then the
/// [parameters](GraphConvolutionConfig::parameters). Its one output is `[N, Fout]`.
///
/// # Example
/// ```
/// use bochner_graph::{Graph, GraphConvolutionConfig, GraphConvolutionOperation};
/// use bochner_numerics::Seed;
/// use bochner_ops::{Mode, apply};
/// use bochner_graph::ndarray::{Array2, ArrayD};
///
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)])?.with_self_loops()?.graph;
/// let x = Array2::from_shape_fn((3, 4), |(i, j)| (i + 2 * j) as f64 * 0.1);
/// let config = GraphConvolutionConfig { inputs: 4, outputs: 2, input_dropout: 0.0, bias: Default::default() };
/// let parameters: Vec<ArrayD<f64>> = config.initial(Seed::new(1))?;
///
/// let mode = Mode::Training(Seed::new(2));
/// let operation = GraphConvolutionOperation::of_features(&config, &graph, x.view(), mode)?;
/// let inputs: Vec<_> = parameters.iter().map(|p| p.view()).collect();
/// let (outputs, saved) = apply(&operation, &inputs)?;
/// assert_eq!(outputs[0].shape(), [3, 2]); // `apply_vjp` takes what is saved.
/// # Ok::<(), bochner_ops::BoxError>(())
/// ```
///
/// # Reference
/// Kipf and Welling 2017, *Semi-supervised classification with graph convolutional networks*.
#[derive(Debug)]
pub struct GraphConvolutionOperation<T> {
    config: GraphConvolutionConfig,
    graph: Graph,
    nodes: GivenNodes<T>,
}

impl<T: Real> GraphConvolutionOperation<T> {
    /// A convolution of features along which no gradient is asked for: the inputs are the parameters.
    ///
    /// # Errors
    /// [`LayerError`] for settings out of range, and if graph and features do not fit them.
    pub fn of_features<'a>(
        config: &GraphConvolutionConfig,
        graph: &Graph,
        features: impl Into<Features<'a, T>>,
        mode: Mode,
    ) -> Result<Self, LayerError> {
        let features = features.into();
        config.check(graph, [features.rows(), features.columns()])?;
        let features = OwnedFeatures::dropped_out(features, config.dropout(mode).as_ref());
        Ok(Self::new(
            config,
            graph,
            GivenNodes::features(vec![features]),
        ))
    }

    /// A convolution whose first input is the features of the nodes, of the given shape.
    ///
    /// # Errors
    /// The errors of [`of_features`](Self::of_features).
    pub fn of_inputs(
        config: &GraphConvolutionConfig,
        graph: &Graph,
        shape: [usize; 2],
        mode: Mode,
    ) -> Result<Self, LayerError> {
        config.check(graph, shape)?;
        let nodes = GivenNodes::tensors(&[shape], config.dropout(mode));
        Ok(Self::new(config, graph, nodes))
    }

    fn new(config: &GraphConvolutionConfig, graph: &Graph, nodes: GivenNodes<T>) -> Self {
        let (config, graph) = (*config, graph.clone());
        Self {
            config,
            graph,
            nodes,
        }
    }

    #[cfg(feature = "dfdx")]
    pub(super) fn output_shape(&self) -> (usize, usize) {
        (self.graph.targets(), self.config.outputs)
    }
}

/// The tensor after dropout, if there is one: the part of the forward pass of a [`GraphConvolutionOperation`] that is
/// saved.
#[derive(Debug)]
pub struct Saved<T>(Vec<OwnedFeatures<T>>);

impl<T: Real> Operation<T> for GraphConvolutionOperation<T> {
    type Saved = Saved<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let parameters = self.nodes.shapes_of_parameters(inputs)?;
        check_parameters(self.config.parameters(), parameters)?;
        Ok(vec![vec![self.graph.targets(), self.config.outputs]])
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
        Ok(Saved(dropped))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        Saved(dropped): &Self::Saved,
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
