//! The theorems of the notes of Ji and Xie on attention, by their numbers: what permutations of the positions
//! do to self-attention, cross-attention and learnable queries, and what breaks that.

use crate::conformance::plain::{attend, weights};
use bochner_attention::{
    Cat, Mask, Mechanism, Pass, Settings, engine::DotProduct, mechanism::Streams,
};
use bochner_numerics::check::largest;
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array2, Array3, Array4, Axis, Dimension, ShapeBuilder};
use proptest::prelude::*;

const WIDTH: usize = 4;

fn random<D: Dimension>(shape: impl ShapeBuilder<Dim = D>, seed: u64) -> ndarray::Array<f64, D> {
    let mut stream = Seed::new(seed).stream("permutations");
    ndarray::Array::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

fn tokens(count: usize, seed: u64) -> Array4<f64> {
    random((1, 1, count, WIDTH), seed)
}

fn permuted(x: &Array4<f64>, order: &[usize]) -> Array4<f64> {
    x.select(Axis(2), order)
}

fn cross(q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>, mask: &Mask) -> Array4<f64> {
    let attended = attend(q.view(), k.view(), v.view(), &Settings::softmax(mask));
    attended.unwrap().output
}

/// Self-attention with maps of its own.
fn itself(x: &Array4<f64>, mask: &Mask) -> Array4<f64> {
    let [q, k, v] = [11, 12, 13].map(|seed| mapped(x, &random((WIDTH, WIDTH), seed)));
    cross(&q, &k, &v, mask)
}

/// Learnable queries over maps of the tokens.
fn pooled(x: &Array4<f64>) -> Array4<f64> {
    let [k, v] = [12, 13].map(|seed| mapped(x, &random((WIDTH, WIDTH), seed)));
    let queries: Array3<f64> = random((1, 3, WIDTH), 14);
    let (scale, queries) = (Some(1.0), queries.insert_axis(Axis(0)));
    let settings = Settings::pairs(DotProduct { scale }, &Mask::none());
    attend(queries.view(), k.view(), v.view(), &settings)
        .unwrap()
        .output
}

/// Each token under one linear map.
fn mapped(x: &Array4<f64>, map: &Array2<f64>) -> Array4<f64> {
    let rows = x.to_shape((x.dim().2, WIDTH)).unwrap().dot(&map.t());
    rows.into_shape_with_order(x.raw_dim()).unwrap()
}

/// A circular convolution over the positions and a map of the channels: CAT whose scores are the same for every
/// sequence.
fn convolved(x: &Array4<f64>, width: usize) -> Array4<f64> {
    let far = |(_, _, t, _): (usize, usize, usize, usize)| if t < width { t as f64 } else { -1e3 };
    let scores = Array4::from_shape_fn((1, 1, x.dim().2, 1), far);
    let (mask, seed) = (Mask::none(), Seed::new(0));
    let streams = Streams::new([scores.view(), x.view()], &mask);
    let attended = Cat::default().forward(&streams, &[], &Pass::Evaluation { seed });
    mapped(
        &attended.unwrap().output.into_owned(),
        &random((WIDTH, WIDTH), 15),
    )
}

/// Tokens with encodings of their positions.
fn placed(x: &Array4<f64>) -> Array4<f64> {
    let positions =
        |(_, _, t, n): (usize, usize, usize, usize)| (t as f64 / (1.0 + n as f64)).sin();
    x + &Array4::from_shape_fn(x.raw_dim(), positions)
}

fn distance(a: &Array4<f64>, b: &Array4<f64>) -> f64 {
    largest(&(a - b))
}

/// Whether `f` follows the order of the tokens.
fn is_equivariant(
    f: impl Fn(&Array4<f64>) -> Array4<f64>,
    x: &Array4<f64>,
    order: &[usize],
) -> bool {
    distance(&f(&permuted(x, order)), &permuted(&f(x), order)) < 1e-9
}

/// Whether `f` does not see the order of the tokens.
fn is_invariant(f: impl Fn(&Array4<f64>) -> Array4<f64>, x: &Array4<f64>, order: &[usize]) -> bool {
    distance(&f(&permuted(x, order)), &f(x)) < 1e-9
}

fn order(count: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..count).collect::<Vec<_>>()).prop_shuffle()
}

