//! `magnitude`: the squared p-norm and its logarithm.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::magnitude::{log_norm_sq, magnitude as of_rows, magnitude_vjp};
use bochner_numerics::Real;
use ndarray::{Array2, Ix1};

/// The magnitude of each row, and `log |x|_p^2` where the file has it.
pub(super) fn magnitude<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let x: Array2<T> = file.array("x")?;
    let p = file.number("p")?;
    let mut computed = Computed::default();
    let m = of_rows(x.view(), p).map_err(Fault::refused)?;
    computed.output("magnitude", &m);
    if file.choice("log", &["yes", "no"])? == "yes" {
        file.check_outputs(&["log_norm_sq"])?;
        let log = log_norm_sq(x.view(), p).map_err(Fault::refused)?;
        computed.output("log_norm_sq", &log);
    }
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        let g = magnitude_vjp(x.view(), p, g.view()).map_err(Fault::refused)?;
        computed.gradient("x", &g);
    }
    Ok(computed)
}
