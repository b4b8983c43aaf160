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

use crate::{
    Bias, Blocks, Decoder, DecoderSize, Error, FeatureForm, Form, Kernel, Mask, Settings, Wanted,
    Workspace, attend, attend_into, attend_vjp, weights,
};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Real, Seed, Tolerance, finite_difference};
use ndarray::{Array1, Array2, Array4, ArrayView4, Axis, s};
use std::fmt::Debug;
use std::sync::Arc;

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
    /// The learnt numbers, in row-major order: those of the kernel, then those of the bias, then those of the sink.
    /// Their gradients are checked. Defaults to none.
    pub learnt: Vec<T>,
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
    let long = Case::causal(300);
    let lengths = vec![300, 170];
    for case in [
        Case {
            name: "no mask",
            mask: Mask::none(),
            queries: 170,
            ..long.clone()
        },
        Case {
            name: "key lengths",
            mask: Mask::none().with_key_lengths(lengths.clone()),
            ..long.clone()
        },
        Case {
            name: "causality and key lengths",
            mask: Mask::causal().with_key_lengths(lengths),
            ..long.clone()
        },
        long,
    ] {
        check_forms(trial, &case).map_err(|failure| failure.under(case.name))?;
    }
    let long = Case::causal(140);
    let window = Mask::causal().with_window(5, 0)?;
    let rule = Mask::causal().with_pairs(|i, j| (i - j) % 3 == 0 || j == 0);
    for case in [
        Case {
            name: "a causal window",
            mask: window,
            ..long.clone()
        },
        Case {
            name: "a function of positions",
            mask: rule,
            ..long.clone()
        },
        long,
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
        return if case.is_must {
            Err(Failure::new(
                "causality is accepted",
                "it",
                "refused",
                "accepted",
            ))
        } else {
            Ok(())
        };
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
        check_gradients(&arrays, &trial.learnt, &make)?;
        if accepts(&dropped(&trial.learnt), &arrays)? {
            check_gradients(&arrays, &trial.learnt, &dropped)?;
        }
    }
    if !trial.is_scan() {
        check_weights(case, &settings, &arrays, trial.sums_to_one)?;
    }
    if let Some((numbers, make)) = with_terms(trial, case) {
        check_hidden(case, &make(&numbers), &arrays)?;
        check_weights(case, &make(&numbers), &arrays, false)?;
        if trial.is_smooth {
            check_gradients(&arrays, &numbers, &make)?;
        }
    }
    check_memory(&settings, &arrays)?;
    if trial.heads > 1 {
        check_shared_heads(trial, case, &settings)
    } else {
        Ok(())
    }
}

/// A mask and the sizes of the sequences that it is tried on.
#[derive(Clone)]
struct Case {
    name: &'static str,
    mask: Mask,
    batch: usize,
    queries: usize,
    keys: usize,
    /// Whether every kernel accepts it.
    is_must: bool,
}

impl Case {
    fn causal(length: usize) -> Self {
        let (name, mask) = ("causality", Mask::causal());
        Self {
            name,
            mask,
            batch: 2,
            queries: length,
            keys: length,
            is_must: true,
        }
    }

    /// Whether a query of a head sees a key.
    fn sees<T: Real>(
        &self,
        settings: &Settings<T>,
        [b, m, i, j]: [usize; 4],
        heads: usize,
    ) -> bool {
        let sizes = [self.queries, self.keys];
        // A scan has no output at positions that are padding.
        let counts =
            !matches!(settings.kernel, Kernel::Scan(_)) || i < self.mask.key_limit(b, self.keys);
        let by_bias = |bias: &Bias<T>| bias.at([b, m, i, j], heads, sizes) != T::neg_infinity();
        counts && self.mask.keeps([b, m, i, j], sizes) && settings.bias.as_ref().is_none_or(by_bias)
    }
}

