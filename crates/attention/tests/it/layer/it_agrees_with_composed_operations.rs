use crate::layer::composed::*;
use bochner_attention::{
    Attention, Copula, Expsin, IkanDirect, Linear, Mask, Mikan, MultiHead, MultiHeadConfig, Pass,
    Projection, RbfOnly, Softmax, Stationarity, Variant,
};
use bochner_numerics::{Seed, relative_error, standard_normal};
use dfdx::prelude::*;
use ndarray::Array2;
use std::ops::Range;

const Q: usize = 6;
const K: usize = 7;
const SEED: Seed = Seed::new(21);
const PASS: Pass = Pass::Evaluation { seed: SEED };

type Fused = MultiHead<Const<EMBED>, f32>;
type Sequence<const T: usize> = Tensor<Rank3<BATCH, T, EMBED>, f32, Cpu>;

fn random<S: ConstShape>(purpose: &str) -> Tensor<S, f32, Cpu> {
    let mut stream = Seed::new(4).stream(purpose);
    let values = (0..S::NUMEL)
        .map(|_| standard_normal(&mut stream))
        .collect();
    Cpu::default().tensor_from_vec(values, S::default())
}

fn layer(variant: Variant) -> Fused {
    let config = MultiHeadConfig {
        heads: HEADS,
        variant,
        ..Default::default()
    };
    let mut rng = Seed::new(3).stream("initial values");
    let mut layer = Fused::try_new(&Cpu::default(), Const, config, &mut rng).unwrap();
    // In general position: no bias at zero, no copula at independence.
    let shift = |purpose, x: &mut Vec<f32>| {
        let mut stream = Seed::new(5).stream(purpose);
        x.iter_mut()
            .for_each(|x| *x += 0.2 * standard_normal::<f32>(&mut stream));
    };
    let mut values = kernel(&layer);
    shift("kernel", &mut values);
    layer.kernel.copy_from(&values);
    layer
}

fn kernel(layer: &Fused) -> Vec<f32> {
    let mut values = vec![0.0; layer.kernel.shape().0];
    layer.kernel.copy_into(&mut values);
    values
}

type Map = Projection<Const<EMBED>, Const<EMBED>, f32>;

fn projections(layer: &Fused) -> [(&str, &Map); 4] {
    let [query, key, value] = &layer.maps[..] else {
        panic!("a map for queries, keys and values each")
    };
    let output = &layer.output;
    [
        ("query", query),
        ("key", key),
        ("value", value),
        ("output", output),
    ]
}

fn maps(layer: &Fused) -> Maps<Cpu> {
    let maps = projections(layer).map(|(_, map)| map);
    Maps(maps.map(|map| (map.weight.clone(), map.bias.clone().unwrap())))
}

/// Where a parameter lies in the layer's `kernel`.
fn range(layer: &Fused, name: &str) -> Range<usize> {
    let mut start = 0;
    for spec in layer.kernel_specs() {
        if spec.name == name {
            return start..start + spec.count();
        }
        start += spec.count();
    }
    panic!("no parameter is called {name}");
}

fn part<S: ConstShape>(layer: &Fused, name: &str) -> Tensor<S, f32, Cpu> {
    let values = kernel(layer)[range(layer, name)].to_vec();
    Cpu::default().tensor_from_vec(values, S::default())
}

fn close(got: Vec<f32>, want: Vec<f32>, what: &str) {
    let double = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
    let (got, want) = (double(got), double(want));
    assert!(want.iter().any(|&x| x != 0.0), "{what} is zero");
    let error = relative_error(&got, &want);
    assert!(error < 1e-3, "{what}: {error:e}\n{got:?}\n{want:?}");
}

/// Everything that one backward pass gives.
type Found = Gradients<f32, Cpu>;

/// A number that depends on every output and on the penalty.
fn loss<const T: usize>(
    output: Traced<Rank3<BATCH, T, EMBED>, Cpu>,
    penalty: Traced<Rank0, Cpu>,
) -> Traced<Rank0, Cpu> {
    (output * random::<Rank3<BATCH, T, EMBED>>("cotangent")).sum::<Rank0, _>() + penalty * 0.7
}

