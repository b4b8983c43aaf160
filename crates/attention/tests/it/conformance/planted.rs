//! Mechanisms with at most one error planted in them, mechanisms whose cards lie, and one that weighs
//! no pairs.

use crate::conformance::common::*;
use bochner_attention::{
    Card, Cotangents, Error, Form, Forward, Gradients, IkanDirect, Inspection, Mask, Masks,
    Mechanism, ParameterSpec, Pass, Penalty, Rows, Settings, Size, Stream, Streams, Support,
    Symmetry, Variant,
};
use ndarray::{Array1, Array4, ArrayView4};
use rand::RngCore;

/// A mechanism of the registry with one thing done wrong.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) inner: Variant,
    pub(crate) card: Card,
    /// The mask that it takes for the one given.
    pub(crate) mask: fn(&Streams<f64>) -> Mask,
    /// What it adds to each parameter.
    pub(crate) shift: fn(&Streams<f64>) -> f64,
    /// What it does to its output and its weights.
    pub(crate) alter: fn(&Streams<f64>, &Pass, &mut Array4<f64>),
    /// The mechanism and the pass whose gradient it gives.
    pub(crate) gradient: fn(Variant, Pass) -> (Variant, Pass),
}

/// Kernel attention with a floor that finite differences can see across.
pub(crate) fn direct() -> IkanDirect {
    IkanDirect {
        p: 1.5,
        points: 4,
        floor: 1e-2,
        ..IkanDirect::default()
    }
}

impl Planted {
    /// The mechanism as it is.
    pub(crate) fn right(inner: Variant) -> Self {
        Self {
            card: inner.card(),
            inner,
            mask: |inputs| inputs.mask.clone(),
            shift: |_| 0.0,
            alter: |_, _, _| (),
            gradient: |variant, pass| (variant, pass),
        }
    }

    /// A case that is compared with `reference`.
    pub(crate) fn against(self, reference: Variant) -> Case<f64> {
        Case::test(format!("{self:?}"), Box::new(self), Some(reference))
    }

    fn inner(&self) -> &dyn Mechanism<f64> {
        self.inner.mechanism()
    }

    fn shifted(&self, inputs: &Streams<f64>, flat: &[f64]) -> Vec<f64> {
        let shift = (self.shift)(inputs);
        flat.iter().map(|x| x + shift).collect()
    }
}

impl Mechanism<f64> for Planted {
    fn card(&self) -> Card {
        self.card
    }

