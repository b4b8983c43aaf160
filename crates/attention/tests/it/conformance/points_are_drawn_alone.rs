//! Spectral points without attention: the same that attention takes, with gradients of their own.

use crate::conformance::common::*;
use bochner_attention::{
    DrawnCotangents, DrawnPoints, Error, Form, IkanDirect, Inputs, Mask, Mikan, PointsGradients,
    Preset, SpectralMechanism, Variant,
};
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array1, Array4};

/// Mechanisms with points, as the paper has them, drawing once.
fn spectral() -> Vec<Variant> {
    let drawn = |variant: &Variant| match variant {
        Variant::IkanDirect(direct) => direct.preset == Preset::Paper,
        Variant::Mikan(mikan) => mikan.preset == Preset::Paper && mikan.draws == 1,
        _ => false,
    };
    variants().into_iter().filter(drawn).collect()
}

struct Problem {
    example: Example<f64>,
    parameters: Vec<f64>,
}

impl Problem {
    fn new(variant: &Variant) -> Self {
        Self {
            example: Example::new(5, 6),
            parameters: Case::of(variant.clone()).parameters,
        }
    }

    fn draw(&self, mechanism: &dyn SpectralMechanism<f64>) -> DrawnPoints<f64> {
        let mask = Mask::none();
        let inputs = self.example.inputs(&mask);
        mechanism
            .draw_points(&inputs, &self.parameters, &EVALUATION)
            .unwrap()
    }

    fn loss(&self, mechanism: &dyn SpectralMechanism<f64>) -> f64 {
        let drawn = self.draw(mechanism);
        let DrawnCotangents { points, penalty } = cotangents(&drawn);
        let w2 = drawn.w2.iter().zip(&points.w2).map(|(w, c)| (w * c).sum());
        (&drawn.w1 * &points.w1).sum() + w2.sum::<f64>() + (&drawn.penalty * &penalty).sum()
    }
}

fn cotangents(drawn: &DrawnPoints<f64>) -> DrawnCotangents<f64> {
    DrawnCotangents {
        points: PointsGradients {
            w1: random(drawn.w1.raw_dim(), "cotangent of w1"),
            w2: (drawn.w2.as_ref()).map(|w2| random(w2.raw_dim(), "cotangent of w2")),
        },
        penalty: random(drawn.penalty.raw_dim(), "penalty cotangent"),
    }
}

#[test]
fn they_are_those_of_attention() {
    for variant in spectral() {
        let mechanism = variant.spectral::<f64>().unwrap();
        let problem = Problem::new(&variant);
        let mask = Mask::none();
        let inputs = problem.example.inputs(&mask);
        let forward = mechanism.forward(&inputs, &problem.parameters, &EVALUATION);
        let seen = mechanism.inspect(&inputs, &problem.parameters, &EVALUATION);
        let drawn = problem.draw(mechanism);
        let (w1, w2) = seen.unwrap().points.unwrap();
        assert_eq!(drawn.w1, w1, "{variant:?}");
        assert_eq!(drawn.w2.unwrap_or(w1), w2, "{variant:?}");
        assert_eq!(drawn.penalty, forward.unwrap().penalty, "{variant:?}");
    }
}

#[test]
fn their_gradients_agree_with_finite_differences() {
    for variant in spectral() {
        let mechanism = variant.spectral::<f64>().unwrap();
        let mut problem = Problem::new(&variant);
        let (drawn, mask) = (problem.draw(mechanism), Mask::none());
        let inputs: Inputs<f64> = problem.example.inputs(&mask);
        let cotangent = cotangents(&drawn);
        let got = mechanism
            .draw_points_vjp(&inputs, &problem.parameters, &drawn, cotangent)
            .unwrap();
        assert!(got.v.iter().all(|&v| v == 0.0));

        let start = problem.parameters.clone();
        let parameters = finite_difference(&start, |moved| {
            problem.parameters = moved.to_vec();
            problem.loss(mechanism)
        });
        problem.parameters = start;
        let close = |got: &[f64], want: &[f64]| {
            let none = |x: &[f64]| x.iter().all(|x| x.abs() < 1e-8);
            let error = relative_error(got, want);
            assert!(
                error < 1e-6 || (none(got) && none(want)),
                "{variant:?}: {error:e}"
            );
        };
        close(&got.parameters, &parameters);
        let q = problem.example.q.clone();
        let along_q = finite_difference(q.as_slice().unwrap(), |moved| {
            problem.example.q = Array4::from_shape_vec(q.raw_dim(), moved.to_vec()).unwrap();
            problem.loss(mechanism)
        });
        close(got.q.as_slice().unwrap(), &along_q);
    }
}

#[test]
fn misuse_is_named() {
    let released = IkanDirect {
        preset: Preset::Released,
        ..IkanDirect::default()
    };
    let averaged = Mikan {
        draws: 2,
        ..Mikan::default()
    };
    for variant in [Variant::from(released), averaged.into()] {
        let mechanism = variant.spectral::<f64>().unwrap();
        let Problem {
            example,
            parameters,
        } = Problem::new(&variant);
        let (mask, pass) = (Mask::none(), EVALUATION);
        let drawn = mechanism.draw_points(&example.inputs(&mask), &parameters, &pass);
        assert!(
            matches!(drawn, Err(Error::Unsupported { .. })),
            "{variant:?}"
        );
    }

    let (direct, mikan) = (IkanDirect::default(), Mikan::default());
    let own = Problem::new(&direct.clone().into()).draw(&direct);
    let problem = Problem::new(&mikan.clone().into());
    let (mask, cotangent) = (Mask::none(), cotangents(&own));
    let inputs = problem.example.inputs(&mask);
    let foreign = mikan.draw_points_vjp(&inputs, &problem.parameters, &own, cotangent.clone());
    assert!(matches!(foreign, Err(Error::ForeignForward { .. })));
    let short = DrawnCotangents {
        penalty: Array1::zeros(BATCH + 1),
        ..cotangent
    };
    let refused = direct.draw_points_vjp(&inputs, &[], &own, short);
    assert!(matches!(refused, Err(Error::ShapeMismatch { .. })));
    assert!(
        Variant::from(bochner_attention::Softmax {})
            .spectral::<f64>()
            .is_none()
    );
}

/// A form that a mask rules out is refused where it is asked for, and only there.
#[test]
fn the_form_is_the_setting() {
    let example = Example::<f64>::new(5, 6);
    let matrix = ndarray::Array2::from_elem((5, 6), true);
    let mask = Mask::none().with_matrix(matrix.view());
    let output = |form: Form, mask: &Mask| {
        let direct = IkanDirect {
            form,
            ..IkanDirect::default()
        };
        let case = Case::of(direct.into());
        let inputs = example.inputs(mask);
        (case.mechanism()).forward(&inputs, &case.parameters, &EVALUATION)
    };
    assert!(output(Form::Automatic, &mask).is_ok());
    let refused = output(Form::LinearTime, &mask).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    let [pairs, linear] =
        [Form::Quadratic, Form::LinearTime].map(|form| output(form, &Mask::none()).unwrap().output);
    let (pairs, linear) = (pairs.as_slice().unwrap(), linear.as_slice().unwrap());
    assert!(relative_error(linear, pairs) < 1e-9);
    assert_ne!(linear, pairs, "the other form rounds differently");
}
