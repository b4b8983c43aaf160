//! Cases of every number of axes that the format allows.

use super::Draft;

fn passes(draft: &Draft) {
    let report = draft.report();
    assert_eq!([report.passed(), report.failed()], [2, 0], "{report}");
}

/// Rows (1, 0) and (0.6, 0.8) once normalised.
const FACTOR: [f64; 4] = [1.0, 0.0, 0.75, 1.0];

#[test]
fn one_factor_alone_is_a_stack_of_none() {
    let draft = Draft::new("copula_factor").with("parametrisation", "general");
    let draft = draft
        .tensor("in.factor", &[2, 2], &FACTOR)
        .tensor("out.corr", &[2, 2], &[1.0, 0.6, 0.6, 1.0])
        .tensor("out.normalised", &[2, 2], &[1.0, 0.0, 0.6, 0.8])
        .tensor("out.half_neg_log_det", &[], &[-(0.8_f64.ln())]);
    passes(&draft);
}

#[test]
fn one_factor_serves_every_latent_dimension() {
    let eps = [1.0, 2.0, -1.0, 0.5];
    let x = [1.0, 2.0, 0.6 - 0.8, 1.2 + 0.4];
    let g = [1.0, 0.0, 1.0, -1.0];
    let draft = Draft::new("mikan_posterior")
        .tensor("in.mu", &[1, 2, 2], &[0.0; 4])
        .tensor("in.log_sigma", &[1, 2, 2], &[0.0; 4])
        .tensor("in.factor", &[2, 2], &FACTOR)
        .tensor("in.eps", &[1, 2, 1, 2], &eps)
        .tensor("out.x", &[1, 2, 1, 2], &x)
        .tensor("out.z", &[1, 2, 1, 2], &x);
    passes(&draft);
    // Gradients of some of the inputs only. Along the second row, the latent dimensions add up to
    // (1 - 2, -1 - 0.5), of which (0.8, -0.6) / 1.25 times its part along that direction is left.
    let along = (0.6 * 1.5 - 0.8) / 1.25;
    let draft = draft
        .with("gradients", "eps factor")
        .with("cotangent_of", "z")
        .tensor("cotangent", &[1, 2, 1, 2], &g)
        .tensor("grad.eps", &[1, 2, 1, 2], &[1.6, -0.6, 0.8, -0.8])
        .tensor(
            "grad.factor",
            &[2, 2],
            &[0.0, 0.0, 0.8 * along, -0.6 * along],
        );
    passes(&draft);
}

#[test]
fn one_factor_counts_once_for_each_latent_dimension() {
    let kl = -3.0 * 0.8_f64.ln();
    let draft = Draft::new("kl_copula")
        .with("prior_std", "1")
        .with("gradients", "factor")
        .with("cotangent_of", "kl")
        .tensor("in.mu", &[2, 2, 3], &[0.0; 12])
        .tensor("in.log_sigma", &[2, 2, 3], &[0.0; 12])
        .tensor("in.factor", &[2, 2], &FACTOR)
        .tensor("out.kl", &[2], &[kl, kl])
        .tensor("cotangent", &[2], &[1.0, 3.0])
        // d/dt of log(1 + t^2) / 2 at t = 0.75, for each latent dimension and example.
        .tensor(
            "grad.factor",
            &[2, 2],
            &[0.0, 0.0, 12.0 * 0.48, 12.0 * -0.36],
        );
    passes(&draft);
}

#[test]
fn leading_axes_of_features_are_broadcast() {
    let (x, w) = ([0.5, 1.0], [2.0, -1.0]);
    let angles: Vec<f64> = x.iter().flat_map(|x| w.map(|w| w * x)).collect();
    let phi: Vec<f64> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
    // The cotangent is one everywhere.
    let slope: Vec<f64> = angles.iter().map(|a| a.cos() - a.sin()).collect();
    let along_x = [
        w[0] * slope[0] + w[1] * slope[1],
        w[0] * slope[2] + w[1] * slope[3],
    ];
    let along_w = [
        x[0] * slope[0] + x[1] * slope[2],
        x[0] * slope[1] + x[1] * slope[3],
    ];
    let draft = Draft::new("feature_map")
        .with("stationarity", "stationary")
        .with("gradients", "x w1")
        .with("cotangent_of", "phi")
        .tensor("in.x", &[2, 1, 1, 1, 1], &x)
        .tensor("in.w1", &[1, 2, 1, 1], &w)
        .tensor("out.phi", &[2, 1, 2, 1, 2], &phi)
        .tensor("out.f", &[2, 1, 2, 1, 1], &[1.0; 4])
        .tensor("cotangent", &[2, 1, 2, 1, 2], &[1.0; 8])
        .tensor("grad.x", &[2, 1, 1, 1, 1], &along_x)
        .tensor("grad.w1", &[1, 2, 1, 1], &along_w);
    passes(&draft);
}

#[test]
fn one_latent_draw_may_stand_alone() {
    let mut draft = Draft::new("implicit_density").with("slope", "0.5");
    for name in ["in.w1", "in.w2", "in.w3"] {
        draft = draft.tensor(name, &[1, 1], &[-1.0]);
    }
    for name in ["in.b1", "in.b2", "in.b3"] {
        draft = draft.tensor(name, &[1], &[0.0]);
    }
    // |z| = 4, then -4 halved to -2, then 2, then -2; odd in z.
    let draft = draft
        .tensor("in.z", &[1], &[-4.0])
        .tensor("out.w", &[1], &[2.0]);
    passes(&draft);
}