/// Compares outputs, penalties, and gradients of the maps and inputs; returns both gradients.
fn compare<const T: usize, const U: usize>(
    layer: &Fused,
    (x, memory): (&Sequence<T>, &Sequence<U>),
    fused: Attention<Traced<Rank3<BATCH, T, EMBED>, Cpu>, Traced<Rank0, Cpu>>,
    composed: (Traced<Rank3<BATCH, T, EMBED>, Cpu>, Traced<Rank0, Cpu>),
) -> (Found, Found) {
    close(fused.output.as_vec(), composed.0.as_vec(), "output");
    let penalties = [fused.penalty.array(), composed.1.array()];
    assert!(
        (penalties[0] - penalties[1]).abs() <= 1e-4 * penalties[1].abs(),
        "{penalties:?}"
    );
    let got = loss(fused.output, fused.penalty).backward();
    let want = loss(composed.0, composed.1).backward();
    close(got.get(x).as_vec(), want.get(x).as_vec(), "x");
    close(
        got.get(memory).as_vec(),
        want.get(memory).as_vec(),
        "memory",
    );
    for (name, map) in projections(layer) {
        let weights = [&got, &want].map(|g| g.get(&map.weight).as_vec());
        let [a, b] = weights;
        close(a, b, &format!("{name}.weight"));
        // A shift of all keys changes no softmax: its gradient is rounding alone.
        let constant = matches!(layer.config().variant, Variant::Softmax(_)) && name == "key";
        if !constant {
            let [a, b] = [&got, &want].map(|g| g.get(map.bias.as_ref().unwrap()).as_vec());
            close(a, b, &format!("{name}.bias"));
        }
    }
    (got, want)
}

fn compare_part<S: ConstShape>(
    layer: &Fused,
    (got, want): &(Found, Found),
    name: &str,
    leaf: &Tensor<S, f32, Cpu>,
) {
    let got = got.get(&layer.kernel).as_vec()[range(layer, name)].to_vec();
    close(got, want.get(leaf).as_vec(), name);
}

/// Every kind of mask, with the lengths that it gives the keys; each query keeps some key.
fn masks(queries: usize, keys: usize) -> Vec<(Mask, [usize; BATCH])> {
    let (all, some) = ([keys; BATCH], [keys - 2, keys]);
    let lengths = || Mask::none().with_key_lengths(some.to_vec());
    let matrix = Array2::from_shape_fn((queries, keys), |(i, j)| j == 0 || (i + 2 * j) % 3 != 0);
    vec![
        (Mask::none(), all),
        (lengths(), some),
        (Mask::none().with_causality(), all),
        (lengths().with_causality(), some),
        (lengths().with_matrix(matrix.view()), some),
    ]
}

fn nothing() -> Traced<Rank0, Cpu> {
    Cpu::default().zeros::<Rank0>().retaped()
}

#[test]
fn softmax() {
    let layer = layer(Softmax {}.into());
    let maps = maps(&layer);
    let (x, memory) = (random("x"), random("memory"));
    for (mask, _) in masks(Q, K) {
        let fused = layer.attend(x.leaky_trace(), memory.leaky_trace(), &mask, PASS);
        let (a, b) = (x.leaky_trace(), memory.leaky_trace());
        let [q] = [maps.heads::<Q, { BATCH * Q }>(0, &a)];
        let [k, v] = [1, 2].map(|i| maps.heads::<K, { BATCH * K }>(i, &b));
        let attended = softmax_attention(q, k, v, &mask);
        let output = maps.output::<Q, { BATCH * Q }>(attended);
        compare(&layer, (&x, &memory), fused.unwrap(), (output, nothing()));
    }
    for (mask, _) in masks(Q, Q) {
        let fused = layer.attend_self(x.leaky_trace(), &mask, PASS);
        let a = x.leaky_trace();
        let [q, k, v] = [0, 1, 2].map(|i| maps.heads::<Q, { BATCH * Q }>(i, &a));
        let output = maps.output::<Q, { BATCH * Q }>(softmax_attention(q, k, v, &mask));
        compare(&layer, (&x, &x), fused.unwrap(), (output, nothing()));
    }
}