/// Masks of every kind, with sizes that leave some of their rows without a key, and some keys without a row.
fn cases(heads: usize, is_scan: bool) -> Vec<Case> {
    let [queries, keys] = if is_scan { [7, 7] } else { [5, 7] };
    let keeps = |(b, m, i, j): (usize, usize, usize, usize)| {
        i != 1 && j != 2 && !(b + m + i * 2 + j).is_multiple_of(3)
    };
    let matrices = Array4::from_shape_fn((2, heads, queries, keys), keeps);
    let blocks = Array2::from_shape_fn((4, 4), |(i, j)| i != 2 && (i + j) % 2 == 0);
    let window = |mask: Mask, left, right| mask.with_window(left, right).expect("not empty");
    let all = [
        ("no mask", Mask::none()),
        (
            "key lengths",
            Mask::none().with_key_lengths(vec![keys - 3, 0]),
        ),
        (
            "causality and key lengths",
            Mask::causal().with_key_lengths(vec![keys, keys - 3]),
        ),
        (
            "a window",
            window(Mask::none().with_key_lengths(vec![3, keys]), 1, 1),
        ),
        ("a causal window", window(Mask::none(), 2, 0)),
        ("a prefix", Mask::none().with_causality_after(2)),
        (
            "causal blocks",
            Mask::none().with_causal_blocks(3).expect("not empty"),
        ),
        ("matrices", Mask::none().with_matrices(matrices.view())),
        (
            "a function of positions",
            Mask::none().with_pairs(|i, j| i != 4 && (i - j).rem_euclid(3) != 1 && j != 0),
        ),
        (
            "blocks",
            Mask::none()
                .with_blocks(2, blocks.view())
                .expect("not empty"),
        ),
    ];
    let of = |(name, mask)| Case {
        name,
        mask,
        queries,
        is_must: false,
        ..Case::causal(keys)
    };
    let mut cases: Vec<Case> = all
        .map(of)
        .into_iter()
        .chain([Case::causal(keys)])
        .collect();
    let packed = Mask::causal().with_packed(&[3, 0, 4]);
    cases.push(Case {
        batch: 1,
        queries: keys,
        ..of(("packed sequences", packed))
    });
    if !is_scan {
        cases.push(Case {
            name: "causality with more queries than keys",
            queries: 7,
            keys: 5,
            ..Case::causal(1)
        });
    }
    cases
}

#[derive(Clone)]
struct Arrays<T> {
    q: Array4<T>,
    k: Array4<T>,
    v: Array4<T>,
    cotangent: Array4<T>,
}

impl<T: Real> Arrays<T> {
    fn views(&self) -> [ArrayView4<'_, T>; 3] {
        [self.q.view(), self.k.view(), self.v.view()]
    }

    fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Arrays<U> {
        let [q, k, v, cotangent] = [&self.q, &self.k, &self.v, &self.cotangent].map(|x| x.mapv(f));
        Arrays { q, k, v, cotangent }
    }
}

/// The output, the gradients along queries, keys and values, and that along the learnt numbers.
struct Results<T>([Array4<T>; 4], Vec<T>);

/// The names of the parts of results.
const PARTS: [&str; 5] = [
    "output",
    "gradient along q",
    "gradient along k",
    "gradient along v",
    "learnt gradient",
];

impl<T: Real> Results<T> {
    fn parts(&self) -> impl Iterator<Item = (&'static str, Vec<T>)> {
        let arrays = self.0.iter().map(|x| x.iter().copied().collect());
        PARTS.into_iter().zip(arrays.chain([self.1.clone()]))
    }

    fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Results<U> {
        Results(
            self.0.each_ref().map(|x| x.mapv(f)),
            self.1.iter().map(|&x| f(x)).collect(),
        )
    }

    /// Compares results within a tolerance, or to the bit, apart from the signs of zeros.
    fn compare(
        &self,
        property: &'static str,
        want: &Self,
        tolerance: Option<Tolerance>,
    ) -> Result<(), Failure> {
        for ((name, got), (_, want)) in self.parts().zip(want.parts()) {
            compare(property, name, (&got, &want), tolerance)?;
        }
        Ok(())
    }
}

