//! Feature arguments that are rejected.

use crate::errors::{SIZE, refused, x};
use bochner_engine::numerics::Real;
use bochner_engine::{Decoder, Error, FeatureMap, Form, HeadRows, Mask, Settings, weights};

/// Features that are all one.
#[derive(Debug)]
pub(crate) struct Ones;

impl<T: Real> FeatureMap<T> for Ones {
    fn features(&self) -> usize {
        1
    }

    fn map(&self, _: HeadRows<T>, values: &mut [T], _: &mut [T]) {
        values.fill(T::one());
    }

    fn pull(&self, _: HeadRows<T>, _: &[T], _: &[T], _: &mut [T], _: &mut [T]) {}
}

/// Features of which some are not finite.
#[derive(Debug)]
struct Roots;

impl FeatureMap<f32> for Roots {
    fn features(&self) -> usize {
        4
    }

    fn map(&self, rows: HeadRows<f32>, values: &mut [f32], _: &mut [f32]) {
        let shift = if rows.head == 1 { 0.0 } else { 100.0 };
        values
            .iter_mut()
            .zip(rows.x.data())
            .for_each(|(f, &x)| *f = (x + shift).sqrt());
    }

    fn pull(&self, _: HeadRows<f32>, _: &[f32], _: &[f32], _: &mut [f32], _: &mut [f32]) {}
}

#[test]
fn features_that_are_not_finite_name_their_head() -> Result<(), Error> {
    let is_named = |error: &Error| {
        matches!(
            error,
            Error::Features {
                example: 0,
                head: 1
            }
        )
    };
    for form in [Form::Pairwise, Form::LinearTime] {
        let (settings, x) = (
            Settings {
                form,
                ..Settings::features(Roots, Mask::CAUSAL)
            },
            x(),
        );
        assert!(is_named(&refused(&settings)));
        assert!(is_named(
            &weights(&settings, x.view(), x.view()).unwrap_err()
        ));
        let mut decoder = Decoder::new(&settings, SIZE)?;
        assert!(is_named(
            &decoder.step(x.view(), x.view(), x.view()).unwrap_err()
        ));
    }
    Ok(())
}

/// Features of which there are more than an array can hold.
#[derive(Debug)]
struct Many;

impl FeatureMap<f64> for Many {
    fn features(&self) -> usize {
        usize::MAX
    }

    fn map(&self, _: HeadRows<f64>, _: &mut [f64], _: &mut [f64]) {
        unreachable!("refused before")
    }

    fn pull(&self, _: HeadRows<f64>, _: &[f64], _: &[f64], _: &mut [f64], _: &mut [f64]) {
        unreachable!("refused before")
    }
}

#[test]
fn more_features_than_an_array_holds_are_refused() {
    let error = refused(&Settings::features(Many, Mask::NONE));
    assert!(error.to_string().contains("one array"), "{error}");
}
