//! Examples of Primal-Attention's settings, and its plain reference.

use super::*;
use crate::conformance::*;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

impl Conformance for Primal {
    fn examples() -> Vec<Self> {
        let of = |weights, reduction| Self {
            rank: 2,
            weights,
            reduction,
            eta: 0.7,
            value_width: None,
        };
        let (batch, example) = (PrimalReduction::Batch, PrimalReduction::Example);
        let data = |rows, trace| PrimalWeights::Data { rows, trace };
        vec![
            of(data(4, PrimalTrace::Data), batch),
            of(data(9, PrimalTrace::Data), example),
            of(data(1, PrimalTrace::Parameters), batch),
            of(data(4, PrimalTrace::Parameters), example),
            of(PrimalWeights::Parameters, batch),
            of(PrimalWeights::Parameters, example),
            Self {
                eta: 0.0,
                ..of(PrimalWeights::Parameters, batch)
            },
        ]
    }

    fn refused() -> Vec<(&'static str, Self)> {
        let usual = Self::default;
        let no_rows = PrimalWeights::Data {
            rows: 0,
            trace: PrimalTrace::Data,
        };
        vec![
            ("rank", Self { rank: 0, ..usual() }),
            (
                "rows",
                Self {
                    weights: no_rows,
                    ..usual()
                },
            ),
            (
                "eta",
                Self {
                    eta: -0.1,
                    ..usual()
                },
            ),
            (
                "eta",
                Self {
                    eta: f64::NAN,
                    ..usual()
                },
            ),
            (
                "value_width",
                Self {
                    value_width: Some(0),
                    ..usual()
                },
            ),
        ]
    }

    fn reference(&self, inputs: &Streams<f64>, flat: &[f64], _: &Pass) -> Result<Reference, Error> {
        let (batch, heads, time, d) = inputs.q().dim();
        let (s, n, dv) = (self.rank, self.rows(d), self.value_width.unwrap_or(d));
        let matrix = |start: usize, m: usize, [rows, columns]: [usize; 2]| {
            let count = rows * columns;
            let values = flat[start + m * count..][..count].to_vec();
            Array2::from_shape_vec((rows, columns), values).expect("as many")
        };
        let starts = [0, heads * n * s];
        let of_lambda = 2 * heads * n * s;
        let lengths: Vec<usize> = (0..batch)
            .map(|b| {
                (0..time)
                    .filter(|&j| inputs.mask.keeps([b, 0, time - 1, j], [time, time]))
                    .count()
            })
            .collect();
        let direction = |x: ArrayView2<f64>| {
            let mean = |i: usize| match inputs.mask.is_causal() {
                false => x.row(i).to_owned(),
                true => x.slice(s![..=i, ..]).mean_axis(Axis(0)).expect("a row"),
            };
            let unit = |u: Array1<f64>| match u.dot(&u).sqrt() {
                0.0 => u,
                norm => u / norm,
            };
            let rows: Vec<_> = (0..x.nrows()).map(|i| unit(mean(i))).collect();
            let rows: Vec<_> = rows.iter().map(|row| row.view()).collect();
            ndarray::stack(Axis(0), &rows).expect("rows of one width")
        };
        let mut output = Array4::zeros((batch, heads, time, dv));
        let mut halves = Array2::<f64>::zeros((batch, heads));
        let mut traces = halves.clone();
        for b in (0..batch).filter(|&b| lengths[b] > 0) {
            let length = lengths[b];
            for m in 0..heads {
                let weights = starts.map(|start| matrix(start, m, [n, s]));
                let projections = match self.weights {
                    PrimalWeights::Parameters => weights.clone(),
                    PrimalWeights::Data { rows, .. } => weights.clone().map(|weight| {
                        let [_, _, x] = inputs.get().expect("checked before");
                        let row = |r| r * (length - 1) / (rows - 1).max(1);
                        let rows: Vec<usize> = (0..rows).map(row).collect();
                        x.slice(s![b, m, .., ..])
                            .select(Axis(0), &rows)
                            .t()
                            .dot(&weight)
                    }),
                };
                let sides = [inputs.q(), inputs.k()];
                let [e, r] = [0, 1].map(|side| {
                    let x = sides[side].slice_move(s![b, m, ..length, ..]);
                    direction(x).dot(&projections[side])
                });
                let lambda = matrix(of_lambda, m, [1, s]);
                let wc = matrix(of_lambda + heads * s, m, [dv, 2 * s]);
                let joined = ndarray::concatenate(Axis(1), &[e.view(), r.view()]).expect("rows");
                let rows = s![b, m, ..length, ..];
                output.slice_mut(rows).assign(&joined.dot(&wc.t()));
                let half = |x: Array2<f64>| 0.5 * (x * &lambda).mapv(|x| x * x).sum();
                halves[[b, m]] = half(e) + half(r);
                let [we, wr] = match self.weights {
                    PrimalWeights::Data {
                        trace: PrimalTrace::Parameters,
                        ..
                    } => weights,
                    _ => projections,
                };
                traces[[b, m]] = we.t().dot(&wr).diag().sum();
            }
        }
        let kept: Vec<usize> = (0..batch).filter(|&b| lengths[b] > 0).collect();
        let loss = |examples: &[usize]| {
            let [halves, traces] = [&halves, &traces].map(|x| x.select(Axis(0), examples));
            let positions: usize = examples.iter().map(|&b| lengths[b]).sum();
            let h = halves.sum() / (heads * positions) as f64;
            let tau = traces.mean().expect("an example");
            self.eta * (h - tau).powi(2)
        };
        let mut penalty = Array1::zeros(batch);
        for &b in &kept {
            penalty[b] = match self.reduction {
                PrimalReduction::Batch => loss(&kept),
                PrimalReduction::Example => loss(&[b]),
            };
        }
        Ok(Reference {
            output,
            weights: None,
            penalty,
        })
    }
}
