//! Time stamps as a part of what a layer attends with.

use bochner_kernels::TimeFeatures;
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, slots};
use ndarray::{Array1, Array2, ArrayViewD, Axis, Ix1, Ix2, Ix3, concatenate, s};

/// An input map for layers of any mechanism: features of time stamps are joined to the sequence,
/// $u_i = [h_i; \Phi(t_i)]$, so that queries, keys and values are maps of both.
///
/// It is an operation on the sequences `[B, T, Dh]` and the parameters of the features:
///
/// | [`TimeBasis`] | parameters | features |
/// |---|---|---|
/// | `Bochner` | frequencies $\omega$, `[D]` | 2 D |
/// | `Mercer` | $\log b$, `[K]`, of the half-periods; $\sqrt c$, `[K, 2 D + 1]`, of the coefficients | K (2 D + 1) |
///
/// The Mercer parameters may have any sign: half-periods stay positive and coefficients are not negative. The
/// output is `[B, T, Dh + features]`, and the layer that follows has that width. Time stamps are data without a
/// gradient. No origin is subtracted from them.
///
/// # Errors
/// [`ArgumentError`] for a time stamp that is not finite, or shapes that do not fit.
///
/// # Reference
/// Xu, Ruan, Kumar, Korpeoglu, Achan 2019; see [`TimeFeatures`]. The parametrisation is ours.
///
/// ```
/// use bochner_attention::time_input::{TimeBasis, TimeInput};
/// use bochner_ops::{Operation, filled};
/// use bochner_attention::ndarray::{Array1, Array3, array};
///
/// let map = TimeInput::new(array![[0.0, 1.0, 5.0]], TimeBasis::Bochner)?;
/// let (h, frequencies) = (Array3::<f64>::ones((1, 3, 4)), Array1::ones(2));
/// let [u] = filled([3 * (4 + 2 * 2)], |[u]| {
///     let inputs = [h.view().into_dyn(), frequencies.view().into_dyn()];
///     map.forward(&inputs, vec![u]).unwrap();
/// });
/// assert!((u[4] - 0.5_f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TimeInput {
    t: Array2<f64>,
    basis: TimeBasis,
}

/// The features of a [`TimeInput`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBasis {
    /// Paired sines and cosines of free frequencies.
    Bochner,
    /// Fourier series of free half-periods and coefficients.
    Mercer,
}

impl TimeInput {
    /// The map for a batch with these time stamps, `[B, T]`.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for a time stamp that is not finite.
    pub fn new(t: Array2<f64>, basis: TimeBasis) -> Result<Self, crate::Error> {
        argument::finite("t", t.shape(), &t)?;
        Ok(Self { t, basis })
    }

    /// The features with these parameters.
    fn features<T: Real>(&self, parameters: &[ArrayViewD<'_, T>]) -> TimeFeatures<T> {
        let vector = |i: usize| parameters[i].to_owned().into_dimensionality::<Ix1>();
        let vector = |i: usize| vector(i).expect("checked with the shapes");
        match self.basis {
            TimeBasis::Bochner => TimeFeatures::Bochner {
                frequencies: vector(0),
            },
            TimeBasis::Mercer => {
                let roots = parameters[1].view().into_dimensionality::<Ix2>();
                TimeFeatures::Mercer {
                    half_periods: vector(0).mapv(T::exp),
                    coefficients: roots.expect("checked with the shapes").mapv(|x| x * x),
                }
            }
        }
    }

    fn times(&self) -> Array1<f64> {
        self.t.iter().copied().collect()
    }
}

impl<T: Real> Operation<T> for TimeInput {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let count = match self.basis {
            TimeBasis::Bochner => 2,
            TimeBasis::Mercer => 3,
        };
        argument::shape("inputs of the map of time", &[count], &[inputs.len()])?;
        let (batch, time) = self.t.dim();
        let own = inputs[0].last().copied().unwrap_or(0);
        argument::shape("the input", &[batch, time, own], inputs[0])?;
        let first = inputs[1].first().copied().unwrap_or(0);
        argument::shape("frequencies or half-periods", &[first], inputs[1])?;
        let features = match inputs.get(2) {
            None => 2 * first,
            Some(coefficients) => {
                let terms = coefficients.last().copied().unwrap_or(0);
                let odd = terms.saturating_sub(1) / 2 * 2 + 1;
                argument::shape("coefficients", &[first, odd], coefficients)?;
                first * terms
            }
        };
        Ok(vec![vec![batch, time, own + features]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let [output] = slots(outputs);
        let h = inputs[0].view().into_dimensionality::<Ix3>();
        let h = h.expect("checked with the shapes");
        let features = self.features(&inputs[1..]);
        let phi = features.features(self.times().view())?;
        let phi = phi.into_shape_with_order((h.dim().0, h.dim().1, features.width()));
        let phi = phi.expect("as many as time stamps");
        output.put_array(concatenate(Axis(2), &[h, phi.view()])?);
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        (): &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let g = cotangents[0].view().into_dimensionality::<Ix3>();
        let g = g.expect("of the output's shape");
        let own = inputs[0].shape()[2];
        let mut gradients = gradients.into_iter();
        if let Some(dh) = gradients.next().flatten() {
            dh.put_array(g.slice(s![.., .., ..own]).to_owned());
        }
        let wanted: Vec<_> = gradients.collect();
        if wanted.iter().all(Option::is_none) {
            return Ok(());
        }
        let features = self.features(&inputs[1..]);
        let dphi = g.slice(s![.., .., own..]).to_owned();
        let dphi = dphi.into_shape_with_order((self.t.len(), features.width()))?;
        let along = match features.features_vjp(self.times().view(), dphi.view())? {
            TimeFeatures::Bochner { frequencies } => vec![frequencies.to_vec()],
            TimeFeatures::Mercer {
                half_periods,
                coefficients,
            } => {
                let (logs, roots) = (inputs[1].iter(), inputs[2].iter());
                let of_logs = half_periods.iter().zip(logs).map(|(&g, log)| g * log.exp());
                let two = T::of(2.0);
                let of_roots = coefficients.iter().zip(roots).map(|(&g, &x)| two * g * x);
                vec![of_logs.collect(), of_roots.collect()]
            }
        };
        for (slot, along) in wanted.into_iter().zip(along) {
            if let Some(slot) = slot {
                slot.put(along);
            }
        }
        Ok(())
    }
}
