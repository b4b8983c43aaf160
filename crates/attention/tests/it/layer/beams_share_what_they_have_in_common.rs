//! Sequences that have branched off each other decode as each of them would alone, however they go on.

use super::{
    PASS, WIDTH, array, build, close, direct, features, latent, layer, sequence, two_heads,
};
use bochner_attention::{
    Expsin, Form, Linear, Mask, MultiHead, MultiHeadConfig, PositionBias, RbfOnly, Rotary, Softmax,
    Variant, layer::MultiHeadDecoder,
};
use bochner_numerics::Seed;
use dfdx::prelude::*;
use ndarray::{Array2, Array3, Axis, s};
use rand::Rng;
use std::collections::HashSet;

/// Layers whose decoders share what sequences have in common, and layers whose decoders copy it.
fn layers() -> Vec<(MultiHead<usize, f64>, bool)> {
    let softmax = two_heads(Softmax::default().into());
    let windowed = MultiHeadConfig {
        window: Some([4, 0]),
        ..softmax.clone()
    };
    let biased = MultiHeadConfig {
        position_bias: PositionBias::Alibi,
        ..softmax.clone()
    };
    let rotary = MultiHeadConfig {
        key_width: Some(4),
        rotary: Some(Rotary::default()),
        ..softmax.clone()
    };
    let sharing = |variant: Variant| MultiHeadConfig {
        kv_heads: Some(1),
        ..two_heads(variant)
    };
    let configs = [
        (softmax, true),
        (sharing(Softmax::default().into()), true),
        (sharing(Linear {}.into()), true),
        (sharing(direct(Form::Pairwise)), true),
        (sharing(direct(Form::LinearTime)), false),
        (two_heads(RbfOnly {}.into()), true),
        (two_heads(Expsin::default().into()), true),
        (two_heads(Linear {}.into()), true),
        (two_heads(direct(Form::Pairwise)), true),
        (two_heads(direct(Form::LinearTime)), false),
        (two_heads(features(Form::Automatic)), false),
        (windowed, false),
        (biased, false),
        (rotary, true),
    ];
    configs
        .map(|(config, shares)| (build(config), shares))
        .into()
}

/// Sequences in a decoder, and which of some positions each of them has passed.
struct Beams<'a> {
    layer: &'a MultiHead<usize, f64>,
    decoder: MultiHeadDecoder<f64>,
    x: Array3<f64>,
    passed: Vec<Vec<usize>>,
    next: usize,
}

impl<'a> Beams<'a> {
    fn new(layer: &'a MultiHead<usize, f64>, batch: usize) -> Self {
        Self {
            layer,
            decoder: layer.decoder(batch, Form::Automatic, PASS).unwrap(),
            x: array(&sequence(1, 600)),
            passed: vec![Vec::new(); batch],
            next: 0,
        }
    }

    /// The layer's output for a whole sequence.
    fn whole(&self, b: usize) -> Array2<f64> {
        let rows = self.x.select(Axis(1), &self.passed[b]);
        let values = rows.iter().copied().collect();
        let x: Tensor<_, f64, _> = Cpu::default().tensor_from_vec(values, rows.dim());
        let mask = Mask::none().with_causality();
        let whole = self.layer.attend_self(x, &mask, PASS).unwrap().output;
        array(&whole).index_axis_move(Axis(0), 0)
    }

    /// Gives each sequence positions of its own, or the first of them.
    fn step(&mut self, positions: usize, counts: Option<&[usize]>) {
        let batch = self.passed.len();
        let own = |b: usize| counts.map_or(positions, |counts| counts[b]);
        let mut input = Array3::zeros((batch, positions, WIDTH));
        for b in 0..batch {
            let rows = self.next..self.next + positions;
            let given = self.x.slice(s![0, rows.clone(), ..]);
            input.index_axis_mut(Axis(0), b).assign(&given);
            self.passed[b].extend(rows.take(own(b)));
            self.next += positions;
        }
        let mut got = Array3::zeros(input.raw_dim());
        let done = self.decoder.step_into(input.view(), counts, got.view_mut());
        done.unwrap();
        for b in 0..batch {
            let (want, own) = (self.whole(b), own(b));
            let want = want.slice(s![want.nrows() - own.., ..]);
            let got = got.slice(s![b..b + 1, ..own, ..]);
            let what = (b, &self.passed, self.layer);
            close(got, want.insert_axis(Axis(0)), what);
        }
        let lengths: Vec<_> = self.passed.iter().map(Vec::len).collect();
        assert_eq!(self.decoder.lengths(), lengths);
    }

    fn reorder(&mut self, indices: &[usize]) {
        self.decoder.reorder(indices).unwrap();
        self.passed = indices.iter().map(|&b| self.passed[b].clone()).collect();
    }
}

