//! The whole layer as one operation.

use super::arrays::Arrays;
use super::config::GraphAttentionConfig;
use super::plan::{Passed, Plan, Wanted, finite};
use crate::layers::check_parameters;
use crate::layers::nodes::{
    AttributedGraph, GivenNodes, Nodes, OperationGraph, OwnedFeatures, elements_of, matrix,
};
use crate::{Features, Graph, LayerError};
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Mode, Operation, Slot, activation_vjp, filled, slots};
use ndarray::{Array2, ArrayView2, ArrayViewD, IxDyn};

/// A layer of graph attention as an operation, without a tape or a framework.
///
/// Its inputs are the nodes' features, if gradients along them are requested, the attributes of the edges, if gradients
/// along these are ([`OperationGraph`]), and then the [parameters](GraphAttentionConfig::parameters). It has two outputs: the output of each target,
/// `[Nt, H F]` or `[Nt, F]`, and the penalty, `[]`, which is $\beta \mathrm{KL}$ for inferred points and
/// otherwise zero.
///
/// # Example
/// Two layers. The first input of the second layer is the output of the first one, and the gradient along it is the
/// cotangent of the first one. The gradient along the features is not requested.
///
/// ```
/// use bochner_graph::{Graph, GraphAttentionConfig, GraphAttentionOperation};
/// use bochner_numerics::Seed;
/// use bochner_ops::{Mode, apply, apply_vjp};
/// use bochner_spectral::Direct;
/// use bochner_graph::ndarray::{Array2, ArrayD, arr0};
///
/// let graph = Graph::from_edges(3, [(0, 1), (0, 2), (1, 2)])?.with_self_loops()?.graph;
/// let x = Array2::from_shape_fn((3, 4), |(i, j)| (i + 2 * j) as f64 * 0.1);
/// let direct = Direct { points: 8, ..Direct::default() };
/// let first = GraphAttentionConfig::kernel(4, 2, 3, direct);
/// let second = GraphAttentionConfig::kernel(6, 1, 2, direct);
/// let mut parameters: Vec<Vec<ArrayD<f64>>> = vec![first.initial(Seed::new(1))?, second.initial(Seed::new(2))?];
///
/// // Forward: each layer returns its output and its penalty.
/// let [mode, mode_of_second] = [3, 4].map(|seed| Mode::Training(Seed::new(seed)));
/// let first = GraphAttentionOperation::of_features(&first, &graph, x.view(), mode)?;
/// let inputs_of_first: Vec<_> = parameters[0].iter().map(|p| p.view()).collect();
/// let (hidden, saved_of_first) = apply(&first, &inputs_of_first)?;
///
/// let second = GraphAttentionOperation::of_inputs(&second, &graph, &[[3, 6]], mode_of_second)?;
/// let inputs_of_second: Vec<_> = hidden[..1].iter().chain(&parameters[1]).map(|p| p.view()).collect();
/// let (output, saved_of_second) = apply(&second, &inputs_of_second)?;
///
/// // Backward, for the sum of the output and both penalties.
/// let (ones, one) = (ArrayD::ones(output[0].raw_dim()), arr0(1.0).into_dyn());
/// let (cotangents, wanted) = ([ones.view(), one.view()], vec![true; inputs_of_second.len()]);
/// let mut of_second = apply_vjp(&second, &inputs_of_second, &saved_of_second, &cotangents, &wanted)?;
/// let along_hidden = of_second.remove(0).expect("a gradient that was asked for");
///
/// let (cotangents, wanted) = ([along_hidden.view(), one.view()], vec![true; inputs_of_first.len()]);
/// let of_first = apply_vjp(&first, &inputs_of_first, &saved_of_first, &cotangents, &wanted)?;
///
/// for (parameters, gradients) in parameters.iter_mut().zip([of_first, of_second]) {
///     for (parameter, gradient) in parameters.iter_mut().zip(gradients) {
///         parameter.scaled_add(-0.1, &gradient.expect("a gradient that was asked for"));
///     }
/// }
/// # Ok::<(), bochner_ops::BoxError>(())
/// ```
#[derive(Debug)]
pub struct GraphAttentionOperation<T> {
    plan: Plan,
    nodes: GivenNodes<T>,
    /// The attributes of the edges, where they are known.
    known: Option<Array2<T>>,
    /// Whether the attributes are the input after the features' tensors.
    has_attributes: bool,
}

impl<T: Real> GraphAttentionOperation<T> {
    /// Attention where no gradient along the features is asked for: the inputs are the parameters.
    ///
    /// # Errors
    /// [`LayerError`] for settings out of range, and if graph, features, attributes and settings do not
    /// fit each other.
    pub fn of_features<'g, 'n>(
        config: &GraphAttentionConfig,
        graph: impl Into<OperationGraph<'g, T>>,
        nodes: impl Into<Nodes<'n, T>>,
        mode: Mode,
    ) -> Result<Self, LayerError>
    where
        T: 'g + 'n,
    {
        let (graph, nodes) = (graph.into(), nodes.into().ends());
        let plan = Plan::new(config, config.check_features(graph, &nodes)?, mode);
        let dropped = |x| OwnedFeatures::dropped_out(x, plan.input_dropout.as_ref());
        let nodes = GivenNodes::features(nodes.into_iter().map(dropped).collect());
        Ok(Self::new(plan, nodes, graph))
    }

