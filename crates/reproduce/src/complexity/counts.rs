//! Operations of a whole attention layer, counted and written as polynomials.

use super::kernel::SquaredKernel;
use super::polynomial::{Polynomial, Powers};
use super::{mechanisms, with_points};
use crate::Error;
use bochner_attention::{
    Copula, Form, Mask, Mikan, MultiHead, MultiHeadConfig, Pass, Variant, card::Cost,
};
use bochner_numerics::operations::count;
use bochner_numerics::{Operations, Seed, standard_normal};
use dfdx::tensor::{Cpu, Tensor, TensorFromVec};
use serde::Serialize;

/// Heads of the layer, as the protocol has it.
pub(super) const HEADS: usize = 8;

/// T, R and d of the grid.
const GRID: [&[usize]; 3] = [&[128, 256, 512], &[8, 16], &[32, 64, 128]];

/// Other points, at which the polynomials must hold too; all within one block of keys.
const ELSEWHERE: [[usize; 3]; 2] = [[384, 12, 96], [384, 24, 48]];

/// The names of the variables.
pub(super) const NAMES: [&str; 3] = ["T", "R", "d"];

/// The output: weights times values.
const OUTPUT: Powers = [2, 0, 1];

/// A kind of operations: its name, and how many there are.
type Kind = (&'static str, fn(&Operations) -> u64);

/// The kinds of operations.
pub(super) const KINDS: [Kind; 4] = [
    ("multiply-adds", |o| o.multiply_adds),
    ("exponentials", |o| o.exponentials),
    ("sines and cosines", |o| o.sines_cosines),
    ("powers", |o| o.powers),
];

/// One count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Counted {
    /// The mechanism's name.
    pub(super) mechanism: String,
    /// T.
    pub(super) tokens: usize,
    /// R; zero for mechanisms without spectral points.
    pub(super) points: usize,
    /// d, over all heads.
    pub(super) width: usize,
    /// M.
    pub(super) heads: usize,
    /// Multiplications or divisions with their additions.
    pub(super) multiply_adds: u64,
    /// Exponentials.
    pub(super) exponentials: u64,
    /// Angles.
    pub(super) sines_cosines: u64,
    /// Powers.
    pub(super) powers: u64,
}

/// The counts of one mechanism, as polynomials.
pub(super) struct Fitted {
    pub(super) name: &'static str,
    /// What the paper prints.
    pub(super) published: String,
    /// The powers that bound those that grow with T, the most important first.
    bounds: Vec<Powers>,
    /// One polynomial a kind of operations.
    pub(super) polynomials: [Polynomial; KINDS.len()],
    /// Whether they hold at all points, exactly.
    pub(super) exact: bool,
}

impl Fitted {
    /// Powers that grow with T and that no term of the paper's bounds.
    pub(super) fn beyond(&self) -> Vec<Powers> {
        let terms = self.polynomials.iter().flat_map(Polynomial::powers);
        let growing = terms.filter(|powers| powers[0] > 0);
        let mut beyond: Vec<_> = growing
            .filter(|powers| !self.is_published(*powers))
            .collect();
        beyond.sort();
        beyond.dedup();
        beyond
    }

    fn is_published(&self, powers: Powers) -> bool {
        let below = |bound: &Powers| powers.iter().zip(bound).all(|(n, most)| n <= most);
        self.bounds.iter().any(below)
    }

    pub(super) fn holds(&self) -> bool {
        self.exact && self.beyond().is_empty()
    }
}

/// Counts every mechanism of the registry at every point of the grid, and elsewhere.
pub(super) fn registry() -> Result<(Vec<Fitted>, Vec<Counted>), Error> {
    let (mut fitted, mut all) = (Vec::new(), Vec::new());
    for (variant, card, cost) in mechanisms() {
        let counts = |point: [usize; 3]| {
            let [tokens, points, width] = point;
            layer(&with_points(&variant, points)?, tokens, width, HEADS)
        };
        let (polynomials, exact, seen) = fit(GRID, &ELSEWHERE, counts)?;
        all.extend(
            seen.into_iter()
                .map(|([tokens, points, width], counted)| Counted {
                    points: card.points.map_or(0, |_| points),
                    ..Counted::new(card.name, tokens, width, HEADS, counted)
                }),
        );
        fitted.push(Fitted {
            name: card.name,
            published: cost.to_string(),
            bounds: [powers(cost), vec![OUTPUT]].concat(),
            polynomials,
            exact,
        });
    }
    Ok((fitted, all))
}

