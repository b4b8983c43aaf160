//! Kernels with operands and features of their own, and with parameters of any size.

use crate::{Outcome, conforms};
use bochner_engine::conformance::{Trial, check};
use bochner_engine::ndarray::{Array2, Array4, ArrayView2, s};
use bochner_engine::numerics::{Mat, Real, check::random};
use bochner_engine::{
    Error, FeatureForm, FeatureMap, Form, HeadRows, Kind, Mask, Number, Pair, PairKernel, Raw,
    Score, Scored, Settings, Side, Tile, attend,
};

/// The inner product of $W_m q$ and $k$, with a learnt matrix for each head.
#[derive(Debug)]
struct Projected<T> {
    raw: Raw,
    /// `[heads, d, d]`.
    matrices: Vec<T>,
}

impl<T: Real> Projected<T> {
    fn matrix(&self, rows: &HeadRows<T>) -> (&[T], usize) {
        let width = rows.x.shape().1;
        (
            &self.matrices[rows.head * width * width..][..width * width],
            width,
        )
    }
}

fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}

impl<T: Real> PairKernel<T> for Projected<T> {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn raw(&self) -> Raw {
        self.raw
    }

    fn operands(&self, rows: HeadRows<T>, out: &mut Vec<T>) {
        let (matrix, width) = self.matrix(&rows);
        if rows.side == Side::Queries {
            let all =
                (0..rows.x.shape().0).flat_map(|i| matrix.chunks(width).map(move |row| (i, row)));
            out.extend(all.map(|(i, row)| dot(row, rows.x.row(i))));
        }
    }

    fn pull_operands(
        &self,
        rows: HeadRows<T>,
        gradient: Mat<T>,
        out: &mut [T],
        parameters: &mut [T],
    ) {
        let (matrix, width) = self.matrix(&rows);
        if rows.side == Side::Keys {
            return out.copy_from_slice(gradient.data());
        }
        for (i, out) in out.chunks_mut(width).enumerate() {
            for (r, &g) in gradient.row(i).iter().enumerate() {
                let each = out
                    .iter_mut()
                    .zip(&matrix[r * width..])
                    .zip(rows.x.row(i))
                    .zip(&mut parameters[r * width..]);
                each.for_each(|(((out, &w), &x), along)| {
                    (*out, *along) = (*out + g * w, *along + g * x)
                });
            }
        }
    }

    fn slopes(&self, tile: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        scores.copy_from_slice(raw);
        self.scores(tile, scores);
        raw.fill(T::of(-0.3));
    }

    fn scores(&self, _: &Tile<T>, raw: &mut [T]) {
        raw.iter_mut().for_each(|x| *x *= T::of(-0.3));
    }

    fn parameters(&self) -> [usize; 2] {
        [1, self.matrices.len() / 2]
    }
}

fn numbers<T: Real>(count: usize) -> Vec<T> {
    (0..count)
        .map(|n| T::of(0.7 * (n as f64 * 1.7 + 0.3).sin()))
        .collect()
}

fn projected<T: Real>(raw: Raw) -> Trial<T> {
    Trial::with_learnt(numbers(32), move |mask, all| {
        Settings::pairs(
            Projected {
                raw,
                matrices: all.to_vec(),
            },
            mask,
        )
    })
}

#[test]
fn operands_with_parameters() -> Outcome {
    conforms(projected(Raw::Product), projected(Raw::Product))?;
    check(&projected::<f64>(Raw::SquaredDistance))
}

/// The features $(1 + 1.2 \sin w_r \cdot x)  e^{w_r \cdot x - |x|^2 / 2}$, or the exponentials alone, with learnt w.
#[derive(Debug)]
struct Exponentials<T> {
    form: FeatureForm,
    /// `[heads, FEATURES, d]`.
    w: Vec<T>,
}

const FEATURES: usize = 6;

impl<T: Real> Exponentials<T> {
    fn vectors(&self, rows: &HeadRows<T>) -> ArrayView2<'_, T> {
        let size = FEATURES * rows.x.shape().1;
        ArrayView2::from_shape(
            (FEATURES, rows.x.shape().1),
            &self.w[rows.head * size..][..size],
        )
        .expect("all heads")
    }
}

impl<T: Real> FeatureMap<T> for Exponentials<T> {
    fn features(&self) -> usize {
        FEATURES
    }

    fn form(&self) -> FeatureForm {
        self.form
    }

    fn parameters(&self) -> usize {
        self.w.len() / 2
    }

    fn map(&self, rows: HeadRows<T>, values: &mut [T], logs: &mut [T]) {
        for (n, log) in logs.iter_mut().enumerate() {
            let x = rows.x.row(n / FEATURES);
            let product = dot(
                self.vectors(&rows)
                    .row(n % FEATURES)
                    .to_slice()
                    .expect("a row"),
                x,
            );
            *log = product - T::of(0.5) * dot(x, x);
            if let Some(value) = values.get_mut(n) {
                *value = T::one() + T::of(1.2) * product.sin();
            }
        }
    }

