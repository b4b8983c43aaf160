//! Proposition 5, in the form that is true: as $p \to 0^+$, let G be the kept keys with the
//! eventually largest $|k_j|_p$. If they have at least two non-zero coordinates,
//!
//! $$\alpha_{ij} \to \frac{s_{ij}}{\sum_{l \in G} s_{il}} \text{ on } G, \qquad 0 \text{ elsewhere}$$
//!
//! so attention becomes one-hot where G is one key, and uniform on G only where the similarities
//! on it are equal. G does not depend on the query. Keys with at most one non-zero coordinate do
//! not diverge.
//!
//! Eventually, the larger norm is that with more non-zero coordinates, then that with the larger
//! geometric mean: $\log |k|_p^2 = \frac2p \log n + \frac2n \sum \log |k_n| + O(p)$.
//!
//! Wrong versions it catches: the printed limit, uniform on ties whatever the similarities; a norm
//! that overflows; one whose rounding tells a key from its own permutation; the largest coordinate
//! as the limit of the norm.

use bochner_attention::{Form, Magnitude, Mask, Points, Settings, Similarity, weights};
use bochner_numerics::{Seed, Stream, standard_normal};
use ndarray::{Array2, Array3, Array4, Axis, array};
use proptest::prelude::*;
use rand::Rng;
use rand::seq::SliceRandom;

const QUERIES: usize = 4;
const KEYS: usize = 6;
/// Small enough for every example's limit to be reached to the last digits.
const SMALL: [f64; 3] = [5e-3, 1e-3, 1e-4];

/// What a key's norm comes to: compared, and equal only for a key and its own rearrangements.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Rank {
    nonzero: usize,
    log_mean: f64,
}

#[derive(Clone, Debug)]
struct Example {
    q: Array2<f64>,
    k: Array2<f64>,
    ranks: Vec<Rank>,
    points: Array3<f64>,
    mask: Mask,
}

/// A key whose non-zero coordinates have the given geometric mean.
fn key(width: usize, Rank { nonzero, log_mean }: Rank, stream: &mut Stream) -> Vec<f64> {
    let logs: Vec<f64> = (0..nonzero).map(|_| stream.gen_range(-1.0..1.0)).collect();
    let mean = logs.iter().sum::<f64>() / nonzero.max(1) as f64;
    let sizes = logs.iter().map(|log| (log - mean + log_mean).exp());
    let mut key: Vec<f64> = sizes.collect();
    key.resize(width, 0.0);
    rearranged(key, stream)
}

/// The same numbers in another order and with other signs.
fn rearranged(mut key: Vec<f64>, stream: &mut Stream) -> Vec<f64> {
    key.shuffle(stream);
    let mut sign = |x: f64| if stream.r#gen() { -x } else { x };
    key.into_iter().map(&mut sign).collect()
}

/// Keys of which the last two are rearrangements of others.
fn keys(width: usize, fewest: usize, most: usize, stream: &mut Stream) -> (Vec<Rank>, Array2<f64>) {
    let mut ranks = Vec::new();
    let mut keys: Vec<Vec<f64>> = Vec::new();
    for j in 0..KEYS {
        if j + 2 < KEYS {
            let nonzero = stream.gen_range(fewest..=most.min(width));
            let log_mean = -0.3 * j as f64;
            ranks.push(Rank { nonzero, log_mean });
            keys.push(key(width, ranks[j], stream));
        } else {
            let of = stream.gen_range(0..j);
            ranks.push(ranks[of]);
            keys.push(rearranged(keys[of].clone(), stream));
        }
    }
    let order: Vec<usize> = rand::seq::index::sample(stream, KEYS, KEYS).into_vec();
    let ranks = order.iter().map(|&j| ranks[j]).collect();
    let rows = order.iter().flat_map(|&j| keys[j].clone()).collect();
    (ranks, Array2::from_shape_vec((KEYS, width), rows).unwrap())
}

fn example(
    widths: std::ops::RangeInclusive<usize>,
    fewest: usize,
    most: usize,
) -> impl Strategy<Value = Example> {
    (widths, any::<u64>()).prop_map(move |(width, seed)| {
        let mut stream = Seed::new(seed).stream("example");
        let (ranks, k) = keys(width, fewest, most, &mut stream);
        let mut normals = |rows| {
            Array2::from_shape_simple_fn((rows, width), || standard_normal::<f64>(&mut stream))
        };
        let (q, points) = (normals(QUERIES), normals(3).insert_axis(Axis(0)));
        let mut kept = Array2::from_shape_simple_fn((QUERIES, KEYS), || stream.gen_bool(0.7));
        kept.row_mut(0).fill(true);
        kept.column_mut(0).fill(true);
        Example {
            q,
            k,
            ranks,
            points,
            mask: Mask::none().with_matrix(kept.view()),
        }
    })
}

impl Example {
    fn similarities(&self) -> [Similarity<'_, f64>; 2] {
        let points = Points::shared_stationary(self.points.view());
        let floor = 1e-5;
        [Similarity::Rbf, Similarity::Squared { points, floor }]
    }

    fn weights<'a>(&'a self, similarity: Similarity<'a, f64>, magnitude: Magnitude) -> Array2<f64> {
        of_one_head(&self.q, &self.k, similarity, magnitude, &self.mask)
    }

    /// Whether key `j` is in row `i`'s G, among the kept keys.
    fn is_loudest(&self, i: usize, j: usize) -> bool {
        let kept = |l: &usize| self.mask.keeps(0, i, *l, QUERIES, KEYS);
        kept(&j)
            && (0..KEYS)
                .filter(kept)
                .all(|l| self.ranks[l] <= self.ranks[j])
    }

    /// The similarities on G, normalised.
    fn limit<'a>(&'a self, similarity: Similarity<'a, f64>) -> Array2<f64> {
        let mut limit = self.weights(similarity, Magnitude::None);
        for ((i, j), weight) in limit.indexed_iter_mut() {
            if !self.is_loudest(i, j) {
                *weight = 0.0;
            }
        }
        normalised(limit)
    }
}

