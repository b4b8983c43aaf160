//! Conformance: checks your own kernel against the promises of the engine.
//!
//! A [`Trial`] holds settings and sizes. [`check`] tries it under every mask that it accepts, [`agree`] compares its two
//! precisions. Both return the first property that fails, with the place and the numbers.
//!
//! ```
//! use bochner_engine::{Settings, conformance::{Trial, agree, check}};
//!
//! let trial = Trial::<f64>::new(|mask, _| Settings::softmax(mask));
//! check(&trial)?;
//! agree(&trial, &Trial::<f32>::new(|mask, _| Settings::softmax(mask)))?;
//! # Ok::<(), bochner_engine::conformance::Failure>(())
//! ```

mod cases;
mod properties;
mod results;

use crate::{
    Bias, Blocks, Decoder, DecoderSize, Error, FeatureForm, Form, Gradients, Kernel, Mask,
    Settings, Wanted, attend, attend_vjp, weights,
};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Real, Seed, Tolerance, finite_difference};
use ndarray::{Array1, Array2, Array4, ArrayView4, Axis, s};
use std::fmt::Debug;
use std::sync::Arc;

use cases::*;
use properties::*;
use results::*;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{property}: with {place} the result is {got}, and should be {wanted}")]
pub struct Failure {
    /// The property.
    pub property: &'static str,
    /// The mask, the array and the index.
    pub place: String,
    /// The result.
    pub got: String,
    /// The result that the property demands.
    pub wanted: String,
}

impl Failure {
    fn new(
        property: &'static str,
        place: impl ToString,
        got: impl ToString,
        wanted: impl ToString,
    ) -> Self {
        let (got, wanted) = (got.to_string(), wanted.to_string());
        Self {
            property,
            place: place.to_string(),
            got,
            wanted,
        }
    }

    /// Names the mask, too.
    fn under(self, mask: &str) -> Self {
        Self {
            place: format!("{mask}, {}", self.place),
            ..self
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new("attention works", "these arrays", error, "no error")
    }
}

/// Settings to check, and the sizes to check them with.
pub struct Trial<T> {
    /// The settings, given a mask and the learnt numbers.
    pub settings: MakeSettings<T>,
    /// The learnt numbers. Their gradients are checked. Defaults to none.
    pub learnt: Vec<T>,
    /// The gradients along the learnt numbers, given those of [`attend_vjp`]. Defaults to the gradients along the kernel,
    /// then the bias, then the sink, each in row-major order.
    pub pull: PullLearnt<T>,
    /// Heads of queries. Defaults to 2. Grouped-query attention is checked if there are more than one.
    pub heads: usize,
    /// Width of queries and keys. Defaults to 4.
    pub width: usize,
    /// Width of values. Defaults to 3.
    pub value_width: usize,
    /// Standard deviation of queries and keys. Defaults to 1.
    pub size: f64,
    /// Whether gradients are compared with finite differences, for which the kernel must be smooth. Defaults to `true`.
    pub is_smooth: bool,
    /// Whether the weights of a row that sees a key sum to one. Defaults to what the normaliser promises.
    pub sums_to_one: bool,
}

/// A function that makes settings of a mask and of the learnt numbers.
pub type MakeSettings<T> = Box<dyn Fn(&Mask, &[T]) -> Settings<T>>;

/// A function that returns the gradients along learnt numbers.
pub type PullLearnt<T> = Box<dyn Fn(&Gradients<T>) -> Vec<T>>;

impl<T: Real> Trial<T> {
    /// Returns the trial of a function that makes settings of a mask and of the learnt numbers, of which there are none.
    pub fn new(settings: impl Fn(&Mask, &[T]) -> Settings<T> + 'static) -> Self {
        Self::with_learnt(Vec::new(), settings)
    }

    /// Returns the trial of settings with learnt numbers.
    pub fn with_learnt(
        learnt: Vec<T>,
        settings: impl Fn(&Mask, &[T]) -> Settings<T> + 'static,
    ) -> Self {
        let plain = settings(Mask::CAUSAL, &learnt);
        let sums_to_one = match &plain.kernel {
            Kernel::Pairs(_) => plain.normaliser.is_quotient() && plain.sink.is_none(),
            Kernel::Features(map) => map.form() != FeatureForm::SignedExponentials,
            Kernel::Scan(_) => false,
        };
        let settings = Box::new(settings);
        Self {
            settings,
            learnt,
            pull: Box::new(in_order),
            heads: 2,
            width: 4,
            value_width: 3,
            size: 1.0,
            is_smooth: true,
            sums_to_one,
        }
    }

    fn make(&self, mask: &Mask) -> Settings<T> {
        (self.settings)(mask, &self.learnt)
    }

    fn is_scan(&self) -> bool {
        matches!(self.make(Mask::CAUSAL).kernel, Kernel::Scan(_))
    }

    fn learns(&self) -> bool {
        !self.learnt.is_empty()
    }

