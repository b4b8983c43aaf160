//! The parameters of a layer, as views of arrays.

use super::config::{AttentionKind, Bias, GraphAttentionConfig, InitialMap};
use super::spectral_points;
use crate::LayerError;
use crate::layers::glorot;
use crate::layers::nodes::{matrix, vector};
use bochner_numerics::{Real, Seed};
use bochner_spectral::ParameterSpec;
use ndarray::{Array1, ArrayD, ArrayView1, ArrayView2, ArrayViewD, IxDyn};

/// Views of all parameters.
#[derive(Clone, Debug)]
pub(super) struct Arrays<'a, T> {
    /// `[Fin, H F]`.
    pub(super) weight: ArrayView2<'a, T>,
    /// `[H F]`, where features are mapped with a bias.
    pub(super) weight_bias: Option<ArrayView1<'a, T>>,
    /// `[Fs, H F]`, where the sources have their own.
    pub(super) source_weight: Option<ArrayView2<'a, T>>,
    /// `[H F]`, where the sources have their own weight and a bias.
    pub(super) source_weight_bias: Option<ArrayView1<'a, T>>,
    /// `[H, 2F]`, or `[H, F]` of the dynamic score.
    pub(super) a: ArrayView2<'a, T>,
    /// `[G, H F]`, where edges have attributes.
    pub(super) edge_weight: Option<ArrayView2<'a, T>>,
    /// `[H, F]`, where edges have attributes and the score is not dynamic.
    pub(super) edge_a: Option<ArrayView2<'a, T>>,
    /// `[H F]` or `[F]`.
    pub(super) bias: Option<ArrayView1<'a, T>>,
    /// `[Fin, H F]` or `[Fin, F]`.
    pub(super) residual: Option<ArrayView2<'a, T>>,
    /// The parameters of the source of spectral points.
    pub(super) kernel: Option<ArrayView1<'a, T>>,
}

impl<'a, T: Real> Arrays<'a, T> {
    /// The [parameters](GraphAttentionConfig::parameters) of a layer with these settings, in order.
    ///
    /// # Panics
    /// If there is another number of them, or one has another rank.
    pub(super) fn new(config: &GraphAttentionConfig, arrays: &'a [ArrayViewD<'_, T>]) -> Self {
        let specs = config.parameters();
        assert_eq!(
            specs.len(),
            arrays.len(),
            "as many parameters as settings say"
        );
        let find = |name| {
            let mut named = specs.iter().zip(arrays);
            named.find_map(|(spec, array)| (spec.name == name).then_some(array))
        };
        let matrix = |name| find(name).map(matrix);
        let vector = |name| find(name).map(vector);
        Self {
            weight: matrix("weight").expect("a parameter of every layer"),
            weight_bias: vector("weight_bias"),
            source_weight: matrix("source_weight"),
            source_weight_bias: vector("source_weight_bias"),
            a: matrix("a").expect("a parameter of every layer"),
            edge_weight: matrix("edge_weight"),
            edge_a: matrix("edge_a"),
            bias: vector("bias"),
            residual: matrix("residual"),
            kernel: vector("kernel"),
        }
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
