//! The parameters of a layer, as views of arrays or as gradients.

use super::config::{AttentionKind, Bias, GraphAttentionConfig, InitialMap};
use super::spectral_points;
use crate::LayerError;
use crate::layers::glorot;
use crate::layers::nodes::{matrix, vector};
use bochner_numerics::{Real, Seed};
use bochner_spectral::ParameterSpec;
use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewD, IxDyn};

/// All parameters in the order in which they are visited: matrices `M` and vectors `V`.
#[derive(Clone, Debug)]
pub(super) struct All<M, V> {
    /// `[Fin, H F]`.
    pub(super) weight: M,
    /// `[H F]`, where features are mapped with a bias.
    pub(super) weight_bias: Option<V>,
    /// `[Fs, H F]`, where the sources have their own.
    pub(super) source_weight: Option<M>,
    /// `[H F]`, where the sources have their own weight and a bias.
    pub(super) source_weight_bias: Option<V>,
    /// `[H, 2F]`, or `[H, F]` of the dynamic score.
    pub(super) a: M,
    /// `[G, H F]`, where edges have attributes.
    pub(super) edge_weight: Option<M>,
    /// `[H, F]`, where edges have attributes and the score is not dynamic.
    pub(super) edge_a: Option<M>,
    /// `[H F]` or `[F]`.
    pub(super) bias: Option<V>,
    /// `[Fin, H F]` or `[Fin, F]`.
    pub(super) residual: Option<M>,
    /// The parameters of the source of spectral points.
    pub(super) kernel: Option<V>,
}

/// Views of parameters.
pub(super) type Arrays<'a, T> = All<ArrayView2<'a, T>, ArrayView1<'a, T>>;

/// Gradients along the parameters for which they are wanted.
pub(super) type Gradients<T> = All<Option<Array2<T>>, Option<Array1<T>>>;

impl<M, V> All<M, V> {
    /// An item for each parameter of a layer with these settings, from a list in their order.
    ///
    /// # Panics
    /// If there is another number of items.
    pub(super) fn laid_out<X>(
        config: &GraphAttentionConfig,
        items: impl IntoIterator<Item = X>,
        matrix: impl Fn(X) -> M,
        vector: impl Fn(X) -> V,
    ) -> Self {
        let mut items = items.into_iter();
        let mut next = || items.next().expect("as many parameters as settings say");
        let mapped_with_bias = config.weight_bias == Bias::Learned;
        let sources_apart = config.source_inputs.is_some();
        let all = Self {
            weight: matrix(next()),
            weight_bias: mapped_with_bias.then(|| vector(next())),
            source_weight: sources_apart.then(|| matrix(next())),
            source_weight_bias: (sources_apart && mapped_with_bias).then(|| vector(next())),
            a: matrix(next()),
            edge_weight: (config.edge_inputs > 0).then(|| matrix(next())),
            edge_a: config.has_edge_a().then(|| matrix(next())),
            bias: (config.bias == Bias::Learned).then(|| vector(next())),
            residual: config.projects().then(|| matrix(next())),
            kernel: has_kernel(config).then(|| vector(next())),
        };
        assert!(items.next().is_none(), "no more parameters");
        all
    }
}

impl<'a, T: Real> Arrays<'a, T> {
    /// The parameters of a layer with these settings, in order.
    ///
    /// # Panics
    /// If there is another number of them, or one has another rank.
    pub(super) fn of(config: &GraphAttentionConfig, arrays: &'a [ArrayViewD<'_, T>]) -> Self {
        Self::laid_out(config, arrays, matrix, vector)
    }
}

