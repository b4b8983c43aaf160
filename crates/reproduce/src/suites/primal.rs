//! Primal-Attention: the theorem on the zero of its objective, and what its loss does to singular values.

use crate::Error;
use crate::study::case::{Case, each, head, larger, normalised};
use crate::study::{Finding, Measure, Study};
use bochner_attention::{
    Mask, Mechanism, Pass, Primal,
    mechanism::{Cotangents, PrimalReduction, PrimalTrace, PrimalWeights, Streams},
};
use bochner_dense::svd;
use bochner_numerics::{Seed, parallel};
use bochner_ops::{AdamConfig, AdamRule, Moments};
use bochner_report::Scale;
use bochner_report::statistics::{Paired, mean};
use bochner_spectral::Size;
use ndarray::{Array1, Array2, Array4, ArrayView2, Axis, s};

/// The suite.
pub static PRIMAL: Study = Study {
    name: "primal",
    title: "Primal-Attention",
    part: "statement",
    opening,
    parts: &[zero_value, decay],
};

fn opening(_: Scale) -> String {
    "The objective of the kernel SVD is J = h - τ, of which the penalty is the square. Features are the directions of \
     queries and keys, the kernel matrix K holds their products; s is the number of directions kept."
        .to_owned()
}

/// The penalty is the square of the objective itself.
fn settings(rank: usize, weights: PrimalWeights, eta: f64) -> Primal {
    Primal {
        rank,
        weights,
        reduction: PrimalReduction::Batch,
        eta,
        value_width: None,
    }
}

/// Rows of length one.
fn directions(rows: Array2<f64>) -> Array2<f64> {
    let norms = rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
    rows / norms.insert_axis(Axis(1))
}

/// The numbers that must be zero at the singular vectors of one random kernel matrix, and of the controls |J| over τ:
/// of one of the weights moved, and of the singular values in place of their inverses.
type AtSolution = ([f64; ZEROS.len()], [f64; 2]);

const ZEROS: [&str; 4] = [
    "|J| over τ",
    "gradient of the penalty over τ^2",
    "error of a score",
    "|J| over τ at twice the weights",
];

fn zero_value(scale: Scale) -> Result<Finding, Error> {
    let cases = match scale {
        Scale::Smoke => 100,
        _ => 2_000,
    };
    let seen = each(1, cases, at_solution)?;
    let mut measures = Vec::new();
    for (n, what) in ZEROS.into_iter().enumerate() {
        let of = seen.iter().map(|case| case.0[n]);
        measures.push(Measure::largest(format!("largest {what}"), of).at_most(1e-9));
    }
    for (n, what) in ["one weight moved", "values not inverted"]
        .into_iter()
        .enumerate()
    {
        let what = format!("control, {what}: share of cases with |J| above τ / 1000");
        let above = seen.iter().map(|case| case.1[n] > 1e-3);
        measures.push(Measure::share(what, above).at_least(0.9));
    }
    Ok(Finding {
        number: 1,
        title: "the objective is zero at the singular vectors",
        statement: "With weights made of the first s singular vectors of K and Λ of the inverses of its singular \
                    values, J = 0 and the penalty has no gradient; the scores are singular vectors times values. J \
                    is a quadratic form, hence zero along the whole ray of multiples as well: zero is necessary, not \
                    sufficient. Controls: with one of the two weights moved by a tenth at random J is not zero, nor \
                    with the singular values in place of their inverses.",
        cases,
        measures,
        ..Finding::default()
    })
}

