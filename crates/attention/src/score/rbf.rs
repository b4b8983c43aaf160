//! The RBF kernel.

use super::dot::{powers, root};
use super::{
    AlongPoints, Earlier, Exponential, Given, Gradient, PairKernel, Side, divided_rows, exp2,
};
use crate::engine::HeadAt;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::largest;
use bochner_numerics::{Buffer, Mat, Operations, Real};

/// $a_{ij} = \exp(-|q_i - k_j|^2 / (2 \sqrt d))$.
///
/// The query's own square cancels when weights are normalised, so that the exponent is
/// $(q_i \cdot k_j - |k_j|^2 / 2) / \sqrt d$: a product, and a term of the key.
#[derive(Clone, Debug)]
pub(crate) struct Rbf;

impl<T: Real> PairKernel<T> for Rbf {
    type Score = Exponential;

    fn score(&self, at: &HeadAt<T>) -> Exponential {
        let (q, k) = (largest(at.queries().data()), largest(at.keys().data()));
        Exponential::new(root(at).recip(), powers(q, k, at.width(), true))
    }

    fn score_after(&self, at: &HeadAt<T>, _: &Earlier<T>) -> Exponential {
        Exponential::new(root(at).recip(), (0, 0))
    }

    fn overflows(&self, queries: Mat<T>, keys: &[T]) -> bool {
        powers(largest(queries.data()), largest(keys), keys.len(), true) != (0, 0)
    }

    fn operand(
        &self,
        at: &HeadAt<T>,
        score: &Exponential,
        side: Side,
        x: Mat<T>,
    ) -> Option<Buffer<T>> {
        divided_rows(at, x, score.power(side))
    }

    /// $|k_j|^2 / 2$, to be taken from the product.
    fn terms(&self, at: &HeadAt<T>, score: &Exponential) -> Option<Buffer<f64>> {
        let (keys, down) = (at.keys(), exp2(-score.power(Side::Keys)));
        record(Operations::multiply_adds(keys.data().len()));
        let square = |j| {
            let row = keys.row(j).iter().map(|x| (x.as_f64() * down).powi(2));
            row.sum::<f64>() / 2.0
        };
        let mut squares = at.workspace().pool().empty(keys.shape().0);
        squares.extend((0..keys.shape().0).map(square));
        Some(squares)
    }

    fn pull_back(
        &self,
        at: &HeadAt<T>,
        score: &Exponential,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let scale = root(at).recip();
        let (factor, operand) = (score.back(given.side, scale), given.operand);
        match given.exponents {
            None => out.write(|i| operand[i].as_f64() * factor),
            Some(exponents) => {
                let (x, width) = (given.x.data(), at.width());
                // A key behind a mask may hold anything.
                let square = |i: usize| match exponents[i / width] {
                    c if c == T::zero() => 0.0,
                    c => scale * c.as_f64() * x[i].as_f64(),
                };
                out.write(|i| operand[i].as_f64() * factor - square(i));
            }
        }
        Vec::new()
    }
}
