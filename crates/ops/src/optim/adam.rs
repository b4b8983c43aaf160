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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::relative_error;

    fn gradient(i: usize, step: usize) -> f64 {
        ((1 + i) * (1 + step)) as f64 * if step.is_multiple_of(3) { -0.1 } else { 0.3 }
    }

    /// A rate that falls, as under a schedule: weight decay follows it too.
    fn scheduled(config: &AdamConfig, step: usize) -> f64 {
        config.learning_rate / (1 + step) as f64
    }

    /// The published algorithm, one number at a time.
    fn textbook(config: &AdamConfig, steps: usize, mut x: f64, i: usize) -> f64 {
        let [b1, b2] = config.betas;
        let (mut m, mut v) = (0.0, 0.0);
        for step in 0..steps {
            let (mut g, lr) = (gradient(i, step), scheduled(config, step));
            match config.weight_decay {
                WeightDecay::L2(l) => g += l * x,
                WeightDecay::Decoupled(l) => x -= lr * l * x,
            }
            m = b1 * m + (1.0 - b1) * g;
            v = b2 * v + (1.0 - b2) * g * g;
            let t = step as i32 + 1;
            let (m_hat, v_hat) = (m / (1.0 - b1.powi(t)), v / (1.0 - b2.powi(t)));
            x -= lr * m_hat / (f64::sqrt(v_hat) + config.epsilon);
        }
        x
    }

    #[test]
    fn steps_follow_the_published_algorithm() {
        let l2 = AdamConfig {
            learning_rate: 0.05,
            betas: [0.8, 0.95],
            epsilon: 1e-3,
            weight_decay: WeightDecay::L2(0.3),
            ..AdamConfig::default()
        };
        let decoupled = AdamConfig {
            weight_decay: WeightDecay::Decoupled(0.3),
            ..l2
        };
        let start = [1.0, -2.0, 0.5];
        for config in [AdamConfig::default(), l2, decoupled] {
            let (mut x, mut moments) = (start, Moments::zeros(3));
            for step in 0..10 {
                let gradients = [0, 1, 2].map(|i| gradient(i, step));
                let rule = AdamRule::new(&config, scheduled(&config, step), step as u64 + 1);
                rule.step(&mut x, &mut moments, &gradients);
            }
            let want = [0, 1, 2].map(|i| textbook(&config, 10, start[i], i));
            assert!(relative_error(&x, &want) < 1e-13);
        }
    }

    #[test]
    #[should_panic(expected = "counted from 1")]
    fn there_is_no_step_zero() {
        AdamRule::<f64>::new(&AdamConfig::default(), 0.1, 0);
    }

    #[test]
    fn long_parameters_are_stepped_to_their_end() {
        let n = 3 * (1 << 14) + 5;
        let (mut x, mut moments) = (vec![0.0; n], Moments::zeros(n));
        let config = AdamConfig::default();
        AdamRule::new(&config, config.learning_rate, 1).step(&mut x, &mut moments, &vec![0.6; n]);
        assert!(x.iter().all(|x: &f64| (x + 1e-3).abs() < 1e-9));
    }
}
