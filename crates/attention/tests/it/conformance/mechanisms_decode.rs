//! Each mechanism decodes what it gives of whole sequences, or says why not.

use crate::conformance::common::*;
use crate::conformance::decoding_continues_the_sequence::{
    CAUSAL, SIZE, WINDOW, assert_within, decoded,
};
use bochner_attention::{Bias, Error, Form, mechanism::Decoding};
use ndarray::Axis;

#[test]
fn every_mechanism_decodes_or_says_why_not() {
    let mut example = Example::<f64>::new(6, 6);
    // Louder and quieter keys, on either side of a cut.
    for (mut k, loudness) in example
        .k
        .axis_iter_mut(Axis(2))
        .zip([1.0, 20.0, 0.05, 20.0, 0.05, 1.0])
    {
        k *= loudness;
    }
    let (mut decoding, mut leaking, mut windows) = (0, 0, 0);
    for case in cases::<f64>() {
        let (mechanism, name, parameters) = (case.mechanism(), &case.name, &case.parameters);
        let whole = case.forward(&example, &CAUSAL, &EVALUATION);
        for form in [Form::Pairwise, Form::LinearTime] {
            let decoder = mechanism.decoder(SIZE, parameters, &EVALUATION, form.into());
            match (decoder, &whole) {
                (Ok(mut decoder), Ok(whole)) => {
                    let got = decoded(&mut decoder, &example, &[3, 4, 6]);
                    assert_within(got.view(), whole.output.view(), name);
                    decoding += 1;
                }
                (Err(Error::Unsupported { .. }), Err(Error::Unsupported { .. })) => leaking += 1,
                // No linear-time form.
                (Err(Error::Unsupported { .. }), _) => {}
                (got, _) => panic!("{name}: {:?}", got.err()),
            }
        }
        // A window and a bias that follows from positions go along.
        let bias = Bias::relative(random((HEADS, 5), "table").view()).unwrap();
        for bias in [None, Some(&bias)] {
            let decoding = Decoding {
                form: Form::Pairwise,
                mask: &WINDOW,
                bias,
            };
            let inputs = case.inputs(&example, &WINDOW).with_bias(bias);
            let whole = mechanism.forward(&inputs, parameters, &EVALUATION);
            match (
                mechanism.decoder(SIZE, parameters, &EVALUATION, decoding),
                whole,
            ) {
                (Ok(mut decoder), Ok(whole)) => {
                    let got = decoded(&mut decoder, &example, &[3, 4, 6]);
                    assert_within(got.view(), whole.output.view(), name);
                    windows += 1;
                }
                (Err(Error::Unsupported { .. }), _) => {}
                (got, _) => panic!("{name}: {:?}", got.err()),
            }
        }
        let training = mechanism.decoder(SIZE, parameters, &TRAINING, Form::Pairwise.into());
        assert!(
            matches!(training, Err(Error::Unsupported { .. })),
            "{name}: {training:?}"
        );
    }
    assert!(decoding > 20 && leaking > 20, "{decoding}, {leaking}");
    assert!(windows > 20, "{windows}");
}
