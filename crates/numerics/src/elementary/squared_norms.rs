//! Squares of p-norms and their derivatives.

use super::block::MapInPlace;
use super::instruction_set::InstructionSet;
use super::logarithm::ln_in_place;
use super::norm::{PNorm, p_norms_into, signed_powers};
use super::power::Power;
use crate::Real;
use crate::operations::Operations;

/// The squares $|x|_p^2$ of the p-norms of rows, kept in parts that neither overflow nor vanish.
///
/// For $p < 1$ the norm is a quasi-norm; the square is homogeneous of degree two for every $p$.
///
/// ```
/// use bochner_numerics::elementary::SquaredNorms;
///
/// let x = [3.0_f32, -4.0];
/// let norms = SquaredNorms::new(&x, 2, 1.0);
/// assert!((norms.logarithms()[0] - 49.0_f64.ln()).abs() < 1e-12);
/// let gradient = norms.pull_back(&x, &[1.0]);
/// assert!((gradient[0] - 14.0).abs() < 1e-12 && (gradient[1] + 14.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct SquaredNorms {
    p: f64,
    rows: Vec<PNorm>,
}

/// A factor between $1 / L$ and $L$, with $L$ this number, times a power of a ratio is well in range.
const LARGE: f64 = 1e200;

impl SquaredNorms {
    /// The norms of the rows of `x`, `width` entries each; $p > 0$.
    ///
    /// # Panics
    /// If `width` is 0 or `x` does not have whole rows.
    pub fn new<T: Real>(x: &[T], width: usize, p: f64) -> Self {
        assert!(width > 0, "rows of at least one entry");
        let mut rows = vec![PNorm::default(); x.len() / width];
        p_norms_into(x, width, p, &mut rows);
        Self { p, rows }
    }

    /// The operations that the norms of this many entries take: a division, then a square or a power.
    pub fn cost(p: f64, entries: usize) -> Operations {
        let divisions = Operations::multiply_adds(entries);
        match p {
            1.0 => divisions,
            2.0 => divisions + divisions,
            _ => divisions + Operations::powers(entries),
        }
    }

    /// Writes $\log |x|_p^2$ of each row of `x`, `width` entries each, without allocating.
    ///
    /// # Panics
    /// If `x` does not have `width` entries for each logarithm.
    pub fn write_logarithms<T: Real>(x: &[T], width: usize, p: f64, out: &mut [f64]) {
        assert_eq!(
            x.len(),
            width * out.len(),
            "write_logarithms: a number for each row"
        );
        let mut norms = [PNorm::default(); 32];
        for (x, out) in x
            .chunks(norms.len() * width)
            .zip(out.chunks_mut(norms.len()))
        {
            let rows = &mut norms[..out.len()];
            p_norms_into(x, width, p, rows);
            log_squares(rows, p, out);
        }
    }

    /// $\log |x|_p^2$ of each row, see [`log_squares`].
    pub fn logarithms(&self) -> Vec<f64> {
        let mut logarithms = vec![0.0; self.rows.len()];
        log_squares(&self.rows, self.p, &mut logarithms);
        logarithms
    }

