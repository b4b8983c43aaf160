//! `inter_modality_flow`: the share of attention that crosses between vision and text.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_interpret::{Modality, inter_modality_flow};
use bochner_numerics::Real;
use ndarray::{Array1, Array4};

pub(super) fn flow<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let [a, v]: [Array4<T>; 2] = [file.array("a")?, file.array("v")?];
    let kinds: Array1<i64> = file.integers("kind")?;
    let modality = |&kind: &i64| match kind {
        0 => Ok(Modality::Vision),
        1 => Ok(Modality::Text),
        2 => Ok(Modality::Padding),
        other => Err(Fault::Element {
            tensor: "in.kind".to_owned(),
            expected: "only 0 (vision), 1 (text) and 2 (padding)",
            got: other.to_string(),
        }),
    };
    let kinds: Vec<Modality> = kinds.iter().map(modality).collect::<Result<_, _>>()?;
    let flow = inter_modality_flow(a.view(), Some(v.view()), &kinds).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("attention", &flow.attention);
    computed.output("residual", &flow.residual);
    computed.output("rollout", &flow.rollout);
    if let Some(norm_weighted) = &flow.norm_weighted {
        computed.output("norm_weighted", norm_weighted);
    }
    computed.output("uniform", &Array1::from_elem(1, flow.uniform));
    Ok(computed)
}
