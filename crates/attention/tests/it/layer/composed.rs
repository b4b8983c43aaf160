//! The same attention, composed of dfdx's own primitive operations: on any of its devices, and with
//! gradients that nobody here has written down.

use bochner_attention::{Copula, IkanDirect, Mask, Mikan};
use dfdx::prelude::*;

pub(crate) const BATCH: usize = 2;
pub(crate) const HEADS: usize = 3;
pub(crate) const WIDTH: usize = 4;
pub(crate) const EMBED: usize = HEADS * WIDTH;
pub(crate) const POINTS: usize = 5;

/// A tensor that records what happens to it.
pub(crate) type Traced<S, D> = Tensor<S, f32, D, OwnedTape<f32, D>>;
type Heads<const T: usize, D> = Traced<Rank4<BATCH, HEADS, T, WIDTH>, D>;
type Posterior<D> = Traced<Rank3<BATCH, HEADS, WIDTH>, D>;
type Draws<D> = Traced<Rank4<BATCH, HEADS, POINTS, WIDTH>, D>;
type Factor<D> = Traced<Rank4<BATCH, WIDTH, HEADS, HEADS>, D>;
type Pairs<const Q: usize, const K: usize, D> = Traced<Rank4<BATCH, HEADS, Q, K>, D>;
pub(crate) type Matrix<const O: usize, const I: usize, D> = Tensor<Rank2<O, I>, f32, D>;
pub(crate) type Vector<const N: usize, D> = Tensor<Rank1<N>, f32, D>;

/// The same tensor with an empty tape, to be used once more: what led to it is on the tape of `x`,
/// which must be used as well.
fn again<S: Shape, D: Device<f32>>(x: &Traced<S, D>) -> Traced<S, D> {
    x.retaped()
}

/// A parameter on a tape.
fn leaf<S: Shape, D: Device<f32>>(x: &Tensor<S, f32, D>) -> Traced<S, D> {
    x.retaped()
}

fn constant<S: ConstShape, D: Device<f32>>(
    device: &D,
    f: impl FnMut(usize) -> f32,
) -> Tensor<S, f32, D> {
    let values: Vec<f32> = (0..S::NUMEL).map(f).collect();
    device.tensor_from_vec(values, S::default())
}

/// `x W^T + b` over the last axis of a matrix.
fn affine<const N: usize, const I: usize, const O: usize, D: Device<f32>>(
    x: Traced<Rank2<N, I>, D>,
    weight: &Matrix<O, I, D>,
    bias: &Vector<O, D>,
) -> Traced<Rank2<N, O>, D> {
    let weight = leaf(weight).permute::<Rank2<I, O>, _>();
    x.matmul(weight) + leaf(bias).broadcast::<Rank2<N, O>, Axis<0>>()
}

/// Weight and bias.
pub(crate) type Layer<const O: usize, const I: usize, D> = (Matrix<O, I, D>, Vector<O, D>);

/// The four maps around the heads, as `query, key, value, output`.
pub(crate) struct Maps<D: Device<f32>>(pub(crate) [Layer<EMBED, EMBED, D>; 4]);

/// What counts: the lengths of the examples, and the mask of the pairs.
pub(crate) struct Kept<'a> {
    pub(crate) queries: &'a [usize],
    pub(crate) keys: &'a [usize],
    pub(crate) mask: &'a Mask,
}

impl<D: Device<f32>> Maps<D> {
    pub(crate) fn heads<const T: usize, const BT: usize>(
        &self,
        which: usize,
        x: &Traced<Rank3<BATCH, T, EMBED>, D>,
    ) -> Heads<T, D> {
        let (weight, bias) = &self.0[which];
        affine::<BT, EMBED, EMBED, D>(again(x).reshape(), weight, bias)
            .reshape::<Rank4<BATCH, T, HEADS, WIDTH>>()
            .permute::<_, Axes4<0, 2, 1, 3>>()
    }

    pub(crate) fn output<const T: usize, const BT: usize>(
        &self,
        heads: Heads<T, D>,
    ) -> Traced<Rank3<BATCH, T, EMBED>, D> {
        let joined = heads
            .permute::<Rank4<BATCH, T, HEADS, WIDTH>, Axes4<0, 2, 1, 3>>()
            .reshape::<Rank2<BT, EMBED>>();
        let (weight, bias) = &self.0[3];
        affine(joined, weight, bias).reshape()
    }
}

/// 1 where a key counts, 0 elsewhere.
fn kept<const Q: usize, const K: usize, D: Device<f32>>(
    device: &D,
    mask: &Mask,
) -> Tensor<Rank4<BATCH, HEADS, Q, K>, f32, D> {
    constant(device, |at| {
        let (b, i, j) = (at / (HEADS * Q * K), at / K % Q, at % K);
        f32::from(u8::from(mask.keeps(b, i, j, Q, K)))
    })
}