fn at_solution(mut case: Case) -> Result<AtSolution, Error> {
    let (tokens, width, rank) = (case.count(20, 60), case.count(8, 16), case.count(1, 6));
    let [q, k] = [(); 2].map(|()| directions(case.normal(tokens, width, 1.0)));
    let all = svd(q.dot(&k.t()).view())?;
    let [u, v] = [all.u.view(), all.vt.t()].map(|all| all.slice(s![.., ..rank]).to_owned());
    let values = all.s.slice(s![..rank]).to_owned();
    let (we, wr) = (k.t().dot(&v), q.t().dot(&u));
    // The penalty takes the mean over the tokens, and multiplies scores before it squares them.
    let lambda = values.mapv(|s| (tokens as f64 / s).sqrt());
    let mechanism = settings(rank, PrimalWeights::Parameters, 1.0);
    let flat = |we: &Array2<f64>, wr: &Array2<f64>, lambda: &Array1<f64>| {
        let wc = Array1::zeros(width * 2 * rank);
        let parts = we.iter().chain(wr).chain(lambda).chain(&wc);
        parts.copied().collect::<Vec<f64>>()
    };
    let (queries, keys, mask) = (head(q.view()), head(k.view()), Mask::none());
    let inputs = Streams::new([queries.view(), keys.view()], &mask);
    let pass = Pass::Evaluation { seed: Seed::new(1) };
    let trace = values.sum();
    let forward = |flat: &[f64]| mechanism.forward(&inputs, flat, &pass);
    let objective =
        |flat: &[f64]| -> Result<f64, Error> { Ok(forward(flat)?.penalty[0].sqrt() / trace) };
    let solution = flat(&we, &wr, &lambda);
    let at = forward(&solution)?;
    let (nothing, one) = (Array4::zeros(at.output.raw_dim()), Array1::ones(1));
    let cotangents = Cotangents {
        output: nothing.view(),
        penalty: one.view(),
    };
    let gradients = mechanism
        .backward(&inputs, &solution, &pass, &at, cotangents)?
        .parameters;
    let scores = mechanism.scores_of(&at)?;
    let off = |scores: &Array4<f64>, vectors: &Array2<f64>| {
        let off = &scores.slice(s![0, 0, .., ..]) - &(vectors * &values);
        off.iter().map(|x| x.abs()).fold(0.0, larger)
    };
    let noise = case.normal(width, rank, 0.1);
    let zeros = [
        objective(&solution)?,
        gradients.iter().map(|g| g.abs()).fold(0.0, larger) / (trace * trace),
        off(&scores.e, &u).max(off(&scores.r, &v)),
        objective(&flat(&(2.0 * &we), &(2.0 * &wr), &lambda))?,
    ];
    let inverted = values.mapv(|s| (tokens as f64 * s).sqrt());
    let moved = objective(&flat(&(&we + &noise), &wr, &lambda))?;
    Ok((zeros, [moved, objective(&flat(&we, &wr, &inverted))?]))
}

/// The model that is trained: sequences of vectors, one layer, the mean over the tokens, a linear map.
const HEADS: usize = 2;
const WIDTH: usize = 32;
const TOKENS: usize = 32;
const BATCH: usize = 32;
const CLASSES: usize = 4;
const RANK: usize = 4;
const PER_HEAD: usize = WIDTH / HEADS;

/// Weights of the loss: none, the paper's for language, and ten times that.
const ETAS: [f64; 3] = [0.0, 0.1, 1.0];

fn layer(eta: f64) -> Primal {
    let weights = PrimalWeights::Data {
        rows: 5 * RANK,
        trace: PrimalTrace::Data,
    };
    settings(RANK, weights, eta)
}

/// The measures of a model: accuracy, and of its kernel matrices the share of the squares of the singular values in the
/// first [`RANK`] and the effective rank; and the objective.
type Look = [f64; 4];

