//! The trainable layer on the tape of dfdx.

mod beams_share_what_they_have_in_common;
mod bipolar_attention_over_steps;
mod decoding_continues_the_sequence;
mod gradients_are_those_of_differences;
mod inference_is_the_layer;
mod it_is_a_module_of_dfdx;
mod learnable_queries;
mod misuse_is_named;
mod neighbours_change_nothing;
mod options_are_obeyed;
mod packed_sequences_are_each_alone;
mod rotary_positions;
mod settings_survive_serde;
mod time_is_an_input;
mod weights_of_torch;

use bochner_attention::{
    Copula, Form, IkanDirect, Mikan, MultiHead, MultiHeadConfig, Pass, Performer, Posterior,
    Variant, registry,
};
use bochner_nn::Element;
use bochner_numerics::{Seed, Tolerance};
use dfdx::prelude::*;
use ndarray::{Array3, ArrayView3};
use std::fmt::Debug;

const PASS: Pass = Pass::Evaluation { seed: Seed::new(5) };
const WIDTH: usize = 6;

type Sequences<E> = Tensor<(usize, usize, usize), E, Cpu>;

/// Every mechanism, and those whose kernel is known before the sequences.
fn variants() -> impl Iterator<Item = Variant> {
    let defaults = registry().into_iter();
    defaults.chain([direct(Form::LinearTime), latent().into()])
}

/// A squared kernel with four points.
fn direct(form: Form) -> Variant {
    let (p, points) = (1.5, 4);
    Variant::from(IkanDirect {
        p,
        points,
        form,
        ..Default::default()
    })
}

/// Random features of four points.
fn features(form: Form) -> Variant {
    Variant::from(Performer {
        points: 4,
        form,
        ..Default::default()
    })
}

/// Points that are drawn without a look at the sequence.
fn latent() -> Mikan {
    Mikan {
        p: 1.5,
        points: 4,
        copula: Copula::Free,
        posterior: Posterior::Unconditional,
        ..Mikan::default()
    }
}

/// Variants that attend to another sequence too.
fn variants_across() -> impl Iterator<Item = Variant> {
    variants().filter(|variant| variant.card().cross.is_yes())
}

fn two_heads(variant: Variant) -> MultiHeadConfig {
    MultiHeadConfig {
        heads: 2,
        variant,
        ..Default::default()
    }
}

fn build<E: Element>(config: MultiHeadConfig) -> MultiHead<usize, E> {
    let mut rng = Seed::new(1).stream("initial values");
    MultiHead::try_new(&Cpu::default(), WIDTH, config, &mut rng).unwrap()
}

fn layer(variant: Variant) -> MultiHead<usize, f64> {
    build(two_heads(variant))
}

fn sequence(batch: usize, time: usize) -> Sequences<f64> {
    Cpu::seed_from_u64(3).sample_normal_like(&(batch, time, WIDTH))
}

fn array<E: Element>(x: &Sequences<E>) -> Array3<E> {
    Array3::from_shape_vec(*x.shape(), x.as_vec()).unwrap()
}

/// Fails unless outputs are within their tolerance of those that are wanted.
#[track_caller]
fn close(got: ArrayView3<f64>, want: ArrayView3<f64>, what: impl Debug) {
    assert_eq!(got.dim(), want.dim());
    let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
    let off = &got - &want;
    assert!(off.iter().all(|off| off.abs() <= bound), "{what:?}: {off}");
}
