//! Weights that are not negative, divided by their sum.

use super::none::{Absorb, Pull};
use super::{Block, BlockGradients, Normaliser, Row};
use crate::Kind;
use bochner_numerics::{Real, instructions};

/// $\alpha_{ij} = w_{ij} / \sum_l w_{il}$.
///
/// Where all weights of a row are zero before the keys' own factors, its weights are those of the factors alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum;

impl<T: Real> Normaliser<T> for Sum {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn takes_sink(&self) -> bool {
        true
    }

    fn add_sink(&self, row: &mut Row<T>, score: T) {
        row.sum = score.exp();
    }

    fn sink_weight(&self, row: &Row<T>, score: T) -> T {
        score.exp() / row.sum
    }

    fn absorb(&self, block: Block<T>) {
        instructions::run(Absorb(block));
    }

    fn ln_sum(&self, row: &Row<T>) -> f64 {
        row.sum.as_f64().ln()
    }

    fn pull(&self, block: BlockGradients<T>) {
        instructions::run(Pull {
            block,
            is_quotient: true,
        });
    }
}
