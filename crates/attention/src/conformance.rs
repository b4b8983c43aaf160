//! The part of a mechanism's file that tests use: settings to try, and the formula written plainly.
//!
//! Behind the feature `conformance`, which tests turn on.

pub(crate) use crate::{Error, Pass, mechanism::Streams};
use bochner_numerics::DropoutMask;
use ndarray::{Array1, Array4, ArrayView1, ArrayView4, Axis, s};
use rand::Rng;
pub(crate) use rand::RngCore;
use std::f64::consts::LN_10;
use std::ops::Range;

/// The settings and the reference that a mechanism brings to its tests.
pub trait Conformance: Clone {
    /// Settings to try, every choice among them. All are valid, and smooth enough for finite differences.
    fn examples() -> Vec<Self>;

    /// Settings that must be refused, each with the name of what is wrong.
    fn refused() -> Vec<(&'static str, Self)> {
        Vec::new()
    }

    /// These settings with some of their numbers drawn from all that is allowed.
    fn extreme(&self, _rng: &mut dyn RngCore) -> Self {
        self.clone()
    }

    /// The forward pass in double precision, straight from the formula.
    ///
    /// # Errors
    /// The errors of the forward pass.
    fn reference(
        &self,
        inputs: &Streams<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Reference, Error>;
}

/// The expected result of a forward pass.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Array4<f64>,
    /// The weights before dropout, `[B, M, Tq, Tk]`, if there are weights.
    pub weights: Option<Array4<f64>>,
    /// The term that is added to the loss, `[B]`.
    pub penalty: Array1<f64>,
}

/// A query and a key.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The example.
    pub b: usize,
    /// The head.
    pub m: usize,
    /// The position of the query.
    pub i: usize,
    /// The position of the key.
    pub j: usize,
    /// The query.
    pub q: ArrayView1<'a, f64>,
    /// The key.
    pub k: ArrayView1<'a, f64>,
    /// The number of the pair, in row-major order.
    pub index: u64,
}

impl Pair<'_> {
    /// The square root of the width.
    pub fn root(&self) -> f64 {
        (self.q.len() as f64).sqrt()
    }

    /// The square of the distance.
    pub fn square_distance(&self) -> f64 {
        self.q
            .iter()
            .zip(self.k)
            .map(|(q, k)| (q - k).powi(2))
            .sum()
    }

    /// The magnitude of the key, $|k|_p^2 / (2 \sqrt d)$.
    pub fn magnitude(&self, p: f64) -> f64 {
        norm_square(self.k, p) / (2.0 * self.root())
    }

    /// The kernel by its spectral points, one set or two of `[1 or B, M, R, d]`: $f_S$ or $f_{NS}$.
    pub fn kernel(&self, sets: &[ArrayView4<f64>]) -> f64 {
        let example = |w: &ArrayView4<f64>| self.b.min(w.dim().0 - 1);
        let (mut sum, mut count) = (0.0, 0);
        for a in sets {
            for b in sets {
                let [a, b] = [a, b].map(|w| w.slice(s![example(w), self.m, .., ..]));
                for (a, b) in a.rows().into_iter().zip(b.rows()) {
                    sum += (a.dot(&self.q) - b.dot(&self.k)).cos();
                    count += 1;
                }
            }
        }
        sum / f64::from(count)
    }
}

/// $|x|_p^2$.
pub fn norm_square(x: ArrayView1<f64>, p: f64) -> f64 {
    x.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(2.0 / p)
}

impl Reference {
    /// Attention by the weight of each pair before normalisation, of queries, keys and values. For other streams
    /// there is [`Reference::of_weights`].
    ///
    /// # Errors
    /// [`Error::Argument`] for a rate of dropout that is none.
    ///
    /// # Panics
    /// If there are fewer than three streams.
    pub fn by_weight(
        inputs: &Streams<f64>,
        pass: &Pass,
        weight: impl Fn(Pair) -> f64,
    ) -> Result<Self, Error> {
        let dropout = pass.weight_dropout()?;
        Ok(Self::with_dropout(inputs, dropout, weight))
    }

