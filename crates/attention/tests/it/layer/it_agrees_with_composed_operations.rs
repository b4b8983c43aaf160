//! Agreement of the layer with the same attention composed of dfdx's own primitive operations, whose gradients are not
//! written by hand.

use bochner_attention::{Mask, MultiHead, MultiHeadConfig, layer::Projection};
use bochner_numerics::{Seed, relative_error, standard_normal};
use dfdx::prelude::*;
use ndarray::Array2;

use super::PASS;

const BATCH: usize = 2;
const HEADS: usize = 3;
const WIDTH: usize = 4;
const EMBED: usize = HEADS * WIDTH;
const Q: usize = 6;
const K: usize = 7;

type Fused = MultiHead<Const<EMBED>, f32>;
type Map = Projection<Const<EMBED>, Const<EMBED>, f32>;
type Sequence<const T: usize> = Tensor<Rank3<BATCH, T, EMBED>, f32, Cpu>;
/// A tensor that records what happens to it.
type Traced<S> = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>;
type Heads<const T: usize> = Traced<Rank4<BATCH, HEADS, T, WIDTH>>;

fn random<S: ConstShape>(purpose: &str) -> Tensor<S, f32, Cpu> {
    let mut stream = Seed::new(4).stream(purpose);
    let values = (0..S::NUMEL)
        .map(|_| standard_normal(&mut stream))
        .collect();
    Cpu::default().tensor_from_vec(values, S::default())
}

/// `x W^T + b` over the last axis of a matrix, on a tape of its own.
fn affine<const N: usize>(x: Traced<Rank2<N, EMBED>>, map: &Map) -> Traced<Rank2<N, EMBED>> {
    let weight: Traced<Rank2<EMBED, EMBED>> = map.weight.retaped();
    let bias: Traced<Rank1<EMBED>> = map.bias.as_ref().unwrap().retaped();
    x.matmul(weight.permute()) + bias.broadcast::<_, Axis<0>>()
}

fn heads<const T: usize, const BT: usize>(
    map: &Map,
    x: &Traced<Rank3<BATCH, T, EMBED>>,
) -> Heads<T> {
    // What led to `x` is on its own tape, which is used as well.
    let x: Traced<Rank3<BATCH, T, EMBED>> = x.retaped();
    affine::<BT>(x.reshape(), map)
        .reshape::<Rank4<BATCH, T, HEADS, WIDTH>>()
        .permute::<_, Axes4<0, 2, 1, 3>>()
}

fn composed<const T: usize, const BT: usize>(
    layer: &Fused,
    x: &Traced<Rank3<BATCH, Q, EMBED>>,
    memory: &Traced<Rank3<BATCH, T, EMBED>>,
    mask: &Mask,
) -> Traced<Rank3<BATCH, Q, EMBED>> {
    let [query, key, value] = &layer.maps[..] else {
        panic!("a map for queries, keys and values each")
    };
    let q = heads::<Q, { BATCH * Q }>(query, x);
    let [k, v] = [key, value].map(|map| heads::<T, BT>(map, memory));
    let kept = (0..BATCH * HEADS * Q * T).map(|at| {
        let (b, m, i, j) = (
            at / (HEADS * Q * T),
            at / (Q * T) % HEADS,
            at / T % Q,
            at % T,
        );
        if mask.keeps([b, m, i, j], [Q, T]) {
            0.0
        } else {
            -1e9
        }
    });
    let barred = Cpu::default().tensor_from_vec(kept.collect(), Default::default());
    let logits = q.matmul(k.permute::<_, Axes4<0, 1, 3, 2>>()) / (WIDTH as f32).sqrt();
    let attended = (logits + barred).softmax::<Axis<3>>().matmul(v);
    let joined = attended.permute::<Rank4<BATCH, Q, HEADS, WIDTH>, Axes4<0, 2, 1, 3>>();
    affine::<{ BATCH * Q }>(joined.reshape(), &layer.output).reshape()
}

fn close(got: Vec<f32>, want: Vec<f32>, what: &str) {
    let double = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
    let (got, want) = (double(got), double(want));
    assert!(want.iter().any(|&x| x != 0.0), "{what} is zero");
    let error = relative_error(&got, &want);
    assert!(error < 1e-3, "{what}: {error:e}\n{got:?}\n{want:?}");
}

/// Compares outputs, and gradients along maps and sequences.
fn compare<const T: usize>(
    layer: &Fused,
    (x, memory): (&Sequence<Q>, &Sequence<T>),
    outputs: [Traced<Rank3<BATCH, Q, EMBED>>; 2],
) {
    let [got, want] = outputs.each_ref().map(|output| output.as_vec());
    close(got, want, "output");
    let cotangent = || random::<Rank3<BATCH, Q, EMBED>>("cotangent");
    let found = outputs.map(|output| (output * cotangent()).sum::<Rank0, _>().backward());
    let along = |[got, want]: [Vec<f32>; 2], what: &str| close(got, want, what);
    along(found.each_ref().map(|g| g.get(x).as_vec()), "x");
    along(found.each_ref().map(|g| g.get(memory).as_vec()), "memory");
    for (i, map) in layer.maps.iter().chain([&layer.output]).enumerate() {
        let weights = found.each_ref().map(|g| g.get(&map.weight).as_vec());
        along(weights, &format!("weight {i}"));
        // A shift of all keys changes no softmax: its gradient is rounding alone.
        if i != 1 {
            let bias = map.bias.as_ref().unwrap();
            let biases = found.each_ref().map(|g| g.get(bias).as_vec());
            along(biases, &format!("bias {i}"));
        }
    }
}

/// Every kind of mask; each query keeps some key.
fn masks(queries: usize, keys: usize) -> [Mask; 5] {
    let lengths = || Mask::none().with_key_lengths(vec![keys - 2, keys]);
    let matrix = Array2::from_shape_fn((queries, keys), |(i, j)| j == 0 || (i + 2 * j) % 3 != 0);
    [
        Mask::none(),
        lengths(),
        Mask::none().with_causality(),
        lengths().with_causality(),
        lengths().with_matrix(matrix.view()),
    ]
}

#[test]
fn softmax() {
    let config = MultiHeadConfig {
        heads: HEADS,
        ..Default::default()
    };
    let mut rng = Seed::new(3).stream("initial values");
    let layer = Fused::try_new(&Cpu::default(), Const, config, &mut rng).unwrap();
    let (x, memory) = (random("x"), random("memory"));
    for mask in masks(Q, K) {
        let fused = layer.attend(x.leaky_trace(), memory.leaky_trace(), &mask, PASS);
        let (a, b) = (x.leaky_trace(), memory.leaky_trace());
        let want = composed::<K, { BATCH * K }>(&layer, &a, &b, &mask);
        compare(&layer, (&x, &memory), [fused.unwrap().output, want]);
    }
    for mask in masks(Q, Q) {
        let fused = layer.attend_self(x.leaky_trace(), &mask, PASS);
        let a = x.leaky_trace();
        let want = composed::<Q, { BATCH * Q }>(&layer, &a, &a, &mask);
        compare(&layer, (&x, &x), [fused.unwrap().output, want]);
    }
}
