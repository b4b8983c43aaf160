//! What the linear-time form knows of a sequence.

use crate::engine::{self, Arguments};
use crate::score::Squared;
use crate::{Error, Form, Settings, Workspace};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, Array5, ArrayView4};

/// The sums over the keys that a squared kernel's attention comes down to.
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

/// The sums that [`attend`](crate::attend) takes in [`Form::LinearTime`], whatever form `settings`
/// ask for.
///
/// For looking at; a [`Decoder`](crate::Decoder) in this form attends to a stream of keys.
///
/// # Shapes
/// The shapes of [`attend`](crate::attend).
///
/// # Errors
/// The errors of [`attend`](crate::attend()) with [`Form::LinearTime`], and [`Error::Unsupported`] for a causal
/// mask, under which every query has sums of its own.
///
/// # Numerics
/// An entry of $B$ beyond the type's range is its largest number.
///
/// ```
/// use bochner_attention::{Magnitude, Mask, Points, Settings, linear_time_state};
/// use bochner_attention::ndarray::{Array4, Array3};
///
/// let x = Array4::from_shape_fn((1, 1, 5, 2), |(.., t, n)| (t + 3 * n) as f64 * 0.3);
/// let w = Array3::from_shape_fn((1, 4, 2), |(_, r, n)| (r as f64 - n as f64) * 0.5);
/// let points = Points::shared_stationary(w.view());
/// let settings = Settings {
///     magnitude: Magnitude::Norm { p: 2.0 },
///     ..Settings::squared(points, 1e-5, &Mask::none())
/// };
/// let state = linear_time_state(x.view(), x.view(), x.view(), &settings)?;
/// // The squares of the cosine and the sine of one frequency add up to one.
/// let trace: f64 = (0..8).map(|r| state.a[[0, 0, r, r]]).sum();
/// assert!((trace - 4.0 * state.g.sum()).abs() < 1e-12);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn linear_time_state<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<LinearTimeState<T>, Error> {
    let workspace = Workspace::new();
    let settings = Settings {
        form: Form::LinearTime,
        ..settings.clone()
    };
    let call = Arguments::new(q, k, v, &settings, &workspace)?;
    settings.form_for(call.queries, call.keys, call.value_width)?;
    if settings.mask.is_causal() {
        return Err(Error::Unsupported {
            what: "the one state of a causal sequence",
            instead: "a mask without causality, for the prefix that a query sees",
        });
    }
    let Some(kernel) = settings.kernel().any().downcast_ref::<Squared<T>>() else {
        return Err(Error::Unsupported {
            what: "a look at the sums over random features",
            instead: "a squared kernel",
        });
    };
    Ok(engine::linear_time_state(kernel, &call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mask, Points};
    use bochner_numerics::check::random;

    /// Sums over these values are taken in another unit.
    #[test]
    fn large_values_are_summed_up_in_full() {
        let [q, k, v] = ["q", "k", "v"].map(|name| random::<f32, _>((1, 2, 5, 3), name));
        let w: Array4<f32> = random((1, 2, 4, 3), "w");
        let points = Points::Stationary { w: w.view() };
        let settings = Settings::squared(points, 1e-5, &Mask::none());
        let power = 2.0_f32.powi(118);
        let [want, got] = [1.0, power].map(|factor| {
            let v = &v * factor;
            linear_time_state(q.view(), k.view(), v.view(), &settings).unwrap()
        });
        assert_eq!(got.b, want.b * power);
        assert_eq!((got.a, got.z), (want.a, want.z));
    }
}
