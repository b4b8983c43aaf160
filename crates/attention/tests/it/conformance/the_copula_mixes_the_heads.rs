use crate::conformance::common::*;
use bochner_attention::{Copula, Cotangents, Mask, Mikan, Preset};
use bochner_numerics::relative_error;
use ndarray::{Array4, s};

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

/// A factor at independence is no copula at all, value for value.
#[test]
fn the_identity_factor_is_independence() {
    let (independent, free) = (mikan(Copula::Independent), mikan(Copula::Free));
    let example = Example::<f64>::new(5, 6);
    let mask = Mask::none().with_key_lengths(vec![6, 3]);
    let inputs = example.inputs(&mask);
    let own = parameters(&independent);
    let mut with_zeros = own.clone();
    with_zeros.resize(parameters(&free).len(), 0.0);

    let a = independent
        .forward_with(&inputs, &own, &EVALUATION, noise())
        .unwrap();
    let b = free
        .forward_with(&inputs, &with_zeros, &EVALUATION, noise())
        .unwrap();
    assert_eq!(a.output, b.output);
    assert_eq!(a.penalty, b.penalty);

    let (output, penalty) = cotangents(&a);
    let cotangents = Cotangents {
        output: output.view(),
        penalty: penalty.view(),
    };
    let a = independent
        .backward_with(&inputs, &own, &EVALUATION, &a, cotangents)
        .unwrap();
    let b = free
        .backward_with(&inputs, &with_zeros, &EVALUATION, &b, cotangents)
        .unwrap();
    assert_same_gradients(
        &bochner_attention::Gradients {
            parameters: b.gradients.parameters[..own.len()].to_vec(),
            ..b.gradients
        },
        &a.gradients,
        "at independence",
    );
    assert_close(&b.eps, &a.eps, "noise");
}

/// The draw of a case from the noise, if it is one by the formulas below.
fn drawn(case: &Case<f64>) -> Option<(Array4<f64>, Drawn<f64>)> {
    let latent = case.latent().filter(|_| !case.is_released())?;
    let (example, mask, eps) = (Example::<f64>::new(5, 6), Mask::none(), noise());
    let drawn = latent.drawn(&example.inputs(&mask), &case.parameters, &eps);
    Some((eps, drawn))
}

/// $z_{mlr} = \mu_{ml} + \sigma_{ml} \sum_k \hat L_{l,mk} \varepsilon_{klr}$.
pub(crate) fn draws_are_correlated_by_the_factor(case: &Case<f64>) {
    let Some((eps, draw)) = drawn(case) else {
        return;
    };
    let mut leaning = 0;
    for ((b, m, r, l), &z) in draw.z.indexed_iter() {
        let x: f64 = match &draw.factor {
            None => eps[[b, m, r, l]],
            Some(factor) => {
                let row = factor.slice(s![b.min(factor.dim().0 - 1), l, m, ..]);
                leaning += usize::from(m > 0 && row[0].abs() > 0.01);
                row.dot(&eps.slice(s![b, .., r, l]))
            }
        };
        let want = draw.mu[[b, m, l]] + draw.log_sigma[[b, m, l]].exp() * x;
        assert!((z - want).abs() < 1e-12, "{}: {z} {want}", case.name);
    }
    let has_factor = draw.factor.is_some();
    assert!(leaning > 0 || !has_factor, "{}: no dependence", case.name);
}

/// Every head keeps its own marginal: the rows of a factor have norm one.
pub(crate) fn factors_give_correlations(case: &Case<f64>) {
    let Some((_, draw)) = drawn(case) else {
        return;
    };
    for row in draw.factor.iter().flat_map(|factor| factor.rows()) {
        assert!((row.dot(&row) - 1.0).abs() < 1e-12, "{}: {row}", case.name);
    }
    let (example, mask) = (Example::<f64>::new(5, 6), Mask::none());
    let inputs = example.inputs(&mask);
    let shown = case
        .mechanism()
        .inspect(&inputs, &case.parameters, &EVALUATION);
    for matrix in shown
        .unwrap()
        .correlation
        .iter()
        .flat_map(|c| c.outer_iter())
    {
        assert!(
            matrix.diag().iter().all(|x| (x - 1.0).abs() < 1e-12),
            "{matrix}"
        );
    }
}

/// The divergence, from its definition: mean field plus $-\frac12 \log\det$ of the correlation.
pub(crate) fn the_penalty_is_beta_times_the_divergence(case: &Case<f64>) {
    let Some((_, draw)) = drawn(case) else {
        return;
    };
    let s0 = draw.prior_std;
    let mut kl = vec![0.0; BATCH];
    for ((b, m, l), &mu) in draw.mu.indexed_iter() {
        let sigma = draw.log_sigma[[b, m, l]].exp();
        kl[b] += (s0 / sigma).ln() + (sigma * sigma + mu * mu) / (2.0 * s0 * s0) - 0.5;
        if let Some(factor) = &draw.factor {
            kl[b] -= factor[[b.min(factor.dim().0 - 1), l, m, m]].ln();
        }
    }
    for (got, kl) in draw.penalty.iter().zip(kl) {
        let want = draw.beta * kl;
        assert!(want > 0.0, "{}: {want}", case.name);
        let error = (got - want).abs() / want;
        assert!(error < 1e-10, "{}: {got} {want}", case.name);
    }
}

#[test]
fn draws() {
    cases().iter().for_each(draws_are_correlated_by_the_factor);
}

#[test]
fn factors() {
    cases().iter().for_each(factors_give_correlations);
}

#[test]
fn penalties() {
    let check = the_penalty_is_beta_times_the_divergence;
    cases().iter().for_each(check);
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
