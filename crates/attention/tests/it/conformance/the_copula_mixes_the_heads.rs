use crate::conformance::common::*;
use bochner_attention::{Copula, Mask, Mechanism, Mikan, Preset, Variant, mechanism::Cotangents};
use bochner_numerics::relative_error;
use ndarray::{Array1, Array3, Array4, ArrayView1, s};

fn mikan(copula: Copula) -> Mikan {
    Mikan {
        points: 4,
        p: 1.5,
        copula,
        ..Default::default()
    }
}

fn noise() -> Array4<f64> {
    random((BATCH, HEADS, 4, WIDTH), "spectral noise")
}

fn parameters(mikan: &Mikan) -> Vec<f64> {
    let variant = mikan.clone().into();
    let mut cases = [Case::<f64>::of(variant)];
    std::mem::take(&mut cases[0].parameters)
}

/// One draw of the latent, and what it was drawn from.
struct Draw {
    name: String,
    /// The noise, `[B, M, R, d]`.
    eps: Array4<f64>,
    mu: Array3<f64>,
    log_sigma: Array3<f64>,
    /// The normalised factors, `[1 or B, d, M, M]`.
    factor: Option<Array4<f64>>,
    z: Array4<f64>,
    penalty: Array1<f64>,
    prior_std: f64,
    beta: f64,
}

impl Draw {
    fn of(mikan: Mikan) -> Self {
        let (example, mask, eps) = (Example::<f64>::new(5, 6), Mask::none(), noise());
        let (inputs, parameters) = (example.inputs(&mask), parameters(&mikan));
        let forward = mikan.forward_with(&inputs, &parameters, &EVALUATION, eps.clone());
        let forward = forward.unwrap();
        let latent = mikan.draw_of(&forward).unwrap().latent.as_ref().unwrap();
        Self {
            name: format!("{mikan:?}"),
            eps,
            mu: latent.posterior().mu.clone(),
            log_sigma: latent.posterior().log_sigma.clone(),
            factor: latent.factor().cloned(),
            z: latent.z.clone(),
            penalty: forward.penalty,
            prior_std: mikan.prior_std,
            beta: mikan.beta,
        }
    }

    /// Row m of the factor of an example and a latent dimension.
    fn row(&self, b: usize, l: usize, m: usize) -> Option<ArrayView1<'_, f64>> {
        let factor = self.factor.as_ref()?;
        Some(factor.slice(s![b.min(factor.dim().0 - 1), l, m, ..]))
    }
}

/// The settings that follow the paper; the released code draws by formulas of its own.
fn of_the_paper() -> impl Iterator<Item = Mikan> {
    let all = examples().into_iter().filter_map(|variant| match variant {
        Variant::Mikan(mikan) => Some(mikan),
        _ => None,
    });
    all.filter(|mikan| mikan.preset == Preset::Paper)
}

/// $z_{mlr} = \mu_{ml} + \sigma_{ml} \sum_k \hat L_{l,mk} \varepsilon_{klr}$.
fn draws_are_correlated_by_the_factor(draw: &Draw) {
    let mut leaning = 0;
    for ((b, m, r, l), &z) in draw.z.indexed_iter() {
        let x: f64 = match draw.row(b, l, m) {
            None => draw.eps[[b, m, r, l]],
            Some(row) => {
                leaning += usize::from(m > 0 && row[0].abs() > 0.01);
                row.dot(&draw.eps.slice(s![b, .., r, l]))
            }
        };
        let want = draw.mu[[b, m, l]] + draw.log_sigma[[b, m, l]].exp() * x;
        assert!((z - want).abs() < 1e-12, "{}: {z} {want}", draw.name);
    }
    let has_factor = draw.factor.is_some();
    assert!(leaning > 0 || !has_factor, "{}: no dependence", draw.name);
}

/// Every head keeps its own marginal: the rows of a factor have norm one.
fn factors_give_correlations(draw: &Draw) {
    for row in draw.factor.iter().flat_map(|factor| factor.rows()) {
        assert!((row.dot(&row) - 1.0).abs() < 1e-12, "{}: {row}", draw.name);
    }
}

/// The divergence, from its definition: mean field plus $-\frac12 \log\det$ of the correlation.
fn the_penalty_is_beta_times_the_divergence(draw: &Draw) {
    let s0 = draw.prior_std;
    let mut kl = vec![0.0; BATCH];
    for ((b, m, l), &mu) in draw.mu.indexed_iter() {
        let sigma = draw.log_sigma[[b, m, l]].exp();
        kl[b] += (s0 / sigma).ln() + (sigma * sigma + mu * mu) / (2.0 * s0 * s0) - 0.5;
        kl[b] -= draw.row(b, l, m).map_or(0.0, |row| row[m].ln());
    }
    for (got, kl) in draw.penalty.iter().zip(kl) {
        assert!(kl > 0.0, "{}: {kl}", draw.name);
        let (want, name) = (draw.beta * kl, &draw.name);
        assert!((got - want).abs() <= want * 1e-10, "{name}: {got} {want}");
    }
}

#[test]
fn for_every_draw() {
    for draw in of_the_paper().map(Draw::of) {
        draws_are_correlated_by_the_factor(&draw);
        factors_give_correlations(&draw);
        the_penalty_is_beta_times_the_divergence(&draw);
    }
}

#[test]
fn correlations_are_shown_with_ones_on_the_diagonal() {
    let (example, mask) = (Example::<f64>::new(5, 6), Mask::none());
    let mut shown = 0;
    for mikan in of_the_paper() {
        let (inputs, parameters) = (example.inputs(&mask), parameters(&mikan));
        let inspection = mikan.inspect(&inputs, &parameters, &EVALUATION).unwrap();
        for matrix in inspection.correlation.iter().flat_map(|c| c.outer_iter()) {
            let is_one = |x: &f64| (x - 1.0).abs() < 1e-12;
            assert!(matrix.diag().iter().all(is_one), "{matrix}");
            shown += 1;
        }
    }
    assert!(shown > 0);
}

/// Gradients along the noise, which only [`Mikan::backward_with`] gives.
#[test]
fn the_noise_has_gradients() {
    for (copula, preset) in [
        (Copula::Independent, Preset::Paper),
        (Copula::Free, Preset::Paper),
        (Copula::Amortised, Preset::Paper),
        (Copula::Amortised, Preset::Released),
    ] {
        let mikan = Mikan {
            preset,
            ..mikan(copula)
        };
        let example = Example::<f64>::new(4, 5);
        let mask = Mask::none();
        let inputs = example.inputs(&mask);
        let (eps, parameters) = (noise(), parameters(&mikan));
        let forward = mikan
            .forward_with(&inputs, &parameters, &TRAINING, eps.clone())
            .unwrap();
        let (output, penalty) = cotangents(&forward);
        let cotangents = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let got = mikan
            .backward_with(&inputs, &parameters, &TRAINING, &forward, cotangents)
            .unwrap();
        let want = bochner_numerics::finite_difference(eps.as_slice().unwrap(), |x| {
            let eps = Array4::from_shape_vec(eps.raw_dim(), x.to_vec()).unwrap();
            loss(
                &mikan
                    .forward_with(&inputs, &parameters, &TRAINING, eps)
                    .unwrap(),
            )
        });
        let error = relative_error(got.eps.as_slice().unwrap(), &want);
        assert!(error < 1e-6, "{copula:?} {preset:?}: {error:e}");
    }
}