/// The powers of T, R and d that a cost states.
fn powers(Cost(terms): Cost) -> Vec<Powers> {
    terms.iter().map(|&[t, d, r, _]| [t, r, d]).collect()
}

/// The name of an order, d of its grid, and other points.
type Values = (&'static str, &'static [usize], [[usize; 3]; 2]);

/// The linear-time form of a squared kernel, which takes the products in one order for narrow values
/// and in another for wide ones.
const LINEAR_TIME: [Values; 2] = [
    (
        "squared kernel, linear-time form, narrow values",
        &[32, 64, 96],
        [[384, 12, 80], [384, 24, 48]],
    ),
    (
        "squared kernel, linear-time form",
        &[128, 192, 256],
        [[384, 12, 160], [384, 24, 144]],
    ),
];

/// Counts the linear-time form: attention alone, without a layer around it.
pub(super) fn linear_time() -> Result<(Vec<Fitted>, Vec<Counted>), Error> {
    let (mut fitted, mut all) = (Vec::new(), Vec::new());
    for (name, widths, elsewhere) in LINEAR_TIME {
        let counts = |[tokens, points, width]: [usize; 3]| {
            let kernel = SquaredKernel::random(tokens, points, width, HEADS);
            let (attended, counted) = count(|| kernel.attend(Form::LinearTime));
            attended.map(|_| counted)
        };
        let grid = [GRID[0], &[8, 16, 24], widths];
        let (polynomials, exact, seen) = fit(grid, &elsewhere, counts)?;
        all.extend(
            seen.into_iter()
                .map(|([tokens, points, width], counted)| Counted {
                    points,
                    ..Counted::new(name, tokens, width, HEADS, counted)
                }),
        );
        fitted.push(Fitted {
            name,
            published: "not in it; ours: T R^2 d + T d R".to_owned(),
            bounds: vec![[1, 2, 1], [1, 1, 1]],
            polynomials,
            exact,
        });
    }
    Ok((fitted, all))
}

impl Counted {
    fn new(name: &str, tokens: usize, width: usize, heads: usize, counted: Operations) -> Self {
        Self {
            mechanism: name.to_owned(),
            tokens,
            points: 0,
            width,
            heads,
            multiply_adds: counted.multiply_adds,
            exponentials: counted.exponentials,
            sines_cosines: counted.sines_cosines,
            powers: counted.powers,
        }
    }
}

/// What was counted, point by point.
type Seen = Vec<([usize; 3], Operations)>;

/// The polynomials through the counts on a grid, whether they hold elsewhere, and all counts.
pub(super) fn fit(
    grid: [&[usize]; 3],
    elsewhere: &[[usize; 3]],
    counts: impl Fn([usize; 3]) -> Result<Operations, Error>,
) -> Result<([Polynomial; KINDS.len()], bool, Seen), Error> {
    let [a, b, c] = grid;
    let inside = a.iter().flat_map(|&x| {
        b.iter()
            .flat_map(move |&y| c.iter().map(move |&z| [x, y, z]))
    });
    let seen = inside
        .chain(elsewhere.iter().copied())
        .map(|point| Ok((point, counts(point)?)))
        .collect::<Result<Seen, Error>>()?;
    let at = |point: [usize; 3]| {
        let place = seen.iter().position(|(other, _)| *other == point);
        seen[place.expect("a point of the grid")].1
    };
    let polynomials = KINDS.map(|(_, of)| Polynomial::through(grid, |point| of(&at(point))));
    let mut pairs = polynomials.iter().zip(KINDS);
    let exact = pairs.all(|(polynomial, (_, of))| {
        seen.iter()
            .all(|(point, counted)| polynomial.is(*point, of(counted)))
    });
    Ok((polynomials, exact, seen))
}