pub(crate) fn softmax_attention<const Q: usize, const K: usize, D: Device<f32>>(
    q: Heads<Q, D>,
    k: Heads<K, D>,
    v: Heads<K, D>,
    mask: &Mask,
) -> Heads<Q, D> {
    let device = v.device().clone();
    let barred = kept::<Q, K, D>(&device, mask) * 1e9 - 1e9;
    let logits = q.matmul(k.permute::<_, Axes4<0, 1, 3, 2>>()) / (WIDTH as f32).sqrt();
    (logits + barred).softmax::<Axis<3>>().matmul(v)
}

/// The closed forms, up to a factor of the row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Closed {
    Softmax,
    RbfOnly,
    Expsin { period: f64 },
    Linear,
}

/// Squared distances of all pairs, by the differences of their coordinates.
fn distances<const Q: usize, const K: usize, D: Device<f32>>(
    q: Heads<Q, D>,
    k: Heads<K, D>,
) -> Pairs<Q, K, D> {
    let q = q.broadcast::<Rank5<BATCH, HEADS, Q, K, WIDTH>, Axis<3>>();
    let k = k.broadcast::<Rank5<BATCH, HEADS, Q, K, WIDTH>, Axis<2>>();
    (q - k).square().sum()
}

fn similarity<const Q: usize, const K: usize, D: Device<f32>>(
    kernel: Closed,
    q: Heads<Q, D>,
    k: Heads<K, D>,
) -> Pairs<Q, K, D> {
    let root = (WIDTH as f32).sqrt();
    match kernel {
        Closed::Softmax | Closed::RbfOnly => (distances(q, k) / (-2.0 * root)).exp(),
        Closed::Expsin { period } => {
            let phase = distances(q, k).sqrt() * (std::f64::consts::PI / period) as f32;
            (phase.sin().square() * (-2.0 / root)).exp()
        }
        Closed::Linear => {
            let products = q.matmul(k.permute::<_, Axes4<0, 1, 3, 2>>());
            (products / root).square()
        }
    }
}

/// Weights `s exp(|k|^2 / (2 sqrt d))`, or `s` alone.
pub(crate) fn closed_attention<const Q: usize, const K: usize, D: Device<f32>>(
    kernel: Closed,
    (q, k, v): (Heads<Q, D>, Heads<K, D>, Heads<K, D>),
    mask: &Mask,
) -> Heads<Q, D> {
    let device = v.device().clone();
    let s = similarity(kernel, q, again(&k));
    let norm = k.square().sum::<Rank3<BATCH, HEADS, K>, _>();
    let share = match kernel {
        Closed::RbfOnly => 0.0,
        _ => 1.0 / (2.0 * (WIDTH as f32).sqrt()),
    };
    let weight = s * (norm * share).exp().broadcast::<_, Axis<2>>();
    normalised(weight * kept::<Q, K, D>(&device, mask)).matmul(v)
}

fn normalised<const Q: usize, const K: usize, D: Device<f32>>(
    weight: Pairs<Q, K, D>,
) -> Pairs<Q, K, D> {
    let total = again(&weight).sum::<Rank3<BATCH, HEADS, Q>, _>();
    weight / total.broadcast::<_, Axis<3>>()
}

/// `cos w1.x + cos w2.x` and the same of sines.
fn features<const T: usize, D: Device<f32>>(
    x: Heads<T, D>,
    [w1, w2]: [Draws<D>; 2],
) -> [Traced<Rank4<BATCH, HEADS, T, POINTS>, D>; 2] {
    let turned = |w: Draws<D>| w.permute::<Rank4<BATCH, HEADS, WIDTH, POINTS>, Axes4<0, 1, 3, 2>>();
    let a = again(&x).matmul(turned(w1));
    let b = x.matmul(turned(w2));
    let cosines = again(&a).cos() + again(&b).cos();
    [cosines, a.sin() + b.sin()]
}