fn compare<T: Real>(
    property: &'static str,
    name: &str,
    (got, want): (&[T], &[T]),
    tolerance: Option<Tolerance>,
) -> Result<(), Failure> {
    let bound = tolerance.map(|all| all.bound(want.iter().map(|x| x.as_f64())));
    let agrees = |x: T, y: T| bound.map_or(x == y, |bound| is_near(x.as_f64(), y.as_f64(), bound));
    match got.iter().zip(want).position(|(&x, &y)| !agrees(x, y)) {
        Some(n) => Err(Failure::new(
            property,
            format!("number {n} of the {name}"),
            got[n],
            want[n],
        )),
        None => Ok(()),
    }
}

/// Whether numbers differ by no more than a bound; NaN is near nothing.
fn is_near(a: f64, b: f64, bound: f64) -> bool {
    (a - b).abs() <= bound
}

/// Whether settings are supported.
fn accepts<T: Real>(settings: &Settings<T>, arrays: &Arrays<T>) -> Result<bool, Error> {
    let [q, k, v] = arrays.views();
    match attend(settings, q, k, v) {
        Err(Error::Unsupported { .. }) => Ok(false),
        result => result.map(|_| true),
    }
}

fn run<T: Real>(
    settings: &Settings<T>,
    arrays: &Arrays<T>,
    learns: bool,
) -> Result<Results<T>, Error> {
    let [q, k, v] = arrays.views();
    let has_numbers = settings
        .bias
        .as_ref()
        .is_some_and(|bias| bias.zero_gradients().is_some());
    let wanted = Wanted {
        kernel: learns,
        bias: learns && has_numbers,
        sink: learns,
    };
    let (output, saved) = attend(settings, q, k, v)?;
    let all = attend_vjp(settings, &saved, q, k, v, arrays.cotangent.view(), wanted)?;
    let of_terms = all
        .bias
        .into_iter()
        .flatten()
        .chain(all.sink.into_iter().flatten());
    let learnt = all.kernel.into_iter().flatten().chain(of_terms).collect();
    Ok(Results([output.to_owned(), all.q, all.k, all.v], learnt))
}

/// Settings with the learnt numbers of a bias, some of which hide pairs, and of a sink.
type WithTerms<'a, T> = Box<dyn Fn(&[T]) -> Settings<T> + 'a>;

fn with_terms<'a, T: Real>(
    trial: &'a Trial<T>,
    case: &'a Case,
) -> Option<(Vec<T>, WithTerms<'a, T>)> {
    let plain = trial.make(&case.mask);
    if !matches!(plain.kernel, Kernel::Pairs(_)) || plain.bias.is_some() || plain.sink.is_some() {
        return None;
    }
    let (own, bias) = (
        trial.learnt.len(),
        [1, trial.heads, case.queries, case.keys],
    );
    let count = bias.iter().product::<usize>();
    let takes_sink = plain.normaliser.takes_sink();
    let drawn: Array1<f64> = random(count + if takes_sink { trial.heads } else { 0 }, "terms");
    let numbers = trial
        .learnt
        .iter()
        .copied()
        .chain(drawn.iter().map(|&x| T::of(x)))
        .collect();
    let make = move |numbers: &[T]| {
        let (kernel, terms) = numbers.split_at(own);
        let mut values = Array4::from_shape_vec(bias, terms[..count].to_vec()).expect("one a pair");
        let hides = |i: usize, j: usize| i == 3 || j == 1 || (i + 2 * j).is_multiple_of(5);
        values
            .indexed_iter_mut()
            .filter(|((_, _, i, j), _)| hides(*i, *j))
            .for_each(|(_, x)| *x = T::neg_infinity());
        let bias = Some(Bias::fixed(values.view()).expect("finite"));
        let sink = takes_sink.then(|| Arc::new(Array1::from_vec(terms[count..].to_vec())));
        Settings {
            bias,
            sink,
            ..(trial.settings)(&case.mask, kernel)
        }
    };
    Some((numbers, Box::new(make)))
}

