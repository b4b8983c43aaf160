//! Spectral points of a graph's nodes.

use super::EdgeKernel;
use super::config::{AttentionKind, GraphAttentionConfig};
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{LayerError, Points, PointsGradients};
use bochner_numerics::{Real, Seed};
use bochner_spectral::{Direct, DirectInit, DrawnCotangents, Features, ParameterSpec, Source};
#[cfg(feature = "dfdx")]
use ndarray::Array3;
use ndarray::{Array1, Array2, Array4, ArrayView2, Axis, s};

/// The source of a layer's spectral points.
///
/// # Panics
/// If it has none: callers have looked.
fn source<T: Real>(config: &GraphAttentionConfig) -> (&EdgeKernel, &dyn Source<T>) {
    let AttentionKind::Kernel(kernel) = &config.kind else {
        panic!("a score without a kernel has no spectral points")
    };
    (
        kernel,
        kernel.source().expect("a kernel with spectral points"),
    )
}

/// The number of the source's parameters.
pub(super) fn count(config: &GraphAttentionConfig) -> usize {
    let specs = source::<f64>(config).1.parameters(config.size());
    specs.iter().map(ParameterSpec::count).sum()
}

/// Initial values of the source's parameters.
///
/// Points that are to start near softmax attention's own kernel, of variance $1 / (2 \sqrt d)$, start
/// near the kernel of GAT, of variance one half.
pub(super) fn initial<T: Real>(
    config: &GraphAttentionConfig,
    seed: Seed,
) -> Result<Vec<T>, LayerError> {
    let (kernel, source) = source::<T>(config);
    let mut values = source.initial(config.size(), &mut seed.stream("initial values"))?;
    if let EdgeKernel::Direct {
        source: Direct {
            start: DirectInit::NearSoftmax,
            ..
        },
        ..
    } = kernel
    {
        let factor = T::of((config.size().width as f64).powf(0.25));
        values.iter_mut().for_each(|value| *value *= factor);
    }
    Ok(values)
}

/// The points of a pass, and what they were drawn from.
#[derive(Debug)]
pub(super) struct Drawn<T> {
    drawn: bochner_spectral::Drawn<T>,
    beta: T,
    /// The targets' mean with zeros behind it, `[1, H, 1, 2F]`.
    q: Array4<T>,
    /// The keys, `[1, H, 1, 2F]`: zeros followed by the mean of the sources.
    k: Array4<T>,
}

impl<T: Real> Drawn<T> {
    /// Draws points given the transformed features of all targets and sources, `[N, H F]`.
    pub(super) fn new(
        config: &GraphAttentionConfig,
        [targets, sources]: [ArrayView2<T>; 2],
        parameters: &[T],
        seed: Seed,
    ) -> Result<Self, LayerError> {
        let [mut q, mut k] = [0, 1].map(|_| Array4::zeros((1, config.heads, 1, 2 * config.width)));
        put(&mut q, 0, mean(targets), config);
        put(&mut k, config.width, mean(sources), config);
        let (kernel, source) = source::<T>(config);
        let noise = source.noise(1, config.size(), &mut seed.stream("spectral noise"));
        let drawn = source.draw(&Features::new(q.view(), k.view()), parameters, noise)?;
        let beta = T::of(kernel.beta());
        Ok(Self { drawn, beta, q, k })
    }

    /// The points w, or w1, `[H, R, 2F]`.
    #[cfg(feature = "dfdx")]
    pub(super) fn first_points(&self) -> Array3<T> {
        self.points().first().to_owned()
    }

    /// The correlation of the heads that the points were drawn by, `[2F, H, H]`.
    #[cfg(feature = "dfdx")]
    pub(super) fn correlation(&self) -> Result<Option<Array3<T>>, LayerError> {
        let latent = self.drawn.latent.as_ref();
        Ok(latent.map_or(Ok(None), |latent| latent.correlation())?)
    }

    /// The term that the objective adds.
    pub(super) fn penalty(&self) -> T {
        self.drawn.kl.mapv(|kl| kl * self.beta).sum()
    }

    /// The points of all heads.
    pub(super) fn points(&self) -> Points<'_, T> {
        let points = bochner_kernels::SpectralPoints::of_sets(&self.drawn.points);
        points.map(|w| w.index_axis_move(Axis(0), 0))
    }

    /// The gradient along the source's parameters; adds those along the transformed features.
    pub(super) fn pull_back(
        &self,
        config: &GraphAttentionConfig,
        parameters: &[T],
        points: PointsGradients<T>,
        penalty: T,
        [targets, sources]: [&mut Array2<T>; 2],
    ) -> Result<Array1<T>, LayerError> {
        let sets = [Some(points.w1), points.w2].into_iter().flatten();
        let cotangent = DrawnCotangents {
            points: sets.map(|w| w.insert_axis(Axis(0))).collect(),
            kl: Array1::from_elem(1, penalty * self.beta),
            entropy: None,
        };
        let features = Features::new(self.q.view(), self.k.view());
        let (_, source) = source::<T>(config);
        let g = source.draw_vjp(&features, parameters, &self.drawn, cotangent)?;
        let width = self.q.len_of(Axis(3)) / 2;
        through_mean(targets, g.q.slice(s![0, .., 0, ..width]));
        through_mean(sources, g.k.slice(s![0, .., 0, width..]));
        Ok(g.parameters.into())
    }
}

/// The mean of the rows; zero if there are none.
fn mean<T: Real>(x: ArrayView2<T>) -> Array1<T> {
    let share = T::of(1.0 / x.nrows().max(1) as f64);
    sum_of_rows(x).mapv_into(|sum| sum * share)
}

/// Writes a mean into the columns of each head from `first` on.
fn put<T: Real>(x: &mut Array4<T>, first: usize, mean: Array1<T>, config: &GraphAttentionConfig) {
    let heads = mean.into_shape_with_order((config.heads, config.width));
    let mut place = x.slice_mut(s![0, .., 0, first..first + config.width]);
    place.assign(&heads.expect("the columns of all heads"));
}

/// Adds the gradient along the mean to that along each row.
fn through_mean<T: Real>(rows: &mut Array2<T>, along_mean: ArrayView2<T>) {
    if rows.is_empty() || along_mean.iter().all(|g| *g == T::zero()) {
        return;
    }
    let share = T::of(1.0 / rows.nrows() as f64);
    let flat: Array1<T> = along_mean.iter().map(|&g| g * share).collect();
    add_to_rows(rows, flat.view());
}
