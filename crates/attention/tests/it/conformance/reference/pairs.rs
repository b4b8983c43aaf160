//! Attention over given points, pair by pair.

use super::{FLOOR, Fault, P, R};
use bochner_attention::{Inputs, Pass};
use ndarray::{Array1, Array4, ArrayView1, ArrayView2, ArrayView4, indices, s};

/// The points w1 and w2 of one head.
type Points<'a> = [ArrayView2<'a, f64>; 2];

pub(super) struct Pairs<'a, 'i> {
    inputs: &'a Inputs<'i, f64>,
    /// `[1 or B, M, R, d]`.
    points: &'a [Array4<f64>; 2],
    pass: &'a Pass,
    fault: Option<Fault>,
}

pub(super) struct PairGradients {
    pub(super) q: Array4<f64>,
    pub(super) k: Array4<f64>,
    pub(super) v: Array4<f64>,
    pub(super) points: [Array4<f64>; 2],
}

/// One query of one head.
#[derive(Clone, Copy)]
struct Row {
    b: usize,
    m: usize,
    i: usize,
}

impl<'a, 'i> Pairs<'a, 'i> {
    pub(super) fn new(
        inputs: &'a Inputs<'i, f64>,
        points: &'a [Array4<f64>; 2],
        pass: &'a Pass,
        fault: Option<Fault>,
    ) -> Self {
        Self {
            inputs,
            points,
            pass,
            fault,
        }
    }

    pub(super) fn weights(&self) -> Array4<f64> {
        let (batch, heads, queries, _) = self.inputs.q.dim();
        let mut weights = Array4::zeros((batch, heads, queries, self.keys()));
        for row in self.rows() {
            let values = self.row(row);
            let mut out = weights.slice_mut(s![row.b, row.m, row.i, ..]);
            out.assign(&values);
        }
        weights
    }

    pub(super) fn output(&self) -> Array4<f64> {
        let (batch, heads, queries, _) = self.inputs.q.dim();
        let mut output = Array4::zeros((batch, heads, queries, self.inputs.v.dim().3));
        for row in self.rows() {
            let weights = self.row(row);
            let mut out = output.slice_mut(s![row.b, row.m, row.i, ..]);
            for j in self.entering(row) {
                out.scaled_add(self.dropout(row, j) * weights[j], &self.v(row, j));
            }
        }
        output
    }

    /// The vector-Jacobian product of [`Pairs::output`].
    pub(super) fn pull_back(&self, cotangent: ArrayView4<f64>) -> PairGradients {
        let mut g = PairGradients {
            q: Array4::zeros(self.inputs.q.raw_dim()),
            k: Array4::zeros(self.inputs.k.raw_dim()),
            v: Array4::zeros(self.inputs.v.raw_dim()),
            points: self.points.each_ref().map(|w| Array4::zeros(w.raw_dim())),
        };
        for row in self.rows() {
            let weights = self.row(row);
            let along = cotangent.slice(s![row.b, row.m, row.i, ..]);
            let dropout = |j| match self.fault {
                Some(Fault::DropoutNotInGradient) => 1.0,
                _ => self.dropout(row, j),
            };
            let kept = self.kept(row);
            let of_value = |j: usize| dropout(j) * along.dot(&self.v(row, j));
            let mean: f64 = kept.iter().map(|&j| weights[j] * of_value(j)).sum();
            for j in kept {
                let mut v = g.v.slice_mut(s![row.b, row.m, j, ..]);
                v.scaled_add(weights[j] * dropout(j), &along);
                // The derivative by the logarithm of the weight before normalisation.
                self.pull_back_pair(row, j, weights[j] * (of_value(j) - mean), &mut g);
            }
        }
        g
    }

    fn pull_back_pair(&self, row: Row, j: usize, cotangent: f64, g: &mut PairGradients) {
        let (q, k, points) = (self.q(row), self.k(row, j), self.head(row));
        let [of_q, of_k] = [q, k].map(|x| features(&points, x));
        let f = of_q.dot(&of_k) / self.normaliser();
        let two = match self.fault {
            Some(Fault::SquareWithoutTwo) => 1.0,
            _ => 2.0,
        };
        let df = cotangent * two * f / (f * f + FLOOR) / self.normaliser();
        let (b, m) = (row.b, row.m);
        let set = b.min(self.points[0].dim().0 - 1);
        let [w1, w2] = &mut g.points;
        let mut pull = |x: ArrayView1<f64>, dphi: Array1<f64>| {
            let mut dw = [&mut *w1, &mut *w2].map(|w| w.slice_mut(s![set, m, .., ..]));
            let mut dx = Array1::zeros(x.len());
            for r in 0..R {
                for (w, dw) in points.iter().zip(&mut dw) {
                    let (sin, cos) = w.row(r).dot(&x).sin_cos();
                    let slope = dphi[R + r] * cos - dphi[r] * sin;
                    dx.scaled_add(slope, &w.row(r));
                    dw.row_mut(r).scaled_add(slope, &x);
                }
            }
            dx
        };
        let dq = pull(q, &of_k * df);
        let dk = pull(k, &of_q * df);
        let mut q_out = g.q.slice_mut(s![b, m, row.i, ..]);
        q_out += &dq;
        let mut k_out = g.k.slice_mut(s![b, m, j, ..]);
        k_out += &dk;
        if !matches!(self.fault, Some(Fault::MagnitudeNotInGradient)) {
            k_out.scaled_add(cotangent, &magnitude_gradient(k));
        }
    }

