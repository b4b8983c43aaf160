//! Spectral points of a graph's nodes.

use super::config::{AttentionKind, GraphAttentionConfig};
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{LayerError, Points, PointsGradients, Score};
use bochner_attention::{
    DirectInit, DrawnCotangents, DrawnPoints, IkanDirect, Inputs, Mask, Pass,
    PointsGradients as DrawnGradients, SpectralMechanism, Variant,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView2, Axis, s};
use std::sync::LazyLock;

/// The mechanism as one with spectral points.
///
/// # Errors
/// [`bochner_attention::Error::Unsupported`] if it has none.
pub(super) fn spectral<T: Real>(
    variant: &Variant,
) -> Result<&dyn SpectralMechanism<T>, LayerError> {
    let unsupported = bochner_attention::Error::Unsupported {
        what: "graph attention by a mechanism without spectral points",
        instead: "one of softmax, rbf-only, ika-s, ika-ns, ikan, ikan-direct and mikan",
    };
    Ok(variant.spectral().ok_or(unsupported)?)
}

/// The exponent of the norms of a mechanism that stands for exact Gaussian similarities.
pub(super) fn gaussian(variant: &Variant) -> Option<Option<f64>> {
    match variant {
        Variant::Softmax(_) => Some(Some(2.0)),
        Variant::RbfOnly(_) => Some(None),
        _ => None,
    }
}

/// Initial values of a mechanism's own parameters.
///
/// Points that are to start near softmax attention's own kernel, of variance $1 / (2 \sqrt d)$, start
/// near that of GAT, of variance one half.
pub(super) fn initial<T: Real>(
    variant: &Variant,
    config: &GraphAttentionConfig,
    seed: Seed,
) -> Result<Vec<T>, LayerError> {
    if gaussian(variant).is_some() {
        return Ok(Vec::new());
    }
    let mechanism = spectral::<T>(variant)?;
    let mut values = mechanism.initial(config.size(), &mut seed.stream("initial values"))?;
    if let Variant::IkanDirect(IkanDirect {
        start: DirectInit::NearSoftmax,
        ..
    }) = variant
    {
        let factor = T::of((config.size().width as f64).powf(0.25));
        values.iter_mut().for_each(|value| *value *= factor);
    }
    Ok(values)
}

/// The points of a pass, and what they were drawn from.
#[derive(Debug)]
pub(super) struct Drawn<T> {
    points: DrawnPoints<T>,
    /// The targets' mean with zeros behind it, `[1, H, 1, 2F]`.
    q: Array4<T>,
    /// Zeros with the sources' mean behind them.
    k: Array4<T>,
}

impl<T: Real> Drawn<T> {
    /// Draws points given the transformed features of all targets and sources, `[N, H F]`.
    pub(super) fn new(
        variant: &Variant,
        config: &GraphAttentionConfig,
        [targets, sources]: [ArrayView2<T>; 2],
        parameters: &[T],
        pass: &Pass,
    ) -> Result<Self, LayerError> {
        let [mut q, mut k] = [0, 1].map(|_| Array4::zeros((1, config.heads, 1, 2 * config.width)));
        put(&mut q, 0, mean(targets), config);
        put(&mut k, config.width, mean(sources), config);
        let mechanism = spectral::<T>(variant)?;
        let points = mechanism.draw_points(&inputs(&q, &k), parameters, pass)?;
        Ok(Self { points, q, k })
    }

    /// The points w, or w1, `[H, R, 2F]`.
    pub(super) fn points(&self) -> Array3<T> {
        self.points.w1.index_axis(Axis(0), 0).to_owned()
    }

    /// The correlation of the heads by which evaluation draws, `[2F, H, H]`.
    pub(super) fn correlation(
        &self,
        config: &GraphAttentionConfig,
        parameters: &[T],
    ) -> Result<Option<Array3<T>>, LayerError> {
        let AttentionKind::Kernel(variant) = &config.kind else {
            return Ok(None);
        };
        let pass = Pass::Evaluation { seed: config.seed };
        let inputs = inputs(&self.q, &self.k);
        let seen = variant
            .mechanism::<T>()
            .inspect(&inputs, parameters, &pass)?;
        Ok(seen.correlation)
    }

    /// What the objective adds.
    pub(super) fn penalty(&self) -> T {
        self.points.penalty.sum()
    }

    /// The kernel score by these points.
    pub(super) fn score<'a>(
        &'a self,
        variant: &Variant,
        a: ArrayView2<'a, T>,
    ) -> Result<Score<'a, T>, LayerError> {
        let mechanism = spectral::<T>(variant)?;
        let w1 = self.points.w1.index_axis(Axis(0), 0);
        Ok(Score::Kernel {
            a,
            points: match &self.points.w2 {
                None => Points::Stationary { w: w1 },
                Some(w2) => Points::Nonstationary {
                    w1,
                    w2: w2.index_axis(Axis(0), 0),
                },
            },
            p: mechanism.p(),
            floor: mechanism.floor(),
        })
    }

    /// The gradient along the mechanism's own parameters; adds those along the transformed features.
    pub(super) fn pull_back(
        &self,
        variant: &Variant,
        parameters: &[T],
        points: PointsGradients<T>,
        penalty: T,
        [targets, sources]: [&mut Array2<T>; 2],
    ) -> Result<Array1<T>, LayerError> {
        let cotangent = DrawnCotangents {
            points: DrawnGradients {
                w1: points.w1.insert_axis(Axis(0)),
                w2: points.w2.map(|w2| w2.insert_axis(Axis(0))),
            },
            penalty: Array1::from_elem(1, penalty),
        };
        let inputs = inputs(&self.q, &self.k);
        let mechanism = spectral::<T>(variant)?;
        let g = mechanism.draw_points_vjp(&inputs, parameters, &self.points, cotangent)?;
        let width = self.q.len_of(Axis(3)) / 2;
        through_mean(targets, g.q.slice(s![0, .., 0, ..width]));
        through_mean(sources, g.k.slice(s![0, .., 0, width..]));
        Ok(g.parameters.into())
    }
}

/// All nodes count.
static NONE: LazyLock<Mask> = LazyLock::new(Mask::none);

fn inputs<'a, T>(q: &'a Array4<T>, k: &'a Array4<T>) -> Inputs<'a, T> {
    Inputs {
        q: q.view(),
        k: k.view(),
        v: k.view(),
        mask: &NONE,
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
