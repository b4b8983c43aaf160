use crate::conformance::common::*;
use bochner_attention::{
    Error, Mask, Pass, Variant,
    card::Rows,
    mechanism::{Cotangents, Size},
    registry,
};
use bochner_numerics::{Real, Seed, Stream, standard_normal};
use ndarray::{Array1, Array2, Array4, Axis};
use rand::Rng;
use rayon::prelude::*;

/// Examples of each mechanism and type.
const EXAMPLES: u64 = 400;

/// One generated example, a function of its seed alone.
struct Extreme {
    variant: Variant,
    mask: Mask,
    pass: Pass,
    /// Queries, keys, values.
    inputs: [Array4<f64>; 3],
    cotangents: (Array4<f64>, Array1<f64>),
    parameters: Vec<f64>,
}

/// Draws of what an example is made of.
struct Draws(Stream);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0.r#gen_range(0..n)
    }

    fn one_of<X: Clone>(&mut self, choices: &[X]) -> X {
        choices[self.below(choices.len())].clone()
    }

    /// The logarithm of a size: often none, anything from 1e-30 to 1e9 otherwise.
    fn size(&mut self) -> f64 {
        match self.below(3) {
            0 => 0.0,
            _ => self.0.r#gen_range(-30.0..9.0),
        }
    }

    /// Numbers of sizes drawn for the whole, for each row or for each element, with some zeros, and
    /// some rows that repeat others.
    fn array(&mut self, shape: [usize; 4]) -> Array4<f64> {
        let [whole, by] = [self.size(), self.below(3) as f64];
        let mut row = 0.0;
        let mut x = Array4::from_shape_fn(shape, |(.., n)| {
            if n == 0 && by == 1.0 {
                row = self.size();
            }
            let own = if by == 2.0 { self.size() } else { row };
            let sign = self.one_of(&[-1.0, 1.0, 1.0, -1.0, 0.0]);
            let log = (whole + own + self.0.r#gen_range(-0.3..0.3)).clamp(-30.0, 9.0);
            sign * f64::powf(10.0, log)
        });
        if self.below(4) == 0 {
            let (from, to) = (self.below(shape[2]), self.below(shape[2]));
            let copy = x.index_axis(Axis(2), from).to_owned();
            x.index_axis_mut(Axis(2), to).assign(&copy);
        }
        x
    }

    fn mask(&mut self, [batch, queries, keys]: [usize; 3], causal: bool) -> Mask {
        let mut mask = Mask::none();
        if self.below(3) == 0 {
            mask = mask.with_key_lengths((0..batch).map(|_| self.below(keys + 1)).collect());
        }
        if self.below(4) == 0 {
            mask = mask.with_query_lengths((0..batch).map(|_| self.below(queries + 1)).collect());
        }
        if self.below(3) == 0 {
            let kept = Array2::from_shape_simple_fn((queries, keys), || self.below(3) > 0);
            mask = mask.with_matrix(kept.view());
        }
        if causal && self.below(3) == 0 {
            mask = mask.with_causality();
        }
        mask
    }

    fn parameters(&mut self, variant: &Variant, size: Size) -> Vec<f64> {
        let mechanism = variant.mechanism::<f64>();
        let mut parameters = mechanism.initial(size, &mut self.0).unwrap();
        let scale = f64::powf(10.0, self.0.r#gen_range(-2.0..0.5));
        for x in &mut parameters {
            *x = (*x + 0.2 * standard_normal::<f64>(&mut self.0)) * scale;
        }
        parameters
    }
}

impl Extreme {
    fn new(examples: &[Variant], seed: Seed) -> Self {
        let mut draws = Draws(seed.stream("extremes"));
        let variant = draws.one_of(examples);
        let [batch, heads, queries, keys, width, value_width] =
            [2, 2, 4, 4, 3, 2].map(|n| draws.below(n) + 1);
        let card = variant.card();
        let queries = if card.cross.is_yes() { queries } else { keys };
        let mask = draws.mask([batch, queries, keys], card.causal.is_yes());
        let mask = if card.takes(&mask) {
            mask
        } else {
            Mask::none()
        };
        // The first columns of the values stand for the input, and outputs without values are as wide.
        let has_values = card
            .streams
            .contains(&bochner_attention::card::Stream::Values);
        let value_width = if has_values { value_width } else { width };
        let inputs = [(queries, width), (keys, width), (keys, value_width)]
            .map(|(time, width)| draws.array([batch, heads, time, width]));
        let [mut q, k, v] = inputs;
        if draws.below(4) == 0 {
            // A query that coincides with a key.
            let (i, j) = (draws.below(queries), draws.below(keys));
            let coincident = k.index_axis(Axis(2), j);
            q.index_axis_mut(Axis(2), i).assign(&coincident);
        }
        let penalty = draws.array([1, 1, 1, batch]).into_flat();
        let dropout = draws.one_of(&[0.0, 0.5]);
        Self {
            mask,
            pass: draws
                .one_of(&[EVALUATION, Pass::Training { seed, dropout }])
                .for_card(&card),
            inputs: [q, k, v],
            cotangents: (draws.array([batch, heads, queries, value_width]), penalty),
            parameters: draws.parameters(&variant, Size { heads, width }),
            variant,
        }
    }

    /// Describes the fault of the results, if there is one.
    fn fault<T: Real>(&self) -> Option<String> {
        let cast = |x: &Array4<f64>| x.mapv(T::of);
        let [q, k, v] = self.inputs.each_ref().map(cast);
        let parameters: Vec<T> = self.parameters.iter().map(|&x| T::of(x)).collect();
        let (mechanism, card) = (self.variant.mechanism::<T>(), self.variant.card());
        let example = Example { q, k, v };
        let inputs = example.streams(&card, &self.mask);
        let forward = match mechanism.forward(&inputs, &parameters, &self.pass) {
            Err(error) if is_told(&error) => return None,
            forward => forward.unwrap(),
        };
        let (output, penalty) = (cast(&self.cotangents.0), self.cotangents.1.mapv(T::of));
        let cotangents = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let g = mechanism.backward(&inputs, &parameters, &self.pass, &forward, cotangents);
        let g = match g {
            Err(error) if is_told(&error) => return None,
            g => g.unwrap(),
        };
        let shown = || mechanism.inspect(&inputs, &parameters, &self.pass).unwrap();
        let weights = card.weights.is_yes().then(|| shown().weights);
        let nan = [
            ("output", has_nan(&forward.output)),
            ("penalty", has_nan(&forward.penalty)),
            ("weights", has_nan(weights.iter().flatten())),
            ("gradients of streams", g.streams.iter().any(|x| has_nan(x))),
            ("parameters", has_nan(&g.parameters)),
            (
                "output beyond the values",
                self.is_evaluation()
                    && matches!(card.rows, Rows::One | Rows::HalfToOne)
                    && !is_mean(&forward.output.to_owned(), &example.v),
            ),
        ];
        faults_of::<T>(&nan)
    }

    fn is_evaluation(&self) -> bool {
        matches!(self.pass, Pass::Evaluation { .. })
    }

    fn check(&self, seed: Seed) -> Result<(), String> {
        let faults = [self.fault::<f32>(), self.fault::<f64>()];
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{:?}, {seed:?}: {}",
            self.variant,
            faults.join("; ")
        ))
    }
}