    fn arrays(&self, case: &Case, kv_heads: usize) -> Arrays<T> {
        let draw = |heads, time, width, name, size: f64| {
            let x: Array4<f64> = random([case.batch, heads, time, width], name);
            x.mapv(|x| T::of(x * size))
        };
        Arrays {
            q: draw(self.heads, case.queries, self.width, "q", self.size),
            k: draw(kv_heads, case.keys, self.width, "k", self.size),
            v: draw(kv_heads, case.keys, self.value_width, "v", 1.0),
            cotangent: draw(self.heads, case.queries, self.value_width, "cotangent", 1.0),
        }
    }
}

impl<T> Debug for Trial<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial")
            .field("heads", &self.heads)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

/// Checks settings under each mask that they accept.
///
/// * Gradients along queries, keys, values, learnt numbers, a bias and a sink are those of finite differences (`f64`).
/// * The weights times the values, and times the factors of dropout, are the output.
/// * Whatever no query sees changes no bit, NaN included. Whatever a row does not see changes no bit of it.
/// * Grouped-query heads give the results of repeated keys, and other blocks those of the usual ones.
/// * The linear-time form gives the results of the pairwise form.
/// * A [`Decoder`] gives the output of the whole sequence, however the sequence is cut.
///
/// # Errors
/// The first property that fails. Causality must be accepted.
pub fn check<T: Real>(trial: &Trial<T>) -> Result<(), Failure> {
    for case in cases(trial.heads, trial.is_scan()) {
        check_case(trial, &case).map_err(|failure| failure.under(case.name))?;
    }
    let long = || Case::causal(300);
    let lengths = vec![300, 170];
    let unequal = Case {
        queries: 170,
        ..long().under("no mask", Mask::none())
    };
    let padded = Mask::none().with_key_lengths(lengths.clone());
    let both = Mask::causal().with_key_lengths(lengths);
    for case in [
        unequal,
        long().under("key lengths", padded),
        long().under("causality and key lengths", both),
        long(),
    ] {
        check_forms(trial, &case).map_err(|failure| failure.under(case.name))?;
    }
    let long = || Case::causal(140);
    let window = Mask::causal().with_window(5, 0)?;
    let rule = Mask::causal().with_pairs(|i, j| (i - j) % 3 == 0 || j == 0);
    for case in [
        long().under("a causal window", window),
        long().under("a function of positions", rule),
        long(),
    ] {
        for form in [Form::Automatic, Form::LinearTime] {
            let settings = Settings {
                form,
                ..trial.make(&case.mask)
            };
            let place = format!("{} and {form:?}", case.name);
            check_decoding(trial, &case, settings).map_err(|failure| failure.under(&place))?;
        }
    }
    Ok(())
}

/// Checks that settings in both precisions give the same results, as far as single precision reaches.
///
/// # Errors
/// The first property that fails.
pub fn agree(double: &Trial<f64>, single: &Trial<f32>) -> Result<(), Failure> {
    for case in cases(double.heads, double.is_scan()) {
        let (arrays, settings) = (single.arrays(&case, single.heads), single.make(&case.mask));
        let property = "single precision is close to double";
        let compared = || {
            if accepts(&settings, &arrays)? {
                let got = run(&settings, &arrays, single.learns())?.map(f64::from);
                let want = run(
                    &double.make(&case.mask),
                    &arrays.map(f64::from),
                    double.learns(),
                )?;
                got.compare(property, &want, Some(Tolerance::gradients::<f32>()))?;
            }
            Ok(())
        };
        compared().map_err(|failure: Failure| failure.under(case.name))?;
    }
    Ok(())
}

fn check_case<T: Real>(trial: &Trial<T>, case: &Case) -> Result<(), Failure> {
    let (settings, arrays) = (trial.make(&case.mask), trial.arrays(case, trial.heads));
    if !accepts(&settings, &arrays)? {
        let refused = || Failure::new("causality is accepted", "it", "refused", "accepted");
        return if case.is_must { Err(refused()) } else { Ok(()) };
    }
    for form in [settings.form, Form::LinearTime] {
        let settings = Settings {
            form,
            ..settings.clone()
        };
        if accepts(&settings, &arrays)? {
            check_hidden(case, &settings, &arrays)?;
            check_rows(trial, case, &settings, &arrays)?;
        }
    }
    let make = |learnt: &[T]| (trial.settings)(&case.mask, learnt);
    let dropped = |learnt: &[T]| Settings {
        dropout: Some(dropout()),
        ..make(learnt)
    };
    if trial.is_smooth {
        check_gradients(&arrays, &trial.learnt, &make, &trial.pull)?;
        if accepts(&dropped(&trial.learnt), &arrays)? {
            check_gradients(&arrays, &trial.learnt, &dropped, &trial.pull)?;
        }
    }
    if !trial.is_scan() {
        check_weights(case, &settings, &arrays, trial.sums_to_one)?;
    }
    if let Some((numbers, make)) = with_terms(trial, case) {
        check_hidden(case, &make(&numbers), &arrays)?;
        check_weights(case, &make(&numbers), &arrays, false)?;
        if trial.is_smooth {
            let pull = |all: &Gradients<T>| {
                let (bias, sink) = (None, None);
                let terms = Gradients {
                    kernel: None,
                    ..all.clone()
                };
                let kernel = Gradients {
                    bias,
                    sink,
                    ..all.clone()
                };
                [(trial.pull)(&kernel), in_order(&terms)].concat()
            };
            check_gradients(&arrays, &numbers, &make, &pull)?;
        }
    }
    match trial.heads {
        1 => Ok(()),
        _ => check_shared_heads(trial, case, &settings),
    }
}