    /// The derivatives of $|x|_p^2$ along the entries, times each row's cotangent.
    ///
    /// $$\frac{\partial |x|_p^2}{\partial x_n} = 2 |x|_p^{2-p} |x_n|^{p-1} \operatorname{sign} x_n$$
    ///
    /// # Numerics
    /// Zero at $x_n = 0$. For $p < 1$, $|x_n|$ is clamped from below at $10^{-6} \max |x_n|$. Where the
    /// cotangent is zero the product is zero even if the derivative overflows; otherwise it may be
    /// infinite, but not NaN for a finite cotangent.
    ///
    /// # Panics
    /// If `x` is not as long as that of the norms, or there is not one cotangent a row.
    pub fn pull_back<T: Real>(&self, x: &[T], cotangents: &[f64]) -> Vec<f64> {
        assert_eq!(
            cotangents.len(),
            self.rows.len(),
            "pull_back: one cotangent a row"
        );
        let width = x.len() / self.rows.len().max(1);
        assert_eq!(x.len(), width * self.rows.len(), "pull_back: whole rows");
        let factors = self.factors(cotangents);
        let mut out = vec![0.0; x.len()];
        let exponent = self.p - 1.0;
        signed_powers(x, &self.rows, exponent, self.lowest(), &factors, &mut out);
        for (i, (&factor, &c)) in factors.iter().zip(cotangents).enumerate() {
            let row = i * width..(i + 1) * width;
            if c == 0.0 {
                out[row].fill(0.0);
            } else if !(LARGE.recip()..LARGE).contains(&factor.abs()) {
                for n in row {
                    out[n] = self.pull_back_by_logarithm(i, x[n].as_f64(), c);
                }
            }
        }
        out
    }

    /// $2 \dot y |x|_p^{2-p} s^{p-1}$ with the cotangent $\dot y$ of each row: the gradient without the factors
    /// $|x_n / s|^{p-1}$ and the signs.
    fn factors(&self, cotangents: &[f64]) -> Vec<f64> {
        let mut factors: Vec<f64> = self.rows.iter().map(|norm| norm.sum).collect();
        match (2.0 - self.p) / self.p {
            0.0 => factors.fill(1.0),
            exponent => InstructionSet::fastest().run(MapInPlace {
                function: Power::new(exponent),
                x: &mut factors,
            }),
        }
        let rows = self.rows.iter().zip(cotangents);
        for (factor, (norm, c)) in factors.iter_mut().zip(rows) {
            *factor *= c * 2.0 * norm.scale;
        }
        factors
    }

    /// The smallest ratio of an entry to the largest of its row that derivatives take into account.
    fn lowest(&self) -> f64 {
        if self.p < 1.0 { 1e-6 } else { 0.0 }
    }

    /// The derivative as one exponential: a product that underflows times one that overflows would be NaN.
    fn pull_back_by_logarithm(&self, row: usize, value: f64, cotangent: f64) -> f64 {
        if value == 0.0 {
            return 0.0;
        }
        let (p, PNorm { scale, sum }) = (self.p, self.rows[row]);
        let ratio = (value.abs() / scale).max(self.lowest());
        // The power is 1 for p = 1, even where the ratio underflows and its logarithm is infinite.
        let power = if p == 1.0 {
            0.0
        } else {
            (p - 1.0) * ratio.ln()
        };
        let log_power = (2.0 - p) / p * sum.ln() + power;
        let log = cotangent.abs().ln() + std::f64::consts::LN_2 + scale.ln() + log_power;
        log.exp() * value.signum() * cotangent.signum()
    }
}

/// The logarithms of the squares of p-norms: $\log |x|_p^2 = 2 \log s + \frac2p \log \sum_n |x_n / s|^p$
/// with $s = \max_n |x_n|$.
///
/// # Numerics
/// Finite even where the square overflows, $-\infty$ for a row of zeros.
///
/// # Panics
/// If the lengths differ.
pub fn log_squares(norms: &[PNorm], p: f64, out: &mut [f64]) {
    /// Norms that are taken at a time, on the stack.
    const PIECE: usize = 128;
    assert_eq!(
        norms.len(),
        out.len(),
        "log_squares: lengths of `norms` and `out`"
    );
    for (norms, out) in norms.chunks(PIECE).zip(out.chunks_mut(PIECE)) {
        let sums = &mut [0.0; PIECE][..norms.len()];
        for ((norm, out), sum) in norms.iter().zip(&mut *out).zip(&mut *sums) {
            (*out, *sum) = (norm.scale, norm.sum);
        }
        ln_in_place(out);
        ln_in_place(sums);
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = 2.0 * *out + 2.0 / p * *sum;
        }
    }
}