fn decay(scale: Scale) -> Result<Finding, Error> {
    let (seeds, steps) = match scale {
        Scale::Smoke => (2, 20),
        Scale::Desk => (20, 500),
        Scale::Paper => (50, 2_000),
    };
    let judged = |measure: Measure, least: f64| match scale {
        Scale::Smoke => measure,
        _ => measure.at_least(least),
    };
    let run = |seed| ETAS.iter().map(|eta| train(seed, *eta, steps)).collect();
    let runs: Result<Vec<Vec<_>>, Error> = parallel::map(seeds, run).into_iter().collect();
    let runs = runs?;
    let mut measures = Vec::new();
    let mut shares: Vec<Vec<f64>> = Vec::new();
    for (n, eta) in ETAS.into_iter().enumerate() {
        let of = |which: usize, what: usize| -> Vec<f64> {
            runs.iter().map(|run| run[n][which][what]).collect()
        };
        let names = [
            "accuracy",
            "share of the first 4",
            "effective rank",
            "objective",
        ];
        for (what, name) in names.into_iter().enumerate() {
            let [before, trained] = [mean(&of(0, what))?, mean(&of(1, what))?];
            let trained = Measure::shown(format!("η = {eta}: {name}"), trained);
            measures.extend(match (n, what) {
                (0, _) => vec![
                    Measure::shown(format!("untrained: {name}"), before),
                    trained,
                ],
                (_, 0) => vec![judged(trained, 0.8)],
                _ => vec![trained],
            });
        }
        shares.push(of(1, 1));
    }
    for (n, eta) in ETAS.into_iter().enumerate().skip(1) {
        let gain = Paired::between(&shares[0], &shares[n])?;
        let error = gain.error.unwrap_or(f64::NAN);
        let what = format!("η = {eta} less 0: share of the first 4");
        measures.push(Measure::shown(what, -gain.mean).with_error(error));
        if n == 1 {
            let what = "the first of these differences in standard errors";
            measures.push(judged(Measure::shown(what, -gain.mean / error), 2.0));
        }
    }
    Ok(Finding {
        number: 2,
        title: "singular values with and without the loss",
        statement: "A layer of Primal-Attention with data-dependent weights and s = 4 learns to tell four classes of \
                    sequences of 32 vectors, with and without the loss, from the same start on the same batches. \
                    With η = 0.1 the first four singular values of K hold more of the sum of squares than without, by \
                    two standard errors over the seeds. Controls: the untrained model, and that both models learn \
                    (accuracy 0.8 at least, chance 0.25).",
        cases: seeds,
        measures,
        ..Finding::default()
    })
}

/// Tokens, `[B T, WIDTH]`, and the class of each example.
type Batch = (Array2<f64>, Vec<usize>);

/// A third of the tokens of an example carry its class.
fn batch(case: &mut Case, centres: &Array2<f64>) -> Batch {
    let classes: Vec<usize> = (0..BATCH).map(|_| case.count(0, CLASSES - 1)).collect();
    let mut x = case.normal(BATCH * TOKENS, WIDTH, 1.0);
    for (i, mut token) in x.rows_mut().into_iter().enumerate() {
        if case.happens(1.0 / 3.0) {
            token += &centres.row(classes[i / TOKENS]);
        }
    }
    (x, classes)
}

/// The maps of queries and keys, the mechanism's own parameters, and the map to the classes.
type Parameters = [Vec<f64>; 4];

fn as_matrix(values: &[f64], columns: usize) -> ArrayView2<'_, f64> {
    let shape = (values.len() / columns, columns);
    ArrayView2::from_shape(shape, values).expect("whole rows")
}

const FITS: &str = "as many numbers";

/// `[B T, WIDTH]` as heads, `[B, M, T, d]`.
fn heads(x: &Array2<f64>) -> Array4<f64> {
    let x = x.to_shape((BATCH, TOKENS, HEADS, PER_HEAD)).expect(FITS);
    x.permuted_axes([0, 2, 1, 3]).to_owned()
}

/// Heads as `[B T, WIDTH]`.
fn tokens(x: &Array4<f64>) -> Array2<f64> {
    let x = x.view().permuted_axes([0, 2, 1, 3]);
    x.to_shape((BATCH * TOKENS, WIDTH)).expect(FITS).to_owned()
}

/// The objective, what it is made of, and its gradients.
struct Passed {
    loss: f64,
    probabilities: Array2<f64>,
    /// Queries and keys.
    sides: [Array4<f64>; 2],
    gradients: Parameters,
}

