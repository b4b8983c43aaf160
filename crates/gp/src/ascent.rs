//! The steps of a fit, one at a time.

use crate::adam::Adam;
use crate::{Error, EvidenceGradient, FitConfig, GaussianProcess};
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// The state of a climb up the evidence by Adam, in the coordinates of the process.
///
/// $$c \leftarrow c + \eta \operatorname{Adam}\Bigl(\frac1n
/// \frac{\partial \ln p(y \mid x)}{\partial c}\Bigr)$$
///
/// *where* $c$ are the [`coordinates`](GaussianProcess::coordinates), $\eta$ is
/// [`FitConfig::learning_rate`] and $n$ the number of observations.
///
/// [`GaussianProcess::fit`] takes these steps. Between two of them, a caller can predict from the
/// factor of the covariance matrix that the step needs anyway, at little more than the cost of the
/// step. An ascent that is serialised together with the values of the parameters, and read again, goes
/// on with the same bits.
///
/// # Example
/// ```
/// use bochner_gp::ndarray::{Array, Axis, array};
/// use bochner_gp::{Ascent, FitConfig, rbf_process};
///
/// let y = Array::linspace(0.0, 6.0, 30).mapv(f64::sin);
/// let x = Array::linspace(0.0, 6.0, 30).insert_axis(Axis(1));
/// let mut process = rbf_process(x.view(), y.view())?;
/// let mut ascent = Ascent::new(&process, &FitConfig::default())?;
/// for _ in 0..20 {
///     let posterior = process.condition(x.view(), y.view())?;
///     let gradient = posterior.evidence_gradient()?;
///     let _between = posterior.predict_mean(array![[0.1], [0.3]].view())?;
///     ascent.step(&mut process, &gradient)?;
/// }
/// # Ok::<(), bochner_gp::Error>(())
/// ```
///
/// # Reference
/// Kingma, Ba, *Adam: a method for stochastic optimization*, ICLR 2015.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct Ascent {
    config: FitConfig,
    /// The coordinates of the process. They are kept because the logarithm of an exponential is not
    /// the same to the last bit.
    coordinates: Vec<f64>,
    adam: Adam,
}

/// An [`Ascent`] as it is read, before it is checked.
#[derive(Deserialize)]
struct Saved {
    config: FitConfig,
    coordinates: Vec<f64>,
    adam: Adam,
}

impl TryFrom<Saved> for Ascent {
    type Error = ArgumentError;

    fn try_from(saved: Saved) -> Result<Self, ArgumentError> {
        let Saved {
            config,
            coordinates,
            adam,
        } = saved;
        config.check()?;
        argument::finite("coordinates", &[coordinates.len()], &coordinates)?;
        adam.check(coordinates.len())?;
        Ok(Self {
            config,
            coordinates,
            adam,
        })
    }
}

impl Ascent {
    /// An ascent from the present parameters of the process. [`FitConfig::steps`] is not used.
    ///
    /// # Errors
    /// [`Error::Argument`] for settings outside their range.
    pub fn new(process: &GaussianProcess, config: &FitConfig) -> Result<Self, Error> {
        config.check()?;
        let coordinates = process.coordinates();
        Ok(Self {
            config: config.clone(),
            adam: Adam::new(coordinates.len()),
            coordinates,
        })
    }