/// Numbers of an array whose gradients are compared with finite differences.
const PROBES: usize = 12;

fn check_gradients<T: Real>(
    arrays: &Arrays<T>,
    learnt: &[T],
    make: &dyn Fn(&[T]) -> Settings<T>,
) -> Result<(), Failure> {
    if T::NAME != "f64" {
        return Ok(());
    }
    let loss = |arrays: &Arrays<T>, learnt: &[T]| {
        let [q, k, v] = arrays.views();
        let output = attend(&make(learnt), q, k, v).map(|(output, _)| output);
        output.map_or(f64::NAN, |output| {
            (&output * &arrays.cotangent).sum().as_f64()
        })
    };
    let results = run(&make(learnt), arrays, !learnt.is_empty())?;
    for (which, (name, got)) in results.parts().enumerate().skip(1) {
        let [q, k, v] = arrays.views().map(|x| x.to_slice().expect("owned"));
        let numbers = [q, k, v, learnt][which - 1];
        if got.len() != numbers.len() {
            return Err(Failure::new(
                "all numbers have a gradient",
                format!("the {name}"),
                got.len(),
                numbers.len(),
            ));
        }
        let largest = got
            .iter()
            .fold(1e-3, |most: f64, x| most.max(x.as_f64().abs()));
        // An odd step meets every column.
        for n in (0..got.len()).step_by(got.len().div_ceil(PROBES) | 1) {
            let (mut moved, mut moved_learnt) = (arrays.clone(), learnt.to_vec());
            let mut loss_at = |x: f64| {
                let [q, k, v] = [&mut moved.q, &mut moved.k, &mut moved.v]
                    .map(|x| x.as_slice_mut().expect("owned"));
                [q, k, v, &mut moved_learnt][which - 1][n] = T::of(x);
                loss(&moved, &moved_learnt)
            };
            let want = finite_difference(&[numbers[n].as_f64()], |x| loss_at(x[0]))[0];
            if !is_near(got[n].as_f64(), want, 1e-6 * largest) {
                let place = format!("number {n} of the {name}");
                return Err(Failure::new(
                    "gradients are those of finite differences",
                    place,
                    got[n],
                    want,
                ));
            }
        }
    }
    Ok(())
}

fn dropout() -> DropoutMask {
    DropoutMask::new(0.3, Seed::new(5)).expect("a rate")
}

/// Checks that the output is made of the weights, with and without dropout.
fn check_weights<T: Real>(
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
    sums_to_one: bool,
) -> Result<(), Failure> {
    let [q, k, v] = arrays.views();
    let (all, heads, tolerance) = (
        weights(settings, q, k)?,
        q.dim().1,
        Tolerance::outputs::<T>(),
    );
    for (b, m, i) in ndarray::indices((case.batch, heads, case.queries)) {
        let sees = (0..case.keys).any(|j| case.sees(settings, [b, m, i, j], heads));
        let (sum, want) = (
            all.slice(s![b, m, i, ..]).sum(),
            T::of(f64::from(u8::from(sees))),
        );
        if sums_to_one || !sees {
            let name = format!("sums of row {i}, head {m} and example {b}");
            compare(
                "weights of visible keys sum to one",
                &name,
                (&[sum], &[want]),
                Some(tolerance),
            )?;
        }
    }
    for dropout in [settings.dropout, Some(dropout())] {
        let settings = Settings {
            dropout,
            ..settings.clone()
        };
        let (mut got, mut want) = (Vec::new(), Vec::new());
        if accepts(&settings, arrays)? {
            got.extend(attend(&settings, q, k, v)?.0);
            let factor = |n| dropout.map_or(T::one(), |dropout| dropout.factor(n));
            let mut dropped = all.clone();
            dropped
                .iter_mut()
                .zip(0..)
                .for_each(|(x, n)| *x *= factor(n));
            for (b, m) in ndarray::indices((case.batch, heads)) {
                want.extend(
                    dropped
                        .slice(s![b, m, .., ..])
                        .dot(&v.slice(s![b, m, .., ..])),
                );
            }
        }
        compare(
            "the output is the sum of the weighted values",
            "output",
            (&got, &want),
            Some(tolerance),
        )?;
    }
    Ok(())
}

