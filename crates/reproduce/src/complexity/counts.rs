//! Operations of attention, counted and written as polynomials.

use super::forward::Forward;
use super::polynomial::{Polynomial, Powers, monomial};
use super::{in_linear_time, mechanisms, with_points};
use crate::Error;
use crate::study::{Finding, Measure};
use bochner_attention::{
    Copula, Form, Mask, Mikan, MultiHead, MultiHeadConfig, Pass, Variant, card::Cost,
};
use bochner_numerics::operations::count;
use bochner_numerics::{Operations, Seed, standard_normal};
use dfdx::tensor::{Cpu, Tensor, TensorFromVec};

/// Heads of the layer, as the protocol has it.
pub(super) const HEADS: usize = 8;

/// T, R and d of the grid.
const GRID: [&[usize]; 3] = [&[128, 256, 384], &[8, 16], &[32, 64, 96]];

/// Other points, at which the polynomials must hold too; all within one block of keys.
const ELSEWHERE: [Powers; 2] = [[512, 12, 128], [512, 24, 48]];

/// The names of the variables.
const NAMES: [&str; 3] = ["T", "R", "d"];

/// The output: weights times values.
const OUTPUT: Powers = [2, 0, 1];

/// A kind of operations: its name, and how many there are.
type Kind = (&'static str, fn(&Operations) -> u64);

/// The kinds of operations.
const KINDS: [Kind; 4] = [
    ("multiply-adds", |o| o.multiply_adds),
    ("exponentials", |o| o.exponentials),
    ("sines and cosines", |o| o.sines_cosines),
    ("powers", |o| o.powers),
];

/// Counts as polynomials.
struct Fitted {
    /// One polynomial a kind of operations.
    polynomials: [Polynomial; KINDS.len()],
    /// Counts that the polynomials miss.
    missed: usize,
}

impl Fitted {
    /// Fits the counts on a grid, and compares them there and elsewhere.
    fn new(
        grid: [&[usize]; 3],
        elsewhere: &[[usize; 3]],
        counts: impl Fn([usize; 3]) -> Result<Operations, Error>,
    ) -> Result<Self, Error> {
        let mut points = elsewhere.to_vec();
        for &x in grid[0] {
            for &y in grid[1] {
                points.extend(grid[2].iter().map(|&z| [x, y, z]));
            }
        }
        let seen = points.into_iter().map(|point| Ok((point, counts(point)?)));
        let seen = seen.collect::<Result<Vec<([usize; 3], Operations)>, Error>>()?;
        let at = |point: [usize; 3]| {
            let mut seen = seen.iter();
            seen.find(|(other, _)| *other == point)
                .expect("a point of the grid")
                .1
        };
        let polynomials = KINDS.map(|(_, of)| Polynomial::through(grid, |point| of(&at(point))));
        let misses = polynomials
            .iter()
            .zip(KINDS)
            .flat_map(|(polynomial, (_, of))| {
                let missed = move |(point, counted): &&([usize; 3], Operations)| {
                    polynomial.at(*point) != of(counted) as f64
                };
                seen.iter().filter(missed)
            });
        let missed = misses.count();
        Ok(Self {
            polynomials,
            missed,
        })
    }

    /// Powers that grow with the first variable and that no bound has.
    fn beyond(&self, bounds: &[Powers]) -> Vec<Powers> {
        let is_bounded = |powers: &Powers| {
            let below = |bound: &Powers| powers.iter().zip(bound).all(|(n, most)| n <= most);
            bounds.iter().any(below)
        };
        let terms = self.polynomials.iter().flat_map(Polynomial::powers);
        let mut beyond: Vec<Powers> = terms.filter(|p| p[0] > 0 && !is_bounded(p)).collect();
        beyond.sort_unstable();
        beyond.dedup();
        beyond
    }

    /// The measures that are judged: counts that are no polynomial, and terms beyond those of the paper.
    fn measures(&self, name: &str, bounds: &[Powers]) -> [Measure; 2] {
        let beyond = self.beyond(bounds);
        let names: Vec<String> = beyond
            .iter()
            .map(|&powers| monomial(powers, NAMES))
            .collect();
        let named = if names.is_empty() {
            String::new()
        } else {
            format!(" ({})", names.join(", "))
        };
        let missed = format!("{name}: counts that the polynomials miss");
        let terms = format!("{name}: terms beyond the paper's{named}");
        [
            Measure::shown(missed, self.missed as f64).exactly(0.0),
            Measure::shown(terms, beyond.len() as f64).exactly(0.0),
        ]
    }

    /// The polynomials in words.
    fn written(&self, name: &str, published: &str, names: [&str; 3]) -> String {
        let kinds = self.polynomials.iter().zip(KINDS);
        let kinds = kinds.map(|(polynomial, (kind, _))| (kind, polynomial.written(names)));
        let kinds = kinds.filter(|(_, text)| text != "0");
        let kinds: Vec<String> = kinds.map(|(kind, text)| format!("{kind} {text}")).collect();
        format!("{name} (paper: {published}): {}.", kinds.join("; "))
    }
}

/// Counts a layer with each mechanism of the registry.
pub(super) fn layers() -> Result<Finding, Error> {
    let mut finding = Finding {
        number: 1,
        title: "operations of a layer",
        statement: "The counts of a multi-head layer, projections included, are polynomials in T, R and d. Every term \
                    that grows with T is bounded by a term of the paper's, or by the output's T^2 d.",
        cases: mechanisms().count(),
        remarks: vec![
            "Four projections (queries, keys, values, output) are 4 T d^2. Terms without T are the networks that make \
             the spectral points, and the draws: the paper's formula has no room for them where R d^2 exceeds T d R."
                .to_owned(),
            "A squared kernel computes the exponentials of its magnitudes again for every block of 128 queries, and a \
             softmax its running maximum for every block of 512 keys: the grid has multiples of 128 up to 512, since \
             elsewhere these terms are steps."
                .to_owned(),
        ],
        ..Finding::default()
    };
    for (variant, card, cost) in mechanisms() {
        let fitted = Fitted::new(GRID, &ELSEWHERE, |[tokens, points, width]| {
            layer(&with_points(&variant, points)?, tokens, width, HEADS)
        })?;
        finding
            .measures
            .extend(fitted.measures(card.name, &bounds(cost)));
        let written = fitted.written(card.name, &cost.to_string(), NAMES);
        finding.remarks.push(written);
    }
    Ok(finding)
}

/// The powers of T, R and d that a cost states, and those of the output.
fn bounds(Cost(terms): Cost) -> Vec<Powers> {
    let terms = terms.iter().map(|&[t, d, r, _]| [t, r, d]);
    terms.chain([OUTPUT]).collect()
}

/// The name of an order, d of its grid, and other points.
type Values = (&'static str, &'static [usize], [[usize; 3]; 2]);

/// The linear-time form of a squared kernel, which takes the products in one order for narrow values
/// and in another for wide ones.
const LINEAR_TIME: [Values; 2] = [
    (
        "narrow values",
        &[32, 64, 96],
        [[512, 12, 80], [512, 32, 48]],
    ),
    (
        "wide values",
        &[128, 192, 256],
        [[512, 12, 160], [512, 32, 320]],
    ),
];

/// Counts the linear-time form of a squared kernel: attention alone, without a layer around it.
pub(super) fn linear_time() -> Result<Finding, Error> {
    let mut finding = Finding {
        number: 2,
        title: "operations in linear time",
        statement: "The counts of a squared kernel by sums over the keys, which the paper does not have, are polynomials \
                    whose terms in T are bounded by T R^2 d and T R d.",
        cases: LINEAR_TIME.len(),
        ..Finding::default()
    };
    for (name, widths, elsewhere) in LINEAR_TIME {
        let grid = [GRID[0], &[8, 16, 24], widths];
        let fitted = Fitted::new(grid, &elsewhere, |[tokens, points, width]| {
            let forward = Forward::random(&in_linear_time(points), tokens, width)?;
            let (done, counted) = count(|| forward.run());
            done.map(|()| counted)
        })?;
        finding
            .measures
            .extend(fitted.measures(name, &[[1, 2, 1], [1, 1, 1]]));
        finding.remarks.push(fitted.written(name, "none", NAMES));
    }
    Ok(finding)
}

/// Counts one forward pass of a layer on one sequence.
fn layer(
    variant: &Variant,
    tokens: usize,
    width: usize,
    heads: usize,
) -> Result<Operations, Error> {
    let device = Cpu::default();
    let seed = Seed::new(2021);
    let config = MultiHeadConfig {
        heads,
        variant: variant.clone(),
        ..MultiHeadConfig::default()
    };
    let mut stream = seed.stream("initial values");
    let layer: MultiHead<usize, f32> = MultiHead::try_new(&device, width, config, &mut stream)?;
    let mut stream = seed.stream("inputs");
    let x = (0..tokens * width).map(|_| standard_normal(&mut stream));
    let x: Tensor<_, f32, Cpu> = device.tensor_from_vec(x.collect(), (1, tokens, width));
    let pass = Pass::Evaluation { seed };
    let (attended, counted) = count(|| layer.attend_self(x, &Mask::none(), pass));
    attended?;
    Ok(counted)
}

/// Counts MIKAN less the same with independent heads.
pub(super) fn copula() -> Result<Finding, Error> {
    let copulas = [("amortised", Copula::Amortised), ("free", Copula::Free)];
    let mut finding = Finding {
        number: 3,
        title: "operations of the copula",
        statement: "The counts of MIKAN less those of the same model with independent heads, for M heads of width h, are \
                    polynomials with at most M^2, and do not depend on T. The paper's term is d M^3, as a Cholesky \
                    factorisation for each latent dimension would cost; here the factors are parametrised directly.",
        cases: copulas.len(),
        ..Finding::default()
    };
    for (name, copula) in copulas {
        let extra = |tokens: usize, [heads, points, width]: [usize; 3]| -> Result<_, Error> {
            let of = |copula| {
                let mikan = Mikan {
                    points,
                    form: Form::Pairwise,
                    copula,
                    ..Mikan::default()
                };
                layer(&mikan.into(), tokens, heads * width, heads)
            };
            Ok(of(copula)? - of(Copula::Independent)?)
        };
        // Three numbers of heads: a term in M^3 would be missed at the others.
        let grid: [&[usize]; 3] = [&[2, 4, 6], &[8, 16], &[4, 8, 12]];
        let elsewhere = [[1, 12, 10], [12, 4, 6]];
        let fitted = Fitted::new(grid, &elsewhere, |point| extra(128, point))?;
        let mut moved = 0;
        for tokens in [256, 512] {
            moved += usize::from(extra(tokens, elsewhere[0])? != extra(128, elsewhere[0])?);
        }
        let missed = format!("{name}: counts that the polynomials miss");
        finding.measures.extend([
            Measure::shown(missed, fitted.missed as f64).exactly(0.0),
            Measure::shown(
                format!("{name}: lengths T that change the count"),
                moved as f64,
            )
            .exactly(0.0),
        ]);
        finding
            .remarks
            .push(fitted.written(name, "d M^3", ["M", "R", "h"]));
    }
    Ok(finding)
}
