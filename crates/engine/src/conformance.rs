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
    Bias, Blocks, Decoder, DecoderSize, Error, FeatureForm, Form, Kernel, Mask, Settings, Wanted, Workspace,
    attend, attend_into, attend_vjp, weights,
};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Real, Seed, Tolerance, finite_difference};
use ndarray::{Array1, Array2, Array4, ArrayView4, Axis, s};
use std::fmt::Debug;
use std::sync::Arc;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{property}: under {place} the result is {got}, and should be {wanted}")]
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
    /// Returns the trial of a function that makes settings of a mask and of the learnt numbers.
    pub fn new(settings: impl Fn(&Mask, &[T]) -> Settings<T> + 'static) -> Self {
        Self::with_learnt(Vec::new(), settings)
    }

    /// Returns the trial of settings with learnt numbers.
    pub fn with_learnt(learnt: Vec<T>, settings: impl Fn(&Mask, &[T]) -> Settings<T> + 'static) -> Self {
        let plain = settings(Mask::CAUSAL, &learnt);
        let sums_to_one = match &plain.kernel {
            Kernel::Pairs(_) => plain.normaliser.is_quotient() && plain.sink.is_none(),
            Kernel::Features(map) => map.form() != FeatureForm::SignedExponentials,
            Kernel::Scan(_) => false,
        };
        let settings = Box::new(settings);
        Self { settings, learnt, heads: 2, width: 4, value_width: 3, size: 1.0, is_smooth: true, sums_to_one }
    }

    fn make(&self, case: &Case) -> Settings<T> {
        (self.settings)(&case.mask, &self.learnt)
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
        f.debug_struct("Trial").field("heads", &self.heads).field("width", &self.width).finish_non_exhaustive()
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
/// The first property that fails.
pub fn check<T: Real>(trial: &Trial<T>) -> Result<(), Failure> {
    let is_scan = matches!(trial.make(&Case::causal(1)).kernel, Kernel::Scan(_));
    let mut accepted = 0;
    for case in cases(trial.heads, is_scan) {
        let settings = trial.make(&case);
        let arrays = trial.arrays(&case, trial.heads);
        match attend(&settings, arrays.q.view(), arrays.k.view(), arrays.v.view()) {
            Err(Error::Unsupported { .. }) => continue,
            result => result.map_err(|error| case.failed("attention works", error))?,
        };
        accepted += 1;
        check_case(trial, &case, &settings, &arrays)?;
        if let Some((numbers, with_terms)) = with_terms(trial, &case) {
            let settings = with_terms(&numbers);
            check_hidden(&case, &settings, &arrays)?;
            check_gradients(&case, &arrays, &numbers, &with_terms)?;
            check_weights(&case, &settings, &arrays, false)?;
        }
    }
    let none = Failure::new("some mask is accepted", "every mask", 0, "at least causality");
    if accepted == 0 { Err(none) } else { check_forms(trial).and_then(|()| check_decoding(trial)) }
}

fn check_case<T: Real>(trial: &Trial<T>, case: &Case, settings: &Settings<T>, arrays: &Arrays<T>) -> Result<(), Failure> {
    for form in [settings.form, Form::LinearTime] {
        let settings = Settings { form, ..settings.clone() };
        if settings.form_for(1, 1, [trial.width, trial.value_width]).is_ok() {
            check_hidden(case, &settings, arrays)?;
            check_rows(trial, case, &settings, arrays)?;
        }
    }
    if trial.is_smooth {
        let make = |learnt: &[T]| (trial.settings)(&case.mask, learnt);
        check_gradients(case, arrays, &trial.learnt, &make)?;
        let dropout = settings.dropout.or(Some(dropout()));
        let dropped = |learnt: &[T]| Settings { dropout, ..make(learnt) };
        if dropped(&trial.learnt).form_for(1, 1, [1, 1]).is_ok() && !matches!(settings.kernel, Kernel::Scan(_)) {
            check_gradients(case, arrays, &trial.learnt, &dropped)?;
        }
    }
    if !matches!(settings.kernel, Kernel::Scan(_)) {
        check_weights(case, settings, arrays, trial.sums_to_one)?;
    }
    let (workspace, mut again) = (Workspace::new(), Array4::from_elem(arrays.cotangent.raw_dim(), T::nan()));
    let [q, k, v] = [&arrays.q, &arrays.k, &arrays.v].map(|x| x.view());
    let plain = run(case, settings, arrays, false)?;
    let result = attend_into(settings, q, k, v, &workspace, again.view_mut());
    result.map_err(|error| case.failed("attention works", error))?;
    case.compare("memory may be used again", &Results { output: again, ..plain.map(|x| x) }, &plain, None)?;
    if trial.heads > 1 {
        check_shared_heads(trial, case, settings)?;
    }
    Ok(())
}

/// Checks that settings in both precisions give the same results, as far as single precision reaches.
///
/// # Errors
/// The first property that fails.
pub fn agree(double: &Trial<f64>, single: &Trial<f32>) -> Result<(), Failure> {
    let is_scan = matches!(double.make(&Case::causal(1)).kernel, Kernel::Scan(_));
    for case in cases(double.heads, is_scan) {
        let arrays = single.arrays(&case, single.heads);
        let got = match run(&case, &single.make(&case), &arrays, !single.learnt.is_empty()) {
            Err(failure) if failure.got.contains("not supported") => continue,
            got => got?.map(f64::from),
        };
        let want = run(&case, &double.make(&case), &arrays.map(f64::from), !double.learnt.is_empty())?;
        case.compare("single precision is close to double", &got, &want, Some(Tolerance::gradients::<f32>()))?;
    }
    Ok(())
}

impl Failure {
    fn new(property: &'static str, place: impl Into<String>, got: impl ToString, wanted: impl ToString) -> Self {
        Self { property, place: place.into(), got: got.to_string(), wanted: wanted.to_string() }
    }
}

/// Whether numbers differ by no more than a bound; NaN is near nothing.
fn is_near(a: f64, b: f64, bound: f64) -> bool {
    (a - b).abs() <= bound
}

/// A mask and the sizes of the sequences that it is tried on.
#[derive(Clone)]
struct Case {
    name: &'static str,
    mask: Mask,
    batch: usize,
    queries: usize,
    keys: usize,
}

impl Case {
    fn causal(length: usize) -> Self {
        Self { name: "causality", mask: Mask::causal(), batch: 2, queries: length, keys: length }
    }

    fn failed(&self, property: &'static str, error: impl ToString) -> Failure {
        Failure::new(property, self.name, error, "no error")
    }

    /// Whether a query of a head sees a key.
    fn sees<T: Real>(&self, settings: &Settings<T>, [b, m, i, j]: [usize; 4], heads: usize) -> bool {
        let sizes = [self.queries, self.keys];
        // A scan has no output at positions that are padding.
        let counts = !matches!(settings.kernel, Kernel::Scan(_)) || i < self.mask.key_limit(b, self.keys);
        let by_bias = |bias: &Bias<T>| bias.at([b, m, i, j], heads, sizes) != T::neg_infinity();
        counts && self.mask.keeps([b, m, i, j], sizes) && settings.bias.as_ref().is_none_or(by_bias)
    }

    /// Compares results to the bit, or within a tolerance.
    fn compare<T: Real>(
        &self,
        property: &'static str,
        got: &Results<T>,
        want: &Results<T>,
        tolerance: Option<Tolerance>,
    ) -> Result<(), Failure> {
        for ((name, got), (_, want)) in got.parts().into_iter().zip(want.parts()) {
            let bound = tolerance.map(|all| all.bound(want.iter().map(|x| x.as_f64())));
            let agrees = |x: T, y: T| match bound {
                Some(bound) => is_near(x.as_f64(), y.as_f64(), bound),
                // Zeros of either sign are equal.
                None => x == y,
            };
            let wrong = got.iter().zip(&want).position(|(&x, &y)| !agrees(x, y));
            if let Some(n) = wrong.or((got.len() != want.len()).then_some(0)) {
                let shown = |all: &[T]| all.get(n).map_or("missing".to_owned(), T::to_string);
                let place = format!("{}, in number {n} of {name}", self.name);
                return Err(Failure::new(property, place, shown(&got), shown(&want)));
            }
        }
        Ok(())
    }
}

/// Masks of every kind, with sizes that make some of their rows and keys blind.
fn cases(heads: usize, is_scan: bool) -> Vec<Case> {
    let [queries, keys] = if is_scan { [7, 7] } else { [5, 7] };
    let matrix = |b: usize, m: usize, i: usize, j: usize| i != 1 && j != 2 && !(b + m + i * 2 + j).is_multiple_of(3);
    let matrices = ndarray::Array4::from_shape_fn((2, heads, queries, keys), |(b, m, i, j)| matrix(b, m, i, j));
    let blocks = Array2::from_shape_fn((4, 4), |(i, j)| i != 2 && (i + j) % 2 == 0);
    let window = |mask: Mask, left, right| mask.with_window(left, right).expect("not empty");
    let mut all = vec![
        ("no mask", Mask::none()),
        ("causality", Mask::causal()),
        ("key lengths", Mask::none().with_key_lengths(vec![keys - 3, 0])),
        ("causality and key lengths", Mask::causal().with_key_lengths(vec![keys, keys - 3])),
        ("a window", window(Mask::none().with_key_lengths(vec![3, keys]), 1, 1)),
        ("a causal window", window(Mask::none(), 2, 0)),
        ("a prefix", Mask::none().with_causality_after(2)),
        ("causal blocks", Mask::none().with_causal_blocks(3).expect("not empty")),
        ("matrices", Mask::none().with_matrices(matrices.view())),
        ("a function of positions", Mask::none().with_pairs(|i, j| i != 4 && (i - j).rem_euclid(3) != 1 && j != 0)),
        ("blocks", Mask::none().with_blocks(2, blocks.view()).expect("not empty")),
    ];
    let mut cases: Vec<Case> =
        all.drain(..).map(|(name, mask)| Case { name, mask, batch: 2, queries, keys }).collect();
    let packed = Mask::causal().with_packed(&[3, 0, 4]);
    cases.push(Case { name: "packed sequences", mask: packed, batch: 1, queries: 7, keys: 7 });
    if !is_scan {
        cases.push(Case { name: "causality with more queries than keys", queries: 7, keys: 5, ..Case::causal(1) });
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
    fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Arrays<U> {
        let [q, k, v, cotangent] = [&self.q, &self.k, &self.v, &self.cotangent].map(|x| x.mapv(f));
        Arrays { q, k, v, cotangent }
    }
}

/// The output and its gradients.
struct Results<T> {
    output: Array4<T>,
    q: Array4<T>,
    k: Array4<T>,
    v: Array4<T>,
    learnt: Vec<T>,
}

impl<T: Real> Results<T> {
    fn parts(&self) -> [(&'static str, Vec<T>); 5] {
        let of = |x: &Array4<T>| x.iter().copied().collect();
        [
            ("the output", of(&self.output)),
            ("the gradient along q", of(&self.q)),
            ("the gradient along k", of(&self.k)),
            ("the gradient along v", of(&self.v)),
            ("the gradient along the learnt numbers", self.learnt.clone()),
        ]
    }

    fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Results<U> {
        let [output, q, k, v] = [&self.output, &self.q, &self.k, &self.v].map(|x| x.mapv(f));
        Results { output, q, k, v, learnt: self.learnt.iter().map(|&x| f(x)).collect() }
    }
}

fn run<T: Real>(case: &Case, settings: &Settings<T>, arrays: &Arrays<T>, learns: bool) -> Result<Results<T>, Failure> {
    let Arrays { q, k, v, cotangent } = arrays;
    let has_numbers = settings.bias.as_ref().is_some_and(|bias| bias.zero_gradients().is_some());
    let wanted = Wanted { kernel: learns, bias: learns && has_numbers, sink: learns };
    let both = attend(settings, q.view(), k.view(), v.view()).and_then(|(output, saved)| {
        let all = attend_vjp(settings, &saved, q.view(), k.view(), v.view(), cotangent.view(), wanted)?;
        Ok((output, all))
    });
    let (output, all) = both.map_err(|error| case.failed("attention works", error))?;
    let mut learnt: Vec<T> = all.kernel.into_iter().flatten().collect();
    learnt.extend(all.bias.into_iter().flatten().chain(all.sink.into_iter().flatten()));
    Ok(Results { output: output.to_owned(), q: all.q, k: all.k, v: all.v, learnt })
}

/// Settings with the learnt numbers of a bias, some of which hide pairs, and of a sink.
type WithTerms<'a, T> = Box<dyn Fn(&[T]) -> Settings<T> + 'a>;

fn with_terms<'a, T: Real>(trial: &'a Trial<T>, case: &'a Case) -> Option<(Vec<T>, WithTerms<'a, T>)> {
    let plain = trial.make(case);
    if !matches!(plain.kernel, Kernel::Pairs(_)) || plain.bias.is_some() || plain.sink.is_some() {
        return None;
    }
    let (own, heads) = (trial.learnt.len(), trial.heads);
    let bias = [1, heads, case.queries, case.keys];
    let count = bias.iter().product::<usize>();
    let drawn: Array1<f64> = random(count + heads, "terms");
    let numbers = trial.learnt.iter().copied().chain(drawn.iter().map(|&x| T::of(x))).collect();
    let make = move |numbers: &[T]| {
        let (kernel, terms) = numbers.split_at(own);
        let mut values = Array4::from_shape_vec(bias, terms[..count].to_vec()).expect("one a pair");
        let hides = |i: usize, j: usize| i == 3 || j == 1 || (i + 2 * j).is_multiple_of(5);
        values.indexed_iter_mut().filter(|((_, _, i, j), _)| hides(*i, *j)).for_each(|(_, x)| *x = T::neg_infinity());
        let bias = Some(Bias::fixed(values.view()).expect("finite"));
        let sink = plain.normaliser.takes_sink().then(|| Arc::new(Array1::from_vec(terms[count..].to_vec())));
        Settings { bias, sink, ..(trial.settings)(&case.mask, kernel) }
    };
    Some((numbers, Box::new(make)))
}

/// Numbers of an array whose gradients are compared with finite differences.
const PROBES: usize = 20;

fn check_gradients<T: Real>(
    case: &Case,
    arrays: &Arrays<T>,
    learnt: &[T],
    make: &dyn Fn(&[T]) -> Settings<T>,
) -> Result<(), Failure> {
    if T::NAME != "f64" {
        return Ok(());
    }
    let results = run(case, &make(learnt), arrays, !learnt.is_empty())?;
    let loss = |arrays: &Arrays<T>, learnt: &[T]| {
        let output = attend(&make(learnt), arrays.q.view(), arrays.k.view(), arrays.v.view());
        let product = |output: crate::Output<T>| (&output * &arrays.cotangent).sum().as_f64();
        output.map_or(f64::NAN, |(output, _)| product(output))
    };
    for (which, (name, got)) in results.parts().into_iter().enumerate().skip(1) {
        let largest = got.iter().fold(1e-3, |most: f64, x| most.max(x.as_f64().abs()));
        // An odd step meets every column.
        for n in (0..got.len()).step_by(got.len().div_ceil(PROBES) | 1) {
            let (mut moved, mut numbers) = (arrays.clone(), learnt.to_vec());
            let mut place = |x: Option<f64>| {
                let [q, k, v] = [&mut moved.q, &mut moved.k, &mut moved.v].map(|x| x.as_slice_mut().expect("owned"));
                let number = [&mut [][..], q, k, v, &mut numbers].into_iter().nth(which).map(|all| &mut all[n]);
                let number = number.expect("five arrays");
                *number = x.map_or(*number, T::of);
                let at = number.as_f64();
                (at, loss(&moved, &numbers))
            };
            let want = finite_difference(&[place(None).0], |x| place(Some(x[0])).1)[0];
            if !is_near(got[n].as_f64(), want, 1e-6 * largest) {
                let place = format!("{}, in number {n} of {name}", case.name);
                return Err(Failure::new("gradients are those of finite differences", place, got[n], want));
            }
        }
    }
    Ok(())
}

fn dropout() -> DropoutMask {
    DropoutMask::new(0.3, Seed::new(5)).expect("a rate")
}

/// Checks that the output is made of the weights, with and without dropout.
fn check_weights<T: Real>(case: &Case, settings: &Settings<T>, arrays: &Arrays<T>, sums_to_one: bool) -> Result<(), Failure> {
    let failed = |error| case.failed("weights exist", error);
    let all = weights(settings, arrays.q.view(), arrays.k.view()).map_err(failed)?;
    let heads = all.dim().1;
    let tolerance = Tolerance::outputs::<T>();
    for (b, m, i) in ndarray::indices((case.batch, heads, case.queries)) {
        let sees = (0..case.keys).any(|j| case.sees(settings, [b, m, i, j], heads));
        let (sum, want) = (all.slice(s![b, m, i, ..]).sum().as_f64(), f64::from(u8::from(sees)));
        if (sums_to_one || !sees) && !is_near(sum, want, tolerance.bound([1.0])) {
            let place = format!("{}, in row [{b}, {m}, {i}]", case.name);
            return Err(Failure::new("the weights of a row that sees a key sum to one", place, sum, want));
        }
    }
    for dropout in [settings.dropout, Some(dropout())] {
        let settings = Settings { dropout, ..settings.clone() };
        let (got, _) = match attend(&settings, arrays.q.view(), arrays.k.view(), arrays.v.view()) {
            Err(Error::Unsupported { .. }) => continue,
            result => result.map_err(failed)?,
        };
        let mut dropped = all.clone();
        let pairs = dropped.iter_mut().zip(0_u64..);
        pairs.for_each(|(x, n)| *x *= dropout.map_or(T::one(), |dropout| dropout.factor(n)));
        for (b, m) in ndarray::indices((case.batch, heads)) {
            let want = dropped.slice(s![b, m, .., ..]).dot(&arrays.v.slice(s![b, m, .., ..]));
            let bound = tolerance.bound(want.iter().map(|x| x.as_f64()));
            for (index, &want) in want.indexed_iter() {
                let got = got[[b, m, index.0, index.1]];
                if !is_near(got.as_f64(), want.as_f64(), bound) {
                    let place = format!("{}, in head {m} of example {b} at {index:?}", case.name);
                    return Err(Failure::new("the output is the sum of the weighted values", place, got, want));
                }
            }
        }
    }
    Ok(())
}

/// Checks that whatever no query sees changes no bit.
fn check_hidden<T: Real>(case: &Case, settings: &Settings<T>, arrays: &Arrays<T>) -> Result<(), Failure> {
    let (heads, queries, keys) = (arrays.q.dim().1, case.queries, case.keys);
    let clean = run(case, settings, arrays, true)?;
    let most = T::max_value();
    for wrong in [T::nan(), T::infinity(), -T::infinity(), most, -most, most.sqrt(), most.sqrt().sqrt()] {
        let mut arrays = arrays.clone();
        for (b, m) in ndarray::indices((case.batch, heads)) {
            let sees = |i, j| case.sees(settings, [b, m, i, j], heads);
            for i in (0..queries).filter(|&i| !(0..keys).any(|j| sees(i, j))) {
                arrays.q.slice_mut(s![b, m, i, ..]).fill(wrong);
                arrays.cotangent.slice_mut(s![b, m, i, ..]).fill(wrong);
            }
            for j in (0..keys).filter(|&j| !(0..queries).any(|i| sees(i, j))) {
                arrays.k.slice_mut(s![b, m, j, ..]).fill(wrong);
                arrays.v.slice_mut(s![b, m, j, ..]).fill(wrong);
            }
        }
        let got = run(case, settings, &arrays, true)?;
        case.compare("whatever no query sees changes nothing", &got, &clean, None)?;
    }
    Ok(())
}

/// Checks that whatever a row does not see changes no bit of it.
fn check_rows<T: Real>(trial: &Trial<T>, case: &Case, settings: &Settings<T>, arrays: &Arrays<T>) -> Result<(), Failure> {
    let clean = run(case, settings, arrays, true)?;
    let redrawn: Array4<f64> = random(arrays.k.raw_dim(), "other keys");
    for (m, i) in ndarray::indices((trial.heads, case.queries)) {
        let mut arrays = arrays.clone();
        for j in (0..case.keys).filter(|&j| !case.sees(settings, [0, m, i, j], trial.heads)) {
            let keys = redrawn.slice(s![0, m, j, ..]);
            arrays.k.slice_mut(s![0, m, j, ..]).assign(&keys.mapv(|x| T::of(x * trial.size)));
            arrays.v.slice_mut(s![0, m, j, ..]).fill(T::of(3.0));
        }
        let got = run(case, settings, &arrays, true)?;
        for (name, got, want) in [("the output", &got.output, &clean.output), ("the gradient along q", &got.q, &clean.q)] {
            let [got, want] = [got, want].map(|all| all.slice(s![0, m, i, ..]));
            // What a later row makes of its state may go back to an earlier query of a scan.
            if got != want && !(name != "the output" && matches!(settings.kernel, Kernel::Scan(_))) {
                let place = format!("{}, in row {i} of head {m} of {name}", case.name);
                return Err(Failure::new("whatever a row does not see does not change it", place, got, want));
            }
        }
    }
    Ok(())
}

/// Checks that heads of queries may share keys and values.
fn check_shared_heads<T: Real>(trial: &Trial<T>, case: &Case, settings: &Settings<T>) -> Result<(), Failure> {
    let learns = !trial.learnt.is_empty();
    let shared = trial.arrays(case, 1);
    let repeat = |x: &Array4<T>| {
        let (batch, _, time, width) = x.dim();
        x.broadcast((batch, trial.heads, time, width)).expect("one head").to_owned()
    };
    let [k, v] = [&shared.k, &shared.v].map(repeat);
    let repeated = Arrays { k, v, ..shared.clone() };
    let got = run(case, settings, &shared, learns)?;
    let mut want = run(case, settings, &repeated, learns)?;
    [want.k, want.v] = [want.k, want.v].map(|x| x.sum_axis(Axis(1)).insert_axis(Axis(1)));
    case.compare("shared heads are repeated ones", &got, &want, Some(Tolerance::gradients::<T>()))
}

/// Checks that all forms and blocks give the same numbers, over several blocks.
fn check_forms<T: Real>(trial: &Trial<T>) -> Result<(), Failure> {
    let learns = !trial.learnt.is_empty();
    let long = Case::causal(300);
    let lengths = vec![300, 170];
    let cases = [
        Case { name: "no mask", mask: Mask::none(), queries: 170, ..long.clone() },
        Case { name: "key lengths", mask: Mask::none().with_key_lengths(lengths.clone()), ..long.clone() },
        Case { name: "causality and key lengths", mask: Mask::causal().with_key_lengths(lengths), ..long.clone() },
        long,
    ];
    let forms = [Form::LinearTime, Form::Blocked(Blocks { queries: 7, keys: 64 }), Form::Automatic];
    for case in cases {
        let arrays = trial.arrays(&case, trial.heads);
        let of = |form| run(&case, &Settings { form, ..trial.make(&case) }, &arrays, learns);
        let Ok(want) = of(Form::Pairwise) else {
            continue;
        };
        for form in forms {
            match of(form) {
                Err(failure) if failure.got.contains("not supported") => continue,
                got => case.compare("all forms agree", &got?, &want, Some(Tolerance::gradients::<T>()))?,
            }
        }
    }
    Ok(())
}

/// Checks that decoding is attending, whatever the cuts.
fn check_decoding<T: Real>(trial: &Trial<T>) -> Result<(), Failure> {
    let long = Case::causal(140);
    let window = Mask::causal().with_window(5, 0).expect("not empty");
    let rule = Mask::causal().with_pairs(|i, j| (i - j) % 3 == 0 || j == 0);
    let cases = [
        Case { name: "a causal window", mask: window, ..long.clone() },
        Case { name: "a function of positions", mask: rule, ..long.clone() },
        long,
    ];
    for (case, form) in cases.iter().flat_map(|case| [Form::Automatic, Form::LinearTime].map(|form| (case, form))) {
        let settings = Settings { form, ..trial.make(case) };
        let Arrays { q, k, v, .. } = trial.arrays(case, trial.heads);
        let size = DecoderSize { batch: 2, heads: trial.heads, width: trial.width, value_width: trial.value_width };
        let failed = |error: Error| case.failed("decoding works", error);
        if settings.check_decoding().is_err() {
            continue;
        }
        let (whole, _) = match attend(&settings, q.view(), k.view(), v.view()) {
            Err(Error::Unsupported { .. }) => continue,
            result => result.map_err(failed)?,
        };
        let near = |got: &Array4<T>, want: &Array4<T>, place: &str| {
            let bound = Tolerance::gradients::<T>().bound(want.iter().map(|x| x.as_f64()));
            let wrong = got.iter().zip(want).find(|(a, b)| !is_near(a.as_f64(), b.as_f64(), bound));
            let place = format!("{} and {form:?}, {place}", case.name);
            wrong.map_or(Ok(()), |(got, want)| Err(Failure::new("decoding is attending", place, got, want)))
        };
        let step = |decoder: &mut Decoder<T>, from: usize, to: usize, order: [usize; 2]| {
            let of = |x: ArrayView4<T>| x.slice(s![.., .., from..to, ..]).select(Axis(0), &order);
            let [x, y, z] = [q.view(), k.view(), v.view()].map(of);
            let got = decoder.step(x.view(), y.view(), z.view()).map_err(failed)?;
            let want = of(whole.view());
            near(&got, &want, &format!("at positions {from}..{to}"))
        };
        let straight = [0, 1];
        for cuts in [(0..=140).collect::<Vec<_>>(), vec![0, 3, 4, 40, 137, 140]] {
            let mut decoder = Decoder::new(&settings, size).map_err(failed)?;
            cuts.windows(2).try_for_each(|cut| step(&mut decoder, cut[0], cut[1], straight))?;
            if decoder.truncate(138).is_ok() {
                step(&mut decoder, 138, 140, straight)?;
            }
        }
        let mut decoder = Decoder::new(&settings, size).map_err(failed)?;
        step(&mut decoder, 0, 130, straight)?;
        decoder.reorder(&[1, 1]).map_err(failed)?;
        step(&mut decoder, 130, 131, [1, 1])?;
        let mut memory = Decoder::new(&settings, size).map_err(failed)?;
        memory.push(k.view(), v.view()).map_err(failed)?;
        if let Ok(got) = memory.attend(q.slice(s![.., .., 100.., ..])) {
            let (want, _) = attend(&Settings { mask: Mask::none(), ..settings }, q.view(), k.view(), v.view()).map_err(failed)?;
            near(&got, &want.slice(s![.., .., 100.., ..]).to_owned(), "after all positions")?;
        }
    }
    Ok(())
}
