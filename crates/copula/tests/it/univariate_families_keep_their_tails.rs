//! Densities and both tails of every family agree with mpmath as far out as numbers go, and quantiles take them back.

use bochner_copula::statrs::distribution as statrs;
use bochner_copula::{
    Empirical, Family, GaussianCopula, Joint, KernelDensity, LogTails, Marginal, Univariate,
};
use bochner_numerics::{Seed, normal};
use ndarray::array;
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    rows: Vec<(Univariate, f64, f64, f64, f64)>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("univariate.json")).unwrap()
}

#[test]
fn densities_and_tails() {
    let close = |got: f64, want: f64| (got - want).abs() <= 1e-12 * want.abs().max(0.1);
    for (univariate, z, density, lower, upper) in reference().rows {
        let got = univariate.log_density(z);
        assert!(close(got, density), "{univariate:?} {z:e}: {got} {density}");
        let LogTails {
            lower: below,
            upper: above,
        } = univariate.log_tails(z);
        assert!(close(below, lower), "{univariate:?} {z:e}: {below} {lower}");
        assert!(close(above, upper), "{univariate:?} {z:e}: {above} {upper}");
    }
}

/// One of each family; the samples are of 300 numbers, and of 3,000 in bins.
fn families() -> Vec<Univariate> {
    let mut families: Vec<Univariate> = reference().rows.into_iter().map(|row| row.0).collect();
    families.dedup();
    let mut rng = Seed::new(1).stream("sample");
    for n in [300, 3000] {
        let gamma = Univariate::Gamma {
            shape: 2.0,
            rate: 1.0,
        };
        let mut sample: Vec<f64> = (0..n)
            .map(|_| bochner_numerics::standard_normal(&mut rng))
            .collect();
        gamma.at_scores(&mut sample);
        families.push(Univariate::Empirical(Empirical::new(&sample).unwrap()));
        families.push(Univariate::KernelDensity(
            KernelDensity::new(&sample, None).unwrap(),
        ));
    }
    families
}

/// The largest error of a score whose quantile has the precision of a number: an ulp of the quantile, in units of the score.
fn rounding(univariate: &Univariate, z: f64, x: f64) -> f64 {
    let slope = (univariate.log_density(z) - normal::ln_density(x)).exp();
    4.0 * f64::EPSILON * z.abs() * slope
}

#[test]
fn quantiles_are_taken_back() {
    for univariate in families() {
        for x in [-30.0, -7.5, -3.0, -0.7, 0.0, 1e-9, 0.2, 2.0, 5.0, 30.0] {
            let z = univariate.at_score(x);
            let (low, high) = univariate.support();
            assert!(
                z >= low && z <= high && z.is_finite(),
                "{univariate:?} {x}: {z}"
            );
            // The quantile is too small, too large or too near the end of the support for a number.
            let lost = z.abs() < 1e-290 || z.abs() > 1e290 || z == low || z == high;
            let back = univariate.log_tails(z);
            let want = (normal::ln_cdf(x), normal::ln_cdf(-x));
            let smaller = if x <= 0.0 {
                back.lower - want.0
            } else {
                back.upper - want.1
            };
            let bound = (1e-11 + rounding(&univariate, z, x)) * x.abs().max(1.0);
            let ends = matches!(&univariate, Univariate::Empirical(_)) && x.abs() > 3.0;
            assert!(
                lost || ends || smaller.abs() <= bound,
                "{univariate:?} {x} {z:e}: {smaller:e}"
            );
        }
    }
}

