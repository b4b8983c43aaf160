//! Scan arguments that are rejected.

use crate::errors::{SIZE, refused, x};
use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::Real;
use bochner_engine::{
    Decoder, Error, Form, Mask, Position, PositionGradients, Scan, Settings, Wanted, attend,
    attend_vjp,
};

/// A scan that leaves the last column of its output alone at some position.
#[derive(Debug)]
struct Lazy;

impl<T: Real> Scan<T> for Lazy {
    fn state(&self, _: usize, _: usize) -> usize {
        1
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        state[0] += T::one();
        let written = if state[0] > T::of(3.0) && at.head == 1 {
            out.len() - 1
        } else {
            out.len()
        };
        out[..written].copy_from_slice(&at.v[..written]);
    }

    fn pull(&self, _: Position<T>, _: &[T], _: &[T], _: &mut [T], _: PositionGradients<T>) {}
}

#[test]
fn a_scan_writes_all_its_numbers() -> Result<(), Error> {
    let place = |error: Error| {
        matches!(
            error,
            Error::Scan {
                example: 0,
                head: 1,
                position: 3,
                column: 3
            }
        )
    };
    assert!(place(refused(&Settings::<f32>::scan(Lazy, Mask::CAUSAL))));
    let settings = Settings::<f32>::scan(Lazy, Mask::CAUSAL);
    let mut decoder = Decoder::new(&settings, SIZE)?;
    assert!(place(
        decoder
            .step(x().view(), x().view(), x().view())
            .unwrap_err()
    ));
    Ok(())
}

/// The running sum of the values, without a state of its own for queries and keys.
#[derive(Debug)]
pub(crate) struct Copy;

impl<T: Real> Scan<T> for Copy {
    fn state(&self, _: usize, _: usize) -> usize {
        0
    }

    fn step(&self, at: Position<T>, _: &mut [T], out: &mut [T]) {
        out.copy_from_slice(at.v);
    }

    fn pull(
        &self,
        _: Position<T>,
        _: &[T],
        cotangent: &[T],
        _: &mut [T],
        gradients: PositionGradients<T>,
    ) {
        gradients
            .v
            .iter_mut()
            .zip(cotangent)
            .for_each(|(sum, &x)| *sum += x);
    }
}

#[test]
fn scans_take_sequences_that_attend_to_themselves() -> Result<(), Error> {
    let (settings, x) = (Settings::<f64>::scan(Copy, Mask::CAUSAL), x::<f64>());
    let short = x.slice(bochner_engine::ndarray::s![.., .., ..3, ..]);
    for (q, k) in [(short, x.view()), (x.view(), short)] {
        let error = attend(&settings, q, k, k).map(drop).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
    for mask in [
        Mask::none(),
        Mask::causal().with_window(2, 0)?,
        Mask::causal().with_pairs(|_, _| true),
    ] {
        assert!(
            matches!(
                refused(&Settings::<f64>::scan(Copy, &mask)),
                Error::Unsupported { .. }
            ),
            "{mask:?}"
        );
    }
    let pairwise = Settings {
        form: Form::Pairwise,
        ..settings.clone()
    };
    assert!(matches!(refused(&pairwise), Error::Unsupported { .. }));
    // Packed sequences may end in padding.
    let mask = Mask::causal()
        .with_packed(&[3, 2])
        .with_key_lengths(vec![4]);
    let (settings, x) = (
        Settings::scan(Copy, &mask),
        x.slice_move(bochner_engine::ndarray::s![..1, .., .., ..]),
    );
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let gradients = attend_vjp(
        &settings,
        &saved,
        x.view(),
        x.view(),
        x.view(),
        x.view(),
        Wanted::default(),
    )?;
    let want = Array4::from_shape_fn(
        x.raw_dim(),
        |(b, m, t, n)| if t < 4 { x[[b, m, t, n]] } else { 0.0 },
    );
    assert_eq!((output.to_owned(), gradients.v), (want.clone(), want));
    Ok(())
}