    fn validate(&self) -> Result<(), Error> {
        self.inner().validate()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        self.inner().parameters(size)
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<f64>, Error> {
        self.inner().initial(size, rng)
    }

    fn with_points(&self, points: usize) -> Result<Variant, Error> {
        self.inner().with_points(points)
    }

    fn with_form(&self, form: Form) -> Result<Variant, Error> {
        self.inner().with_form(form)
    }

    fn forward(
        &self,
        inputs: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<Forward<f64>, Error> {
        let (mask, flat) = (&(self.mask)(inputs), self.shifted(inputs, flat));
        let mut own = self.inner().forward(&inputs.with_mask(mask), &flat, pass)?;
        (self.alter)(inputs, pass, &mut own.output);
        Ok(own)
    }

    fn backward(
        &self,
        inputs: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
        _: &Forward<f64>,
        cotangent: Cotangents<f64>,
    ) -> Result<Gradients<f64>, Error> {
        let (other, pass) = (self.gradient)(self.inner.clone(), *pass);
        let (mask, flat) = (&(self.mask)(inputs), self.shifted(inputs, flat));
        let (other, inputs) = (other.mechanism(), inputs.with_mask(mask));
        let forward = other.forward(&inputs, &flat, &pass)?;
        other.backward(&inputs, &flat, &pass, &forward, cotangent)
    }

    fn inspect(
        &self,
        inputs: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<Inspection<f64>, Error> {
        let (mask, flat) = (&(self.mask)(inputs), self.shifted(inputs, flat));
        let mut shown = self.inner().inspect(&inputs.with_mask(mask), &flat, pass)?;
        (self.alter)(inputs, pass, &mut shown.weights);
        Ok(shown)
    }

    fn settings(
        &self,
        inputs: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<Settings<f64>, Error> {
        self.inner().settings(inputs, flat, pass)
    }
}

/// A fixed average by the cyclic distance: attention without pairs, whose rows sum to 3/4, with a
/// penalty of the whole batch.
#[derive(Clone, Copy, Debug)]
struct Average {
    card: Card,
}

impl Average {
    fn new() -> Self {
        let no = Support::No {
            instead: "kernel attention",
        };
        Self {
            card: Card {
                name: "average",
                title: "a fixed average by the cyclic distance",
                paper: "none",
                streams: &[Stream::Values],
                masks: Masks::None,
                causal: no,
                cross: no,
                rows: Rows::HalfToOne,
                symmetry: Symmetry::CyclicShifts,
                penalty: Penalty::PerBatch,
                ..Card::PAIRWISE
            },
        }
    }

    /// The average along the distance, or against it.
    fn apply(v: ArrayView4<f64>, against: bool) -> Array4<f64> {
        let length = v.dim().2;
        let total: f64 = (0..length).map(|n| 0.5_f64.powi(n as i32)).sum();
        Array4::from_shape_fn(v.dim(), |(b, m, i, n)| {
            let at = |away| match against {
                false => (i + away) % length,
                true => (i + length - away) % length,
            };
            let parts = (0..length).map(|away| 0.5_f64.powi(away as i32) * v[[b, m, at(away), n]]);
            0.75 * parts.sum::<f64>() / total
        })
    }
}

impl Mechanism<f64> for Average {
    fn card(&self) -> Card {
        self.card
    }

    fn forward(
        &self,
        inputs: &Streams<f64>,
        flat: &[f64],
        pass: &Pass,
    ) -> Result<Forward<f64>, Error> {
        self.card.admit(inputs)?;
        let [v] = inputs.get()?;
        let penalty = v.mapv(|v| v * v).mean().expect("values");
        let penalty = Array1::from_elem(v.dim().0, penalty);
        let of = inputs.fingerprint(flat, pass);
        Ok(Forward::new(of, Self::apply(v, false), penalty, ()))
    }

    fn backward(
        &self,
        inputs: &Streams<f64>,
        _: &[f64],
        _: &Pass,
        _: &Forward<f64>,
        cotangent: Cotangents<f64>,
    ) -> Result<Gradients<f64>, Error> {
        let [v] = inputs.get()?;
        let along = 2.0 * cotangent.penalty.sum() / v.len() as f64;
        let of_values = Self::apply(cotangent.output, true) + &v * along;
        Ok(Gradients::new(vec![of_values], Vec::new()))
    }

    fn inspect(
        &self,
        inputs: &Streams<f64>,
        _: &[f64],
        _: &Pass,
    ) -> Result<Inspection<f64>, Error> {
        let [v] = inputs.get()?;
        let (batch, heads, length, _) = v.dim();
        let unit = |(_, _, i, j): (usize, usize, usize, usize)| f64::from(u8::from(i == j));
        let units = Array4::from_shape_fn((batch, heads, length, length), unit);
        Ok(Inspection::of(Self::apply(units.view(), false)))
    }
}

/// Kernel attention whose card claims something else than it does.
pub(crate) fn lying(lie: fn(&mut Card)) -> Case<f64> {
    lying_of(direct().into(), lie)
}

/// A mechanism of the registry whose card claims something else than it does.
pub(crate) fn lying_of(honest: Variant, lie: fn(&mut Card)) -> Case<f64> {
    let mut planted = Planted::right(honest.clone());
    lie(&mut planted.card);
    planted.against(honest)
}

/// The average by the distance, whose card claims something else than it does.
pub(crate) fn lying_average(lie: fn(&mut Card)) -> Case<f64> {
    let mut average = Average::new();
    lie(&mut average.card);
    Case::test("average".to_owned(), Box::new(average), None)
}