/// Orders that are no shift, for what must not hold: circular convolutions follow shifts.
fn order_that_is_no_shift(count: usize) -> impl Strategy<Value = Vec<usize>> {
    order(count).prop_filter("no shift", move |order| {
        (0..count).any(|i| order[i] != (order[0] + i) % count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(9)))]

    /// The lemma, by rows: $\operatorname{softmax}(P_q M P_k^\top) = P_q \operatorname{softmax}(M) P_k^\top$.
    #[test]
    fn lemma_9_softmax_commutes_with_permutations(
        queries in order(5),
        keys in order(7),
        seed in 0..1000_u64,
    ) {
        let (q, k) = (tokens(5, seed), tokens(7, seed + 1));
        let softmax = |q: &Array4<f64>, k: &Array4<f64>| {
            weights(q.view(), k.view(), &Settings::softmax(&Mask::none())).unwrap()
        };
        let both = permuted(&softmax(&q, &k), &queries).select(Axis(3), &keys);
        let error = distance(&softmax(&permuted(&q, &queries), &permuted(&k, &keys)), &both);
        prop_assert!(error < 1e-14);
    }

    /// The theorem: self-attention is equivariant, attention of learnable queries invariant.
    #[test]
    fn theorem_9_self_attention_follows_and_learnable_queries_do_not_see_the_order(
        order in order(7),
        seed in 0..1000_u64,
    ) {
        let x = tokens(7, seed);
        prop_assert!(is_equivariant(|x| itself(x, &Mask::none()), &x, &order));
        prop_assert!(is_invariant(pooled, &x, &order));
    }

    /// Cross-attention is invariant in keys and values together, and equivariant in the queries.
    #[test]
    fn corollary_9_cross_attention(keys in order(7), queries in order(5), seed in 0..1000_u64) {
        let (q, k, v, none) = (tokens(5, seed), tokens(7, seed + 1), tokens(7, seed + 2), Mask::none());
        let by_keys = cross(&q, &permuted(&k, &keys), &permuted(&v, &keys), &none);
        prop_assert!(distance(&by_keys, &cross(&q, &k, &v, &none)) < 1e-12);
        prop_assert!(is_equivariant(|q| cross(q, &k, &v, &none), &q, &queries));
    }

    /// Layers upon layers stay equivariant, and learnable queries upon them invariant.
    #[test]
    fn corollary_9_stacks(order in order(7), seed in 0..1000_u64) {
        let none = Mask::none();
        let stack = |x: &Array4<f64>| itself(&(x + &itself(x, &none)), &none);
        let x = tokens(7, seed);
        prop_assert!(is_equivariant(stack, &x, &order));
        prop_assert!(is_invariant(|x| pooled(&stack(x)), &x, &order));
    }

    /// A circular convolution follows shifts, and no other order unless its width is 1.
    #[test]
    fn statement_10_convolutions(shift in 1..7_usize, order in order(7), seed in 0..1000_u64) {
        let x = tokens(7, seed);
        let shift: Vec<usize> = (0..7).map(|i| (i + shift) % 7).collect();
        for width in [1, 3] {
            prop_assert!(is_equivariant(|x| convolved(x, width), &x, &shift));
        }
        prop_assert!(is_equivariant(|x| convolved(x, 1), &x, &order));
        prop_assert!(is_invariant(|x| pooled(&convolved(x, 1)), &x, &order));
    }

    /// Positions, causal masks and convolutions wider than 1 break what the theorem says.
    #[test]
    fn corollary_9_what_tells_positions_apart_breaks_the_symmetries(
        order in order_that_is_no_shift(7),
        seed in 0..1000_u64,
    ) {
        // Small tokens, so that no weight vanishes beside the tolerance.
        let x = tokens(7, seed) * 0.25;
        let (none, causal) = (Mask::none(), Mask::none().with_causality());
        prop_assert!(!is_equivariant(|x| itself(&placed(x), &none), &x, &order));
        prop_assert!(!is_invariant(|x| pooled(&placed(x)), &x, &order));
        prop_assert!(!is_equivariant(|x| itself(x, &causal), &x, &order));
        prop_assert!(!is_invariant(|x| pooled(&itself(x, &causal)), &x, &order));
        for width in [2, 3] {
            prop_assert!(!is_equivariant(|x| convolved(x, width), &x, &order));
            prop_assert!(!is_invariant(|x| pooled(&convolved(x, width)), &x, &order));
        }
        // Nor is a convolution of width 1 invariant.
        prop_assert!(!is_invariant(|x| convolved(x, 1), &x, &order));
        // Each symmetry is not the other.
        prop_assert!(!is_invariant(|x| itself(x, &none), &x, &order));
    }
}