#[test]
fn columns_are_drawn_as_each_number() {
    let mut rng = Seed::new(2).stream("scores");
    let scores: Vec<f64> = (0..500)
        .map(|_| 1.3 * bochner_numerics::standard_normal::<f64>(&mut rng))
        .collect();
    for univariate in families() {
        let mut column = scores.clone();
        univariate.at_scores(&mut column);
        for (&z, &x) in column.iter().zip(&scores) {
            let want = univariate.at_score(x);
            let slope = (normal::ln_density(x) - univariate.log_density(want)).exp();
            let bound = 1e-10 * (1.0 + x.abs()) * slope + 1e-13 * want.abs() + 1e-300;
            assert!(
                (z - want).abs() <= bound,
                "{univariate:?} {x}: {z:e} {want:e}"
            );
        }
    }
}

/// The distributions of statrs become these families, with the same parameters.
#[test]
fn distributions_of_statrs_have_their_own_density() {
    use ::bochner_copula::statrs::distribution::Continuous;
    macro_rules! same {
        ($($distribution:expr),*) => {$(
            let distribution = $distribution.unwrap();
            for z in [0.3, 0.7] {
                let (got, want) = (Marginal::log_density(&distribution, z), distribution.ln_pdf(z));
                assert!((got - want).abs() < 1e-9, "{distribution:?} {z}: {got} {want}");
            }
        )*};
    }
    same!(
        statrs::Beta::new(2.0, 0.7),
        statrs::Cauchy::new(0.5, 2.0),
        statrs::Chi::new(3),
        statrs::ChiSquared::new(3.0),
        statrs::Erlang::new(3, 2.0),
        statrs::Exp::new(2.0),
        statrs::FisherSnedecor::new(3.0, 5.0),
        statrs::Gamma::new(2.5, 1.5),
        statrs::Gumbel::new(0.5, 2.0),
        statrs::InverseGamma::new(2.0, 3.0),
        statrs::Laplace::new(0.5, 2.0),
        statrs::LogNormal::new(0.5, 1.5),
        statrs::Normal::new(0.5, 2.0),
        statrs::Pareto::new(0.2, 3.0),
        statrs::StudentsT::new(0.5, 2.0, 4.0),
        statrs::Triangular::new(-1.0, 2.0, 0.5),
        statrs::Uniform::new(-1.0, 4.0),
        statrs::Weibull::new(0.8, 4.0)
    );
}

fn joint(
    r: f64,
    a: impl Marginal + 'static,
    b: impl Marginal + 'static,
) -> Joint<Box<dyn Marginal>> {
    let copula = GaussianCopula::from_correlation(array![[1.0, r], [r, 1.0]].view()).unwrap();
    let marginals: Vec<Box<dyn Marginal>> = vec![Box::new(a), Box::new(b)];
    Joint::new(copula, marginals).unwrap()
}

/// mpmath at 40 digits; the first four rows have marginals whose distribution function underflows in statrs.
#[test]
fn joint_densities_far_out() {
    let gamma = statrs::Gamma::new(0.5, 1.0).unwrap();
    let exponential = statrs::Exp::new(1.0).unwrap();
    let normal = statrs::Normal::new(0.0, 1.0).unwrap();
    let value = |joint: &Joint<Box<dyn Marginal>>, z: [f64; 2]| {
        joint.log_density(array![z].view()).unwrap()[0]
    };
    let gammas = joint(0.9, gamma, gamma);
    assert!((value(&gammas, [1e-15, 1.0]) + 73.7387).abs() < 1e-4);
    assert!((value(&gammas, [1e-20, 1.0]) + 96.4125).abs() < 1e-4);
    assert_eq!(value(&gammas, [0.0, 1.0]), f64::NEG_INFINITY);
    let mixed = joint(0.6, exponential, normal);
    assert!((value(&mixed, [1e-300, 0.4]) + 400.73).abs() < 5e-3);
    let beta = statrs::Beta::new(0.5, 0.5).unwrap();
    let alone = joint(0.0, beta, normal);
    let want = 17.2237 + normal::ln_density(0.0);
    assert!((value(&alone, [1.0 - f64::EPSILON / 2.0, 0.0]) - want).abs() < 1e-4);
    for (marginal, z) in [
        (
            Box::new(statrs::Laplace::new(0.0, 1.0).unwrap()) as Box<dyn Marginal>,
            800.0,
        ),
        (Box::new(statrs::Gumbel::new(0.0, 1.0).unwrap()), 800.0),
        (Box::new(statrs::Cauchy::new(0.0, 1.0).unwrap()), 1e300),
        (
            Box::new(statrs::StudentsT::new(0.0, 1.0, 2.0).unwrap()),
            1e200,
        ),
    ] {
        let want = marginal.log_density(z) + normal::ln_density(0.0);
        let got = value(&joint(0.0, marginal, normal), [z, 0.0]);
        assert!(
            got.is_finite() && (got - want).abs() < 1e-9 * want.abs(),
            "{got} {want}"
        );
    }
}

