//! An inference network reads its parameters and the positions that are kept, and nothing else.

use crate::common::{Parameters, random};
use bochner_spectral::{
    Features, InferenceGradients, InferenceNetwork, Inferred, InferredCotangents,
};
use ndarray::{Array2, Array4, Axis, concatenate, s};
use proptest::prelude::*;

const WIDTH: usize = 3;
const HEADS: usize = 2;

struct Sequence {
    x: Array4<f64>,
    kept: Array2<bool>,
}

impl Sequence {
    /// The sequence with every value replaced where it is not kept.
    fn poisoned(&self, value: f64) -> Self {
        let mut x = self.x.clone();
        for ((b, t), _) in self.kept.indexed_iter().filter(|(_, kept)| !**kept) {
            x.slice_mut(s![b, .., t, ..]).fill(value);
        }
        let kept = self.kept.clone();
        Self { x, kept }
    }

    /// The sequence with padding at its end.
    fn padded(&self, by: usize) -> Self {
        let (batch, heads, _, width) = self.x.dim();
        let tail = Array4::from_elem((batch, heads, by, width), f64::NAN);
        let unkept = Array2::from_elem((batch, by), false);
        Self {
            x: concatenate(Axis(2), &[self.x.view(), tail.view()]).unwrap(),
            kept: concatenate(Axis(1), &[self.kept.view(), unkept.view()]).unwrap(),
        }
    }
}

fn run(
    p: &Parameters<f64>,
    q: &Sequence,
    k: &Sequence,
) -> (Inferred<f64>, InferenceGradients<f64>) {
    let features = Features {
        q: q.x.view(),
        k: k.x.view(),
        q_kept: Some(q.kept.view()),
        k_kept: Some(k.kept.view()),
    };
    let inferred = p.network().infer(&features).unwrap();
    let cotangents = InferredCotangents {
        hidden: Some(inferred.hidden.view()),
        mu: inferred.mu.view(),
        log_sigma: inferred.log_sigma.view(),
    };
    let gradients = p.network().infer_vjp(&features, &inferred, &cotangents);
    (inferred, gradients.unwrap())
}

fn sequence(batch: usize, length: usize) -> impl Strategy<Value = Sequence> {
    let kept = prop::collection::vec(any::<bool>(), batch * length);
    (0..1000u64, kept).prop_map(move |(seed, kept)| Sequence {
        x: random((batch, HEADS, length, WIDTH), seed, "sequence"),
        kept: Array2::from_shape_vec((batch, length), kept).unwrap(),
    })
}

impl std::fmt::Debug for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} kept of {:?}", self.kept, self.x)
    }
}

fn two_sequences() -> impl Strategy<Value = (Sequence, Sequence)> {
    (1..3usize, 0..5usize, 1..5usize)
        .prop_flat_map(|(batch, tq, tk)| (sequence(batch, tq), sequence(batch, tk)))
}

proptest! {
    #[test]
    fn poison_behind_the_mask_changes_nothing(
        (q, k) in two_sequences(),
        poison in prop::sample::select(vec![f64::NAN, f64::INFINITY, -1e300]),
    ) {
        let p = Parameters::new(WIDTH, 2 * WIDTH, 7);
        let clean = run(&p, &q, &k);
        prop_assert_eq!(clean, run(&p, &q.poisoned(poison), &k.poisoned(poison)));
    }

    #[test]
    fn padding_changes_nothing((q, k) in two_sequences(), by in 1..4usize) {
        let p = Parameters::new(WIDTH, 2 * WIDTH, 7);
        let (inferred, gradients) = run(&p, &q, &k);
        let (padded, along) = run(&p, &q.padded(by), &k.padded(by));
        prop_assert_eq!(inferred, padded);
        prop_assert_eq!(&gradients.hidden, &along.hidden);
        let length = q.kept.ncols();
        prop_assert_eq!(gradients.q, along.q.slice(s![.., .., ..length, ..]));
        prop_assert!(along.q.slice(s![.., .., length.., ..]).iter().all(|&g| g == 0.0));
    }
}

fn whole(length: usize, seed: u64) -> Sequence {
    Sequence {
        x: random((1, HEADS, length, WIDTH), seed, "sequence"),
        kept: Array2::from_elem((1, length), true),
    }
}

#[test]
fn what_is_kept_does_matter() {
    let p = Parameters::new(WIDTH, 2 * WIDTH, 7);
    let (q, k) = (whole(3, 1), whole(4, 2));
    let mut fewer = whole(4, 2);
    fewer.kept[[0, 3]] = false;
    assert_ne!(run(&p, &q, &k).0.mu, run(&p, &q, &fewer).0.mu);
}

#[test]
fn where_nothing_is_kept_the_biases_are_left() {
    let p = Parameters::new(WIDTH, 2 * WIDTH, 7);
    let mut none = whole(3, 1);
    none.kept.fill(false);
    let got = run(&p, &none, &none).0;
    assert!(got.h.iter().all(|&h| h == 0.0));
    for l in 0..WIDTH {
        let b: f64 = p.biases[0][l];
        let want = if b > 0.0 { b } else { 0.2 * b };
        assert_eq!(got.hidden[[0, 1, l]], want);
    }
}

#[test]
fn zero_weights_leave_the_prior() {
    let mut p = Parameters::new(WIDTH, 2 * WIDTH, 7);
    p.weights[1..].iter_mut().for_each(|w| w.fill(0.0));
    p.biases[1..].iter_mut().for_each(|b| b.fill(0.0));
    let got = run(&p, &whole(3, 1), &whole(4, 2)).0;
    assert!(got.mu.iter().all(|&mu| mu == 0.0));
    assert!(got.log_sigma.iter().all(|&s| s == 0.1_f64.ln()));
}

#[test]
fn what_does_not_fit_is_named() {
    let p = Parameters::<f64>::new(WIDTH, 2 * WIDTH, 7);
    let (q, k, network) = (whole(3, 1), whole(4, 2), p.network());
    let features = Features {
        q_kept: Some(q.kept.view()),
        k_kept: Some(k.kept.view()),
        ..Features::new(q.x.view(), k.x.view())
    };
    let named = |network: InferenceNetwork<f64>, features: Features<f64>, name: &str| {
        let error = network.infer(&features).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{name}`")), "{error}");
    };
    let (q_kept, k_kept) = (features.k_kept, features.q_kept);
    named(network, Features { q_kept, ..features }, "q_kept");
    named(network, Features { k_kept, ..features }, "k_kept");
    let k = features.k.slice_move(s![.., ..1, .., ..]);
    named(network, Features { k, ..features }, "k");
    let (prior_std, hidden) = (0.0, network.mu);
    let without = InferenceNetwork {
        prior_std,
        ..network
    };
    named(without, features, "prior_std");
    let square = InferenceNetwork { hidden, ..network };
    named(square, features, "hidden.weight");
}