fn faults_of<T: Real>(checks: &[(&str, bool)]) -> Option<String> {
    let found = checks.iter().filter(|(_, found)| *found);
    let names: Vec<&str> = found.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("{}: {}", T::NAME, names.join(", ")))
}

/// Whether an error names the score or the slope that has left the range of its type.
fn is_told(error: &Error) -> bool {
    use bochner_attention::engine::Error as Engine;
    matches!(
        error,
        Error::Overflow { .. }
            | Error::Engine(Engine::Score { .. } | Engine::Slope { .. } | Engine::Features { .. })
    )
}

fn has_nan<'a, T: Real>(x: impl IntoIterator<Item = &'a T>) -> bool {
    x.into_iter().any(|x| x.is_nan())
}

/// Outputs are means of values, whatever the weights, up to the rounding of subnormal numbers: without
/// a floor all of a row's weights can be such before they are normalised.
fn is_mean<T: Real>(output: &Array4<T>, v: &Array4<T>) -> bool {
    let largest = |x: &Array4<T>| x.iter().fold(T::zero(), |m, x| m.max(x.abs()));
    !has_nan(output) && largest(output) <= largest(v) * T::of(2.0)
}

/// Streams, values and cotangents from 1e-30 to 1e30, any p, any mask.
#[test]
fn mechanisms() {
    for name in registry().iter().map(|variant| variant.name()) {
        let own = |variant: &Variant| variant.name() == name;
        let examples: Vec<_> = examples().into_iter().filter(own).collect();
        let root = Seed::new(30).child(name);
        let faults = (0..EXAMPLES).into_par_iter().filter_map(|n| {
            let seed = root.nth(n);
            Extreme::new(&examples, seed).check(seed).err()
        });
        let faults: Vec<String> = faults.collect();
        let some: Vec<&String> = faults.iter().take(5).collect();
        assert!(faults.is_empty(), "{} of {name}: {some:#?}", faults.len());
    }
}