/// The operations of one forward pass of a layer on one sequence.
pub(super) fn layer(
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

/// What the copula adds to MIKAN, as polynomials in M, R and the heads' width h.
pub(super) struct CopulaTerm {
    /// How the factors come about.
    pub(super) copula: &'static str,
    pub(super) polynomials: [Polynomial; KINDS.len()],
    /// Whether they hold at all points, exactly.
    pub(super) exact: bool,
    /// Whether the counts are the same at every T.
    pub(super) constant: bool,
}

/// The names of the variables of a [`CopulaTerm`].
pub(super) const COPULA_NAMES: [&str; 3] = ["M", "R", "h"];

impl CopulaTerm {
    /// The largest power of M.
    pub(super) fn degree(&self) -> usize {
        let powers = self.polynomials.iter().flat_map(Polynomial::powers);
        powers.map(|powers| powers[0]).max().unwrap_or(0)
    }

    pub(super) fn holds(&self) -> bool {
        self.exact && self.constant && self.degree() <= 3
    }
}

/// The operations of MIKAN less those of the same with independent heads.
pub(super) fn copula_terms() -> Result<Vec<CopulaTerm>, Error> {
    let term = |(name, copula): (&'static str, Copula)| {
        let extra = |tokens: usize, [heads, points, width]: [usize; 3]| -> Result<_, Error> {
            let of = |copula| {
                let form = Form::Pairwise;
                let mikan = Mikan {
                    points,
                    form,
                    copula,
                    ..Mikan::default()
                };
                layer(&mikan.into(), tokens, heads * width, heads)
            };
            Ok(of(copula)? - of(Copula::Independent)?)
        };
        let grid: [&[usize]; 3] = [&[1, 2, 4, 8], &[8, 16], &[4, 8, 16]];
        let elsewhere = [[6, 12, 10], [12, 4, 6]];
        let (polynomials, exact, seen) = fit(grid, &elsewhere, |point| extra(128, point))?;
        let (point, counted) = seen[seen.len() - 1];
        let mut constant = true;
        for tokens in [256, 512] {
            constant &= extra(tokens, point)? == counted;
        }
        Ok(CopulaTerm {
            copula: name,
            polynomials,
            exact,
            constant,
        })
    };
    let copulas = [("amortised", Copula::Amortised), ("free", Copula::Free)];
    copulas.into_iter().map(term).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_polynomials_of_table_1() {
        let (fitted, counted) = registry().unwrap();
        assert_eq!(fitted.len(), mechanisms().count());
        assert_eq!(counted.len(), fitted.len() * 20);
        for mechanism in &fitted {
            assert!(mechanism.exact, "{}", mechanism.name);
            assert_eq!(
                mechanism.beyond(),
                Vec::<Powers>::new(),
                "{}",
                mechanism.name
            );
            // Weights of every pair, and not less: a counter that misses them fails here.
            let most = mechanism.bounds[0];
            let mut powers = mechanism.polynomials[0].powers();
            assert!(powers.any(|powers| powers == most), "{}", mechanism.name);
        }
    }

    #[test]
    fn softmax_by_hand() {
        // Four projections, scores and output; and for each pair of each head the scale.
        let (tokens, width, heads) = (128, 32, 4);
        let softmax = bochner_attention::find("softmax").unwrap();
        let counted = layer(&softmax, tokens, width, heads).unwrap();
        let pairs = tokens * tokens;
        let rows = tokens * heads;
        let want =
            4 * tokens * width * width + 2 * pairs * width + pairs * heads + rows + tokens * width;
        assert_eq!(counted.multiply_adds, want as u64);
        assert_eq!(counted.exponentials, (pairs * heads + rows) as u64);
        assert_eq!(counted.sines_cosines, 0);
    }

    #[test]
    fn the_linear_time_form_is_linear() {
        let (fitted, counted) = linear_time().unwrap();
        for fitted in fitted {
            assert!(fitted.exact, "{}", fitted.polynomials[0].written(NAMES));
            assert_eq!(fitted.beyond(), Vec::<Powers>::new());
            let mut powers = fitted.polynomials[0].powers();
            assert!(powers.any(|powers| powers == [1, 2, 1]));
        }
        assert_eq!(counted.len(), 2 * 29);
    }

    #[test]
    fn the_copula_does_not_see_the_length() {
        for term in copula_terms().unwrap() {
            assert!(term.exact && term.constant, "{}", term.copula);
            assert_eq!(term.degree(), 2, "{}", term.copula);
        }
    }
}
