//! The rule by which Adam and AdamW change a parameter.

use super::{AdamConfig, WeightDecay};
use crate::rows::for_each_piece;
use bochner_numerics::Real;
use bochner_numerics::instructions::{self, Arithmetic, Task};

/// The running moments of one parameter's gradient, in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments<T> {
    /// The running mean of the gradient.
    pub first: Vec<T>,
    /// The running mean of its square.
    pub second: Vec<T>,
}

impl<T: Real> Moments<T> {
    /// The moments of a parameter of `len` elements before the first step.
    pub fn zeros(len: usize) -> Self {
        let zeros = vec![T::zero(); len];
        Self {
            first: zeros.clone(),
            second: zeros,
        }
    }
}

/// One step of Adam, or of AdamW with [`WeightDecay::Decoupled`], which serves all parameters of a model.
///
/// $$ m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2,
/// \quad \theta \leftarrow \theta - \frac{\eta}{1 - \beta_1^t}
/// \frac{m}{\sqrt{v / (1 - \beta_2^t)} + \epsilon} $$
///
/// * $\theta$: a parameter, $g$: its gradient, plus $\lambda\theta$ for [`WeightDecay::L2`]
/// * $m, v$: [`Moments`], zero at first; $t$: the step, from 1
/// * $\eta$: `learning_rate`; $\beta_1, \beta_2$: `betas`; $\epsilon$: `epsilon`
/// * $\lambda$: the weight decay; with [`WeightDecay::Decoupled`] first
///   $\theta \leftarrow (1 - \eta\lambda)\theta$ is taken
///
/// # Reference
/// Kingma, Ba, *Adam*, 2015; Loshchilov, Hutter, *Decoupled Weight Decay Regularization*, 2019.
///
/// ```
/// use bochner_ops::{AdamConfig, AdamRule, Moments};
///
/// let config = AdamConfig { learning_rate: 0.1, ..Default::default() };
/// config.validate::<f64>()?;
/// let (mut x, mut moments) = ([3.0_f64], Moments::zeros(1));
/// for step in 1..=100 {
///     let gradient = [2.0 * x[0]];
///     AdamRule::new(&config, config.learning_rate, step).step(&mut x, &mut moments, &gradient);
/// }
/// assert!(x[0].abs() < 0.2);
/// # Ok::<(), bochner_numerics::ArgumentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdamRule<T> {
    /// The factor by which decoupled weight decay shrinks the weight.
    keep: T,
    /// The factor of the weight that L2 decay adds to the gradient.
    l2: T,
    betas: [T; 2],
    /// One minus each of the betas, taken in double precision.
    rest: [T; 2],
    step_size: T,
    /// $\sqrt{1 - \beta_2^t}$.
    correction: T,
    epsilon: T,
}

impl<T: Real> AdamRule<T> {
    /// The factors of the step with this number, counted from 1, in the order in which PyTorch applies them.
    ///
    /// # Panics
    /// If the number is 0.
    pub fn new(config: &AdamConfig, learning_rate: f64, steps: u64) -> Self {
        assert!(steps > 0, "steps are counted from 1");
        let (l2, decoupled) = match config.weight_decay {
            WeightDecay::L2(factor) => (factor, 0.0),
            WeightDecay::Decoupled(factor) => (0.0, factor),
        };
        let bias = config.betas.map(|beta| 1.0 - beta.powf(steps as f64));
        Self {
            keep: T::of(1.0 - learning_rate * decoupled),
            l2: T::of(l2),
            betas: config.betas.map(T::of),
            rest: config.betas.map(|beta| T::of(1.0 - beta)),
            step_size: T::of(learning_rate / bias[0]),
            correction: T::of(bias[1].sqrt()),
            epsilon: T::of(config.epsilon),
        }
    }

    /// The rule of parameters that do not decay.
    #[must_use]
    pub fn without_decay(self) -> Self {
        Self {
            keep: T::one(),
            l2: T::zero(),
            ..self
        }
    }

    /// Steps one parameter along its gradient.
    ///
    /// # Panics
    /// Unless moments and gradient have as many elements as the parameter.
    pub fn step(&self, values: &mut [T], moments: &mut Moments<T>, gradient: &[T]) {
        /// Reals one thread takes at a time.
        const PIECE: usize = 1 << 14;
        /// Multiplications that take as long as one element.
        const WORK: usize = 16;
        let n = values.len();
        let lengths = [moments.first.len(), moments.second.len(), gradient.len()];
        assert_eq!(lengths, [n; 3], "elements of moments and gradient");
        let work = WORK * n;
        let moments = moments
            .first
            .chunks_mut(PIECE)
            .zip(moments.second.chunks_mut(PIECE));
        let pieces = values
            .chunks_mut(PIECE)
            .zip(gradient.chunks(PIECE))
            .zip(moments);
        for_each_piece(pieces, work, |((values, gradient), (first, second))| {
            instructions::run(Update {
                rule: self,
                values,
                first,
                second,
                gradient,
            });
        });
    }
}

/// One step of a piece of a parameter.
struct Update<'a, T> {
    rule: &'a AdamRule<T>,
    values: &'a mut [T],
    first: &'a mut [T],
    second: &'a mut [T],
    gradient: &'a [T],
}

impl<T: Real> Task for Update<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rule = self.rule;
        let moments = self.first.iter_mut().zip(self.second);
        let gradients = moments.zip(self.gradient);
        for (x, ((m, v), &g)) in self.values.iter_mut().zip(gradients) {
            *x *= rule.keep;
            let g = g + rule.l2 * *x;
            *m = rule.betas[0] * *m + rule.rest[0] * g;
            *v = rule.betas[1] * *v + rule.rest[1] * g * g;
            *x -= rule.step_size * *m / (v.sqrt() / rule.correction + rule.epsilon);
        }
    }
}
