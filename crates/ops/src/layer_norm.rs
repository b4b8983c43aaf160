//! Layer normalisation, alone and at the end of a residual branch.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use crate::rows::{LARGE, add, block_rows, by_blocks, sum, sum_over};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{ArgumentError, DropoutMask, Real, argument, parallel};
use ndarray::ArrayViewD;
use std::ops::Range;

/// Normalises the last axis to mean 0 and variance 1, then scales and shifts it: an operation on `x`, `gamma`
/// and `beta`.
///
/// $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$
///
/// * $\mu, \sigma^2$: mean and (biased) variance of $x$ over its last axis, `N`
/// * $\gamma, \beta$: `gamma` and `beta`, `[N]`
/// * $\epsilon$: `epsilon`, positive in the type of `x` too
///
/// # Numerics
/// Numbers up to the fourth root of the type's largest are normalised, and their gradient is that of the formula.
/// A row whose squares overflow gives $\beta$, and one whose sum overflows gives NaN. Squares that underflow are
/// nothing beside $\epsilon$.
///
/// # Reference
/// Ba, Kiros, Hinton, *Layer Normalization*, 2016.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    /// The number $\epsilon$.
    pub epsilon: f64,
}

impl LayerNorm {
    /// Writes the normalised rows of `x` to `y`, with the bits of the operation, and keeps nothing: for inference.
    ///
    /// # Panics
    /// If `gamma` is empty, or the lengths do not fit.
    pub fn apply<T: Real>(&self, x: &[T], [gamma, beta]: [&[T]; 2], y: &mut [T]) {
        let (n, width) = (x.len(), gamma.len());
        let lengths = [y.len(), beta.len()];
        assert_eq!(lengths, [n, width], "rows of a norm");
        let block = match n * WORK < LARGE {
            true => n.max(1),
            false => block_rows(n / width) * width,
        };
        let epsilon = T::of(self.epsilon);
        parallel::for_each_chunk(y, block, |i, y| {
            let x = &x[i * block..][..y.len()];
            instructions::run(Once {
                x,
                y,
                gamma,
                beta,
                epsilon,
            });
        });
    }
}

/// The end of a residual branch, $\mathrm{LN}(x + \mathrm{dropout}(r))$: an operation on `x`, the branch $r$,
/// `gamma` and `beta`, see [`LayerNorm`].
#[derive(Clone, Copy, Debug)]
pub struct ResidualNorm {
    /// The number $\epsilon$.
    pub epsilon: f64,
    /// The mask that drops elements of the branch, if one does.
    pub mask: Option<DropoutMask>,
}

/// Refuses a number that is zero or infinite in the type of the rows.
fn check_epsilon<T: Real>(epsilon: f64) -> Result<(), ArgumentError> {
    // In single precision 1e-50 is zero, and a constant row would be zero over zero.
    let holds = epsilon > 0.0 && T::of(epsilon).is_normal();
    let allowed = "positive, and neither too small nor too large for the layer's numbers";
    argument::in_range(holds, "epsilon", epsilon, allowed)
}

fn check_parameters(x: &[usize], gamma: &[usize], beta: &[usize]) -> Result<(), ArgumentError> {
    let width = x.last().map_or(0, |&width| width);
    argument::shape("gamma", &[width], gamma)?;
    argument::shape("beta", &[width], beta)
}

impl<T: Real> Operation<T> for LayerNorm {
    type Saved = Normalised<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        check_epsilon::<T>(self.epsilon)?;
        let [x, gamma, beta] = given(inputs)?;
        check_parameters(x, gamma, beta)?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x, gamma, beta], [output]) = (slices(inputs), slots(outputs));
        let (y, saved) = normalise(&Rows { x, branch: None }, gamma, beta, self.epsilon);
        output.put(y);
        Ok(saved)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([_, gamma, _], [dy]) = (slices(inputs), slices(cotangents));
        normalise_vjp(dy, gamma, saved, slots(gradients));
        Ok(())
    }
}

