//! Settings and checks that many tests share.

use bochner_attention::{Copula, IkanDirect, Mikan, Posterior, Variant};
use bochner_models::encoder::{EncoderLayerConfig, NormPlacement};
use bochner_models::training::{Task, Trainer};
use bochner_nn::{Element, Parameters};
use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};
use dfdx::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) type Sequences<T = NoneTape> = Tensor<(usize, usize, usize), f64, Cpu, T>;

/// A layer of width 8.
pub(crate) fn layer(attention: Variant, norm: NormPlacement, dropout: f64) -> EncoderLayerConfig {
    EncoderLayerConfig {
        width: 8,
        heads: 2,
        hidden: 12,
        attention,
        dropout,
        norm,
        ..Default::default()
    }
}

pub(crate) fn ikan() -> Variant {
    let (points, p) = (4, 1.5);
    IkanDirect {
        points,
        p,
        ..Default::default()
    }
    .into()
}

pub(crate) fn mikan() -> Variant {
    let (points, p) = (4, 1.5);
    Mikan {
        points,
        p,
        ..Default::default()
    }
    .into()
}

/// A mechanism that draws its points from the prior, and so can be causal and attend to a memory.
pub(crate) fn unconditional() -> Variant {
    Mikan {
        points: 4,
        p: 1.5,
        posterior: Posterior::Unconditional,
        copula: Copula::Independent,
        ..Default::default()
    }
    .into()
}

/// Standard normal numbers.
pub(crate) fn random(shape: (usize, usize, usize), purpose: &str) -> Sequences {
    let mut stream = Seed::new(3).stream(purpose);
    let values = (0..shape.num_elements()).map(|_| standard_normal(&mut stream));
    Cpu::default().tensor_from_vec(values.collect(), shape)
}

/// All parameters by name.
pub(crate) fn parameters<E: Element>(model: &impl Parameters<E>) -> Vec<(String, Vec<E>)> {
    let mut all = Vec::new();
    model.for_each("", &mut |name, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        all.push((name.to_owned(), values));
    });
    all
}

/// Changes each parameter, given its name and its values.
pub(crate) fn change<E: Element>(
    model: &mut impl Parameters<E>,
    mut change: impl FnMut(&str, &mut [E]),
) {
    model.for_each_mut("", &mut |name, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        change(name, &mut values);
        parameter.write(&values);
    });
}

/// Asserts that the gradients of a loss along its inputs and all parameters are those of finite differences.
pub(crate) fn assert_gradients<M: Parameters<f64> + Clone, const N: usize>(
    model: &M,
    inputs: [&Sequences; N],
    loss: impl Fn(&M, [Sequences<OwnedTape<f64, Cpu>>; N]) -> Tensor<(), f64, Cpu, OwnedTape<f64, Cpu>>,
) {
    let mut gradients = loss(model, inputs.map(|x| x.leaky_trace())).backward();
    let mut at = inputs.map(|x| x.as_vec()).concat();
    let mut got = inputs.map(|x| gradients.get(x).as_vec()).concat();
    model.for_each("", &mut |_, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        at.extend(values);
        got.extend_from_slice(parameter.gradient(&mut gradients).unwrap());
    });
    let want = finite_difference(&at, |point| {
        let (mut model, mut rest) = (model.clone(), point);
        let mut take = |n: usize| {
            let (part, others) = rest.split_at(n);
            rest = others;
            part.to_vec()
        };
        let inputs = inputs.map(|x| {
            let values = take(x.shape().num_elements());
            Cpu::default().tensor_from_vec(values, *x.shape())
        });
        model.for_each_mut("", &mut |_, parameter| {
            parameter.write(&take(parameter.len()));
        });
        loss(&model, inputs.each_ref().map(|x| x.leaky_trace())).array()
    });
    let error = relative_error(&got, &want);
    assert!(error < 1e-6, "{error:e}");
}

/// The values of all parameters, one after the other.
pub(crate) fn values<E: Element>(model: &impl Parameters<E>) -> Vec<E> {
    let all = parameters(model).into_iter();
    all.flat_map(|(_, values)| values).collect()
}

/// The result of a computation on so many threads.
pub(crate) fn on_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(f)
}

/// The message of a refusal.
pub(crate) fn message<T, E: std::fmt::Display>(refused: Result<T, E>) -> String {
    refused.map(drop).unwrap_err().to_string()
}

/// A directory, and a file in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("parameters.safetensors");
    (directory, path)
}

/// Asserts that a training which was saved after two epochs and resumed has the reports and the parameters of one that
/// was not.
pub(crate) fn assert_resumes<T: Task>(fresh: impl Fn() -> Trainer<T>) {
    let (_directory, path) = place();
    let mut whole = fresh();
    for _ in 0..2 {
        whole.epoch().unwrap();
    }
    whole.save(&path).unwrap();
    let mut resumed = fresh();
    resumed.resume(&path).unwrap();
    for _ in 0..2 {
        assert_eq!(resumed.epoch().unwrap(), whole.epoch().unwrap());
    }
    assert_eq!(parameters(resumed.model()), parameters(whole.model()));
}
