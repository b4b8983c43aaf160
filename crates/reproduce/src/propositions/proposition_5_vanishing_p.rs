//! Proposition 5: what attention becomes as the norm's exponent vanishes.

use super::Effort;
use crate::Error;
use crate::study::case::{Case, each, head, larger, largest, largest_difference, matrix};
use crate::study::{Finding, Measure};
use bochner_attention::{
    Form, Magnitude, Mask, Settings,
    kernels::{self, Points},
    weights,
};
use bochner_numerics::Tolerance;
use bochner_report::document::{Axis, Chart, Marks, Series};
use ndarray::{Array2, Array3, ArrayView1, Axis as NdAxis, array, concatenate};

/// The exponents, down to what stands for zero.
const EXPONENTS: [f64; 10] = [2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, VANISHED];

/// Small enough for the limit: geometric means of coordinates that differ by one part in a million
/// are told apart.
const VANISHED: f64 = 1e-6;

const STATEMENT: &str = "As p -> 0+, let G be the keys with the eventually largest |k_j|_p: the most \
    non-zero coordinates, then the largest geometric mean of those. If they are two or more, the \
    weights go to s_ij / sum_(l in G) s_il on G and to 0 elsewhere. That is one-hot when G is one key \
    and uniform only when the similarities on G are equal; as printed, without ties, it is false.";

/// The outcome of one case.
enum Observed {
    Limit {
        /// The largest error against the limit for each exponent.
        errors: [f64; EXPONENTS.len()],
        tied: bool,
        /// With ties: the largest distance of the limit from one-hot and from uniform weights.
        beyond: f64,
    },
    /// No key has two non-zero coordinates: the largest change of a weight with p.
    Constant(f64),
}

pub(super) fn measure(effort: &Effort) -> Result<Finding, Error> {
    let cases = each(5, effort.cases, observe)?;
    let limits = || {
        cases.iter().filter_map(|case| match case {
            Observed::Limit {
                errors,
                tied,
                beyond,
            } => Some((errors, *tied, *beyond)),
            Observed::Constant(_) => None,
        })
    };
    let constant = cases.iter().filter_map(|case| match case {
        Observed::Constant(change) => Some(*change),
        Observed::Limit { .. } => None,
    });
    let last = |errors: &[f64; EXPONENTS.len()]| errors[EXPONENTS.len() - 1];
    let of = |with_ties: bool| {
        let own = limits().filter(move |(_, tied, _)| *tied == with_ties);
        (
            own.clone().count(),
            largest(own.map(|(errors, ..)| last(errors))),
        )
    };
    let ((single, single_error), (tied, tied_error)) = (of(false), of(true));
    let rounding = Tolerance::outputs::<f64>().relative;
    let rest = cases.len() - single - tied;
    let of_single = format!("largest error at p = {VANISHED:e}, {single} cases with one key in G");
    let of_ties = format!("largest error at p = {VANISHED:e}, {tied} cases with ties");
    let of_rest = format!(
        "largest change from p = 2 to {VANISHED:e}, {rest} cases without two non-zero coordinates"
    );
    let apart = "ties: the limit's largest distance from one-hot and from uniform weights";
    let mut measures = vec![
        Measure::shown(of_single, single_error).at_most(rounding),
        Measure::shown(of_ties, tied_error).at_most(rounding),
        Measure::shown(of_rest, largest(constant)).at_most(rounding),
        Measure::shown(apart, largest(limits().map(|(.., beyond)| beyond))).at_least(0.1),
    ];
    measures.extend(counterexample()?);
    let errors: Vec<_> = limits().map(|(errors, ..)| *errors).collect();
    Ok(Finding {
        number: 5,
        title: "weights as p vanishes",
        statement: STATEMENT,
        cases: effort.cases,
        measures,
        remarks: REMARKS.map(str::to_owned).to_vec(),
        charts: vec![chart(&errors)],
    })
}

const REMARKS: [&str; 2] = [
    "Weights by `weights` with `Magnitude::Norm`; the limit by the same function without a \
     magnitude and with a mask that keeps G. RBF similarities and squared non-stationary kernels \
     by turns; 2 to 8 keys of which some have zeros; ties by flipped signs and
     permuted coordinates.",
    "Counterexample to the printed form: d = 2, q = (1, 0), keys (1, 1) and (-1, 1), of equal norm \
     for every p, with softmax attention's similarity. The weights stay at 1 / (1 + exp(-sqrt 2)) \
     and the rest: neither one-hot nor uniform.",
];

fn observe(mut case: Case) -> Result<Observed, Error> {
    let width = case.width;
    let mut keys = random_keys(&mut case, width);
    let winner = eventual_winner(&keys);
    let mut kept = vec![false; keys.nrows()];
    kept[winner] = true;
    let tied = case.happens(0.5);
    if tied {
        for _ in 0..case.count(1, 3) {
            let copy = tied_with(&mut case, keys.row(winner));
            keys = concatenate![NdAxis(0), keys, copy];
        }
    }
    kept.resize(keys.nrows(), true);
    let kernel = Similar::random(&mut case, width);
    let q = case.normal(3, width, 1.0);
    let at = |p| kernel.attend(&q, &keys, Magnitude::Norm { p }, &Mask::none());
    if keys.row(winner).iter().filter(|x| **x != 0.0).count() < 2 {
        let change = largest_difference(&at(2.0)?, &at(VANISHED)?);
        return Ok(Observed::Constant(change));
    }
    let limit = kernel.limit(&q, &keys, &kept)?;
    let mut errors = [0.0; EXPONENTS.len()];
    for (error, p) in errors.iter_mut().zip(EXPONENTS) {
        *error = largest_difference(&at(p)?, &limit);
    }
    Ok(Observed::Limit {
        errors,
        tied,
        beyond: if tied { beyond(&limit, &kept) } else { 0.0 },
    })
}

