//! What Primal-Attention alone has: the zero of its objective.

use bochner_attention::{
    Cotangents, Forward, Mask, Mechanism, Pass, Primal, PrimalReduction, PrimalWeights, Streams,
};
use bochner_dense::svd;
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2, Array4, Axis, s};

const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };

fn normal(shape: (usize, usize), purpose: &str) -> Array2<f64> {
    let mut stream = Seed::new(61).stream(purpose);
    Array2::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

/// Rows of length one.
fn directions(rows: Array2<f64>) -> Array2<f64> {
    let norms = rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
    rows / norms.insert_axis(Axis(1))
}

/// One head of one example.
fn head(rows: &Array2<f64>) -> Array4<f64> {
    rows.to_owned().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// With weights made of the singular vectors of the kernel matrix, and λ of its singular values, the objective and its
/// gradient are zero (Chen et al. 2023, Lemma 4.2); the scores are singular vectors times singular values.
#[test]
fn the_objective_is_zero_at_the_singular_vectors() {
    for (case, (tokens, width, rank)) in [(20, 8, 1), (33, 11, 4), (60, 16, 6)]
        .into_iter()
        .enumerate()
    {
        let [q, k] =
            ["q", "k"].map(|name| directions(normal((tokens, width), &format!("{name} {case}"))));
        let all = svd(q.dot(&k.t()).view()).unwrap();
        let first = s![.., ..rank];
        let (u, v) = (
            all.u.slice(first).to_owned(),
            all.vt.t().slice(first).to_owned(),
        );
        let values = all.s.slice(s![..rank]).to_owned();
        let (we, wr) = (k.t().dot(&v), q.t().dot(&u));
        // The penalty takes the mean over the tokens, and multiplies scores before it squares them.
        let lambda = values.mapv(|value| (tokens as f64 / value).sqrt());
        let mechanism = Primal {
            rank,
            weights: PrimalWeights::Parameters,
            reduction: PrimalReduction::Batch,
            eta: 1.0,
            value_width: None,
        };
        let flat = |we: &Array2<f64>, lambda: &Array1<f64>| -> Vec<f64> {
            let wc = Array1::zeros(width * 2 * rank);
            let parts = we.iter().chain(&wr).chain(lambda).chain(&wc);
            parts.copied().collect()
        };
        let (queries, keys, mask) = (head(&q), head(&k), Mask::none());
        let inputs = Streams::new([queries.view(), keys.view()], &mask);
        let forward = |flat: &[f64]| mechanism.forward(&inputs, flat, &PASS).unwrap();
        let trace = values.sum();
        let objective = |forward: &Forward<f64>| forward.penalty[0].sqrt() / trace;

        let solution = flat(&we, &lambda);
        let at = forward(&solution);
        assert!(objective(&at) < 1e-12, "{}", objective(&at));
        let (nothing, one) = (Array4::zeros(at.output.raw_dim()), Array1::ones(1));
        let cotangents = Cotangents {
            output: nothing.view(),
            penalty: one.view(),
        };
        let gradients = mechanism.backward(&inputs, &solution, &PASS, &at, cotangents);
        let gradients = gradients.unwrap().parameters;
        assert!(gradients.iter().all(|g| g.abs() < 1e-12 * trace * trace));
        let scores = mechanism.scores_of(&at).unwrap();
        for (scores, vectors) in [(&scores.e, &u), (&scores.r, &v)] {
            let off = &scores.slice(s![0, 0, .., ..]) - &(vectors * &values);
            assert!(off.iter().all(|x| x.abs() < 1e-12));
        }
        // It is not zero elsewhere: with a weight moved, or with singular values in place of their inverses.
        let moved = &we + 0.1 * normal((width, rank), "moved");
        let inverted = values.mapv(|value| (tokens as f64 * value).sqrt());
        for elsewhere in [flat(&moved, &lambda), flat(&we, &inverted)] {
            assert!(objective(&forward(&elsewhere)) > 1e-4);
        }
    }
}