    /// Attention where the first inputs are the features of the nodes, or of targets and sources, of the
    /// given shapes.
    ///
    /// # Errors
    /// The errors of [`of_features`](Self::of_features).
    pub fn of_inputs<'g>(
        config: &GraphAttentionConfig,
        graph: impl Into<OperationGraph<'g, T>>,
        shapes: &[[usize; 2]],
        mode: Mode,
    ) -> Result<Self, LayerError>
    where
        T: 'g,
    {
        let graph = graph.into();
        let plan = Plan::new(config, config.check(graph, shapes)?, mode);
        let nodes = GivenNodes::tensors(shapes, plan.input_dropout);
        Ok(Self::new(plan, nodes, graph))
    }

    fn new(plan: Plan, nodes: GivenNodes<T>, graph: OperationGraph<T>) -> Self {
        let (known, has_attributes) = match graph {
            OperationGraph::AttributesAsInput(_) => (None, true),
            OperationGraph::Known(graph) => (graph.attributes.map(|x| x.to_owned()), false),
        };
        Self {
            plan,
            nodes,
            known,
            has_attributes,
        }
    }

    /// The attributes among the inputs that follow the features' tensors, and the parameters behind them.
    fn split<'i, X>(&self, inputs: &'i [X]) -> (Option<&'i X>, &'i [X]) {
        match self.has_attributes {
            true => (inputs.first(), inputs.get(1..).unwrap_or_default()),
            false => (None, inputs),
        }
    }

    fn parameters<'a>(&self, parameters: &'a [ArrayViewD<T>]) -> Arrays<'a, T> {
        Arrays::new(&self.plan.config, parameters)
    }

    /// The attributes that a pass reads, given those among its inputs.
    fn attributes<'a>(&'a self, input: Option<&'a ArrayViewD<T>>) -> Option<ArrayView2<'a, T>> {
        let known = self.known.as_ref().map(|x| x.view());
        known.or_else(|| input.map(matrix))
    }

    /// The shape of the first output.
    pub(super) fn output_shape(&self) -> [usize; 2] {
        [self.plan.graph.targets(), self.plan.config.outputs()]
    }
}

impl GraphAttentionConfig {
    /// The output in evaluation, given the [parameters](Self::parameters).
    ///
    /// # Shapes
    /// The output is `[Nt, H F]` or `[Nt, F]`.
    ///
    /// # Errors
    /// [`LayerError`] if graph, features, attributes, parameters and settings do not fit each other.
    pub fn infer<'g, 'n, T: Real>(
        &self,
        graph: impl Into<AttributedGraph<'g, T>>,
        nodes: impl Into<Nodes<'n, T>>,
        parameters: &[ArrayViewD<T>],
    ) -> Result<Array2<T>, LayerError> {
        let shapes: Vec<_> = parameters.iter().map(|p| p.shape()).collect();
        check_parameters(self.parameters(), &shapes)?;
        let p = Arrays::new(self, parameters);
        let (mut output, _) = self.pass(graph.into(), nodes.into(), &p)?;
        self.activation.apply(elements_of(&mut output));
        Ok(output)
    }

    /// The output in evaluation before the activation, and what is kept of it.
    pub(super) fn pass<T: Real>(
        &self,
        graph: AttributedGraph<T>,
        nodes: Nodes<T>,
        p: &Arrays<T>,
    ) -> Result<(Array2<T>, Passed<T>), LayerError> {
        let nodes = nodes.ends();
        self.check_features(graph.into(), &nodes)?;
        let plan = Plan::new(self, graph.graph, Mode::Evaluation);
        let (output, _, passed) = plan.forward(&nodes, graph.attributes, p)?;
        Ok((output, passed))
    }