impl<T: Real> Operation<T> for ResidualNorm {
    type Saved = Normalised<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        check_epsilon::<T>(self.epsilon)?;
        let [x, branch, gamma, beta] = given(inputs)?;
        argument::shape("branch", x, branch)?;
        check_parameters(x, gamma, beta)?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x, branch, gamma, beta], [output]) = (slices(inputs), slots(outputs));
        let branch = Some((branch, self.mask.as_ref()));
        let (y, saved) = normalise(&Rows { x, branch }, gamma, beta, self.epsilon);
        output.put(y);
        Ok(saved)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        /// Multiplications that take as long as drawing one element of a mask.
        const DRAW: usize = 8;
        let ([_, _, gamma, _], [dy]) = (slices(inputs), slices(cotangents));
        let [x, branch, dgamma, dbeta] = slots(gradients);
        let Some(branch) = branch else {
            normalise_vjp(dy, gamma, saved, [x, dgamma, dbeta]);
            return Ok(());
        };
        let mut dx = Vec::new();
        let along = Some(Slot::new(&mut dx, dy.len()));
        normalise_vjp(dy, gamma, saved, [along, dgamma, dbeta]);
        let width = gamma.len();
        branch.by_blocks(dx.len() / width, dx.len() * DRAW, |range, piece| {
            let start = range.start * width;
            piece.write(|piece| {
                let piece = piece.copy_of(&dx[start..range.end * width]);
                if let Some(mask) = &self.mask {
                    mask.scale(start as u64, piece);
                }
            });
        });
        if let Some(x) = x {
            x.put(dx);
        }
        Ok(())
    }
}

/// The normalised rows, which the backward pass reads again.
#[derive(Clone, Debug)]
pub struct Normalised<T> {
    /// The rows with mean 0 and variance 1.
    rows: Vec<T>,
    /// The reciprocal standard deviation of each.
    scales: Vec<T>,
}

/// Multiplications that take as long as one row's element here.
const WORK: usize = 8;

/// The rows to normalise: those of `x`, plus what is kept of a branch's where there is one.
struct Rows<'a, T> {
    x: &'a [T],
    /// The branch, and the mask that drops from it, if one does.
    branch: Option<(&'a [T], Option<&'a DropoutMask>)>,
}

impl<T: Real> Rows<'_, T> {
    fn write(&self, at: Range<usize>, rows: &mut [T]) {
        let Some((branch, mask)) = self.branch else {
            rows.copy_from_slice(&self.x[at]);
            return;
        };
        rows.copy_from_slice(&branch[at.clone()]);
        if let Some(mask) = mask {
            mask.scale(at.start as u64, rows);
        }
        add(rows, &self.x[at]);
    }
}

/// Normalises rows, then scales and shifts them.
fn normalise<T: Real>(
    source: &Rows<'_, T>,
    gamma: &[T],
    beta: &[T],
    epsilon: f64,
) -> (Vec<T>, Normalised<T>) {
    let (n, width, epsilon) = (source.x.len(), gamma.len(), T::of(epsilon));
    let widths = [width, width, 1];
    let [y, rows, scales] = by_blocks(n / width, widths, n * WORK, |range, [y, rows, scales]| {
        let start = range.start * width;
        let [y, rows, scales] = [y, rows, scales].map(Unwritten::zeros);
        source.write(start..range.end * width, rows);
        instructions::run(Forward {
            y,
            rows,
            scales,
            gamma,
            beta,
            epsilon,
        });
    });
    (y, Normalised { rows, scales })
}

/// Normalises rows in place, then scales and shifts them into `y`.
struct Forward<'a, T> {
    y: &'a mut [T],
    rows: &'a mut [T],
    scales: &'a mut [T],
    gamma: &'a [T],
    beta: &'a [T],
    epsilon: T,
}

impl<T: Real> Task for Forward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact_mut(n).zip(self.scales);
        for (y, (row, scale)) in self.y.chunks_exact_mut(n).zip(rows) {
            let mean;
            [mean, *scale] = moments(row, self.epsilon);
            normalise_row(row, [mean, *scale], [self.gamma, self.beta], y);
        }
    }
}

/// Normalises, scales and shifts rows of `x` into `y`.
struct Once<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
    gamma: &'a [T],
    beta: &'a [T],
    epsilon: T,
}

impl<T: Real> Task for Once<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let n = self.gamma.len();
        for (x, y) in self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n)) {
            y.copy_from_slice(x);
            let [mean, factor] = moments(y, self.epsilon);
            for ((y, &gamma), &beta) in y.iter_mut().zip(self.gamma).zip(self.beta) {
                *y = (*y - mean) * factor * gamma + beta;
            }
        }
    }
}