/// Weights `(f^2 + e) exp(|k|_p^2 / (2 sqrt d))`.
fn kernel_attention<const Q: usize, const K: usize, D: Device<f32>>(
    (q, k, v): (Heads<Q, D>, Heads<K, D>, Heads<K, D>),
    points: [Draws<D>; 2],
    (p, floor): (f64, f64),
    mask: &Mask,
) -> Heads<Q, D> {
    let device = v.device().clone();
    let [q_cos, q_sin] = features(q, points.each_ref().map(again));
    let [k_cos, k_sin] = features(again(&k), points);
    let turned = |x: Traced<Rank4<BATCH, HEADS, K, POINTS>, D>| {
        x.permute::<Rank4<BATCH, HEADS, POINTS, K>, Axes4<0, 1, 3, 2>>()
    };
    let f = (q_cos.matmul(turned(k_cos)) + q_sin.matmul(turned(k_sin))) / (4 * POINTS) as f32;
    let norm = k.abs().powf(p as f32).sum::<Rank3<BATCH, HEADS, K>, _>();
    let magnitude = norm.powf(2.0 / p as f32) / (2.0 * (WIDTH as f32).sqrt());
    let weight = (f.square() + floor as f32) * magnitude.exp().broadcast::<_, Axis<2>>();
    normalised(weight * kept::<Q, K, D>(&device, mask)).matmul(v)
}

pub(crate) fn ikan_direct<const Q: usize, const K: usize, D: Device<f32>>(
    settings: &IkanDirect,
    sequences: (Heads<Q, D>, Heads<K, D>, Heads<K, D>),
    points: &[Tensor<Rank3<HEADS, POINTS, WIDTH>, f32, D>; 2],
    mask: &Mask,
) -> Heads<Q, D> {
    let points = points.each_ref().map(|w| leaf(w).broadcast::<_, Axis<0>>());
    kernel_attention(sequences, points, (settings.p, settings.floor), mask)
}

/// All that MIKAN learns. The first layer of the inference network is cut into its halves: dfdx
/// joins no two tensors along an axis of a size known to the compiler.
pub(crate) struct MikanParameters<D: Device<f32>> {
    pub(crate) inference_q: Matrix<WIDTH, WIDTH, D>,
    pub(crate) inference_k: Matrix<WIDTH, WIDTH, D>,
    pub(crate) inference_b: Vector<WIDTH, D>,
    pub(crate) mu: Layer<WIDTH, WIDTH, D>,
    pub(crate) log_sigma: Layer<WIDTH, WIDTH, D>,
    pub(crate) densities: [[Layer<WIDTH, WIDTH, D>; 3]; 2],
    pub(crate) free: Tensor<Rank3<WIDTH, HEADS, HEADS>, f32, D>,
    pub(crate) amortised: Layer<WIDTH, WIDTH, D>,
}

const ROWS: usize = BATCH * HEADS;
const DRAWS: usize = BATCH * HEADS * POINTS;

fn leaky<S: Shape, D: Device<f32>>(x: Traced<S, D>, slope: f64) -> Traced<S, D> {
    let negative = again(&x).negate().relu() * slope as f32;
    x.relu() - negative
}

/// The mean over the positions that count.
fn mean<const T: usize, D: Device<f32>>(
    x: &Heads<T, D>,
    lengths: &[usize],
) -> Traced<Rank2<ROWS, WIDTH>, D> {
    let share: Tensor<Rank4<BATCH, HEADS, T, WIDTH>, f32, D> = constant(x.device(), |i| {
        let (b, t) = (i / (HEADS * T * WIDTH), i / WIDTH % T);
        if t < lengths[b] {
            1.0 / lengths[b] as f32
        } else {
            0.0
        }
    });
    (again(x) * share)
        .sum::<Rank3<BATCH, HEADS, WIDTH>, _>()
        .reshape()
}

/// `mu`, `log sigma` and the hidden features.
fn infer<const Q: usize, const K: usize, D: Device<f32>>(
    settings: &Mikan,
    parameters: &MikanParameters<D>,
    (q, k): (&Heads<Q, D>, &Heads<K, D>),
    kept: &Kept,
) -> [Traced<Rank2<ROWS, WIDTH>, D>; 3] {
    let turned = |w: &Matrix<WIDTH, WIDTH, D>| leaf(w).permute::<_, Axes2<1, 0>>();
    let h = mean(q, kept.queries).matmul(turned(&parameters.inference_q))
        + mean(k, kept.keys).matmul(turned(&parameters.inference_k))
        + leaf(&parameters.inference_b).broadcast::<_, Axis<0>>();
    let hidden = leaky(h, settings.slope);
    let (weight, bias) = &parameters.mu;
    let mu = affine(again(&hidden), weight, bias);
    let (weight, bias) = &parameters.log_sigma;
    let once_more = again(&hidden);
    let log_sigma = affine(hidden, weight, bias) + settings.prior_std.ln() as f32;
    [mu, log_sigma, once_more]
}