    /// The weights of one row, before dropout.
    fn row(&self, row: Row) -> Array1<f64> {
        let kept = self.kept(row);
        let mut weights = Array1::zeros(self.keys());
        for j in self.entering(row) {
            let counts = if kept.contains(&j) { 1.0 } else { 0.0 };
            weights[j] = counts * self.weight(row, j);
        }
        let total: f64 = match self.fault {
            Some(Fault::MaskedInNormaliser) => (0..self.keys()).map(|j| self.weight(row, j)).sum(),
            // In order, so that zeros behind the kept keys change no rounding.
            _ => weights.iter().sum(),
        };
        if total > 0.0 || matches!(self.fault, Some(Fault::EmptyRowDivided)) {
            weights /= total;
        }
        weights
    }

    /// `(f^2 + e) exp(m)`.
    fn weight(&self, row: Row, j: usize) -> f64 {
        let (q, k, points) = (self.q(row), self.k(row, j), self.head(row));
        let f = features(&points, q).dot(&features(&points, k)) / self.normaliser();
        let similarity = match self.fault {
            Some(Fault::KernelNotSquared) => f.abs() + FLOOR,
            Some(Fault::NoFloor) => f * f,
            _ => f * f + FLOOR,
        };
        similarity * self.magnitude(q, k).exp()
    }

    /// `|k|_p^2 / (2 sqrt d)`.
    fn magnitude(&self, q: ArrayView1<f64>, k: ArrayView1<f64>) -> f64 {
        let divisor = 2.0 * (k.len() as f64).sqrt();
        match self.fault {
            Some(Fault::NoKeyMagnitude) => 0.0,
            Some(Fault::QueryMagnitude) => norm(q).powi(2) / divisor,
            Some(Fault::NormNotSquared) => norm(k) / divisor,
            _ => norm(k).powi(2) / divisor,
        }
    }

    fn normaliser(&self) -> f64 {
        match self.fault {
            Some(Fault::PointsNotAveraged) => 4.0,
            Some(Fault::FourCosinesNotAveraged) => R as f64,
            _ => 4.0 * R as f64,
        }
    }

    fn kept(&self, row: Row) -> Vec<usize> {
        (0..self.keys()).filter(|&j| self.keeps(row, j)).collect()
    }

    /// The keys that are computed with at all.
    fn entering(&self, row: Row) -> Vec<usize> {
        match self.fault {
            Some(Fault::MaskMultiplied) => (0..self.keys()).collect(),
            _ => self.kept(row),
        }
    }

    fn keeps(&self, row: Row, j: usize) -> bool {
        let (mask, queries) = (self.inputs.mask, self.inputs.q.dim().2);
        let keeps = |i| mask.keeps(row.b, i, j, queries, self.keys());
        match self.fault {
            Some(Fault::MaskInverted) => !keeps(row.i),
            // The last row of a causal mask shows what the rest of the mask says.
            Some(Fault::CausalFromTheStart) if mask.is_causal() => j <= row.i && keeps(queries - 1),
            _ => keeps(row.i),
        }
    }

    fn dropout(&self, row: Row, j: usize) -> f64 {
        let (_, heads, queries, _) = self.inputs.q.dim();
        let pair = ((row.b * heads + row.m) * queries + row.i) * self.keys() + j;
        let dropout = self.pass.weight_dropout().unwrap();
        let factor = dropout.map_or(1.0, |dropout| dropout.factor(pair as u64));
        match self.fault {
            Some(Fault::DropoutNotRescaled) if factor > 0.0 => 1.0,
            _ => factor,
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let (batch, heads, queries, _) = self.inputs.q.dim();
        let all = indices((batch, heads, queries)).into_iter();
        all.map(|(b, m, i)| Row { b, m, i })
    }

    fn keys(&self) -> usize {
        self.inputs.k.dim().2
    }

    fn q(&self, Row { b, m, i }: Row) -> ArrayView1<'_, f64> {
        self.inputs.q.slice(s![b, m, i, ..])
    }

    fn k(&self, Row { b, m, .. }: Row, j: usize) -> ArrayView1<'_, f64> {
        self.inputs.k.slice(s![b, m, j, ..])
    }

    fn v(&self, Row { b, m, .. }: Row, j: usize) -> ArrayView1<'_, f64> {
        self.inputs.v.slice(s![b, m, j, ..])
    }

    fn head(&self, Row { b, m, .. }: Row) -> Points<'_> {
        let of = |w: &'_ Array4<f64>| b.min(w.dim().0 - 1);
        self.points
            .each_ref()
            .map(|w| w.slice(s![of(w), m, .., ..]))
    }
}

/// `[cos w1 x + cos w2 x]_r ++ [sin w1 x + sin w2 x]_r`.
fn features([w1, w2]: &Points, x: ArrayView1<f64>) -> Array1<f64> {
    let mut phi = Array1::zeros(2 * R);
    for r in 0..R {
        let angles = [w1.row(r).dot(&x), w2.row(r).dot(&x)];
        phi[r] = angles.map(f64::cos).iter().sum();
        phi[R + r] = angles.map(f64::sin).iter().sum();
    }
    phi
}

fn norm(x: ArrayView1<f64>) -> f64 {
    x.iter().map(|x| x.abs().powf(P)).sum::<f64>().powf(1.0 / P)
}

fn magnitude_gradient(x: ArrayView1<f64>) -> Array1<f64> {
    let scale = norm(x).powf(2.0 - P) / (x.len() as f64).sqrt();
    x.mapv(|x| scale * x.abs().powf(P - 1.0) * x.signum())
}
