//! Conformance notices what is wrong with a kernel.

use bochner_engine::conformance::{Trial, agree, check};
use bochner_engine::{
    FeatureMap, HeadRows, Kind, PairKernel, Position, PositionGradients, Scan, Settings, Tile,
};

/// Logits whose slopes are off by a ten-thousandth.
#[derive(Debug)]
struct Sloping;

impl PairKernel<f64> for Sloping {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn slopes(&self, _: &Tile<f64>, raw: &mut [f64], scores: &mut [f64]) {
        scores.copy_from_slice(raw);
        raw.fill(1.0001);
    }
}

/// Logits of a block that add up to zero: each depends on keys that its row may not see.
#[derive(Debug)]
struct Centred;

impl PairKernel<f64> for Centred {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn scores(&self, tile: &Tile<f64>, raw: &mut [f64]) {
        for row in raw.chunks_mut(tile.keys.len()) {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            row.iter_mut().for_each(|x| *x = (*x - mean).exp());
        }
    }

    fn slopes(&self, tile: &Tile<f64>, raw: &mut [f64], scores: &mut [f64]) {
        scores.copy_from_slice(raw);
        self.scores(tile, scores);
        raw.copy_from_slice(scores);
    }
}

/// Squares of coordinates, whose gradient lacks a factor of two.
#[derive(Debug)]
struct Squares;

impl FeatureMap<f64> for Squares {
    fn features(&self) -> usize {
        4
    }

    fn map(&self, rows: HeadRows<f64>, values: &mut [f64], _: &mut [f64]) {
        values
            .iter_mut()
            .zip(rows.x.data())
            .for_each(|(f, x)| *f = x * x);
    }

    fn pull(
        &self,
        rows: HeadRows<f64>,
        _: &[f64],
        gradient: &[f64],
        out: &mut [f64],
        _: &mut [f64],
    ) {
        let all = out.iter_mut().zip(gradient).zip(rows.x.data());
        all.for_each(|((out, g), x)| *out += g * x);
    }
}

/// A running sum that forgets the gradient along its state.
#[derive(Debug)]
struct Forgetful;

impl Scan<f64> for Forgetful {
    fn state(&self, _: usize, value_width: usize) -> usize {
        value_width
    }

    fn step(&self, at: Position<f64>, state: &mut [f64], out: &mut [f64]) {
        state.iter_mut().zip(at.v).for_each(|(s, v)| *s += v);
        out.copy_from_slice(state);
    }

    fn pull(
        &self,
        _: Position<f64>,
        _: &[f64],
        cotangent: &[f64],
        _: &mut [f64],
        gradients: PositionGradients<f64>,
    ) {
        gradients
            .v
            .iter_mut()
            .zip(cotangent)
            .for_each(|(sum, x)| *sum += x);
    }
}

fn property(trial: &Trial<f64>) -> &'static str {
    check(trial).expect_err("something is wrong").property
}

#[test]
fn wrong_gradients_are_noticed() {
    let want = "gradients are those of finite differences";
    assert_eq!(
        property(&Trial::new(|mask, _| Settings::pairs(Sloping, mask))),
        want
    );
    assert_eq!(
        property(&Trial::new(|mask, _| Settings::features(Squares, mask))),
        want
    );
    assert_eq!(
        property(&Trial::new(|mask, _| Settings::scan(Forgetful, mask))),
        want
    );
}

#[test]
fn looking_at_hidden_keys_is_noticed() {
    let failure =
        check(&Trial::new(|mask, _| Settings::pairs(Centred, mask))).expect_err("it looks");
    assert!(
        failure.property.contains("changes nothing") || failure.property.contains("not change"),
        "{failure}"
    );
}

#[test]
fn two_kernels_do_not_agree() {
    let double = Trial::new(|mask, _| Settings::softmax(mask));
    let scale = Some(0.51);
    let single =
        Trial::new(move |mask, _| Settings::pairs(bochner_engine::DotProduct { scale }, mask));
    assert_eq!(
        agree(&double, &single).expect_err("another scale").property,
        "single precision is close to double"
    );
}