impl GraphAttentionConfig {
    /// Name and shape of each parameter, in the order in which an operation takes them: `weight`, `weight_bias`,
    /// `source_weight`, `source_weight_bias`, `a`, `edge_weight`, `edge_a`, `bias`, `residual` and `kernel`, the
    /// flat parameters of the source of spectral points for H heads of width 2F. Settings decide which of them
    /// there are.
    pub fn parameters(&self) -> Vec<ParameterSpec> {
        let (outputs, columns) = (self.outputs(), self.columns());
        let (heads, edges) = (self.heads, self.edge_inputs);
        let mut specs = Vec::new();
        let mut add = |name: &str, shape: &[usize]| specs.push(ParameterSpec::new(name, shape));
        let mapped_with_bias = self.weight_bias == Bias::Learned;
        add("weight", &[self.inputs, columns]);
        if mapped_with_bias {
            add("weight_bias", &[columns]);
        }
        if let Some(inputs) = self.source_inputs {
            add("source_weight", &[inputs, columns]);
            if mapped_with_bias {
                add("source_weight_bias", &[columns]);
            }
        }
        add("a", &[heads, self.score_width()]);
        if edges > 0 {
            add("edge_weight", &[edges, columns]);
        }
        if self.has_edge_a() {
            add("edge_a", &[heads, self.width]);
        }
        if self.bias == Bias::Learned {
            add("bias", &[outputs]);
        }
        if self.projects() {
            add("residual", &[self.inputs, outputs]);
        }
        if has_kernel(self) {
            add("kernel", &[spectral_points::count(self)]);
        }
        specs
    }

    /// Initial values of all [`parameters`](Self::parameters).
    ///
    /// All weights start uniform after Glorot and Bengio (2010), within the bound of the
    /// [`initial_map`](Self::initial_map), and biases at zero. Layers of one seed start with the same weights, whatever
    /// their score.
    ///
    /// # Errors
    /// [`LayerError::Graph`] and [`LayerError::Spectral`] for settings out of range.
    pub fn initial<T: Real>(&self, seed: Seed) -> Result<Vec<ArrayD<T>>, LayerError> {
        self.validate()?;
        let (heads, width) = (self.heads, self.width);
        let of_all = self.initial_map == InitialMap::AllHeads;
        let start = |ParameterSpec { name, shape }: ParameterSpec| {
            let seed = seed.child(&name.replace('_', " "));
            let map = match &name[..] {
                "bias" | "weight_bias" | "source_weight_bias" => return Ok(ArrayD::zeros(shape)),
                "kernel" => {
                    let values = spectral_points::initial(self, seed)?;
                    return Ok(Array1::from_vec(values).into_dyn());
                }
                "a" | "edge_a" => [width, if of_all { heads } else { 1 }],
                _ => [shape[0], if of_all { shape[1] } else { width }],
            };
            Ok(glorot::array(IxDyn(&shape), map, seed))
        };
        self.parameters().into_iter().map(start).collect()
    }
}

/// Whether the kernel has a source of spectral points, and with it parameters.
pub(super) fn has_kernel(config: &GraphAttentionConfig) -> bool {
    match &config.kind {
        AttentionKind::Classic | AttentionKind::Dynamic => false,
        AttentionKind::Kernel(kernel) => kernel.source::<f64>().is_some(),
    }
}

impl<T: Real> Gradients<T> {
    /// The gradients in the order of the parameters.
    pub(super) fn into_list(self) -> Vec<Option<ArrayD<T>>> {
        let matrix = |x: Option<Array2<T>>| x.map(Array2::into_dyn);
        let vector = |x: Option<Array1<T>>| x.map(Array1::into_dyn);
        let mut list = vec![matrix(self.weight)];
        list.extend(self.weight_bias.map(vector));
        list.extend(self.source_weight.map(matrix));
        list.extend(self.source_weight_bias.map(vector));
        list.push(matrix(self.a));
        list.extend(self.edge_weight.map(matrix));
        list.extend(self.edge_a.map(matrix));
        list.extend(self.bias.map(vector));
        list.extend(self.residual.map(matrix));
        list.extend(self.kernel.map(vector));
        list
    }
}
