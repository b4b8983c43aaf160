//! The steps of a fit, one at a time.

use crate::adam::Adam;
use crate::check::{expect_length, expect_some};
use crate::{Error, EvidenceGradient, FitConfig, GaussianProcess};
use serde::{Deserialize, Serialize};

/// The state of a climb up the evidence by Adam, in the coordinates of the process.
///
/// $$c \leftarrow c + \eta\, \operatorname{Adam}\Bigl(\frac1n
/// \frac{\partial \ln p(y \mid x)}{\partial c}\Bigr)$$
///
/// *where* $c$ are the [`coordinates`](GaussianProcess::coordinates), $\eta$ is
/// [`FitConfig::learning_rate`] and $n$ the number of observations.
///
/// [`GaussianProcess::fit`] is made of these steps. Taken one by one they leave room for whatever
/// else one factor of the covariance matrix gives: predictions at other inputs after every step
/// cost little more than the step. Saved (it is plain numbers) together with the values of the
/// parameters, and put back, the climb goes on with the same bits.
///
/// # Example
/// ```
/// use bochner_gp::{Ascent, FitConfig, rbf};
/// use ndarray::{Array, Axis};
///
/// let y = Array::linspace(0.0, 6.0, 30).mapv(f64::sin);
/// let x = Array::linspace(0.0, 6.0, 30).insert_axis(Axis(1));
/// let mut process = rbf(x.view(), y.view())?;
/// let mut ascent = Ascent::new(&process, &FitConfig::default())?;
/// for _ in 0..20 {
///     let posterior = process.condition(x.view(), y.view())?;
///     let gradient = posterior.evidence_gradient()?;
///     let _between = posterior.predict_mean(ndarray::array![[0.1], [0.3]].view())?;
///     ascent.step(&mut process, &gradient)?;
/// }
/// # Ok::<(), bochner_gp::Error>(())
/// ```
///
/// # Reference
/// Kingma, Ba, *Adam: a method for stochastic optimization*, ICLR 2015.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ascent {
    config: FitConfig,
    /// Kept here, for the logarithm of an exponential is not the same to the last bit.
    coordinates: Vec<f64>,
    adam: Adam,
}

impl Ascent {
    /// A climb from where the process stands. The number of [`FitConfig::steps`] does not bind it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for the settings.
    pub fn new(process: &GaussianProcess, config: &FitConfig) -> Result<Self, Error> {
        config.check()?;
        let coordinates = process.coordinates();
        Ok(Self {
            config: config.clone(),
            adam: Adam::new(coordinates.len()),
            coordinates,
        })
    }

    /// One step, along a gradient taken where the process stands.
    ///
    /// # Errors
    /// [`Error::Empty`] for a gradient without observations, [`Error::ShapeMismatch`] for one of
    /// another process, and those of [`GaussianProcess::set_coordinates`] where the step leads
    /// out of all bounds: the process is then where it was.
    pub fn step(
        &mut self,
        process: &mut GaussianProcess,
        gradient: &EvidenceGradient,
    ) -> Result<(), Error> {
        let observations = gradient.evidence.observations;
        expect_some("y", observations)?;
        let own = self.coordinates.len();
        expect_length("gradient", own, gradient.coordinates.len())?;
        let each = gradient.coordinates.iter();
        let each = each.map(|g| g / observations as f64);
        self.adam.climb(&self.config, &mut self.coordinates, each);
        process.set_coordinates(&self.coordinates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{kernels, points, process, scaled_rbf, targets};
    use ndarray::{Array1, Array2};

    fn climb(ascent: &mut Ascent, process: &mut GaussianProcess, steps: usize) {
        let (x, y) = (points(14, 2, "x"), targets(14, "y"));
        for _ in 0..steps {
            let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
            ascent.step(process, &gradient).unwrap();
        }
    }

    #[test]
    fn a_climb_that_was_saved_goes_on_with_the_same_bits() {
        for (whole, again) in kernels().into_iter().zip(kernels()) {
            let mut whole = process(whole, 0.3, 0.2);
            let mut ascent = Ascent::new(&whole, &FitConfig::default()).unwrap();
            climb(&mut ascent, &mut whole, 5);
            let values: Vec<f64> = whole.parameters().iter().map(|p| p.value).collect();
            let saved = serde_json::to_string(&(values, &ascent)).unwrap();
            climb(&mut ascent, &mut whole, 7);

            let (values, mut ascent): (Vec<f64>, Ascent) = serde_json::from_str(&saved).unwrap();
            let mut resumed = process(again, 0.0, 1.0);
            resumed.set_parameters(&values).unwrap();
            climb(&mut ascent, &mut resumed, 7);
            assert_eq!(whole.parameters(), resumed.parameters());
        }
    }

    #[test]
    fn a_gradient_that_does_not_fit_changes_nothing() {
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let mut ascent = Ascent::new(&process, &FitConfig::default()).unwrap();
        let (x, y) = (points(3, 2, "x"), targets(3, "y"));
        let none = process.evidence_gradient(Array2::zeros((0, 2)).view(), Array1::zeros(0).view());
        let mut short = process.evidence_gradient(x.view(), y.view()).unwrap();
        short.coordinates.pop();
        let before = (ascent.clone(), process.parameters());
        let refused = ascent.step(&mut process, &none.unwrap());
        assert_eq!(refused, Err(Error::Empty { what: "y" }));
        let refused = ascent.step(&mut process, &short);
        assert!(matches!(
            refused,
            Err(Error::ShapeMismatch {
                what: "gradient",
                ..
            })
        ));
        assert_eq!(before, (ascent, process.parameters()));
    }
}
