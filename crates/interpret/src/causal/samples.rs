//! Correlations of samples, without attention.

use super::Correlations;
use super::correlations::enough;
use super::values::root_of_values;
use crate::Error;
use bochner_numerics::Real;
use ndarray::ArrayView2;

impl Correlations {
    /// The correlations between variables, of which there are samples: those of a head whose tokens pass their values
    /// on. [`FisherZ::of_samples`](crate::FisherZ::of_samples) tests them.
    ///
    /// # Shapes
    /// `x: [T, n]`, a row for each variable and a column for each sample.
    ///
    /// # Errors
    /// * [`Error::Argument`] for numbers that are not finite;
    /// * [`Error::TooFewTokens`] below three variables, [`Error::TooFewSamples`] below two samples;
    /// * [`Error::LowVariance`] for a variable that is constant to the precision of `T`;
    /// * [`Error::FewerSamplesThanVariables`] unless there are more samples than variables;
    /// * [`Error::RankDeficient`] where variables depend on one another to the precision of `T`, as multiples do;
    /// * [`Error::NearlyUniform`] where all variables are correlated by more than $1 - 10^{-6}$.
    ///
    /// ```
    /// use bochner_interpret::{Correlations, FisherZ, Independence};
    /// use bochner_interpret::ndarray::array;
    ///
    /// // Of three variables and six samples, the first two go together.
    /// let x = array![[1., 2., 3., 4., 5., 6.], [1.1, 2., 2.9, 4.1, 5., 5.9], [1., -1., 0., 1., -1., 0.]];
    /// let correlations = Correlations::of_samples(x.view())?;
    /// let test = FisherZ::of_samples(&correlations, 0.01)?;
    /// assert!(!test.independent(0, 1, &[])? && test.independent(0, 2, &[])?);
    /// # Ok::<(), bochner_interpret::Error>(())
    /// ```
    pub fn of_samples<T: Real>(x: ArrayView2<T>) -> Result<Self, Error> {
        let (variables, samples) = x.dim();
        enough(variables)?;
        let root = root_of_values("x", x)?;
        if samples <= variables {
            return Err(Error::FewerSamplesThanVariables { variables, samples });
        }
        let all = Self::of_rows(root, 0.0, Some(samples))?;
        let all = all.of_full_rank(T::epsilon().as_f64())?;
        all.differ()?;
        Ok(all)
    }

    /// The number of samples that these correlations come from: the columns of the values, or of the samples; `None`
    /// where the covariance of the values is given or the identity.
    pub fn samples(&self) -> Option<usize> {
        self.samples
    }
}