fn pass(layer: &Primal, parameters: &Parameters, (x, classes): &Batch) -> Result<Passed, Error> {
    let [wq, wk, own, wo] = parameters;
    let (mask, pass) = (Mask::none(), Pass::Evaluation { seed: Seed::new(1) });
    let [q, k] = [wq, wk].map(|w| heads(&x.dot(&as_matrix(w, WIDTH))));
    let input = heads(x);
    let streams = Streams::new([q.view(), k.view(), input.view()], &mask);
    let forward = layer.forward(&streams, own, &pass)?;
    let pooled = forward.output.mean_axis(Axis(2)).expect("tokens");
    let pooled = pooled.into_shape_with_order((BATCH, WIDTH)).expect(FITS);
    let wo = as_matrix(wo, CLASSES);
    let probabilities = normalised(&pooled.dot(&wo));
    let mut along = &probabilities / BATCH as f64;
    let mut loss = forward.penalty.mean().expect("examples");
    for (i, &class) in classes.iter().enumerate() {
        along[[i, class]] -= 1.0 / BATCH as f64;
        loss -= probabilities[[i, class]].ln() / BATCH as f64;
    }
    let back = along.dot(&wo.t()) / TOKENS as f64;
    let back = back.to_shape((BATCH, HEADS, 1, PER_HEAD)).expect(FITS);
    let share = Array1::from_elem(BATCH, 1.0 / BATCH as f64);
    let cotangent = Cotangents {
        output: back.broadcast(forward.output.raw_dim()).expect(FITS),
        penalty: share.view(),
    };
    let found = layer.backward(&streams, own, &pass, &forward, cotangent)?;
    let of = |side: usize| {
        let along = x.t().dot(&tokens(&found.streams[side]));
        along.iter().copied().collect::<Vec<f64>>()
    };
    let along_wo = pooled.t().dot(&along).iter().copied().collect();
    Ok(Passed {
        loss,
        probabilities,
        gradients: [of(0), of(1), found.parameters, along_wo],
        sides: [q, k],
    })
}

fn start(case: &mut Case, layer: &Primal) -> Result<Parameters, Error> {
    let mut map = |columns: usize| {
        let map = case.normal(WIDTH, columns, (WIDTH as f64).sqrt().recip());
        map.into_raw_vec_and_offset().0
    };
    let [wq, wk, wo] = [WIDTH, WIDTH, CLASSES].map(&mut map);
    let size = Size {
        heads: HEADS,
        width: PER_HEAD,
    };
    Ok([wq, wk, layer.initial(size, case.stream())?, wo])
}

/// The measures before and after training.
fn train(seed: usize, eta: f64, steps: u64) -> Result<[Look; 2], Error> {
    let (mut case, layer) = (Case::new(2, seed), layer(eta));
    let centres = case.normal(CLASSES, WIDTH, 0.5);
    let mut parameters = start(&mut case, &layer)?;
    let others = batch(&mut case, &centres);
    let before = look(&layer, &parameters, &others)?;
    let mut moments = parameters.each_ref().map(|own| Moments::zeros(own.len()));
    let config = AdamConfig {
        learning_rate: 3e-3,
        ..AdamConfig::default()
    };
    for step in 1..=steps {
        let gradients = pass(&layer, &parameters, &batch(&mut case, &centres))?.gradients;
        let rule = AdamRule::new(&config, config.learning_rate, step);
        for (n, gradient) in gradients.iter().enumerate() {
            rule.step(&mut parameters[n], &mut moments[n], gradient);
        }
    }
    Ok([before, look(&layer, &parameters, &others)?])
}

fn look(layer: &Primal, parameters: &Parameters, batch: &Batch) -> Result<Look, Error> {
    let seen = pass(layer, parameters, batch)?;
    let rows = batch.1.iter().zip(seen.probabilities.rows());
    let right = rows.filter(|(class, row)| row.iter().all(|p| *p <= row[**class]));
    let accuracy = right.count() as f64 / BATCH as f64;
    let (mut share, mut rank) = (0.0, 0.0);
    for example in 0..BATCH {
        for h in 0..HEADS {
            let side = |x: &Array4<f64>| directions(x.slice(s![example, h, .., ..]).to_owned());
            let values = svd(side(&seen.sides[0]).dot(&side(&seen.sides[1]).t()).view())?.s;
            let squares = values.mapv(|s| s * s);
            share += squares.slice(s![..RANK]).sum() / squares.sum();
            let parts = &values / values.sum();
            let present = parts.iter().filter(|p| **p > 0.0);
            rank += present.map(|p| -p * p.ln()).sum::<f64>().exp();
        }
    }
    let heads = (BATCH * HEADS) as f64;
    Ok([accuracy, share / heads, rank / heads, seen.loss])
}
