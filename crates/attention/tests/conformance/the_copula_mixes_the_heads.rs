use crate::common::*;
use bochner_attention::{Copula, Cotangents, Mask, Mikan, Preset};
use bochner_numerics::relative_error;
use ndarray::Array4;

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

/// $z_{mlr} = \mu_{ml} + \sigma_{ml} \sum_k \hat L_{l,mk} \varepsilon_{klr}$.
#[test]
fn draws_are_correlated_by_the_factor() {
    for copula in [Copula::Free, Copula::Amortised] {
        let mikan = mikan(copula);
        let example = Example::<f64>::new(5, 6);
        let mask = Mask::none();
        let inputs = example.inputs(&mask);
        let (eps, parameters) = (noise(), parameters(&mikan));
        let draw = mikan.draw(&inputs, &parameters, eps.clone()).unwrap();
        let factor = draw.factor().unwrap();
        let mut leaning = 0;
        for ((b, m, r, l), &z) in draw.z.indexed_iter() {
            let set = b.min(factor.dim().0 - 1);
            let x: f64 = (0..HEADS)
                .map(|k| factor[[set, l, m, k]] * eps[[b, k, r, l]])
                .sum();
            let sigma = draw.inferred.log_sigma[[b, m, l]].exp();
            let want = draw.inferred.mu[[b, m, l]] + sigma * x;
            assert!((z - want).abs() < 1e-12, "{copula:?}");
            leaning += usize::from(m > 0 && factor[[set, l, m, 0]].abs() > 0.01);
        }
        assert!(leaning > 0, "{copula:?}: the factor is the identity");
        assert!(draw.kl.iter().all(|&kl| kl > 0.0), "{copula:?}");
    }
}

/// The divergence, from its definition: mean field plus $-\frac12 \log\det$ of the correlation.
#[test]
fn the_penalty_is_beta_times_the_divergence() {
    for copula in [Copula::Independent, Copula::Free, Copula::Amortised] {
        let mikan = mikan(copula);
        let example = Example::<f64>::new(5, 6);
        let mask = Mask::none();
        let parameters = parameters(&mikan);
        let forward = mikan
            .forward_with(&example.inputs(&mask), &parameters, &EVALUATION, noise())
            .unwrap();
        let draw = mikan.draw_of(&forward).unwrap();
        for b in 0..BATCH {
            let mut kl = 0.0;
            for m in 0..HEADS {
                for l in 0..WIDTH {
                    let (s0, mu) = (mikan.prior_std, draw.inferred.mu[[b, m, l]]);
                    let sigma = draw.inferred.log_sigma[[b, m, l]].exp();
                    kl += (s0 / sigma).ln() + (sigma * sigma + mu * mu) / (2.0 * s0 * s0) - 0.5;
                    if let Some(factor) = draw.factor() {
                        kl -= factor[[b.min(factor.dim().0 - 1), l, m, m]].ln();
                    }
                }
            }
            let (got, want) = (forward.penalty[b], mikan.beta * kl);
            assert!(
                (got - want).abs() < 1e-10 * want.abs(),
                "{copula:?}: {got} {want}"
            );
        }
    }
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