/// Checks that whatever no query sees changes no bit.
fn check_hidden<T: Real>(
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
) -> Result<(), Failure> {
    let (heads, queries, keys) = (arrays.q.dim().1, case.queries, case.keys);
    let clean = run(settings, arrays, true)?;
    let most = T::max_value();
    for wrong in [
        T::nan(),
        T::infinity(),
        -T::infinity(),
        most,
        -most,
        most.sqrt(),
        most.sqrt().sqrt(),
    ] {
        let mut arrays = arrays.clone();
        for (b, m) in ndarray::indices((case.batch, heads)) {
            let sees = |i, j| case.sees(settings, [b, m, i, j], heads);
            for i in (0..queries).filter(|&i| !(0..keys).any(|j| sees(i, j))) {
                [&mut arrays.q, &mut arrays.cotangent]
                    .into_iter()
                    .for_each(|x| x.slice_mut(s![b, m, i, ..]).fill(wrong));
            }
            for j in (0..keys).filter(|&j| !(0..queries).any(|i| sees(i, j))) {
                [&mut arrays.k, &mut arrays.v]
                    .into_iter()
                    .for_each(|x| x.slice_mut(s![b, m, j, ..]).fill(wrong));
            }
        }
        let property = "whatever no query sees changes nothing";
        run(settings, &arrays, true)?
            .compare(property, &clean, None)
            .map_err(|failure| failure.under(&wrong.to_string()))?;
    }
    Ok(())
}

/// Checks that whatever a row does not see changes no bit of it.
fn check_rows<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
) -> Result<(), Failure> {
    let clean = run(settings, arrays, true)?;
    let redrawn: Array4<f64> = random(arrays.k.raw_dim(), "other keys");
    for (m, i) in ndarray::indices((trial.heads, case.queries)) {
        let mut arrays = arrays.clone();
        for j in (0..case.keys).filter(|&j| !case.sees(settings, [0, m, i, j], trial.heads)) {
            let key = redrawn
                .slice(s![0, m, j, ..])
                .mapv(|x| T::of(x * trial.size));
            arrays.k.slice_mut(s![0, m, j, ..]).assign(&key);
            arrays.v.slice_mut(s![0, m, j, ..]).fill(T::of(3.0));
        }
        let got = run(settings, &arrays, true)?;
        // The gradient along a row's query is the row's own, too.
        for (n, part) in PARTS.into_iter().enumerate().take(2) {
            let [got, want] = [&got, &clean].map(|all| all.0[n].slice(s![0, m, i, ..]).to_vec());
            let name = format!("{part} in row {i} of head {m}");
            compare(
                "whatever a row does not see does not change it",
                &name,
                (&got, &want),
                None,
            )?;
        }
    }
    Ok(())
}

/// Checks that memory that is there already gives the same bits.
fn check_memory<T: Real>(settings: &Settings<T>, arrays: &Arrays<T>) -> Result<(), Failure> {
    let ([q, k, v], workspace) = (arrays.views(), Workspace::new());
    let mut again = Array4::from_elem(arrays.cotangent.raw_dim(), T::nan());
    attend_into(settings, q, k, v, &workspace, again.view_mut())?;
    let [got, want] = [again, attend(settings, q, k, v)?.0.to_owned()]
        .map(|all| all.into_iter().collect::<Vec<_>>());
    compare("memory may be used again", "output", (&got, &want), None)
}