#[test]
fn gammas_of_any_rate_are_drawn() {
    let mut rng = Seed::new(1).stream("draws");
    for rate in [1e-6, 1000.0, 1e9] {
        let gamma = statrs::Gamma::new(5.0, rate).unwrap();
        let erlang = statrs::Erlang::new(5, rate).unwrap();
        let z = joint(0.5, gamma, erlang).sample(2000, &mut rng).unwrap();
        let mean = z.mean().unwrap() * rate;
        assert!((mean - 5.0).abs() < 0.3, "{mean}");
        assert!(z.iter().all(|z| *z > 0.0 && z.is_finite()));
    }
}

#[test]
fn fifty_standard_deviations_can_be_given() {
    let normal = statrs::Normal::new(0.0, 1.0).unwrap();
    let mut rng = Seed::new(1).stream("draws");
    let z = joint(0.8, normal, normal)
        .conditional_sample(&[(0, 50.0)], 4000, &mut rng)
        .unwrap();
    let mean = z.column(1).mean().unwrap();
    assert!((mean - 40.0).abs() < 5.0 * 0.6 / 4000_f64.sqrt(), "{mean}");
}

#[test]
fn below_a_support_the_distribution_function_is_zero() {
    let exponential = statrs::Exp::new(1.0).unwrap();
    let joint = joint(0.5, exponential, exponential);
    let mut rng = Seed::new(1).stream("shifts");
    let got = joint.cdf(array![-1.0, 2.0].view(), Default::default(), &mut rng);
    assert_eq!(got.unwrap().value, 0.0);
}

/// The maxima of scipy 1.17.1's `logpdf`, found by `scipy.optimize.minimize` to 1e-10, on samples of 40 numbers that are
/// functions of the normal quantiles `norm.ppf((i + 1/2) / 40)`.
#[test]
fn fits_are_those_of_scipy() {
    let scores: Vec<f64> = (0..40)
        .map(|i| normal::quantile((f64::from(i) + 0.5) / 40.0))
        .collect();
    let positive: Vec<f64> = scores.iter().map(|x| (0.5 * x + 1.0).exp()).collect();
    let unit: Vec<f64> = scores.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
    let tails = scores.iter().map(|x| x.powi(3) + x);
    let heavy: Vec<f64> = tails.zip(&positive).map(|(x, y)| x + y).collect();
    let fit =
        |sample: &[f64], family| serde_json::to_value(Univariate::fit(sample, family).unwrap());
    for (sample, family, parameter, want) in FITS {
        let sample = [&positive, &unit, &heavy][sample];
        let fitted = fit(sample, family).unwrap();
        let got = fitted[parameter].as_f64().unwrap();
        assert!(
            (got / want - 1.0).abs() < 2e-5,
            "{family:?} {parameter}: {got} {want}"
        );
    }
}

