//! The zero-value theorem of Primal-Attention: its penalty vanishes at the singular vectors of its kernel matrix.

use bochner_attention::{
    Mask, Mechanism, Pass, Primal,
    mechanism::{Cotangents, PrimalWeights, Streams},
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2, Array4, Axis, s};
use proptest::prelude::*;

const WIDTH: usize = 5;
const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };

/// A reflection, so that no coordinate is a direction of its own.
fn orthogonal() -> Array2<f64> {
    let mut stream = Seed::new(3).stream("normal");
    let normal = Array1::from_shape_simple_fn(WIDTH, || standard_normal::<f64>(&mut stream));
    let column = normal.view().insert_axis(Axis(1));
    Array2::eye(WIDTH) - column.dot(&column.t()) * (2.0 / normal.dot(&normal))
}

/// Rows that point in direction c as often as `counts[c]` says, at any length.
fn rows(counts: &[usize], directions: &Array2<f64>) -> Array4<f64> {
    let repeated = counts.iter().enumerate();
    let repeated = repeated.flat_map(|(c, &n)| std::iter::repeat_n(c, n));
    let rows: Vec<_> = repeated.zip(1..).map(|(c, n)| (c, f64::from(n))).collect();
    Array4::from_shape_fn((1, 1, rows.len(), WIDTH), |(_, _, i, j)| {
        directions[[rows[i].0, j]] * rows[i].1
    })
}

proptest! {
    /// With n queries and m keys along one direction, and none of them along others, the kernel of cosines has the
    /// singular value $\sqrt{n m}$ there, and what indicates these rows, divided by its norm, as singular vectors. So
    /// the solution is known: $W_e = \Phi_k^\top H_r$ is $\sqrt m$ times the direction, $W_r = \Phi_q^\top H_e$ is
    /// $\sqrt n$ times it, and $\Lambda$ is the inverse of the value.
    #[test]
    fn the_penalty_vanishes_at_singular_vectors(
        queries in prop::collection::vec(1..6_usize, WIDTH),
        shift in 0..WIDTH,
        rank in 1..WIDTH,
    ) {
        // The keys are as many as the queries in all.
        let mut keys = queries.clone();
        keys.rotate_right(shift);
        let directions = orthogonal();
        let [q, k] = [&queries, &keys].map(|counts| rows(counts, &directions));
        let tokens = queries.iter().sum::<usize>() as f64;
        let root = |n: usize| (n as f64).sqrt();
        let of = |factor: &dyn Fn(usize) -> f64| {
            Array2::from_shape_fn((WIDTH, rank), |(j, c)| directions[[c, j]] * factor(c))
        };
        let values = Array1::from_shape_fn(rank, |c| root(queries[c] * keys[c]));
        let (we, wr) = (of(&|c| root(keys[c])), of(&|c| root(queries[c])));
        // The penalty takes means over tokens, and multiplies scores before it squares them.
        let lambda = values.mapv(|value| (tokens / value).sqrt());
        let mechanism = Primal {
            rank,
            weights: PrimalWeights::Parameters,
            eta: 1.0,
            ..Primal::default()
        };
        let mask = Mask::none();
        let inputs = Streams::new([q.view(), k.view()], &mask);
        let flat = |we: &Array2<f64>, lambda: &Array1<f64>| -> Vec<f64> {
            let rest = std::iter::repeat_n(0.1, WIDTH * 2 * rank);
            let parts = we.iter().chain(&wr).chain(lambda).copied();
            parts.chain(rest).collect()
        };
        let penalty = |parameters: &[f64]| {
            let seen = mechanism.forward(&inputs, parameters, &PASS).unwrap();
            seen.penalty.sum().sqrt() / values.sum()
        };

        let solution = flat(&we, &lambda);
        let at = mechanism.forward(&inputs, &solution, &PASS).unwrap();
        prop_assert!(penalty(&solution) < 1e-12);
        let scores = mechanism.scores_of(&at).unwrap();
        for (scores, counts) in [(&scores.e, &queries), (&scores.r, &keys)] {
            let mut row = 0;
            for (c, &count) in counts.iter().enumerate() {
                for own in scores.slice(s![0, 0, row..row + count, ..]).rows() {
                    for (r, &score) in own.iter().enumerate() {
                        // A singular vector times its value.
                        let expected = if r == c { values[c] / root(count) } else { 0.0 };
                        prop_assert!((score - expected).abs() < 1e-12);
                    }
                }
                row += count;
            }
        }
        let (nothing, one) = (Array4::zeros(at.output.raw_dim()), Array1::ones(1));
        let cotangents = Cotangents { output: nothing.view(), penalty: one.view() };
        let pulled = mechanism.backward(&inputs, &solution, &PASS, &at, cotangents).unwrap();
        prop_assert!(pulled.parameters.iter().all(|g| g.abs() < 1e-9));

        // Zero along the whole ray of multiples, too, and not beside it.
        let mut twice = solution.clone();
        twice[..2 * WIDTH * rank].iter_mut().for_each(|w| *w *= 2.0);
        prop_assert!(penalty(&twice) < 1e-12);
        prop_assert!(penalty(&flat(&(&we * 1.1), &lambda)) > 1e-3);
        prop_assert!(penalty(&flat(&we, &(lambda * 1.1))) > 1e-3);
    }
}