fn normalised(mut weights: Array2<f64>) -> Array2<f64> {
    for mut row in weights.rows_mut() {
        row /= row.sum();
    }
    weights
}

fn of_one_head<'a>(
    q: &Array2<f64>,
    k: &Array2<f64>,
    similarity: Similarity<'a, f64>,
    magnitude: Magnitude,
    mask: &'a Mask,
) -> Array2<f64> {
    let settings = Settings {
        similarity,
        magnitude,
        mask,
        dropout: None,
        form: Form::Automatic,
    };
    let head = |x: &Array2<f64>| -> Array4<f64> {
        let x = x.clone().insert_axis(Axis(0));
        x.insert_axis(Axis(0))
    };
    let weights = weights(head(q).view(), head(k).view(), &settings).unwrap();
    let of_example = weights.index_axis_move(Axis(0), 0);
    of_example.index_axis_move(Axis(0), 0)
}

fn largest(x: &Array2<f64>) -> f64 {
    x.fold(0.0, |m: f64, x| m.max(x.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_loudest_keys_share_by_their_similarities(example in example(2..=64, 2, 64)) {
        for similarity in example.similarities() {
            let want = example.limit(similarity);
            for p in SMALL {
                let got = example.weights(similarity, Magnitude::Norm { p });
                let error = largest(&(got - &want));
                prop_assert!(error < 1e-12, "p = {}: {}", p, error);
            }
        }
    }

    /// Rows with the same kept keys give weight to the same keys, and to one alone all of it.
    #[test]
    fn which_keys_they_are_does_not_depend_on_the_query(example in example(2..=64, 2, 64)) {
        let example = Example { mask: Mask::none(), ..example };
        for similarity in example.similarities() {
            let got = example.weights(similarity, Magnitude::Norm { p: 1e-3 });
            for row in got.rows() {
                let loud: Vec<usize> = (0..KEYS).filter(|&j| row[j] > 0.0).collect();
                let want: Vec<usize> = (0..KEYS).filter(|&j| example.is_loudest(0, j)).collect();
                prop_assert_eq!(&loud, &want);
                if let [one] = loud[..] {
                    prop_assert_eq!(row[one], 1.0);
                }
            }
        }
    }

    /// The norm of a single coordinate is its size for every p.
    #[test]
    fn keys_of_one_coordinate_do_not_diverge(example in example(1..=64, 0, 1)) {
        let size = |j: usize| example.k.row(j).fold(0.0, |m: f64, x| m.max(x.abs()));
        let divisor = 2.0 * (example.k.ncols() as f64).sqrt();
        for similarity in example.similarities() {
            let mut want = example.weights(similarity, Magnitude::None);
            for ((_, j), weight) in want.indexed_iter_mut() {
                *weight *= (size(j).powi(2) / divisor).exp();
            }
            let want = normalised(want);
            for p in SMALL {
                let got = example.weights(similarity, Magnitude::Norm { p });
                let error = largest(&(got - &want));
                prop_assert!(error < 1e-12, "p = {}: {}", p, error);
            }
        }
    }

    /// One key with two coordinates, however small, silences all keys with one, however large.
    #[test]
    fn keys_of_one_coordinate_are_silent_beside_others(
        example in example(2..=64, 0, 1),
        size in 1e-3..1.0f64,
    ) {
        let mut example = example;
        example.k.row_mut(0).fill(0.0);
        example.k[[0, 0]] = size;
        example.k[[0, 1]] = -size;
        for similarity in example.similarities() {
            let got = example.weights(similarity, Magnitude::Norm { p: 1e-3 });
            prop_assert!(got.column(0).iter().all(|&weight| weight == 1.0), "{}", got);
        }
    }
}

/// A key and its mirror image are equally loud for every p, but not equally near.
#[test]
fn ties_are_not_shared_evenly() {
    let k = array![[1.0, 0.5], [-1.0, -0.5], [0.4, 0.3]];
    // The second query is as near to the one as to the other.
    let q = array![[0.6, 0.8], [0.0, 0.0]];
    let magnitude = Magnitude::Norm { p: 1e-3 };
    let got = of_one_head(&q, &k, Similarity::Rbf, magnitude, &Mask::none());
    // The ratio of exp(-|q - k|^2 / (2 sqrt 2)) for k and -k.
    let ratio = (4.0_f64 * (0.6 + 0.4) / (2.0 * 2.0_f64.sqrt())).exp();
    let want = array![
        [ratio / (1.0 + ratio), 1.0 / (1.0 + ratio), 0.0],
        [0.5, 0.5, 0.0]
    ];
    assert!(largest(&(&got - &want)) < 1e-12, "{got}");
    assert!(got[[0, 0]] > 0.75, "uniform after all: {got}");
}

/// The winner at a small p need not be the winner in the limit.
#[test]
fn a_small_p_is_not_yet_the_limit() {
    let k = array![[1.01, 1.01], [2.0_f64.exp(), (-2.0_f64).exp()]];
    let q = array![[0.3, -0.2]];
    let winner = |p| {
        let magnitude = Magnitude::Norm { p };
        let weights = of_one_head(&q, &k, Similarity::Rbf, magnitude, &Mask::none());
        weights.row(0).iter().position(|&weight| weight == 1.0)
    };
    assert_eq!(winner(0.05), Some(1));
    assert_eq!(winner(0.001), Some(0));
}
