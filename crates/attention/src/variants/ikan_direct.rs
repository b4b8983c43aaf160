//! IKAN-direct: the spectral points are parameters.

use super::squared::{Preset, Sets, SquaredKernel, Stationarity, shown};
use crate::attend::State;
use crate::error::Error;
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Named, ParameterSpec, Pass, Size,
};
use crate::registry::Described;
use crate::spectral::as_in_the_paper;
use crate::{DrawnCotangents, DrawnPoints, Form, OwnedSettings, SpectralMechanism};
use bochner_numerics::Real;
use bochner_spectral::{DirectInit, direct_points};
use ndarray::{Array, Array1, ArrayView3, Axis, Ix3};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// Kernel attention whose spectral points `[M, R, d]` are parameters.
///
/// $$\alpha_{ij} \propto (f(q_i, k_j)^2 + e)\, \exp(|k_j|_p^2 / (2\sqrt d))$$
///
/// where f is $f_{NS}$ over the points w1 and w2, or $f_S$ over w1 alone.
///
/// # Reference
/// Song et al. 2021, section "Implicit kernel attention", variant IKAN-direct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IkanDirect {
    /// The exponent of the magnitude's norm, above 0.
    pub p: f64,
    /// The number of distinct frequencies R of each head.
    pub points: usize,
    /// The floor e under the squared kernel, from 0 to 1.
    pub floor: f64,
    /// Where the points start. The released code's is [`DirectInit::KaimingUniform`].
    pub start: DirectInit,
    /// Whose equations are followed.
    pub preset: Preset,
    /// Which kernel the points belong to.
    #[serde(default, skip_serializing_if = "Stationarity::is_usual")]
    pub stationarity: Stationarity,
    /// Pair by pair or in linear time; [`Mechanism::decoder`] is told so itself.
    #[serde(default, skip_serializing_if = "Form::is_usual")]
    pub form: Form,
}

impl Default for IkanDirect {
    fn default() -> Self {
        Self {
            p: 2.0,
            points: 64,
            floor: 1e-5,
            start: DirectInit::NearSoftmax,
            preset: Preset::Paper,
            stationarity: Stationarity::Nonstationary,
            form: Form::Automatic,
        }
    }
}

impl Described for IkanDirect {
    const NAME: &'static str = "ikan-direct";
    const SUMMARY: &'static str = "a squared kernel whose spectral points are parameters";
    const REFERENCE: &'static str = "Song et al. 2021";
}

impl IkanDirect {
    fn kernel(&self) -> SquaredKernel {
        SquaredKernel {
            p: self.p,
            floor: self.floor,
            preset: self.preset,
            form: self.form,
        }
    }

    /// Names of the sets of points.
    fn names(&self) -> &'static [&'static str] {
        &["w1", "w2"][..self.stationarity.sets()]
    }

    fn checked<T: Real>(&self, size: Size, flat: &[T]) -> Result<Sets<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let specs = Mechanism::<T>::parameters(self, size);
        let named = Named::new(Self::NAME, specs, flat)?;
        let set = |name: &&str| {
            let points: ArrayView3<T> = named.get::<Ix3>(name);
            self.kernel().frequencies(points.insert_axis(Axis(0)))
        };
        Ok(self.names().iter().map(set).collect())
    }
}

/// The frequencies used and the forward pass over them.
struct Saved<T> {
    points: Sets<T>,
    state: State<T>,
}

impl<T: Real> Mechanism<T> for IkanDirect {
    fn validate(&self) -> Result<(), Error> {
        if self.points == 0 {
            return Err(Error::Empty {
                what: "spectral points",
                axis: "R",
            });
        }
        self.kernel().validate()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let shape = [size.heads, self.points, size.width];
        let spec = |name: &&str| ParameterSpec::new(*name, &shape);
        self.names().iter().map(spec).collect()
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let points = direct_points(size.heads, self.points, size.width, self.start, rng)?;
        let sets = [points.w1, points.w2].into_iter();
        Ok(sets.take(self.stationarity.sets()).flatten().collect())
    }

    fn forward(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        let points = self.checked(inputs.size(), flat)?;
        let attended = self.kernel().attend(inputs, &points, pass)?;
        Ok(Forward::unpenalised(
            attended.output,
            Saved {
                points,
                state: attended.state,
            },
        ))
    }

    fn backward(
        &self,
        inputs: &Inputs<T>,
        _: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let Saved { points, state } = forward.saved::<Saved<T>>(Self::NAME)?;
        let (g, points) = self.kernel().attend_vjp(
            inputs,
            points,
            pass,
            (state, forward.output.view()),
            cotangent.output,
        )?;
        let parameters = points.into_iter().flatten().collect();
        Ok(Gradients {
            q: g.q,
            k: g.k,
            v: g.v,
            parameters,
        })
    }

    fn is_deterministic(&self) -> bool {
        self.preset == Preset::Paper
    }

    fn settings(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<OwnedSettings<T>, Error> {
        let points = self.checked(inputs.size(), flat)?;
        self.kernel().owned(&points, pass)
    }

    fn inspect(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        let points = self.checked(inputs.size(), flat)?;
        let weights = self.kernel().weights(inputs, &points, pass)?;
        Ok(Inspection {
            weights,
            points: Some(shown(points)),
            correlation: None,
        })
    }
}

/// Marks points as this mechanism's.
struct Direct;

impl<T: Real> SpectralMechanism<T> for IkanDirect {
    fn p(&self) -> f64 {
        self.p
    }

    fn floor(&self) -> f64 {
        self.floor
    }

    fn draw_points(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        _: &Pass,
    ) -> Result<DrawnPoints<T>, Error> {
        as_in_the_paper(self.preset)?;
        let points = self.checked(inputs.size(), flat)?;
        let penalty = Array1::zeros(inputs.q.dim().0);
        Ok(DrawnPoints::new(points, penalty, Direct))
    }

    fn draw_points_vjp(
        &self,
        inputs: &Inputs<T>,
        _: &[T],
        drawn: &DrawnPoints<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        drawn.saved::<Direct>(Self::NAME)?;
        let (sets, _) = cotangent.checked(drawn)?;
        Ok(Gradients {
            q: Array::zeros(inputs.q.raw_dim()),
            k: Array::zeros(inputs.k.raw_dim()),
            v: Array::zeros(inputs.v.raw_dim()),
            parameters: sets.into_iter().flatten().collect(),
        })
    }
}
