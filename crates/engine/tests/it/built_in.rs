//! The engine's own parts keep its promises.

use crate::examples::{elu, retention_scan};
use crate::{Outcome, conforms};
use bochner_engine::conformance::{Trial, check};
use bochner_engine::numerics::Real;
use bochner_engine::{
    Block, BlockGradients, HeadRows, KeyWeight, Kind, Mask, Normaliser, Number, Pair, PairKernel,
    Raw, Row, Score, Settings, Softmax, Square, Tile, Unnormalised,
};
use std::sync::Arc;

#[test]
fn softmax() -> Outcome {
    conforms(
        Trial::new(|mask, _| Settings::softmax(mask)),
        Trial::new(|mask, _| Settings::softmax(mask)),
    )
}

/// A weight or a logit of each raw score.
#[derive(Clone, Debug)]
struct Bell<const DISTANCE: bool>(Kind);

impl<const DISTANCE: bool> Score for Bell<DISTANCE> {
    const RAW: Raw = if DISTANCE {
        Raw::SquaredDistance
    } else {
        Raw::Product
    };

    fn kind(&self) -> Kind {
        self.0
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let sign = if DISTANCE { -1.0 } else { 1.0 };
        let logit = raw * N::of(0.5 * sign / (pair.width as f64).sqrt());
        match self.0 {
            Kind::Logit => logit,
            Kind::Weight => logit.exp(),
        }
    }
}

#[test]
fn softmax_of_distances() -> Outcome {
    let bell = || Bell::<true>(Kind::Logit);
    conforms(
        Trial::new(move |mask, _| Settings::score(bell(), mask)),
        Trial::new(move |mask, _| Settings::score(bell(), mask)),
    )
}

#[test]
fn sums_of_weights() -> Outcome {
    let bell = || Bell::<false>(Kind::Weight);
    conforms(
        Trial::new(move |mask, _| Settings::score(bell(), mask)),
        Trial::new(move |mask, _| Settings::score(bell(), mask)),
    )
}

fn unnormalised<T: Real>(mask: &Mask) -> Settings<T> {
    Settings {
        normaliser: Arc::new(Unnormalised),
        ..Settings::score(Bell::<true>(Kind::Weight), mask)
    }
}

/// $(s  q \cdot k)^2 + c$, which has a linear-time form.
#[derive(Clone, Debug)]
pub(crate) struct SquaredProduct;

const SQUARE: Square = Square {
    scale: 0.5,
    floor: 0.05,
};

impl<T: Real> PairKernel<T> for SquaredProduct {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn scale(&self, _: usize) -> f64 {
        SQUARE.scale
    }

    fn scores(&self, _: &Tile<T>, raw: &mut [T]) {
        raw.iter_mut()
            .for_each(|x| *x = *x * *x + T::of(SQUARE.floor));
    }

    fn slopes(&self, tile: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        scores.copy_from_slice(raw);
        self.scores(tile, scores);
        raw.iter_mut().for_each(|x| *x *= T::of(2.0));
    }

    fn square(&self) -> Option<Square> {
        Some(SQUARE)
    }
}

#[test]
fn squares_of_products() -> Outcome {
    conforms(
        Trial::new(|mask, _| Settings::pairs(SquaredProduct, mask)),
        Trial::new(|mask, _| Settings::pairs(SquaredProduct, mask)),
    )
}

/// Values that are multiplied last and values that are not, by columns in whole groups and in parts of groups, and more
/// features than one piece holds.
#[test]
fn squares_of_products_of_any_width() -> Outcome {
    [(11, 2), (16, 15), (24, 17)]
        .into_iter()
        .try_for_each(|(width, value_width)| {
            check(&Trial {
                heads: 1,
                width,
                value_width,
                ..Trial::<f64>::new(|mask, _| Settings::pairs(SquaredProduct, mask))
            })
        })
}

/// One kernel of each kind.
#[test]
fn single_precision_keeps_the_promises() -> Outcome {
    let kinds: [fn(&Mask) -> Settings<f32>; 5] = [
        |mask| Settings::softmax(mask),
        |mask| unnormalised(mask),
        |mask| Settings::pairs(SquaredProduct, mask),
        |mask| Settings::features(elu::Elu { width: 4 }, mask),
        |mask| Settings::scan(retention_scan::RetentionScan, mask),
    ];
    kinds
        .into_iter()
        .try_for_each(|settings| check(&Trial::new(move |mask, _| settings(mask))))
}

/// The square of a key's length as its log-weight.
#[derive(Debug)]
struct Length;

impl<T: Real> KeyWeight<T> for Length {
    fn log_weights(&self, keys: HeadRows<T>, out: &mut Vec<f64>) {
        let rows = (0..keys.x.shape().0).map(|j| {
            keys.x
                .row(j)
                .iter()
                .map(|x| x.as_f64().powi(2))
                .sum::<f64>()
        });
        out.extend(rows.map(|square| -0.3 * square));
    }

    fn pull(&self, keys: HeadRows<T>, cotangents: &[T], out: &mut [T]) {
        let rows = keys.x.data().iter().zip(out);
        let width = keys.x.shape().1;
        rows.enumerate()
            .for_each(|(n, (&x, out))| *out += T::of(-0.6) * x * cotangents[n / width]);
    }
}

/// The softmax, by powers of two of binary logits.
#[derive(Debug)]
struct Binary;

const LN_2: f64 = std::f64::consts::LN_2;

impl<T: Real> Normaliser<T> for Binary {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn ln_base(&self) -> f64 {
        LN_2
    }

    fn takes_sink(&self) -> bool {
        true
    }

    fn add_sink(&self, row: &mut Row<T>, score: T) {
        (row.largest, row.sum) = (score, T::one());
    }

    fn sink_weight(&self, row: &Row<T>, score: T) -> T {
        (score - row.largest).exp2() / row.sum
    }

    fn absorb(&self, block: Block<T>) {
        Softmax::absorb_powers(block, T::one());
    }

    fn ln_sum(&self, row: &Row<T>) -> f64 {
        row.largest.as_f64() * LN_2 + row.sum.as_f64().ln()
    }

    fn pull(&self, block: BlockGradients<T>) {
        Softmax::pull_powers(block, T::one(), T::of(LN_2));
    }
}

#[test]
fn key_weights_with_every_normaliser() -> Outcome {
    let kinds: [fn(&Mask) -> Settings<f64>; 4] = [
        |mask| Settings::softmax(mask),
        |mask| Settings::pairs(SquaredProduct, mask),
        |mask| unnormalised(mask),
        |mask| Settings {
            normaliser: Arc::new(Binary),
            ..Settings::softmax(mask)
        },
    ];
    for settings in kinds {
        check(&Trial::new(move |mask, _| {
            settings(mask).with_key_weight(Length)
        }))?;
    }
    Ok(())
}
