//! The linear-time form is the quadratic form in another order, also where one key is far larger than all others.

use crate::conformance::common::*;
use bochner_attention::{Form, IkanDirect, Mask, Variant};
use bochner_numerics::Tolerance;
use ndarray::{Array4, s};

/// Relative to the largest exponent of the whole sequence, the early rows would vanish.
#[test]
fn a_late_large_key() {
    let (length, floor) = (400, 1e-2);
    let direct = Variant::from(IkanDirect {
        points: 3,
        floor,
        p: 2.0,
        ..IkanDirect::default()
    });
    let forms = [Form::Pairwise, Form::LinearTime];
    let forms = forms.map(|form| Case::<f64>::of(direct.with_form(form).unwrap()));
    // Values that the linear-time form takes for narrow, and wide ones.
    for (at, width) in [
        (0, 17),
        (127, VALUE_WIDTH),
        (128, 17),
        (300, 17),
        (399, VALUE_WIDTH),
    ] {
        let mut example = Example {
            v: random((BATCH, HEADS, length, width), "v"),
            ..Example::new(length, length)
        };
        example.k.slice_mut(s![.., .., at, ..]).fill(30.0);
        for mask in [Mask::none().with_causality(), Mask::none()] {
            let label = format!("{at} of {width}, {mask:?}");
            let close = |got: &Array4<f64>, want: &Array4<f64>, tolerance: Tolerance| {
                let bound = tolerance.bound(want.iter().copied());
                assert!((got - want).iter().all(|x| x.abs() <= bound), "{label}");
            };
            let [want, got] = forms
                .each_ref()
                .map(|form| form.output(&example, &mask, &EVALUATION));
            close(&got, &want, Tolerance::outputs::<f64>());
            let [want, got] = forms
                .each_ref()
                .map(|form| form.gradients(&example, &mask, &EVALUATION));
            for (got, want) in got.streams.iter().zip(&want.streams) {
                close(got, want, Tolerance::gradients::<f64>());
            }
        }
    }
}
