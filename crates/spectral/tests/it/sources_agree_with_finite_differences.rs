//! Gradients of every source of spectral points agree with finite differences.

mod misuse;

use crate::common::random;
use bochner_numerics::{Seed, finite_difference, relative_error};
use bochner_spectral::{
    AffineLayer, Copula, Direct, Drawn, DrawnCotangents, Error, Features, Implicit,
    ImplicitDensity, InferenceNetwork, Posterior, Preset, Size, Source, Stationarity,
    kl_mean_field, reparameterise,
};
use ndarray::{Array, Array1, Array2, Array4, ArrayD, Dimension, array};

const SIZE: Size = Size { heads: 3, width: 2 };
const BATCH: usize = 2;

/// Every combination of settings that goes together.
fn sources() -> Vec<Box<dyn Source<f64>>> {
    let mut all: Vec<Box<dyn Source<f64>>> = Vec::new();
    for stationarity in [Stationarity::Stationary, Stationarity::Nonstationary] {
        all.push(Box::new(Direct {
            points: 4,
            stationarity,
            ..Direct::default()
        }));
        for copula in [Copula::Independent, Copula::Free, Copula::Amortised] {
            for posterior in [Posterior::Inferred, Posterior::Unconditional] {
                for preset in [Preset::Paper, Preset::Released] {
                    let source = Implicit {
                        points: 4,
                        prior_std: 0.7,
                        copula,
                        preset,
                        stationarity,
                        posterior,
                        ..Implicit::default()
                    };
                    if Source::<f64>::validate(&source).is_ok() {
                        all.push(Box::new(source));
                    }
                }
            }
        }
    }
    // 2 direct; of the implicit ones 2 x (3 inferred + 2 unconditional), and the released one.
    assert_eq!(all.len(), 2 + 2 * 5 + 1);
    all
}

#[derive(Clone)]
struct Problem {
    q: Array4<f64>,
    k: Array4<f64>,
    k_kept: Array2<bool>,
    parameters: Vec<f64>,
    noise: Array4<f64>,
}

impl Problem {
    fn new(source: &dyn Source<f64>) -> Self {
        let mut parameters = source
            .initial(SIZE, &mut Seed::new(1).stream("start"))
            .unwrap();
        let shift: Array1<f64> = random(parameters.len(), 1, "shift");
        (parameters.iter_mut().zip(shift)).for_each(|(p, shift)| *p += 0.2 * shift);
        Self {
            q: random((BATCH, SIZE.heads, 3, SIZE.width), 1, "q"),
            k: random((BATCH, SIZE.heads, 4, SIZE.width), 1, "k"),
            k_kept: array![[true, true, false, true], [true, false, false, true]],
            parameters,
            noise: source.noise(BATCH, SIZE, &mut Seed::new(1).stream("noise")),
        }
    }

    fn features(&self) -> Features<'_, f64> {
        Features {
            k_kept: Some(self.k_kept.view()),
            ..Features::new(self.q.view(), self.k.view())
        }
    }

    fn draw(&self, source: &dyn Source<f64>) -> Drawn<f64> {
        let drawn = source.draw(&self.features(), &self.parameters, self.noise.clone());
        drawn.unwrap()
    }

    fn loss(&self, source: &dyn Source<f64>) -> f64 {
        let drawn = self.draw(source);
        let c = cotangents(&drawn);
        let points = drawn.points.iter().zip(&c.points);
        let points: f64 = points.map(|(w, c)| (w * c).sum()).sum();
        let entropy = drawn.latent.as_ref().and_then(|latent| latent.entropy());
        let entropy = entropy.zip(c.entropy).map_or(0.0, |(h, c)| h.dot(&c));
        points + drawn.kl.dot(&c.kl) + entropy
    }
}

fn cotangents(drawn: &Drawn<f64>) -> DrawnCotangents<f64> {
    let entropy = drawn.latent.as_ref().and_then(|latent| latent.entropy());
    let of = |(n, w): (usize, &Array4<f64>)| random(w.raw_dim(), n as u64, "cotangent of w");
    DrawnCotangents {
        points: drawn.points.iter().enumerate().map(of).collect(),
        kl: random(drawn.kl.raw_dim(), 3, "cotangent of kl"),
        entropy: entropy.map(|h| random(h.raw_dim(), 4, "cotangent of the entropy")),
    }
}

fn check(name: &str, got: &[f64], want: &[f64]) {
    let none = |x: &[f64]| x.iter().all(|x| x.abs() < 1e-8);
    let error = relative_error(got, want);
    assert!(
        error < 1e-6 || (none(got) && none(want)),
        "{name}: {error:e}"
    );
}

fn check_array<D: Dimension>(
    (name, source): (&str, &dyn Source<f64>),
    problem: &Problem,
    got: &Array<f64, D>,
    part: impl Fn(&mut Problem) -> &mut Array<f64, D>,
) {
    let mut moved = problem.clone();
    let start = part(&mut moved).clone();
    let want = finite_difference(start.as_slice().unwrap(), |x| {
        let x = Array::from_shape_vec(start.raw_dim(), x.to_vec()).unwrap();
        part(&mut moved).assign(&x);
        moved.loss(source)
    });
    check(
        &format!("{name} of {source:?}"),
        got.as_slice().unwrap(),
        &want,
    );
}

