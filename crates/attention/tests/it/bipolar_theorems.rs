//! The theorems on products of ternary and of binary numbers, by large samples.

use crate::conformance::plain::weights;
use bochner_attention::{Mask, fixed_point::ternary, kernels};
use bochner_numerics::check::random;
use bochner_numerics::{Seed, Stream, standard_normal};
use ndarray::{Array4, s};

/// Means over draws of a query's and a key's coordinate: the raw product, the binary and the ternary one.
struct Moments {
    mean: [f64; 3],
    variance: [f64; 3],
    /// The covariances of the raw product with the other two.
    covariance: [f64; 2],
}

impl Moments {
    fn of(threshold: f64, deviation: f64, stream: &mut Stream) -> Self {
        const DRAWS: usize = 1_000_000;
        let mut draw = || {
            let shape = (1, 1, 1, DRAWS);
            Array4::from_shape_simple_fn(shape, || deviation * standard_normal::<f64>(stream))
        };
        let (q, k) = (draw(), draw());
        let [t, u] = [&q, &k].map(|x| ternary(x.view(), threshold).unwrap());
        let (mut sums, mut squares, mut products) = ([0.0; 3], [0.0; 3], [0.0; 2]);
        for (((q, k), &t), &u) in q.iter().zip(&k).zip(&t).zip(&u) {
            let binary = f64::from(t.max(0)) * f64::from(u.max(0));
            let all = [q * k, binary, f64::from(t) * f64::from(u)];
            for n in 0..3 {
                sums[n] += all[n];
                squares[n] += all[n] * all[n];
            }
            products[0] += all[0] * all[1];
            products[1] += all[0] * all[2];
        }
        let n = DRAWS as f64;
        let mean = sums.map(|x| x / n);
        Self {
            mean,
            variance: [0, 1, 2].map(|i| squares[i] / n - mean[i] * mean[i]),
            covariance: [0, 1].map(|i| products[i] / n - mean[0] * mean[i + 1]),
        }
    }

    fn correlation(&self, i: usize) -> f64 {
        self.covariance[i] / (self.variance[0] * self.variance[i + 1]).sqrt()
    }
}

/// For each probability of a spike to one side: the threshold in standard deviations.
const THRESHOLDS: [(f64, f64); 4] = [
    (0.1, 1.281_551_565_5),
    (0.2, 0.841_621_233_6),
    (0.3, 0.524_400_512_7),
    (0.4, 0.253_347_103_1),
];

/// Theorem 1: mean and variance of a coordinate's product, raw, binary and ternary.
#[test]
fn theorem_1_moments_of_the_products() {
    let mut stream = Seed::new(63).stream("theorem 1");
    for deviation in [1.0, 2.0] {
        for (p, threshold) in THRESHOLDS {
            let got = Moments::of(threshold * deviation, deviation, &mut stream);
            let fourth = f64::powi(deviation, 4);
            let binary = p * p * (1.0 - p * p);
            let want_means = [0.0, p * p, 0.0];
            let want_variances = [fourth, binary, 4.0 * p * p];
            for n in 0..3 {
                // Five standard errors of the mean.
                let bound = 5.0 * (want_variances[n] / 1e6).sqrt();
                let (mean, variance) = (got.mean[n], got.variance[n]);
                assert!((mean - want_means[n]).abs() < bound, "{p}, {n}: {mean}");
                let error = (variance / want_variances[n] - 1.0).abs();
                assert!(error < 0.03, "{p}, {n}: {variance}");
            }
        }
    }
}

/// Theorem 2: ternary products follow the raw ones more closely than binary ones do, by a factor of
/// $2 \sqrt{1 - p^2}$, whatever the deviation.
#[test]
fn theorem_2_correlations_with_the_raw_product() {
    let mut stream = Seed::new(64).stream("theorem 2");
    for deviation in [1.0, 2.0] {
        for (p, threshold) in THRESHOLDS {
            let got = Moments::of(threshold * deviation, deviation, &mut stream);
            let density =
                (-0.5 * threshold * threshold).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let covariance = (density * deviation).powi(2);
            let near = |got: f64, want: f64, what: &str| {
                assert!((got / want - 1.0).abs() < 0.03, "{p}: {what}: {got} {want}");
            };
            near(
                got.covariance[0],
                covariance,
                "covariance of binary products",
            );
            near(
                got.covariance[1],
                4.0 * covariance,
                "covariance of ternary products",
            );
            let root = (1.0 - p * p).sqrt();
            near(got.correlation(0), density.powi(2) / (p * root), "binary");
            near(got.correlation(1), 2.0 * density.powi(2) / p, "ternary");
            let ratio = got.correlation(1) / got.correlation(0);
            near(ratio, 2.0 * root, "ratio");
        }
    }
}

/// The purpose of Theorem 2: the key of the largest product is found more often from ternary numbers.
#[test]
fn ternary_products_find_the_largest_more_often() {
    let (width, keys) = (32, 16);
    let [q, k] =
        [1, keys].map(|time| random::<f64, _>([1000, 1, time, width], &format!("find {time}")));
    let [t, u] = [&q, &k].map(|x| ternary(x.view(), 0.5).unwrap());
    // Ties count in parts.
    let found = |products: &dyn Fn(usize, usize) -> f64| -> f64 {
        let rows = (0..1000).map(|b: usize| {
            let row: Vec<f64> = (0..keys).map(|j| products(b, j)).collect();
            let raw = |j: usize| {
                (0..width)
                    .map(|n| q[[b, 0, 0, n]] * k[[b, 0, j, n]])
                    .sum::<f64>()
            };
            let best = (0..keys)
                .max_by(|&i, &j| raw(i).total_cmp(&raw(j)))
                .unwrap();
            let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let ties = row.iter().filter(|&&x| x == highest).count();
            if row[best] == highest {
                1.0 / ties as f64
            } else {
                0.0
            }
        });
        rows.sum()
    };
    let product = |b: usize, j: usize, of: fn(i8) -> f64| -> f64 {
        let pairs = t.slice(s![b, 0, 0, ..]).to_owned();
        let other = u.slice(s![b, 0, j, ..]).to_owned();
        pairs.iter().zip(&other).map(|(&t, &u)| of(t) * of(u)).sum()
    };
    let binary = found(&|b, j| product(b, j, |t| f64::from(t.max(0))));
    let by_ternary = found(&|b, j| product(b, j, f64::from));
    assert!(by_ternary > 1.2 * binary, "{by_ternary} {binary}");
    // Shiftmax keeps the order of the scores.
    let settings = kernels::bipolar(0.5, 1.0, &Mask::none());
    let shown = weights(q.view(), k.view(), &settings).unwrap();
    assert_eq!(found(&|b, j| shown[[b, 0, 0, j]]), by_ternary);
}