const FITS: [(usize, Family, &str, f64); 10] = [
    (0, Family::Gamma, "shape", 4.315072692),
    (0, Family::Gamma, "rate", 1.407463591),
    (1, Family::Beta, "shape_a", 2.487418575),
    (1, Family::Beta, "shape_b", 2.487418555),
    (2, Family::StudentsT, "freedom", 1.699872651),
    (2, Family::StudentsT, "location", 2.712385871),
    (2, Family::StudentsT, "scale", 2.349253807),
    (0, Family::LogNormal, "scale", 0.4921317336),
    (0, Family::Exponential, "rate", 0.3261737838),
    (2, Family::Normal, "std_dev", 5.345673352),
];

#[test]
fn the_family_is_chosen_by_akaikes_criterion() {
    let mut rng = Seed::new(5).stream("sample");
    let families = [
        (
            Univariate::Normal {
                mean: 0.0,
                std_dev: 0.1,
            },
            Family::Normal,
        ),
        (
            Univariate::LogNormal {
                location: 0.0,
                scale: 0.9,
            },
            Family::LogNormal,
        ),
        (
            Univariate::Gamma {
                shape: 2.0,
                rate: 0.3,
            },
            Family::Gamma,
        ),
        (Univariate::Exponential { rate: 4.0 }, Family::Exponential),
        (
            Univariate::Beta {
                shape_a: 2.0,
                shape_b: 3.0,
            },
            Family::Beta,
        ),
        (
            Univariate::StudentsT {
                location: 0.0,
                scale: 1.0,
                freedom: 2.0,
            },
            Family::StudentsT,
        ),
        (
            Univariate::Uniform {
                min: -2.0,
                max: 5.0,
            },
            Family::Uniform,
        ),
    ];
    for (univariate, family) in families {
        let mut sample: Vec<f64> = (0..3000)
            .map(|_| bochner_numerics::standard_normal(&mut rng))
            .collect();
        univariate.at_scores(&mut sample);
        let chosen = Univariate::select(&sample, &Family::PARAMETRIC).unwrap();
        assert_eq!(chosen, Univariate::fit(&sample, family).unwrap());
    }
    let refused = Univariate::select(&[1.0, 2.0], &[Family::Normal, Family::KernelDensity]);
    assert!(refused.unwrap_err().to_string().contains("has no AIC"));
}

/// Kernels at each value, and in bins, against the definition.
#[test]
fn kernel_densities_are_sums_of_kernels() {
    let mut rng = Seed::new(6).stream("sample");
    for (n, tolerance) in [(200, 1e-12), (5000, 1e-3)] {
        let sample: Vec<f64> = (0..n)
            .map(|_| bochner_numerics::standard_normal(&mut rng))
            .collect();
        let smoothed = KernelDensity::new(&sample, Some(0.3)).unwrap();
        for z in [-6.0, -2.0, 0.0, 0.4, 3.0, 7.0] {
            let sum = |f: fn(f64) -> f64| -> f64 {
                sample.iter().map(|x| f((z - x) / 0.3)).sum::<f64>() / f64::from(n)
            };
            let close = |got: f64, want: f64| {
                (got - want.ln()).abs() < tolerance * want.ln().abs().max(0.1)
            };
            let tails = smoothed.log_tails(z);
            assert!(
                close(smoothed.log_density(z), sum(normal::density) / 0.3),
                "{z}"
            );
            assert!(close(tails.lower, sum(normal::cdf)), "{z}");
            assert!(close(tails.upper, sum(|x| normal::cdf(-x))), "{z}");
        }
        assert!(smoothed.log_tails(-40.0).lower > -1e5);
    }
}

#[test]
fn quantiles_of_a_sample_are_those_of_numpy() {
    let sample = Empirical::new(&[3.0, 1.0, 2.0, 5.0, 8.0]).unwrap();
    // numpy.quantile([3, 1, 2, 5, 8], u)
    for (u, want) in [(0.1, 1.4), (0.25, 2.0), (0.6, 3.8), (0.99, 7.88)] {
        let got = sample.at_score(normal::quantile(u));
        assert!((got - want).abs() < 1e-12, "{u}: {got} {want}");
    }
}
