//! The sums of the linear-time form, to be looked at.

use crate::call::Call;
use crate::pairwise::Operands;
use crate::settings::Kernel;
use crate::{Error, Form, Settings, Workspace, attend};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, Array5, ArrayView2, ArrayView4, Axis, aview1, s};

/// The sums over the keys from which a squared kernel's attention in linear time is computed.
///
/// With $g_j = \exp(m_j - \max_l m_l)$ and the kernel $f = \phi \cdot \phi / c$:
///
/// $$A = \sum_j g_j \phi_j \phi_j^T, \quad B_n = \sum_j g_j v_{jn} \phi_j \phi_j^T, \quad
/// o_{in} = \frac{\phi_i^T B_n \phi_i / c^2 + e \sum_j g_j v_{jn}}{Z_i}, \quad
/// Z_i = \phi_i^T A \phi_i / c^2 + e \sum_j g_j$$
///
/// Their size does not depend on the number of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearTimeState<T> {
    /// $g$, `[B, M, Tk]`; zero for padding.
    pub g: Array3<T>,
    /// $A$, `[B, M, 2R, 2R]`, positive semi-definite.
    pub a: Array4<T>,
    /// $B_n$, `[B, M, dv, 2R, 2R]`, symmetric.
    pub b: Array5<T>,
    /// The normaliser $Z$ of each query, `[B, M, Tq]`; zero where no key is kept.
    pub z: Array3<T>,
}

/// Returns the sums that [`attend`](crate::attend()) takes in [`Form::LinearTime`], whatever form the settings
/// ask for.
///
/// For looking at; a [`Decoder`](crate::Decoder) in this form attends to a stream of keys. The sums are those of the
/// formula, and agree with what [`attend`](crate::attend()) computes to rounding.
///
/// # Shapes
/// The shapes of [`attend`](crate::attend()).
///
/// # Errors
/// The errors of [`attend`](crate::attend()) with [`Form::LinearTime`], and [`Error::Unsupported`] for a causal
/// mask, under which every query has sums of its own, and for a kernel that is not squared.
pub fn linear_time_state<T: Real>(
    settings: &Settings<T>,
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
) -> Result<LinearTimeState<T>, Error> {
    let settings = Settings {
        form: Form::LinearTime,
        ..settings.clone()
    };
    if settings.mask.is_causal() {
        return Err(Error::Unsupported {
            what: "the one state of a causal sequence",
            instead: "a mask without causality, for the prefix that a query sees",
        });
    }
    let Kernel::Pairs(kernel) = &settings.kernel else {
        return Err(Error::Unsupported {
            what: "a look at the sums over features",
            instead: "a squared kernel",
        });
    };
    let (_, saved) = attend(&settings, q, k, v)?;
    let log_sums = saved.log_sums(&settings)?;
    let workspace = Workspace::new();
    let call = Call::new([q, k, v], &settings, &workspace)?;
    let (shape, width) = (call.shape, kernel.operand_width(call.shape.width));
    let heads = (shape.batch, shape.heads);
    let mut state = LinearTimeState {
        g: Array3::zeros((heads.0, heads.1, shape.keys)),
        a: Array4::zeros((heads.0, heads.1, width, width)),
        b: Array5::zeros((heads.0, heads.1, shape.value_width, width, width)),
        z: Array3::zeros((heads.0, heads.1, shape.queries)),
    };
    for h in 0..call.all_heads() {
        let (at, b, m) = (call.at(h), h / shape.heads, h % shape.heads);
        let admitted = at.admit()?;
        let inputs = admitted.inputs(&at);
        if at.kept() == 0 {
            continue;
        }
        let operands = Operands::new(kernel.as_ref(), &at, &inputs);
        let [_, phi] = operands.matrices(&inputs);
        let phi = ArrayView2::from_shape(phi.shape(), phi.data()).expect("row-major");
        let none = vec![0.0; at.kept()];
        let weights = operands.weights().unwrap_or(&none);
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let g: Vec<T> = weights.iter().map(|u| T::of((u - largest).exp())).collect();
        let moment = |y: &dyn Fn(usize) -> T| {
            let mut weighted = phi.to_owned();
            for (j, mut row) in weighted.axis_iter_mut(Axis(0)).enumerate() {
                let factor = g[j] * y(j);
                row.mapv_inplace(|x| factor * x);
            }
            phi.t().dot(&weighted)
        };
        let ones = moment(&|_| T::one());
        state.a.slice_mut(s![b, m, .., ..]).assign(&ones);
        for n in 0..shape.value_width {
            let values = moment(&|j| inputs.v.row(j)[n]);
            state.b.slice_mut(s![b, m, n, .., ..]).assign(&values);
        }
        state.g.slice_mut(s![b, m, ..g.len()]).assign(&aview1(&g));
        let z = log_sums
            .slice(s![b, m, ..])
            .mapv(|sum| T::of((sum - largest).exp()));
        state.z.slice_mut(s![b, m, ..]).assign(&z);
    }
    Ok(state)
}