/// Three beams of two sentences, for so long that positions of those that have ended are forgotten; then fewer of them,
/// in another order, as many of each sentence as not, and as sequences that have nothing to do with each other.
#[test]
fn beams_go_on_as_their_whole_sequences() {
    for (layer, shares) in layers() {
        let mut stream = Seed::new(2).stream("beams");
        let mut beams = Beams::new(&layer, 2);
        beams.step(2, Some(&[2, 1]));
        let of_position = beams.decoder.held() / 3;
        beams.reorder(&[0, 0, 0, 1, 1, 1]);
        for _ in 0..30 {
            beams.step(1, None);
            let indices = [0, 0, 0, 3, 3, 3].map(|first| first + stream.gen_range(0..3));
            beams.reorder(&indices);
        }
        if shares {
            let most = beams.passed.chunks(3).map(|own| {
                let passed: HashSet<_> = own.iter().flatten().collect();
                (2 * passed.len()).max(32)
            });
            let most = of_position * most.sum::<usize>();
            assert!(beams.decoder.held() <= most, "{layer:?}");
        }
        for indices in [&[5, 4, 1, 0][..], &[0, 2, 2], &[2, 1, 1]] {
            beams.reorder(indices);
            beams.step(1, None);
            beams.step(1, None);
        }
        let mut parted = Beams {
            decoder: beams.decoder.clone(),
            x: beams.x.clone(),
            passed: beams.passed.clone(),
            ..beams
        };
        beams.step(2, None);
        beams.step(1, None);
        parted.step(2, Some(&[2, 0, 1]));
        parted.reorder(&[1]);
        parted.step(1, None);
    }
}

#[test]
fn branching_copies_no_keys_and_parting_leaves_the_own_ones() {
    for (layer, shares) in layers() {
        let mut beams = Beams::new(&layer, 1);
        (0..3).for_each(|_| beams.step(1, None));
        let before = beams.decoder.held();
        beams.reorder(&[0, 0, 0]);
        assert_eq!(beams.decoder.held() == before, shares, "{layer:?}");
        beams.step(1, None);
        beams.step(1, None);
        beams.reorder(&[1]);
        let mut alone = Beams::new(&layer, 1);
        (0..5).for_each(|_| alone.step(1, None));
        assert_eq!(beams.decoder.held(), alone.decoder.held(), "{layer:?}");
        beams.step(1, None);
        beams.decoder.reset();
        beams.passed = vec![Vec::new()];
        beams.step(1, None);
    }
}

#[test]
fn what_was_passed_together_can_be_forgotten() {
    for (layer, shares) in layers() {
        if !shares {
            continue;
        }
        let mut beams = Beams::new(&layer, 2);
        beams.step(4, None);
        beams.reorder(&[0, 0, 1]);
        beams.step(1, None);
        beams.step(1, None);
        beams.decoder.truncate(5).unwrap();
        beams.passed.iter_mut().for_each(|own| own.truncate(5));
        beams.step(1, None);
        for wrong in [&[][..], &[3]] {
            assert!(beams.decoder.reorder(wrong).is_err());
        }
        beams.step(1, None);
    }
}

/// Points that differ from sequence to sequence go along with what a sequence becomes.
#[test]
fn branches_keep_the_points_of_their_sequence() {
    let (layer, x) = (layer(latent().into()), array(&sequence(4, 6)));
    let mut decoder = layer.decoder(2, Form::Pairwise, PASS).unwrap();
    decoder.step(x.slice(s![..2, ..3, ..])).unwrap();
    let (before, parents) = (decoder.clone(), [1, 0, 1, 1]);
    decoder.reorder(&parents).unwrap();
    assert_eq!(decoder.held(), before.held());
    let mut alone = parents.map(|parent| {
        let mut alone = before.clone();
        alone.reorder(&[parent]).unwrap();
        alone
    });
    for t in 3..6 {
        let got = decoder.step(x.slice(s![.., t..t + 1, ..])).unwrap();
        for (b, alone) in alone.iter_mut().enumerate() {
            let want = alone.step(x.slice(s![b..b + 1, t..t + 1, ..])).unwrap();
            close(got.slice(s![b..b + 1, .., ..]), want.view(), (b, t));
        }
    }
}

/// Keys beside which all others vanish have no say in branches that have not passed them.
#[test]
fn a_loud_branch_drowns_no_other() {
    let variants: [Variant; 3] = [
        Softmax::default().into(),
        RbfOnly {}.into(),
        Linear {}.into(),
    ];
    for variant in variants {
        for kv_heads in [None, Some(1)] {
            let layer = build(MultiHeadConfig {
                kv_heads,
                ..two_heads(variant.clone())
            });
            let mut beams = Beams::new(&layer, 1);
            beams.step(1, None);
            beams.step(1, None);
            beams.reorder(&[0, 0]);
            // The next position of the first branch.
            let mut loud = beams.x.slice_mut(s![0, beams.next, ..]);
            loud.mapv_inplace(|x| 1e30 * x);
            (0..3).for_each(|_| beams.step(1, None));
        }
    }
}