#[inline(always)]
fn normalise_row<T: Real>(
    row: &mut [T],
    [mean, factor]: [T; 2],
    [gamma, beta]: [&[T]; 2],
    y: &mut [T],
) {
    for ((y, x), (&gamma, &beta)) in y.iter_mut().zip(row).zip(gamma.iter().zip(beta)) {
        *x = (*x - mean) * factor;
        *y = *x * gamma + beta;
    }
}

/// Mean and reciprocal standard deviation of one row.
#[inline(always)]
fn moments<T: Real>(row: &[T], epsilon: T) -> [T; 2] {
    let n = T::of(row.len() as f64);
    let mean = sum(row.len(), |i| row[i]) / n;
    let squares = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean));
    [mean, (squares / n + epsilon).sqrt().recip()]
}

/// The gradients with respect to the rows, `gamma` and `beta`, as far as they are wanted.
fn normalise_vjp<T: Real>(
    dy: &[T],
    gamma: &[T],
    saved: &Normalised<T>,
    [dx, dgamma, dbeta]: [Option<Slot<'_, T>>; 3],
) {
    let (n, work) = (gamma.len(), dy.len() * WORK);
    let at = |range: &Range<usize>| range.start * n..range.end * n;
    if let Some(dx) = dx {
        dx.by_blocks(dy.len() / n, work, |range, piece| {
            piece.write(|dx| {
                instructions::run(Backward {
                    dx: dx.zeros(),
                    dy: &dy[at(&range)],
                    rows: &saved.rows[at(&range)],
                    scales: &saved.scales[range],
                    gamma,
                });
            });
        });
    }
    if dgamma.is_none() && dbeta.is_none() {
        return;
    }
    let sums = sum_over(dy.len() / n, work, |range| {
        let mut totals = [vec![T::zero(); n], vec![T::zero(); n]];
        instructions::run(ParameterSums {
            totals: &mut totals,
            dy: &dy[at(&range)],
            rows: &saved.rows[at(&range)],
        });
        totals
    });
    for (slot, sum) in [dgamma, dbeta].into_iter().zip(sums) {
        if let Some(slot) = slot {
            slot.put(sum);
        }
    }
}

struct Backward<'a, T> {
    dx: &'a mut [T],
    dy: &'a [T],
    rows: &'a [T],
    scales: &'a [T],
    gamma: &'a [T],
}

impl<T: Real> Task for Backward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact(n).zip(self.scales);
        let rows = self.dy.chunks_exact(n).zip(rows);
        for (dx, (dy, (row, &scale))) in self.dx.chunks_exact_mut(n).zip(rows) {
            row_vjp(row, dy, self.gamma, scale, dx);
        }
    }
}

/// Adds up the gradients of `gamma` and `beta`.
struct ParameterSums<'a, T> {
    totals: &'a mut [Vec<T>; 2],
    dy: &'a [T],
    rows: &'a [T],
}

impl<T: Real> Task for ParameterSums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let [dgamma, dbeta] = self.totals;
        let n = dgamma.len();
        for (row, dy) in self.rows.chunks_exact(n).zip(self.dy.chunks_exact(n)) {
            let totals = dgamma.iter_mut().zip(dbeta.iter_mut());
            for ((dgamma, dbeta), (&x, &dy)) in totals.zip(row.iter().zip(dy)) {
                *dgamma += dy * x;
                *dbeta += dy;
            }
        }
    }
}

/// With $\hat x$ the normalised row and $g = \gamma \odot dy$:
/// $dx = (g - \overline{g} - \hat x \overline{g \odot \hat x}) / \sqrt{\sigma^2 + \epsilon}$.
#[inline(always)]
fn row_vjp<T: Real>(row: &[T], dy: &[T], gamma: &[T], scale: T, dx: &mut [T]) {
    let n = row.len();
    let (dy, gamma, dx) = (&dy[..n], &gamma[..n], &mut dx[..n]);
    let size = T::of(n as f64);
    let mean_g = sum(n, |i| dy[i] * gamma[i]) / size;
    let mean_gx = sum(n, |i| dy[i] * gamma[i] * row[i]) / size;
    for i in 0..n {
        dx[i] = (dy[i] * gamma[i] - mean_g - row[i] * mean_gx) * scale;
    }
}