#[test]
fn along_features_parameters_and_noise() {
    for source in sources() {
        let source = source.as_ref();
        let problem = Problem::new(source);
        let drawn = problem.draw(source);
        let g = source
            .draw_vjp(
                &problem.features(),
                &problem.parameters,
                &drawn,
                cotangents(&drawn),
            )
            .unwrap();
        let mut moved = problem.clone();
        let want = finite_difference(&problem.parameters, |x| {
            moved.parameters = x.to_vec();
            moved.loss(source)
        });
        check(&format!("parameters of {source:?}"), &g.parameters, &want);
        check_array(("q", source), &problem, &g.q, |p| &mut p.q);
        check_array(("k", source), &problem, &g.k, |p| &mut p.k);
        check_array(("noise", source), &problem, &g.noise, |p| &mut p.noise);
    }
}

/// Cotangents up to the fourth root of the largest number give the gradients of smaller ones, scaled.
#[test]
fn large_cotangents_only_scale() {
    for source in sources() {
        let source = source.as_ref();
        let problem = Problem::new(source);
        let drawn = problem.draw(source);
        let gradients = |factor: f64| -> Vec<f64> {
            let mut c = cotangents(&drawn);
            c.points.iter_mut().for_each(|w| *w *= factor);
            c.kl *= factor;
            c.entropy.iter_mut().for_each(|h| *h *= factor);
            let g = source.draw_vjp(&problem.features(), &problem.parameters, &drawn, c);
            let g = g.unwrap();
            let rest = g.q.iter().chain(&g.k).chain(&g.noise);
            g.parameters.iter().chain(rest).copied().collect()
        };
        let factor = 2.0_f64.powi(255);
        for (small, large) in gradients(1.0).into_iter().zip(gradients(factor)) {
            assert_eq!(small * factor, large, "{source:?}");
        }
    }
}

#[test]
fn points_that_are_parameters_are_the_parameters() {
    let source = Direct {
        points: 4,
        ..Direct::default()
    };
    let problem = Problem::new(&source);
    let drawn = problem.draw(&source);
    let specs = Source::<f64>::parameters(&source, SIZE);
    assert_eq!([&specs[0].name[..], &specs[1].name], ["w1", "w2"]);
    let flat: Vec<f64> = drawn.points.iter().flatten().copied().collect();
    assert_eq!(flat, problem.parameters);
    assert_eq!(drawn.points[0].dim(), (1, SIZE.heads, 4, SIZE.width));
    assert_eq!(drawn.kl, Array1::<f64>::zeros(BATCH));
}

/// At the start the inferred posterior is near the prior, and the unconditional one is the prior.
#[test]
fn an_unconditional_posterior_starts_at_the_prior() {
    let source = Implicit {
        prior_std: 0.7,
        copula: Copula::Free,
        posterior: Posterior::Unconditional,
        ..Implicit::default()
    };
    let mut problem = Problem::new(&source);
    problem.parameters = source
        .initial(SIZE, &mut Seed::new(1).stream("start"))
        .unwrap();
    let drawn = problem.draw(&source);
    assert!(drawn.kl.iter().all(|kl| kl.abs() < 1e-12), "{}", drawn.kl);
    let correlation = drawn.latent.unwrap().correlation().unwrap().unwrap();
    for of_one in correlation.outer_iter() {
        assert_eq!(of_one, Array2::<f64>::eye(SIZE.heads));
    }
}

