//! Feature maps: kernels whose weights are inner products of features.

use crate::kernel::HeadRows;
use crate::{Error, Shape};
use bochner_numerics::Real;
use std::fmt::Debug;

/// The form of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureForm {
    /// Numbers that are not negative, such as elu + 1.
    Values,
    /// Exponentials of logarithms that may be large; each feature has a reference of its own.
    Exponentials,
    /// Exponentials times numbers of either sign.
    SignedExponentials,
}

/// Features $\phi(q)$, $\phi(k)$ whose inner products are the weights of pairs: attention in linear time, causal or not,
/// with a cache of constant size.
///
/// ```
/// use bochner_engine::{FeatureForm, FeatureMap, HeadRows};
///
/// /// $\operatorname{elu}(x) + 1$ (Katharopoulos et al. 2020).
/// #[derive(Debug)]
/// struct Elu {
///     width: usize,
/// }
///
/// impl FeatureMap<f64> for Elu {
///     fn features(&self) -> usize {
///         self.width
///     }
///
///     fn map(&self, rows: HeadRows<f64>, values: &mut [f64], _logs: &mut [f64]) {
///         let numbers = values.iter_mut().zip(rows.x.data());
///         numbers.for_each(|(f, &x)| *f = if x > 0.0 { x + 1.0 } else { x.exp() });
///     }
///
///     fn pull(&self, _: HeadRows<f64>, values: &[f64], gradient: &[f64], out: &mut [f64], _: &mut [f64]) {
///         let all = out.iter_mut().zip(values).zip(gradient);
///         all.for_each(|((d, &f), &g)| *d += g * f.min(1.0));
///     }
/// }
/// ```
pub trait FeatureMap<T: Real>: Debug + Send + Sync + 'static {
    /// The number of features.
    fn features(&self) -> usize;

    /// The form of the features. Defaults to [`FeatureForm::Values`].
    fn form(&self) -> FeatureForm {
        FeatureForm::Values
    }

    /// Checks the settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever does not fit.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The numbers of each head's parameters.
    fn parameters(&self) -> usize {
        0
    }

    /// Writes the features $f_r e^{l_r}$ of some rows: the factors f as `values` and the logarithms l as `logs`, both
    /// `[n, features]`. There are no values to write for [`FeatureForm::Exponentials`], and no logarithms for
    /// [`FeatureForm::Values`].
    fn map(&self, rows: HeadRows<T>, values: &mut [T], logs: &mut [T]);

    /// Adds to `out`, `[n, d]`, the gradients along some rows, and to `parameters` that along the parameters of the head,
    /// given the gradient g along $f_r e^{l_r}$ over $e^{l_r}$: $\sum_r g_r (f_r' + f_r l_r')$.
    fn pull(
        &self,
        rows: HeadRows<T>,
        values: &[T],
        gradient: &[T],
        out: &mut [T],
        parameters: &mut [T],
    );
}
