//! `quadratic_vs_linear`: both forms of squared-kernel attention.

use super::attention::{GivenPoints, magnitude, mask, record};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{Form, Settings, attend, attend_vjp, linear_time_state};
use bochner_numerics::Real;
use ndarray::{Array4, Ix4};

/// Outputs and gradients in both forms, and the state of the linear-time one where the file has it.
pub(super) fn both_forms<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (q, k): (Array4<T>, Array4<T>) = (file.array("q")?, file.array("k")?);
    let v: Array4<T> = file.array("v")?;
    let (q, k, v) = (q.view(), k.view(), v.view());
    let points = GivenPoints::read(file)?;
    let (magnitude, mask) = (magnitude(file)?, mask(file)?);
    let squared = points.settings(file.number("floor")?, &mask);
    let settings = |form| Settings {
        magnitude,
        form,
        ..squared.clone()
    };
    let mut computed = Computed::default();
    let cotangent = file.ranked_cotangent::<T, Ix4>()?;
    for form in [Form::Quadratic, Form::LinearTime] {
        let settings = settings(form);
        let attended = attend(q, k, v, &settings).map_err(Fault::refused)?;
        computed.output("output", &attended.output);
        if let Some(g) = &cotangent {
            let g = attend_vjp(&attended, g.view());
            record(&g.map_err(Fault::refused)?, &points, &mut computed);
        }
    }
    if file.choice("state", &["yes", "no"])? == "yes" {
        file.check_outputs(&["g", "a", "b", "z"])?;
        let state = linear_time_state(q, k, v, &settings(Form::LinearTime));
        let state = state.map_err(Fault::refused)?;
        computed.output("g", &state.g);
        computed.output("a", &state.a);
        computed.output("b", &state.b);
        computed.output("z", &state.z);
    }
    Ok(computed)
}