    /// [`Reference::by_weight`] with a given mask of dropout.
    pub fn with_dropout(
        inputs: &Streams<f64>,
        dropout: Option<DropoutMask>,
        weight: impl Fn(Pair) -> f64,
    ) -> Self {
        Self::by_quotient(inputs, dropout, weight, |row| row.sum())
    }

    /// Attention by the weight of each pair, and by what the weights of a row are divided by.
    pub fn by_quotient(
        inputs: &Streams<f64>,
        dropout: Option<DropoutMask>,
        weight: impl Fn(Pair) -> f64,
        denominator: impl Fn(ArrayView1<f64>) -> f64,
    ) -> Self {
        let (batch, heads, queries, _) = inputs.q().dim();
        let keys = inputs.k().dim().2;
        let mut weights = Array4::zeros((batch, heads, queries, keys));
        let mut indices = 0..;
        for ((b, m, i), mut row) in ndarray::indices((batch, heads, queries))
            .into_iter()
            .zip(weights.rows_mut())
        {
            let first = indices.nth(0).expect("an endless range") * keys as u64;
            for j in (0..keys).filter(|&j| inputs.mask.keeps([b, m, i, j], [queries, keys])) {
                row[j] = weight(Pair {
                    b,
                    m,
                    i,
                    j,
                    q: inputs.q().slice(s![b, m, i, ..]),
                    k: inputs.k().slice(s![b, m, j, ..]),
                    index: first + j as u64,
                });
                if let Some(bias) = inputs.bias {
                    row[j] *= bias.at([b, m, i, j], heads, [queries, keys]).exp();
                }
            }
            let total = denominator(row.view());
            if total != 0.0 {
                row /= total;
            }
        }
        Self::of_weights(weights, inputs.v(), dropout)
    }

    /// Values by their weights, `[B, M, Tq, Tk]`, of which dropout takes some.
    pub fn of_weights(
        weights: Array4<f64>,
        values: ArrayView4<f64>,
        dropout: Option<DropoutMask>,
    ) -> Self {
        let (batch, heads, queries, _) = weights.dim();
        let mut output = Array4::zeros((batch, heads, queries, values.dim().3));
        for (index, ((b, m, i, j), &w)) in weights.indexed_iter().enumerate() {
            let kept = dropout.map_or(1.0, |dropout| dropout.factor(index as u64));
            if w != 0.0 {
                let mut row = output.slice_mut(s![b, m, i, ..]);
                row.scaled_add(w * kept, &values.slice(s![b, m, j, ..]));
            }
        }
        Self {
            output,
            weights: Some(weights),
            penalty: Array1::zeros(batch),
        }
    }

    /// The mean of several passes.
    ///
    /// # Panics
    /// If there is none.
    pub fn mean(passes: &[Self]) -> Self {
        let mean4 = |of: fn(&Self) -> Option<&Array4<f64>>| {
            let all: Option<Vec<_>> = passes
                .iter()
                .map(|pass| of(pass).map(|x| x.view()))
                .collect();
            let all = ndarray::stack(Axis(0), &all?).expect("passes have one shape");
            all.mean_axis(Axis(0))
        };
        let penalties: Vec<_> = passes.iter().map(|pass| pass.penalty.view()).collect();
        let penalties = ndarray::stack(Axis(0), &penalties).expect("passes have one shape");
        Self {
            output: mean4(|pass| Some(&pass.output)).expect("at least one pass"),
            weights: mean4(|pass| pass.weights.as_ref()),
            penalty: penalties.mean_axis(Axis(0)).expect("at least one pass"),
        }
    }
}

/// A power of ten, evenly among its logarithms.
pub fn power_of_ten(powers: Range<f64>, rng: &mut dyn RngCore) -> f64 {
    (LN_10 * rng.gen_range(powers)).exp()
}