    fn check_features<'g, T: Real>(
        &self,
        graph: OperationGraph<'g, T>,
        nodes: &[Features<T>],
    ) -> Result<&'g Graph, LayerError> {
        let shapes: Vec<_> = nodes.iter().map(|x| [x.rows(), x.columns()]).collect();
        self.check(graph, &shapes)
    }

    /// The graph. Refuses a graph, features or attributes that do not fit the settings and each other.
    fn check<'g, T: Real>(
        &self,
        graph: OperationGraph<'g, T>,
        nodes: &[[usize; 2]],
    ) -> Result<&'g Graph, LayerError> {
        self.validate()?;
        let (graph, attributes) = match graph {
            OperationGraph::Known(AttributedGraph { graph, attributes }) => {
                let shape = attributes.map(|x| [x.nrows(), x.ncols()]);
                (graph, Some(shape.unwrap_or([graph.edge_count(), 0])))
            }
            OperationGraph::AttributesAsInput(graph) => (graph, None),
        };
        let columns = [self.inputs, self.source_inputs.unwrap_or(self.inputs)];
        if nodes.len() == 1 {
            graph.expect_square(
                "one set of features for both ends (`Nodes::Apart`, `apply_bipartite` take two)",
            )?;
        }
        let targets = [graph.targets(), columns[0]];
        let sources = [graph.sources(), columns[1]];
        argument::shape("features of the targets", &targets, &nodes[0])?;
        argument::shape("features of the sources", &sources, &nodes[nodes.len() - 1])?;
        let edges = graph.edge_count();
        match attributes {
            Some([rows, 0]) if rows == edges && self.edge_inputs > 0 => argument::shape(
                "attributes of the edges (give an `AttributedGraph`)",
                &[edges, self.edge_inputs],
                &[edges, 0],
            )?,
            Some(given) => {
                let expected = [edges, self.edge_inputs];
                argument::shape("attributes of the edges", &expected, &given)?;
            }
            // `output_shapes` sees the input.
            None => argument::at_least_one("edge_inputs", self.edge_inputs)?,
        }
        Ok(graph)
    }
}

/// The values that the backward pass of a [`GraphAttentionOperation`] needs.
#[derive(Debug)]
pub struct Saved<T> {
    /// The tensors after dropout, where there is any.
    dropped: Vec<OwnedFeatures<T>>,
    passed: Passed<T>,
    /// The derivative of the activation, where there is one.
    slopes: Option<Vec<T>>,
}

impl<T: Real> Operation<T> for GraphAttentionOperation<T> {
    type Saved = Saved<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (attributes, parameters) = self.split(self.nodes.shapes_of_parameters(inputs)?);
        if let Some(attributes) = attributes {
            let expected = [self.plan.graph.edge_count(), self.plan.config.edge_inputs];
            argument::shape("attributes of the edges", &expected, attributes)?;
        }
        check_parameters(self.plan.config.parameters(), parameters)?;
        Ok(vec![self.output_shape().to_vec(), Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let (tensors, others) = inputs.split_at(self.nodes.tensor_count());
        let (attributes, parameters) = self.split(others);
        let dropped = self.nodes.drop_out(tensors);
        let nodes = self.nodes.views(tensors, &dropped);
        let (p, attributes) = (self.parameters(parameters), self.attributes(attributes));
        let (mut values, penalty, passed) = self.plan.forward(&nodes, attributes, &p)?;
        let activation = self.plan.config.activation;
        let slopes = activation.apply_with_slopes(elements_of(&mut values));
        let [output, along_penalty] = slots(outputs);
        output.put_array(values);
        along_penalty.put(vec![penalty]);
        Ok(Saved {
            dropped,
            passed,
            slopes,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let (output, penalty) = (matrix(&cotangents[0]), cotangents[1][IxDyn(&[])]);
        let along = saved.slopes.as_ref().map(|slopes| {
            let output = output
                .as_slice()
                .expect("cotangents are in row-major order");
            let [along] = filled([output.len()], |[dx]| activation_vjp(slopes, output, dx));
            along
        });
        let output = along.as_ref().map_or(output, |along| {
            ArrayView2::from_shape(output.dim(), along).expect("as many elements")
        });
        if !penalty.is_finite() || !finite(output) {
            // A loss that is no number has no gradient.
            for slot in gradients.into_iter().flatten() {
                let n = slot.len();
                slot.put(vec![T::nan(); n]);
            }
            return Ok(());
        }
        let (tensors, others) = inputs.split_at(self.nodes.tensor_count());
        let (attributes, parameters) = self.split(others);
        let nodes = self.nodes.views(tensors, &saved.dropped);
        let p = self.parameters(parameters);
        let mut gradients = gradients.into_iter();
        let along_nodes: Vec<_> = gradients.by_ref().take(tensors.len()).collect();
        let along_attributes = attributes.and_then(|_| gradients.next().flatten());
        let specs = self.plan.config.parameters();
        let slots = specs.iter().map(|spec| &spec.name[..]).zip(gradients);
        let slots: Vec<_> = slots
            .filter_map(|(name, slot)| Some((name, slot?)))
            .collect();
        let wanted = Wanted {
            nodes: along_nodes.iter().any(Option::is_some),
            attributes: along_attributes.is_some(),
            parameters: slots.iter().map(|(name, _)| *name).collect(),
        };
        let cotangent = (output, penalty);
        let given = self.attributes(attributes);
        let mut g = (self.plan).backward(&nodes, given, &p, &saved.passed, cotangent, &wanted)?;
        if let (Some(slot), Some(along)) = (along_attributes, g.attributes) {
            slot.put_array(along);
        }
        if wanted.nodes {
            let along = self.plan.along_nodes(&nodes, &p, &g.transformed, output)?;
            for (slot, x) in along_nodes.into_iter().zip(along) {
                if let Some(slot) = slot {
                    slot.put_array(self.nodes.through_dropout(x));
                }
            }
        }
        for (name, slot) in slots {
            slot.put_array(g.parameters.remove(name).expect("wanted"));
        }
        Ok(())
    }
}