/// Checks that heads of queries may share keys and values.
fn check_shared_heads<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: &Settings<T>,
) -> Result<(), Failure> {
    let shared = trial.arrays(case, 1);
    let repeat = |x: &Array4<T>| {
        let (batch, _, time, width) = x.dim();
        x.broadcast((batch, trial.heads, time, width))
            .expect("one head")
            .to_owned()
    };
    let repeated = Arrays {
        k: repeat(&shared.k),
        v: repeat(&shared.v),
        ..shared.clone()
    };
    let Results([output, q, k, v], learnt) = run(settings, &repeated, trial.learns())?;
    let [k, v] = [k, v].map(|x| x.sum_axis(Axis(1)).insert_axis(Axis(1)));
    let want = Results([output, q, k, v], learnt);
    let got = run(settings, &shared, trial.learns())?;
    got.compare(
        "shared heads are repeated ones",
        &want,
        Some(Tolerance::gradients::<T>()),
    )
}

/// Checks that all forms and blocks give the same numbers, over several blocks.
fn check_forms<T: Real>(trial: &Trial<T>, case: &Case) -> Result<(), Failure> {
    let of = |form| Settings {
        form,
        ..trial.make(&case.mask)
    };
    let small = Form::Blocked(Blocks {
        queries: 7,
        keys: 64,
    });
    if trial.is_scan() {
        return Ok(());
    }
    let arrays = trial.arrays(case, trial.heads);
    let want = run(&of(Form::Pairwise), &arrays, trial.learns())?;
    for form in [Form::LinearTime, small, Form::Automatic] {
        if accepts(&of(form), &arrays)? {
            let got = run(&of(form), &arrays, trial.learns())?;
            let result = got.compare("all forms agree", &want, Some(Tolerance::gradients::<T>()));
            result.map_err(|failure| failure.under(&format!("{form:?}")))?;
        }
    }
    Ok(())
}

/// Checks that decoding is attending, whatever the cuts.
fn check_decoding<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: Settings<T>,
) -> Result<(), Failure> {
    let arrays = trial.arrays(case, trial.heads);
    if settings.check_decoding().is_err() || !accepts(&settings, &arrays)? {
        return Ok(());
    }
    let [q, k, v] = arrays.views();
    let length = case.keys;
    let near = |got: &Array4<T>, want: ArrayView4<T>, place: &str| {
        let [got, want] = [got.view(), want].map(|x| x.iter().copied().collect::<Vec<_>>());
        compare(
            "decoding is attending",
            place,
            (&got, &want),
            Some(Tolerance::gradients::<T>()),
        )
    };
    let (whole, _) = attend(&settings, q, k, v)?;
    let step = |decoder: &mut Decoder<T>, from: usize, to: usize, order: [usize; 2]| {
        let of = |x: ArrayView4<T>| x.slice(s![.., .., from..to, ..]).select(Axis(0), &order);
        let [q, k, v] = [q, k, v].map(of);
        let got = decoder.step(q.view(), k.view(), v.view())?;
        near(
            &got,
            of(whole.view()).view(),
            &format!("positions {from}..{to}"),
        )
    };
    let size = DecoderSize {
        batch: 2,
        heads: trial.heads,
        width: trial.width,
        value_width: trial.value_width,
    };
    let straight = [0, 1];
    for cuts in [
        (0..=length).collect::<Vec<_>>(),
        vec![0, 3, 4, 40, length - 3, length],
    ] {
        let mut decoder = Decoder::new(&settings, size)?;
        cuts.windows(2)
            .try_for_each(|cut| step(&mut decoder, cut[0], cut[1], straight))?;
        if decoder.truncate(length - 2).is_ok() {
            step(&mut decoder, length - 2, length, straight)?;
        }
    }
    let mut decoder = Decoder::new(&settings, size)?;
    step(&mut decoder, 0, length - 1, straight)?;
    decoder.reorder(&[1, 1])?;
    step(&mut decoder, length - 1, length, [1, 1])?;
    let mut memory = Decoder::new(&settings, size)?;
    memory.push(k, v)?;
    let last = s![.., .., length - 9.., ..];
    if let Ok(got) = memory.attend(q.slice(last)) {
        let (want, _) = attend(
            &Settings {
                mask: Mask::none(),
                ..settings
            },
            q,
            k,
            v,
        )?;
        near(&got, want.slice(last), "attention after all positions")?;
    }
    Ok(())
}
