//! The sums of the linear-time form, to be looked at.

use super::{LinearTime, Sums, plan, with_head};
use crate::call::Call;
use crate::linear;
use crate::pairwise::Operands;
use crate::settings::Kernel;
use crate::{Error, Form, Settings, Shape, Workspace, attend};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, Array5, ArrayView4, ArrayViewMut2, s};

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
/// For looking at; a [`Decoder`](crate::Decoder) in this form attends to a stream of keys.
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
    let sums = saved.log_sums(&settings)?;
    let workspace = Workspace::new();
    let call = Call::new([q, k, v], &settings, &workspace)?;
    let Shape {
        batch,
        heads,
        queries,
        keys,
        value_width,
        width,
        ..
    } = call.shape;
    let width = kernel.operand_width(width);
    let mut state = LinearTimeState {
        g: Array3::zeros((batch, heads, keys)),
        a: Array4::zeros((batch, heads, width, width)),
        b: Array5::zeros((batch, heads, value_width, width, width)),
        z: Array3::zeros((batch, heads, queries)),
    };
    for h in 0..call.all_heads() {
        let (at, b, m) = (call.at(h), h / heads, h % heads);
        let admitted = at.admit()?;
        let inputs = admitted.inputs(&at);
        let operands = Operands::new(kernel.as_ref(), &at, &inputs);
        let plan = plan(&at, operands.weights());
        with_head(kernel.as_ref(), &at, &inputs, &operands, &plan, |head| {
            let starts = linear::starts(head);
            let sums_of_head = &starts[0];
            let g = head
                .weighted_values(&(0..at.kept()), sums_of_head.reference)
                .last;
            state
                .g
                .slice_mut(s![b, m, ..g.len()])
                .iter_mut()
                .zip(&g)
                .for_each(|(place, &g)| *place = g);
            head.second_moment(
                sums_of_head,
                value_width,
                state.a.slice_mut(s![b, m, .., ..]),
            );
            for n in 0..value_width {
                head.second_moment(sums_of_head, n, state.b.slice_mut(s![b, m, n, .., ..]));
            }
            for i in 0..queries {
                let z = (sums[[b, m, i]] - plan.rows[i]).exp();
                state.z[[b, m, i]] = if z.is_finite() { T::of(z) } else { T::zero() };
            }
        });
    }
    Ok(state)
}

impl<T: Real> LinearTime<'_, T> {
    /// Writes every entry of $\sum_j g_j y_{jn} \phi_j \phi_j^T$, `n` being a column of $[v | 1]$.
    fn second_moment(&self, sums: &Sums<T>, n: usize, mut out: ArrayViewMut2<T>) {
        let unscaled = (self.scale * self.scale).recip();
        let width = out.nrows();
        let entry = |a, b, x: T| out[[a, b]] = unscaled * x;
        self.plan.order.each_entry(&sums.moments, width, n, entry);
    }
}