/// Two to eight keys, in a third of the cases with some coordinates zero.
fn random_keys(case: &mut Case, width: usize) -> Array2<f64> {
    let (count, std) = (case.count(2, 8), case.real(0.3, 2.0));
    let mut keys = case.normal(count, width, std);
    if case.happens(1.0 / 3.0) {
        keys.mapv_inplace(|x| if case.happens(0.3) { 0.0 } else { x });
    }
    keys
}

/// A key of the same norms: its coordinates turned around, some with the other sign.
fn tied_with(case: &mut Case, key: ArrayView1<f64>) -> Array2<f64> {
    let (width, turn) = (key.len(), case.count(0, key.len() - 1));
    Array2::from_shape_fn((1, width), |(_, n)| case.sign() * key[(n + turn) % width])
}

/// The key with the most non-zero coordinates and, of those, the largest geometric mean.
fn eventual_winner(keys: &Array2<f64>) -> usize {
    let rank = |j: usize| {
        let logs = keys.row(j);
        let logs: Vec<f64> = logs
            .iter()
            .filter(|x| **x != 0.0)
            .map(|x| x.abs().ln())
            .collect();
        (
            logs.len(),
            logs.iter().sum::<f64>() / logs.len().max(1) as f64,
        )
    };
    let better = |&a: &usize, &b: &usize| {
        let ((count_a, mean_a), (count_b, mean_b)) = (rank(a), rank(b));
        count_a.cmp(&count_b).then(mean_a.total_cmp(&mean_b))
    };
    (0..keys.nrows()).max_by(better).expect("two keys or more")
}

/// The smaller of the distances from one-hot and from uniform weights, at its largest.
fn beyond(limit: &Array2<f64>, kept: &[bool]) -> f64 {
    let uniform = 1.0 / kept.iter().filter(|kept| **kept).count() as f64;
    let rows = limit.rows().into_iter().map(|row| {
        let most = row.fold(0.0, |a: f64, &b| a.max(b));
        (1.0 - most).min(most - uniform)
    });
    rows.fold(0.0, larger)
}

fn counterexample() -> Result<[Measure; 2], Error> {
    let (q, keys) = (array![[1.0, 0.0]], array![[1.0, 1.0], [-1.0, 1.0]]);
    let want = (1.0 + (-2f64.sqrt()).exp()).recip();
    let off = Tolerance::outputs::<f64>().relative;
    let measure = |p: f64| -> Result<Measure, Error> {
        let got = Similar::Rbf.attend(&q, &keys, Magnitude::Norm { p }, &Mask::none())?;
        let what = format!("counterexample: weight of the first of two tied keys, p = {p:e}");
        Ok(Measure::shown(what, got[[0, 0]]).within(want - off, want + off))
    };
    Ok([measure(2.0)?, measure(VANISHED)?])
}

/// A similarity with what it is made of.
enum Similar {
    Rbf,
    Squared { w1: Array3<f64>, w2: Array3<f64> },
}

impl Similar {
    fn random(case: &mut Case, width: usize) -> Self {
        if (case.number / 64).is_multiple_of(2) {
            return Self::Rbf;
        }
        let std = (2.0 * (width as f64).sqrt()).sqrt().recip();
        let mut draw = || case.normal(8, width, std).insert_axis(NdAxis(0));
        Self::Squared {
            w1: draw(),
            w2: draw(),
        }
    }

    fn attend(
        &self,
        q: &Array2<f64>,
        k: &Array2<f64>,
        magnitude: Magnitude,
        mask: &Mask,
    ) -> Result<Array2<f64>, Error> {
        let similarity = match self {
            Self::Rbf => kernels::rbf(mask),
            Self::Squared { w1, w2 } => {
                let points = Points::shared_nonstationary(w1.view(), w2.view());
                kernels::squared(points, 1e-5, mask)
            }
        };
        let settings = Settings {
            form: Form::Pairwise,
            ..similarity.with_key_weight(magnitude)
        };
        let (q, k) = (head(q.view()), head(k.view()));
        let found = weights(&settings, q.view(), k.view());
        Ok(matrix(found.map_err(bochner_attention::Error::from)?))
    }

    /// The similarities alone, normalised over the keys of G.
    fn limit(&self, q: &Array2<f64>, k: &Array2<f64>, kept: &[bool]) -> Result<Array2<f64>, Error> {
        let only = Array2::from_shape_fn((q.nrows(), k.nrows()), |(_, j)| kept[j]);
        let mask = Mask::none().with_matrix(only.view());
        self.attend(q, k, Magnitude::None, &mask)
    }
}

fn chart(errors: &[[f64; EXPONENTS.len()]]) -> Chart {
    let share = |i: usize, bound: f64| {
        let off = errors.iter().filter(|errors| errors[i] > bound).count();
        off as f64 / errors.len() as f64
    };
    let series = [0.5, 0.1, 1e-3].map(|bound| Series {
        name: format!("error above {bound}"),
        marks: Marks::Line,
        points: EXPONENTS
            .iter()
            .enumerate()
            .map(|(i, &p)| (p, share(i, bound)))
            .collect(),
    });
    Chart {
        title: "Proposition 5: cases that are not at the limit yet".to_owned(),
        x: Axis::Log("exponent p of the norm".to_owned()),
        y: Axis::Linear("share of the cases".to_owned()),
        series: series.into(),
    }
}
