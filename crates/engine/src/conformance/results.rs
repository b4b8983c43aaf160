//! Results of attention calls, and their distance from one another.

use super::*;

#[derive(Clone)]
pub(super) struct Arrays<T> {
    pub(super) q: Array4<T>,
    pub(super) k: Array4<T>,
    pub(super) v: Array4<T>,
    pub(super) cotangent: Array4<T>,
}

impl<T: Real> Arrays<T> {
    pub(super) fn views(&self) -> [ArrayView4<'_, T>; 3] {
        [self.q.view(), self.k.view(), self.v.view()]
    }

    pub(super) fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Arrays<U> {
        let [q, k, v, cotangent] = [&self.q, &self.k, &self.v, &self.cotangent].map(|x| x.mapv(f));
        Arrays { q, k, v, cotangent }
    }
}

/// The output, the gradients along queries, keys and values, and that along the learnt numbers.
pub(super) struct Results<T>(pub(super) [Array4<T>; 4], pub(super) Vec<T>);

/// The names of the parts of results.
pub(super) const PARTS: [&str; 5] = [
    "output",
    "gradient along q",
    "gradient along k",
    "gradient along v",
    "learnt gradient",
];

impl<T: Real> Results<T> {
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, Vec<T>)> {
        let arrays = self.0.iter().map(|x| x.iter().copied().collect());
        PARTS.into_iter().zip(arrays.chain([self.1.clone()]))
    }

    pub(super) fn map<U>(&self, f: impl Fn(T) -> U + Copy) -> Results<U> {
        Results(
            self.0.each_ref().map(|x| x.mapv(f)),
            self.1.iter().map(|&x| f(x)).collect(),
        )
    }

    /// Compares results within a tolerance, or to the bit, apart from the signs of zeros.
    pub(super) fn compare(
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

pub(super) fn compare<T: Real>(
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
pub(super) fn is_near(a: f64, b: f64, bound: f64) -> bool {
    (a - b).abs() <= bound
}

/// Whether settings are supported.
pub(super) fn accepts<T: Real>(settings: &Settings<T>, arrays: &Arrays<T>) -> Result<bool, Error> {
    let [q, k, v] = arrays.views();
    match attend(settings, q, k, v) {
        Err(Error::Unsupported { .. }) => Ok(false),
        result => result.map(|_| true),
    }
}

/// Returns the output and the gradients, the latter along learnt numbers as `pull` returns them.
pub(super) fn run_with<T: Real>(
    settings: &Settings<T>,
    arrays: &Arrays<T>,
    learns: bool,
    pull: &dyn Fn(&Gradients<T>) -> Vec<T>,
) -> Result<Results<T>, Error> {
    let [q, k, v] = arrays.views();
    let has_numbers = settings
        .bias
        .as_ref()
        .is_some_and(|bias| bias.zero_gradients().is_some());
    let wanted = Wanted {
        kernel: learns,
        bias: learns && has_numbers,
        sink: learns && settings.sink.is_some(),
    };
    let (output, saved) = attend(settings, q, k, v)?;
    let all = attend_vjp(settings, &saved, q, k, v, arrays.cotangent.view(), wanted)?;
    let learnt = pull(&all);
    Ok(Results([output.to_owned(), all.q, all.k, all.v], learnt))
}

pub(super) fn run<T: Real>(
    settings: &Settings<T>,
    arrays: &Arrays<T>,
    learns: bool,
) -> Result<Results<T>, Error> {
    run_with(settings, arrays, learns, &in_order)
}

/// Returns the gradients along the kernel, the bias and the sink, in this order.
pub(super) fn in_order<T: Real>(all: &Gradients<T>) -> Vec<T> {
    let kernel = all.kernel.iter().flatten();
    let terms = all.bias.iter().flatten().chain(all.sink.iter().flatten());
    kernel.chain(terms).copied().collect()
}

/// Settings with the learnt numbers of a bias, some of which hide pairs, and of a sink.
pub(super) type WithTerms<'a, T> = Box<dyn Fn(&[T]) -> Settings<T> + 'a>;

pub(super) fn with_terms<'a, T: Real>(
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