    /// Takes one step, along a gradient at the present parameters of the process.
    ///
    /// # Errors
    /// [`Error::Argument`] for a gradient without observations, of another process or not finite;
    /// [`Error::Coordinate`] if the step leads out of a parameter's domain. Process and ascent are then
    /// unchanged.
    pub fn step(
        &mut self,
        process: &mut GaussianProcess,
        gradient: &EvidenceGradient,
    ) -> Result<(), Error> {
        let observations = gradient.evidence.observations;
        argument::at_least_one("gradient.evidence.observations", observations)?;
        let shape = [gradient.coordinates.len()];
        argument::shape("gradient", &[self.coordinates.len()], &shape)?;
        argument::finite("gradient", &shape, &gradient.coordinates)?;
        let each = gradient.coordinates.iter();
        let each = each.map(|g| g / observations as f64);
        let mut next = self.clone();
        next.adam.climb(&self.config, &mut next.coordinates, each);
        process.set_coordinates(&next.coordinates)?;
        *self = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{kernels, process, scaled_rbf};
    use bochner_numerics::check::random;
    use ndarray::{Array1, Array2};

    fn climb(ascent: &mut Ascent, process: &mut GaussianProcess, steps: usize) {
        let (x, y) = (random((14, 2), "x"), random(14, "y"));
        for _ in 0..steps {
            let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
            ascent.step(process, &gradient).unwrap();
        }
    }

    #[test]
    fn a_step_goes_along_the_gradient_of_an_observation_on_the_mean() {
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        // With an epsilon of one, the size of the gradient shows in the step.
        let config = FitConfig {
            epsilon: 1.0,
            ..Default::default()
        };
        let (x, y) = (random((14, 2), "x"), random(14, "y"));
        let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
        let before = process.coordinates();
        let mut ascent = Ascent::new(&process, &config).unwrap();
        ascent.step(&mut process, &gradient).unwrap();
        let pairs = process.coordinates().into_iter().zip(before);
        for ((after, before), g) in pairs.zip(gradient.coordinates) {
            let mean = g / 14.0;
            assert!((after - before - 0.01 * mean / (mean.abs() + 1.0)).abs() < 1e-14);
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
    fn what_is_read_is_checked() {
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let mut ascent = Ascent::new(&process, &FitConfig::default()).unwrap();
        climb(&mut ascent, &mut process, 2);
        let good = serde_json::to_value(&ascent).unwrap();
        assert_eq!(
            serde_json::from_value::<Ascent>(good.clone()).unwrap(),
            ascent
        );
        for (path, wrong) in [
            ("/config/learning-rate", -1.0),
            ("/config/betas/1", 1.0),
            ("/adam/moments/1/1", -1.0),
            ("/adam/taken", -1.0),
        ] {
            let mut value = good.clone();
            *value.pointer_mut(path).unwrap() = match path {
                "/adam/taken" => (-1).into(),
                _ => wrong.into(),
            };
            let got = serde_json::from_value::<Ascent>(value);
            assert!(got.is_err(), "{path}");
        }
        let (config, adam) = (FitConfig::default(), Adam::new(1));
        let coordinates = vec![f64::NAN];
        let nan = Saved {
            config,
            coordinates,
            adam,
        };
        assert!(Ascent::try_from(nan).is_err());
        let mut short = good;
        short["coordinates"].as_array_mut().unwrap().pop();
        assert!(serde_json::from_value::<Ascent>(short).is_err());
    }

    #[test]
    fn a_step_out_of_the_domain_changes_nothing() {
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let config = FitConfig {
            learning_rate: 1e4,
            ..Default::default()
        };
        let mut ascent = Ascent::new(&process, &config).unwrap();
        let (x, y) = (random((14, 2), "x"), random(14, "y"));
        let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
        let before = (ascent.clone(), process.parameters());
        let refused = ascent.step(&mut process, &gradient);
        assert!(matches!(refused, Err(Error::Coordinate { .. })));
        assert_eq!(before, (ascent, process.parameters()));
    }

    #[test]
    fn a_gradient_that_does_not_fit_changes_nothing() {
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let mut ascent = Ascent::new(&process, &FitConfig::default()).unwrap();
        let (x, y) = (random((3, 2), "x"), random(3, "y"));
        let none = process.evidence_gradient(Array2::zeros((0, 2)).view(), Array1::zeros(0).view());
        let mut short = process.evidence_gradient(x.view(), y.view()).unwrap();
        short.coordinates.pop();
        let before = (ascent.clone(), process.parameters());
        let refused = ascent.step(&mut process, &none.unwrap());
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("observations` is 0"), "{said}");
        let refused = ascent.step(&mut process, &short);
        let said = refused.unwrap_err().to_string();
        assert!(
            said.contains("`gradient` has length 3, but must have length 4"),
            "{said}"
        );
        short.coordinates.push(f64::NAN);
        assert!(ascent.step(&mut process, &short).is_err());
        assert_eq!(before, (ascent, process.parameters()));
    }
}