#[test]
fn misuse_is_named() {
    let (direct, implicit) = (Direct::default(), Implicit::default());
    let problem = Problem::new(&implicit);
    let named = |result: Result<Drawn<f64>, Error>, start: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    };
    let (features, parameters) = (problem.features(), &problem.parameters);
    let draw = |source: &Implicit, features: &Features<f64>, parameters: &[f64]| {
        source.draw(features, parameters, problem.noise.clone())
    };
    named(
        draw(&implicit, &features, &parameters[1..]),
        "`parameters` has length",
    );
    let few = Implicit {
        points: 3,
        ..implicit
    };
    named(draw(&few, &features, parameters), "`noise` has shape");
    let odd = Implicit {
        points: 3,
        preset: Preset::Released,
        ..implicit
    };
    named(
        draw(&odd, &features, parameters),
        "`points` is 3, but must be even",
    );
    let alone = Implicit {
        posterior: Posterior::Unconditional,
        ..implicit
    };
    named(
        draw(&alone, &features, parameters),
        "an amortised copula with",
    );
    let stationary = Implicit {
        stationarity: Stationarity::Stationary,
        preset: Preset::Released,
        ..implicit
    };
    named(
        draw(&stationary, &features, parameters),
        "the released preset with",
    );

    let drawn = problem.draw(&implicit);
    let other = Implicit {
        slope: 0.3,
        ..implicit
    };
    let vjp = |source: &dyn Source<f64>, cotangent: DrawnCotangents<f64>| {
        source.draw_vjp(&features, parameters, &drawn, cotangent)
    };
    for source in [&direct as &dyn Source<f64>, &other] {
        assert_eq!(vjp(source, cotangents(&drawn)), Err(Error::ForeignDraw));
    }
    let short = DrawnCotangents {
        kl: Array1::zeros(BATCH + 1),
        ..cotangents(&drawn)
    };
    let error = vjp(&implicit, short).unwrap_err().to_string();
    assert!(
        error.starts_with("`cotangent of the divergence`"),
        "{error}"
    );
    let (of_direct, parameters) = (Problem::new(&direct), &Problem::new(&direct).parameters);
    let own = of_direct.draw(&direct);
    let short = DrawnCotangents {
        kl: Array1::zeros(BATCH + 1),
        ..cotangents(&own)
    };
    let error = direct.draw_vjp(&of_direct.features(), parameters, &own, short);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("`cotangent of the divergence`"),
        "{error}"
    );
    let mut one_set = cotangents(&drawn);
    one_set.points.pop();
    let error = vjp(&implicit, one_set).unwrap_err().to_string();
    assert!(
        error.starts_with("`cotangents of the sets of points`"),
        "{error}"
    );
}

/// The draw is that of its parts, each with the source's own settings.
#[test]
fn a_draw_is_put_together_from_its_parts() {
    let source = Implicit {
        points: 4,
        prior_std: 0.7,
        slope: 0.35,
        copula: Copula::Independent,
        stationarity: Stationarity::Stationary,
        ..Implicit::default()
    };
    let problem = Problem::new(&source);
    let (specs, mut rest) = (
        Source::<f64>::parameters(&source, SIZE),
        &problem.parameters[..],
    );
    let mut arrays = specs.iter().map(|spec| {
        let (own, after) = rest.split_at(spec.count());
        rest = after;
        ArrayD::from_shape_vec(spec.shape.clone(), own.to_vec()).unwrap()
    });
    let mut layers = || {
        [(); 3].map(|()| {
            let [weight, bias] = [arrays.next().unwrap(), arrays.next().unwrap()];
            let weight: Array2<f64> = weight.into_dimensionality().unwrap();
            let bias: Array1<f64> = bias.into_dimensionality().unwrap();
            (weight, bias)
        })
    };
    let (inference, density) = (layers(), layers());
    fn affine((weight, bias): &(Array2<f64>, Array1<f64>)) -> AffineLayer<'_, f64> {
        AffineLayer {
            weight: weight.view(),
            bias: bias.view(),
        }
    }
    let [hidden, mu, log_sigma] = inference.each_ref().map(affine);
    let network = InferenceNetwork {
        hidden,
        mu,
        log_sigma,
        slope: 0.35,
        prior_std: 0.7,
    };
    let density = ImplicitDensity {
        layers: density.each_ref().map(affine),
        slope: 0.35,
    };
    let inferred = network.infer(&problem.features()).unwrap();
    let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
    let z = reparameterise(mu, log_sigma, problem.noise.view()).unwrap();
    let rows = z.to_shape((z.len() / SIZE.width, SIZE.width)).unwrap();
    let points = density.points(rows.view()).unwrap();
    let drawn = problem.draw(&source);
    assert_eq!(drawn.points[0].to_shape(points.raw_dim()).unwrap(), points);
    assert_eq!(drawn.kl, kl_mean_field(mu, log_sigma, 0.7).unwrap());
}

/// A posterior far from the prior is held at its bounds, and nothing flows through them.
#[test]
fn a_bound_lets_no_gradient_through() {
    let source = Implicit {
        points: 4,
        copula: Copula::Independent,
        posterior: Posterior::Unconditional,
        ..Implicit::default()
    };
    let mut problem = Problem::new(&source);
    let moments = SIZE.heads * SIZE.width;
    for beyond in [1e9, -1e9] {
        problem.parameters[..2 * moments].fill(beyond);
        let drawn = problem.draw(&source);
        let posterior = drawn.latent.as_ref().unwrap().posterior();
        let mu = 1e3 * 0.1 * f64::signum(beyond);
        assert!(posterior.mu.iter().all(|x| (x - mu).abs() < 1e-9));
        let ratio = if beyond > 0.0 { 7.0 } else { -60.0 };
        let log_sigma = ratio + 0.1_f64.ln();
        let held = |x: &f64| (x - log_sigma).abs() < 1e-9;
        assert!(posterior.log_sigma.iter().all(held));
        let cotangent = cotangents(&drawn);
        let g = source.draw_vjp(&problem.features(), &problem.parameters, &drawn, cotangent);
        let along = &g.unwrap().parameters[..2 * moments];
        assert!(along.iter().all(|&g| g == 0.0), "{along:?}");
    }
}
