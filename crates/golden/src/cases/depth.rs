//! `depth_threshold` and `separation_rank`: how depth trades against width.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_interpret::{DepthFit, Error, ModularNetwork, Readout, depth_threshold};
use bochner_numerics::Real;
use ndarray::{Array1, Array3, Array4};

/// The threshold, the published fit and its inverses; computed in double precision from inputs of either.
pub(super) fn threshold<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let fit = DepthFit::default();
    let mut computed = Computed::default();
    let mut of = |output: &str, input: &str, f: &dyn Fn(f64) -> Result<f64, Error>| {
        let input: Array1<T> = file.array(input)?;
        let values = input.iter().map(|x| f(x.as_f64()));
        let values: Array1<f64> = values.collect::<Result<_, _>>().map_err(Fault::refused)?;
        computed.output(output, &values);
        Ok::<(), Fault>(())
    };
    of("threshold", "width", &depth_threshold)?;
    of("depth_at_width", "width", &|x| fit.depth_at(x))?;
    of("width_at_depth", "depth", &|x| fit.width_at(x))?;
    of("parameters_at_depth", "depth", &|x| fit.parameters_at(x))?;
    of("depth_of_parameters", "parameters", &|x| fit.depth_of(x))?;
    of("width_of_parameters", "parameters", &|x| fit.width_of(x))?;
    Ok(computed)
}

/// The exact rank of a network's values, and the values where the file holds them.
pub(super) fn separation(file: &CaseFile) -> Result<Computed, Fault> {
    let [q, k, v, o]: [Array4<i64>; 4] = [
        file.integers("wq")?,
        file.integers("wk")?,
        file.integers("wv")?,
        file.integers("wo")?,
    ];
    let [a, b]: [Array3<i64>; 2] = [file.integers("xa")?, file.integers("xb")?];
    let read = Readout {
        token: file.count("token")?,
        component: file.count("component")?,
    };
    let prime = file.count("prime")? as u64;
    let network = ModularNetwork::new(prime, [q.view(), k.view(), v.view()], o.view());
    let network = network.map_err(Fault::refused)?;
    let seen = network.separation_rank(a.view(), b.view(), read);
    let seen = seen.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.integers("rank", &Array1::from_elem(1, seen.rank as i64));
    if file.asks_for("grid") {
        let grid = network.grid(a.view(), b.view(), read);
        computed.integers("grid", &grid.map_err(Fault::refused)?.mapv(|x| x as i64));
    }
    Ok(computed)
}
