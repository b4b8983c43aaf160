//! The trainable layer on the tape of dfdx.

use super::{GraphConvolutionConfig, GraphConvolutionOperation};
use crate::layers::check_fields;
use crate::layers::rows::add_to_rows;
use crate::{Features, Graph, LayerError, convolve};
use bochner_nn::{Element, Leaf, NameTable, Parameters, Reshape, TapeInputs, record_one};
use bochner_numerics::Seed;
use bochner_ops::Mode;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{Array2, Ix1, Ix2};

/// A graph convolution, $\hat A X W + b$ with the sum over neighbours $\hat A$ of
/// [`convolve`](crate::convolve).
///
/// Self loops are the caller's to add ([`Graph::with_self_loops`]). The layer is one operation on the tape, and
/// features are given as to [`GraphAttention`](crate::GraphAttention).
///
/// ```
/// use bochner_graph::{Features, Graph, GraphConvolution, GraphConvolutionConfig, SparseFeatures};
/// use bochner_nn::activate;
/// use bochner_numerics::Seed;
/// use bochner_ops::{Activation, Mode};
/// use bochner_graph::dfdx::prelude::*;
///
/// let graph = Graph::from_edges(3, [(0, 1), (1, 0), (1, 2), (2, 1)])?.with_self_loops()?.graph;
/// let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
/// let layer = |inputs, outputs, seed| {
///     let config = GraphConvolutionConfig {
///         inputs,
///         outputs,
///         input_dropout: 0.5,
///         bias: Default::default(),
///     };
///     GraphConvolution::<f32>::try_new(&Cpu::default(), &config, Seed::new(seed))
/// };
/// let (first, second) = (layer(4, 16, 1)?, layer(16, 2, 2)?);
/// let mode = Mode::Training(Seed::new(3));
/// let hidden = first.apply_features(&graph, &words, OwnedTape::default(), mode)?;
/// let logits = second.apply(&graph, activate(hidden, Activation::Elu)?, mode.nth(1))?;
/// assert_eq!(logits.shape(), &(3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Reference
/// Kipf and Welling 2017, *Semi-supervised classification with graph convolutional networks*.
#[derive(Clone, Debug)]
pub struct GraphConvolution<E: Element> {
    /// The weight $W$, `[Fin, Fout]`.
    pub weight: Leaf<E, Ix2>,
    /// The bias $b$, `[Fout]`.
    pub bias: Option<Leaf<E, Ix1>>,
    config: GraphConvolutionConfig,
}

impl<E: Element> GraphConvolution<E> {
    /// A layer with a weight after Glorot and Bengio (2010) and a bias of zero.
    ///
    /// # Errors
    /// [`LayerError::Graph`] for a size of zero or a rate out of range.
    pub fn try_new(
        device: &Cpu,
        config: &GraphConvolutionConfig,
        seed: Seed,
    ) -> Result<Self, LayerError> {
        let mut values = config.initial(seed)?.into_iter();
        let weight = values.next().expect("a weight");
        let weight = weight.into_dimensionality().expect("a matrix");
        let bias = values.next().map(|bias| {
            let bias = bias.into_dimensionality().expect("a vector");
            Leaf::new(device, bias)
        });
        Ok(Self {
            weight: Leaf::new(device, weight)?,
            bias: bias.transpose()?,
            config: *config,
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &GraphConvolutionConfig {
        &self.config
    }

    /// The names of the layer's parameters in PyTorch Geometric's `GCNConv`, to read its weights and to write them:
    /// `weight` is `lin.weight`, transposed, and `bias` is `bias`. PyTorch Geometric adds self loops by default
    /// ([`Graph::with_self_loops`]).
    ///
    /// ```
    /// use bochner_graph::dfdx::tensor::Cpu;
    /// use bochner_graph::{Bias, GraphConvolution, GraphConvolutionConfig};
    /// use bochner_nn::StateDict;
    /// use bochner_numerics::Seed;
    ///
    /// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/layer/pyg-f32.safetensors"));
    /// // `bytes` of a file that `safetensors.torch.save_file` has written of `GCNConv(4, 3)`.
    /// let config = GraphConvolutionConfig {
    ///     inputs: 4,
    ///     outputs: 3,
    ///     input_dropout: 0.0,
    ///     bias: Bias::Learned,
    /// };
    /// let mut layer: GraphConvolution<f32> =
    ///     GraphConvolution::try_new(&Cpu::default(), &config, Seed::new(1))?;
    /// let state = StateDict::from_safetensors(bytes, "gcn.layer")?;
    /// let names = layer.pyg_names();
    /// names.load(&state, &mut layer)?;
    /// let bytes = names.save(&layer)?.to_safetensors();
    /// # assert_eq!(StateDict::from_safetensors(&bytes, "")?.tensors, state.tensors);
    /// # Ok::<(), bochner_graph::LayerError>(())
    /// ```
    #[doc(alias = "load_state_dict")]
    #[doc(alias = "state_dict")]
    pub fn pyg_names(&self) -> NameTable {
        let names = NameTable::new().row("weight", "lin.weight", Reshape::Transposed);
        match self.bias {
            Some(_) => names.row("bias", "bias", Reshape::Same),
            None => names,
        }
    }

    /// The convolution of features along which there is a gradient; one operation on the tape.
    ///
    /// # Shapes
    /// `x: [N, Fin]` to `[N, Fout]`.
    ///
    /// # Errors
    /// [`LayerError::Graph`] if graph, features and fields do not fit the settings; [`LayerError::Nn`] for a graph
    /// without nodes, since dfdx has no empty tensors.
    pub fn apply<N: Dim, I: Dim, T: Tape<E, Cpu>>(
        &self,
        graph: &Graph,
        x: Tensor<(N, I), E, Cpu, T>,
        mode: Mode,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        let (rows, columns) = *x.shape();
        let shape = [rows.size(), columns.size()];
        let operation = GraphConvolutionOperation::of_inputs(&self.config, graph, shape, mode)?;
        self.recorded(operation, TapeInputs::<E, T>::new().with(x)?)
    }

    /// The convolution of features along which there is no gradient; the output is recorded on the tape.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn apply_features<'a, T: Tape<E, Cpu>>(
        &self,
        graph: &Graph,
        features: impl Into<Features<'a, E>>,
        tape: T,
        mode: Mode,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        let operation =
            GraphConvolutionOperation::of_features(&self.config, graph, features, mode)?;
        self.recorded(operation, TapeInputs::on(tape))
    }

    /// The output in evaluation, without a tape.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn infer<'a>(
        &self,
        graph: &Graph,
        features: impl Into<Features<'a, E>>,
    ) -> Result<Array2<E>, LayerError> {
        let features = features.into();
        let shape = [features.rows(), features.columns()];
        self.config.check(graph, shape)?;
        check_fields(self, &self.config.parameters())?;
        let h = features.product(self.weight.view())?;
        let mut output = convolve(graph, h.view())?;
        if let Some(bias) = &self.bias {
            add_to_rows(&mut output, bias.view());
        }
        Ok(output)
    }

    fn recorded<T: Tape<E, Cpu>>(
        &self,
        operation: GraphConvolutionOperation<E>,
        inputs: TapeInputs<E, T>,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        check_fields(self, &self.config.parameters())?;
        let inputs = inputs.with_leaf(&self.weight).with_leaf(&self.bias);
        let shape = operation.output_shape();
        Ok(record_one(operation, inputs, shape)?)
    }
}

impl<E: Element> Parameters<E> for GraphConvolution<E> {
    bochner_nn::visit_fields!(E: weight, bias);
}
