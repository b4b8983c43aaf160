//! The parameters of a layer, whatever they are kept in.

use super::config::{AttentionKind, Bias, GraphAttentionConfig};
use crate::layers::nodes::{matrix, vector};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewD};

/// All parameters in the order in which they are visited: matrices `M` and vectors `V`.
#[derive(Clone, Debug)]
pub(super) struct All<M, V> {
    /// `[Fin, H F]`.
    pub(super) weight: M,
    /// `[Fs, H F]`, where the sources have their own.
    pub(super) source_weight: Option<M>,
    /// `[H, 2F]`, or `[H, F]` of the dynamic score.
    pub(super) a: M,
    /// `[G, H F]` and `[H, F]`, where edges have attributes.
    pub(super) edges: Option<[M; 2]>,
    /// `[H F]` or `[F]`.
    pub(super) bias: Option<V>,
    /// `[Fin, H F]` or `[Fin, F]`.
    pub(super) residual: Option<M>,
    /// The mechanism's own.
    pub(super) kernel: Option<V>,
}

/// Parameters that are looked at.
pub(super) type Arrays<'a, T> = All<ArrayView2<'a, T>, ArrayView1<'a, T>>;

/// Gradients along parameters.
pub(super) type Gradients<T> = All<Array2<T>, Array1<T>>;

impl<'a, T: Real> Arrays<'a, T> {
    /// Those of a layer with these settings, in order.
    ///
    /// # Panics
    /// If there is another number of them, or one has another rank.
    pub(super) fn of(config: &GraphAttentionConfig, arrays: &'a [ArrayViewD<'_, T>]) -> Self {
        let mut arrays = arrays.iter();
        let mut next = || arrays.next().expect("as many parameters as settings say");
        let parameters = Self {
            weight: matrix(next()),
            source_weight: config.source_inputs.map(|_| matrix(next())),
            a: matrix(next()),
            edges: (config.edge_inputs > 0).then(|| [matrix(next()), matrix(next())]),
            bias: (config.bias == Bias::Learned).then(|| vector(next())),
            residual: config.projects().then(|| matrix(next())),
            kernel: has_kernel(config).then(|| vector(next())),
        };
        assert!(arrays.next().is_none(), "no more parameters");
        parameters
    }
}

/// Whether the mechanism has parameters of its own.
pub(super) fn has_kernel(config: &GraphAttentionConfig) -> bool {
    match &config.kind {
        AttentionKind::Classic | AttentionKind::Dynamic => false,
        AttentionKind::Kernel(variant) => {
            let specs = variant.mechanism::<f64>().parameters(config.size());
            specs.iter().any(|spec| spec.count() > 0)
        }
    }
}

impl<T: Real> Gradients<T> {
    /// In order.
    pub(super) fn into_list(self) -> Vec<ArrayD<T>> {
        let mut list = vec![self.weight.into_dyn()];
        list.extend(self.source_weight.map(Array2::into_dyn));
        list.push(self.a.into_dyn());
        list.extend(self.edges.into_iter().flatten().map(Array2::into_dyn));
        list.extend(self.bias.map(Array1::into_dyn));
        list.extend(self.residual.map(Array2::into_dyn));
        list.extend(self.kernel.map(Array1::into_dyn));
        list
    }
}