    fn pull(
        &self,
        rows: HeadRows<T>,
        values: &[T],
        gradient: &[T],
        out: &mut [T],
        parameters: &mut [T],
    ) {
        let width = rows.x.shape().1;
        for (n, &g) in gradient.iter().enumerate() {
            let (x, r) = (rows.x.row(n / FEATURES), n % FEATURES);
            let (vectors, out) = (
                self.vectors(&rows),
                &mut out[n / FEATURES * width..][..width],
            );
            let w = vectors.row(r).to_slice().expect("a row").to_vec();
            let value = values.get(n).copied().unwrap_or(T::one());
            let along = if values.is_empty() {
                T::zero()
            } else {
                T::of(1.2) * dot(&w, x).cos()
            };
            for (c, out) in out.iter_mut().enumerate() {
                *out += g * ((value + along) * w[c] - value * x[c]);
                parameters[r * width + c] += g * (value + along) * x[c];
            }
        }
    }
}

fn exponentials<T: Real>(form: FeatureForm) -> Trial<T> {
    let settings = move |mask: &Mask, w: &[T]| {
        Settings::features(
            Exponentials {
                form,
                w: w.to_vec(),
            },
            mask,
        )
    };
    Trial::with_learnt(numbers(2 * FEATURES * 4), settings)
}

#[test]
fn exponential_features_with_parameters() -> Outcome {
    conforms(
        exponentials(FeatureForm::Exponentials),
        exponentials(FeatureForm::Exponentials),
    )?;
    check(&exponentials::<f64>(FeatureForm::SignedExponentials))
}

/// Features of a query and of a key that are far apart: their products vanish.
#[test]
fn exponential_features_of_large_rows() -> Outcome {
    check(&Trial {
        size: 15.0,
        ..exponentials::<f64>(FeatureForm::Exponentials)
    })
}

/// Exponentials of which one, that of the row's first number, is beyond the range of its type unless all are taken
/// relative to it.
#[derive(Debug)]
struct Peak(usize);

/// One lane more than a whole block of sixteen.
const LANES: usize = 17;

impl FeatureMap<f64> for Peak {
    fn features(&self) -> usize {
        LANES
    }

    fn form(&self) -> FeatureForm {
        FeatureForm::Exponentials
    }

    fn map(&self, rows: HeadRows<f64>, _: &mut [f64], logs: &mut [f64]) {
        for (i, logs) in logs.chunks_mut(LANES).enumerate() {
            logs.fill(0.0);
            logs[self.0] = match rows.side {
                Side::Queries => 800.0,
                Side::Keys => 800.0 + rows.x.row(i)[0],
            };
        }
    }

    fn pull(&self, _: HeadRows<f64>, _: &[f64], _: &[f64], _: &mut [f64], _: &mut [f64]) {}
}

#[test]
fn the_largest_exponential_is_found_wherever_it_stands() -> Result<(), Error> {
    let x: Array4<f64> = random([1, 1, 9, 4], "x");
    let rows: ArrayView2<f64> = x.slice(s![0, 0, .., ..]);
    let weights = rows.column(0).mapv(f64::exp);
    let want = rows.t().dot(&weights) / weights.sum();
    for (place, form) in (0..LANES).flat_map(|n| [(n, Form::Pairwise), (n, Form::LinearTime)]) {
        let settings = Settings {
            form,
            ..Settings::features(Peak(place), Mask::NONE)
        };
        let (output, _) = attend(&settings, x.view(), x.view(), x.view())?;
        let off = &output - &want;
        assert!(off.iter().all(|x| x.abs() < 1e-10), "{place}, {form:?}");
    }
    Ok(())
}

/// A logit of eight learnt numbers, of the positions and of the head.
#[derive(Clone, Debug)]
struct Polynomial;

impl Score for Polynomial {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn parameters(&self) -> usize {
        8
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, c: &[N]) -> N {
        let (x, distance) = (raw.tanh(), (pair.query - pair.key) * N::of(0.1));
        let powers =
            c[0] * x + c[1] * x * x + c[2] * x * x * x + c[3] * distance + c[4] * distance * x;
        powers
            + (c[5] * x).sin()
            + (c[6] * distance).cos()
            + c[7].square() * x.min(N::of(0.3 * pair.head as f64))
    }
}

#[test]
fn eight_learnt_numbers_and_positions() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        Trial::with_learnt(numbers(16), |mask, all| {
            let all = Array2::from_shape_vec((2, 8), all.to_vec()).expect("eight a head");
            Settings::pairs(Scored::with_parameters(Polynomial, all), mask)
        })
    }
    conforms(trial(), trial())
}

#[test]
fn large_and_near_rows() -> Outcome {
    for size in [1e-3, 40.0] {
        check(&Trial {
            size,
            is_smooth: size < 1.0,
            ..Trial::<f64>::new(|mask, _| Settings::softmax(mask))
        })?;
    }
    Ok(())
}
