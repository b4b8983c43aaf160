//! `quadratic_vs_linear`: both forms of squared-kernel attention.

use super::attention::{GivenPoints, in_forms, magnitude, mask, record};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::engine::linear_time_state;
use bochner_attention::{Form, Settings};
use bochner_numerics::Real;
use ndarray::Array4;

/// Outputs and gradients in both forms, of decoders too, and the state of the linear-time form where the file has it.
pub(super) fn both_forms<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (q, k): (Array4<T>, Array4<T>) = (file.array("q")?, file.array("k")?);
    let v: Array4<T> = file.array("v")?;
    let (q, k, v) = (q.view(), k.view(), v.view());
    let points = GivenPoints::read(file)?;
    let (magnitude, mask) = (magnitude(file)?, mask(file)?);
    let settings = Settings {
        form: Form::LinearTime,
        ..points
            .settings(file.number("floor")?, &mask)
            .with_key_weight(magnitude)
    };
    let mut computed = Computed::default();
    let forms = [Form::Pairwise, Form::LinearTime].into_iter();
    let all = (&settings, [q, k, v]);
    in_forms(file, forms, all, &mut computed, |g, computed| {
        record(g, &points, computed);
    })?;
    if file.choice("state", &["yes", "no"])? == "yes" {
        file.check_outputs(&["g", "a", "b", "z"])?;
        let state = linear_time_state(&settings, q, k, v);
        let state = state.map_err(Fault::refused)?;
        computed.output("g", &state.g);
        computed.output("a", &state.a);
        computed.output("b", &state.b);
        computed.output("z", &state.z);
    }
    Ok(computed)
}