/// The factor with rows of norm one; none for independent heads.
fn factor<D: Device<f32>>(
    settings: &Mikan,
    parameters: &MikanParameters<D>,
    hidden: Traced<Rank2<ROWS, WIDTH>, D>,
) -> Option<Factor<D>> {
    let device = hidden.device().clone();
    let below: Factor<D> = match settings.copula {
        Copula::Independent => return None,
        Copula::Free => leaf(&parameters.free).broadcast(),
        Copula::Amortised => {
            let (weight, bias) = &parameters.amortised;
            let t = affine(hidden, weight, bias)
                .tanh()
                .reshape::<Rank3<BATCH, HEADS, WIDTH>>()
                .permute::<Rank3<BATCH, WIDTH, HEADS>, Axes3<0, 2, 1>>();
            // dfdx multiplies no tensor with itself.
            let other = again(&t) * 1.0;
            other.broadcast::<Rank4<BATCH, WIDTH, HEADS, HEADS>, Axis<3>>()
                * t.broadcast::<Rank4<BATCH, WIDTH, HEADS, HEADS>, Axis<2>>()
        }
    };
    let strictly_lower: Tensor<Rank4<BATCH, WIDTH, HEADS, HEADS>, f32, D> =
        constant(&device, |i| {
            if i % HEADS < i / HEADS % HEADS {
                1.0
            } else {
                0.0
            }
        });
    let factor = below * strictly_lower + identity(&device);
    let norm = again(&factor)
        .square()
        .sum::<Rank3<BATCH, WIDTH, HEADS>, Axis<3>>()
        .sqrt();
    Some(factor / norm.broadcast::<_, Axis<3>>())
}

fn identity<D: Device<f32>>(device: &D) -> Tensor<Rank4<BATCH, WIDTH, HEADS, HEADS>, f32, D> {
    constant(device, |i| {
        if i % HEADS == i / HEADS % HEADS {
            1.0
        } else {
            0.0
        }
    })
}

/// `sign(z) NN(|z|)`.
fn points<D: Device<f32>>(
    z: Draws<D>,
    layers: &[Layer<WIDTH, WIDTH, D>; 3],
    slope: f64,
) -> Draws<D> {
    let signs = z.as_vec().into_iter().map(f32::signum).collect();
    let signs: Tensor<Rank4<BATCH, HEADS, POINTS, WIDTH>, f32, D> =
        z.device().tensor_from_vec(signs, Default::default());
    let [(w1, b1), (w2, b2), (w3, b3)] = layers;
    let x = z.abs().reshape::<Rank2<DRAWS, WIDTH>>();
    let x = leaky(affine(x, w1, b1), slope);
    let x = leaky(affine(x, w2, b2), slope);
    affine(x, w3, b3).reshape::<Rank4<BATCH, HEADS, POINTS, WIDTH>>() * signs
}

/// The attended heads and the penalty, given the noise.
pub(crate) fn mikan<const Q: usize, const K: usize, D: Device<f32>>(
    settings: &Mikan,
    sequences: (Heads<Q, D>, Heads<K, D>, Heads<K, D>),
    parameters: &MikanParameters<D>,
    eps: &Tensor<Rank4<BATCH, HEADS, POINTS, WIDTH>, f32, D>,
    kept: &Kept,
) -> (Heads<Q, D>, Traced<Rank0, D>) {
    let device = eps.device().clone();
    let both = (&sequences.0, &sequences.1);
    let [mu, log_sigma, hidden] = infer(settings, parameters, both, kept);
    let [mu, log_sigma]: [Posterior<D>; 2] = [mu, log_sigma].map(|x| x.reshape());
    let s0 = settings.prior_std as f32;
    let sigma = again(&log_sigma).exp();
    let spread = (again(&sigma).square() + again(&mu).square()) / (2.0 * s0 * s0);
    let mut kl = (spread - log_sigma + (s0.ln() - 0.5)).sum::<Rank0, _>();

    let noise = match factor(settings, parameters, hidden) {
        None => leaf(eps),
        Some(factor) => {
            let diagonal =
                (again(&factor) * identity(&device)).sum::<Rank3<BATCH, WIDTH, HEADS>, Axis<3>>();
            kl = kl - diagonal.ln().sum::<Rank0, _>();
            let by_dimension = eps
                .clone()
                .permute::<Rank4<BATCH, WIDTH, HEADS, POINTS>, Axes4<0, 3, 1, 2>>();
            factor
                .matmul(by_dimension)
                .permute::<Rank4<BATCH, HEADS, POINTS, WIDTH>, Axes4<0, 2, 3, 1>>()
        }
    };
    let z: Draws<D> = noise * sigma.broadcast::<_, Axis<2>>() + mu.broadcast::<_, Axis<2>>();
    let [first, second] = &parameters.densities;
    let points = [
        points(again(&z), first, settings.slope),
        points(z, second, settings.slope),
    ];
    let attended = kernel_attention(sequences, points, (settings.p, settings.floor), kept.mask);
    (attended, kl * settings.beta as f32)
}