/// The names of two sets; a stationary kernel is the non-stationary one of the same set twice.
fn sets(stationarity: Stationarity, names: [&'static str; 2]) -> [&'static str; 2] {
    match stationarity {
        Stationarity::Stationary => [names[0]; 2],
        Stationarity::Nonstationary => names,
    }
}

#[test]
fn closed_forms() {
    let period = 2.3;
    let rows: [(Variant, Closed); 4] = [
        (Softmax {}.into(), Closed::Softmax),
        (RbfOnly {}.into(), Closed::RbfOnly),
        (Expsin { period }.into(), Closed::Expsin { period }),
        (Linear {}.into(), Closed::Linear),
    ];
    for (variant, kernel) in rows {
        let layer = layer(variant);
        let maps = maps(&layer);
        let (x, memory) = (random("x"), random("memory"));
        for (mask, _) in masks(Q, K) {
            let fused = layer.attend(x.leaky_trace(), memory.leaky_trace(), &mask, PASS);
            let (a, b) = (x.leaky_trace(), memory.leaky_trace());
            let q = maps.heads::<Q, { BATCH * Q }>(0, &a);
            let [k, v] = [1, 2].map(|i| maps.heads::<K, { BATCH * K }>(i, &b));
            let output =
                maps.output::<Q, { BATCH * Q }>(closed_attention(kernel, (q, k, v), &mask));
            compare(&layer, (&x, &memory), fused.unwrap(), (output, nothing()));
        }
        for (mask, _) in masks(Q, Q) {
            let fused = layer.attend_self(x.leaky_trace(), &mask, PASS);
            let a = x.leaky_trace();
            let [q, k, v] = [0, 1, 2].map(|i| maps.heads::<Q, { BATCH * Q }>(i, &a));
            let output =
                maps.output::<Q, { BATCH * Q }>(closed_attention(kernel, (q, k, v), &mask));
            compare(&layer, (&x, &x), fused.unwrap(), (output, nothing()));
        }
    }
}

#[test]
fn kernels_with_points_as_parameters() {
    let kernels = [0.7, 1.0, 2.0, 3.0].map(|p| (p, Stationarity::Nonstationary));
    for (p, stationarity) in kernels.into_iter().chain([(2.0, Stationarity::Stationary)]) {
        let settings = IkanDirect {
            p,
            points: POINTS,
            floor: 1e-2,
            stationarity,
            ..Default::default()
        };
        let layer = layer(settings.clone().into());
        let maps = maps(&layer);
        let names = sets(stationarity, ["w1", "w2"]);
        let first = part::<Rank3<HEADS, POINTS, WIDTH>>(&layer, names[0]);
        let points = match stationarity {
            Stationarity::Stationary => [first.clone(), first],
            Stationarity::Nonstationary => [first, part(&layer, names[1])],
        };
        let compare_points = |found: (Found, Found)| {
            for (name, leaf) in names.iter().zip(&points) {
                compare_part(&layer, &found, name, leaf);
            }
        };
        let (x, memory) = (random("x"), random("memory"));
        for (mask, _) in masks(Q, K) {
            let fused = layer.attend(x.leaky_trace(), memory.leaky_trace(), &mask, PASS);
            let (a, b) = (x.leaky_trace(), memory.leaky_trace());
            let q = maps.heads::<Q, { BATCH * Q }>(0, &a);
            let [k, v] = [1, 2].map(|i| maps.heads::<K, { BATCH * K }>(i, &b));
            let attended = ikan_direct(&settings, (q, k, v), &points, &mask);
            let output = maps.output::<Q, { BATCH * Q }>(attended);
            let composed = (output, nothing());
            compare_points(compare(&layer, (&x, &memory), fused.unwrap(), composed));
        }
        for (mask, _) in masks(Q, Q) {
            let fused = layer.attend_self(x.leaky_trace(), &mask, PASS);
            let a = x.leaky_trace();
            let [q, k, v] = [0, 1, 2].map(|i| maps.heads::<Q, { BATCH * Q }>(i, &a));
            let attended = ikan_direct(&settings, (q, k, v), &points, &mask);
            let output = maps.output::<Q, { BATCH * Q }>(attended);
            let composed = (output, nothing());
            compare_points(compare(&layer, (&x, &x), fused.unwrap(), composed));
        }
    }
}

fn mikan_parameters(layer: &Fused, settings: &Mikan) -> MikanParameters<Cpu> {
    let copula = settings.copula;
    let device = Cpu::default();
    let first = part::<Rank2<WIDTH, { 2 * WIDTH }>>(layer, "inference.w1").as_vec();
    let half = |start: usize| {
        let rows = first.chunks(2 * WIDTH);
        let values = rows.flat_map(|row| row[start..start + WIDTH].to_vec());
        device.tensor_from_vec(values.collect(), Default::default())
    };
    let affine = |w: &str, b: &str| (part(layer, w), part(layer, b));
    let density = |prefix: &str| {
        [1, 2, 3].map(|n| affine(&format!("{prefix}.w{n}"), &format!("{prefix}.b{n}")))
    };
    let first = density("density1");
    let densities = match settings.stationarity {
        Stationarity::Stationary => [first.clone(), first],
        Stationarity::Nonstationary => [first, density("density2")],
    };
    MikanParameters {
        inference_q: half(0),
        inference_k: half(WIDTH),
        inference_b: part(layer, "inference.b1"),
        mu: affine("inference.w2", "inference.b2"),
        log_sigma: affine("inference.w3", "inference.b3"),
        densities,
        free: match copula {
            Copula::Free => part(layer, "copula.raw"),
            _ => device.zeros(),
        },
        amortised: match copula {
            Copula::Amortised => affine("copula.w", "copula.b"),
            _ => (device.zeros(), device.zeros()),
        },
    }
}

fn compare_mikan(
    layer: &Fused,
    parameters: &MikanParameters<Cpu>,
    settings: &Mikan,
    found: &(Found, Found),
) {
    let halves = [&parameters.inference_q, &parameters.inference_k];
    let halves = halves.map(|half| found.1.get(half).as_vec());
    let rows = halves[0].chunks(WIDTH).zip(halves[1].chunks(WIDTH));
    let want: Vec<f32> = rows.flat_map(|(q, k)| [q, k].concat()).collect();
    let got = found.0.get(&layer.kernel).as_vec();
    close(
        got[range(layer, "inference.w1")].to_vec(),
        want,
        "inference.w1",
    );
    compare_part(layer, found, "inference.b1", &parameters.inference_b);
    let mut layers = vec![
        ("inference", 2, &parameters.mu),
        ("inference", 3, &parameters.log_sigma),
    ];
    let prefixes = sets(settings.stationarity, ["density1", "density2"]);
    for (prefix, density) in prefixes.iter().zip(&parameters.densities) {
        layers.extend((1..).zip(density).map(|(n, layer)| (*prefix, n, layer)));
    }
    for (prefix, n, (weight, bias)) in layers {
        compare_part(layer, found, &format!("{prefix}.w{n}"), weight);
        compare_part(layer, found, &format!("{prefix}.b{n}"), bias);
    }
    match settings.copula {
        Copula::Independent => {}
        Copula::Free => compare_part(layer, found, "copula.raw", &parameters.free),
        Copula::Amortised => {
            compare_part(layer, found, "copula.w", &parameters.amortised.0);
            compare_part(layer, found, "copula.b", &parameters.amortised.1);
        }
    }
}

#[test]
fn kernels_with_an_implicit_density() {
    let mut stream = SEED.stream("spectral noise");
    let draws = (0..BATCH * HEADS * POINTS * WIDTH).map(|_| standard_normal(&mut stream));
    let eps = Cpu::default().tensor_from_vec(draws.collect(), Default::default());
    let copulas = [Copula::Independent, Copula::Free, Copula::Amortised];
    let norms = |copula| {
        [1.0, 2.0, 2.5].map(|p| Mikan {
            p,
            copula,
            ..Mikan::default()
        })
    };
    for settings in copulas.into_iter().flat_map(norms).chain([Mikan::ika_s()]) {
        let settings = Mikan {
            points: POINTS,
            floor: 1e-2,
            ..settings
        };
        let layer = layer(settings.clone().into());
        let maps = maps(&layer);
        let parameters = mikan_parameters(&layer, &settings);
        let x = random("x");
        let of_all = |(mask, _): &(Mask, _)| !mask.is_causal();
        for (mask, keys) in masks(Q, Q).into_iter().filter(of_all) {
            let fused = layer.attend_self(x.leaky_trace(), &mask, PASS);
            let a = x.leaky_trace();
            let [q, k, v] = [0, 1, 2].map(|i| maps.heads::<Q, { BATCH * Q }>(i, &a));
            let kept = Kept {
                // Of a sequence that attends to itself keys and queries are as long.
                queries: &keys,
                keys: &keys,
                mask: &mask,
            };
            let (attended, penalty) = mikan(&settings, (q, k, v), &parameters, &eps, &kept);
            let output = maps.output::<Q, { BATCH * Q }>(attended);
            let found = compare(&layer, (&x, &x), fused.unwrap(), (output, penalty));
            compare_mikan(&layer, &parameters, &settings, &found);
        }
    }
}
