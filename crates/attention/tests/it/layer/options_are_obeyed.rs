//! Each option of a layer does what it says, or is refused.

use super::{PASS, WIDTH, array, build, sequence, variants_across};
use bochner_attention::{
    Cat, IkanDirect, Mask, MultiHead, MultiHeadConfig, Pass, Projection, Softmax, Streams,
    Workspace,
};
use bochner_nn::Parameters;
use bochner_numerics::Tolerance;
use dfdx::prelude::*;
use ndarray::{Array1, Array2, Array3, Array4};

/// `x W^T + b` of all rows.
fn mapped(map: &Projection<usize, usize, f64>, x: &Array3<f64>) -> Array3<f64> {
    let (batch, time, inputs) = x.dim();
    let outputs = map.weight.shape().0;
    let weight = Array2::from_shape_vec((outputs, inputs), map.weight.as_vec()).unwrap();
    let rows = x.to_shape((batch * time, inputs)).unwrap();
    let mut y = rows.dot(&weight.t());
    if let Some(bias) = &map.bias {
        y += &Array1::from(bias.as_vec());
    }
    y.into_shape_with_order((batch, time, outputs)).unwrap()
}

fn split(x: Array3<f64>, heads: usize) -> Array4<f64> {
    let (batch, time, width) = x.dim();
    let split = x
        .into_shape_with_order((batch, time, heads, width / heads))
        .unwrap();
    split
        .permuted_axes([0, 2, 1, 3])
        .as_standard_layout()
        .into_owned()
}

/// The layer by its definition.
fn expected(
    layer: &MultiHead<usize, f64>,
    [query, memory]: [&Array3<f64>; 2],
    mask: &Mask,
) -> Array3<f64> {
    let heads = layer.config().heads;
    let key_heads = layer.config().key_heads.unwrap_or(heads);
    let [q, k, v] = [(query, heads), (memory, key_heads), (memory, key_heads)];
    let mut maps = layer.maps.iter();
    let [q, k, v] = [q, k, v].map(|(x, heads)| {
        let map = maps.next().expect("three maps");
        split(mapped(map, x), heads)
    });
    let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
    let mut kernel = vec![0.0; layer.kernel.shape().0];
    layer.kernel.copy_into(&mut kernel);
    let mechanism = layer.config().variant.mechanism::<f64>();
    let attended = mechanism.forward(&inputs, &kernel, &PASS).unwrap().output;
    let joined = attended.permuted_axes([0, 2, 1, 3]);
    let (batch, time, heads, width) = joined.dim();
    let joined = joined.as_standard_layout().into_owned();
    let joined = joined
        .into_shape_with_order((batch, time, heads * width))
        .unwrap();
    mapped(&layer.output, &joined)
}

#[test]
fn widths_and_biases() {
    let (x, y) = (sequence(2, 5), sequence(2, 4));
    let mask = Mask::none().with_key_lengths(vec![3, 4]);
    for variant in variants_across() {
        for (heads, key_width, value_width, bias, key_heads) in [
            (2, Some(5), None, true, None),
            (2, None, Some(2), false, None),
            (4, Some(1), Some(3), true, None),
            (4, Some(2), Some(3), true, Some(2)),
        ] {
            let variant = variant.clone();
            if key_heads.is_some() && !variant.card().shared_keys.is_yes() {
                continue;
            }
            let layer = build(MultiHeadConfig {
                heads,
                key_heads,
                variant,
                key_width,
                value_width,
                bias,
                ..Default::default()
            });
            let got = layer.attend(x.clone(), y.clone(), &mask, PASS).unwrap();
            let (x, y, got) = (array(&x), array(&y), array(&got.output));
            let want = expected(&layer, [&x, &y], &mask);
            let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
            let error = (&got - &want).mapv(f64::abs);
            assert!(error.iter().all(|&e| e <= bound), "{layer:?}");
            let mut inferred = Array3::zeros(x.raw_dim());
            let mut inference = layer.inference(PASS).unwrap();
            let workspace = Workspace::new();
            let done = inference.attend(x.view(), y.view(), &mask, &workspace, inferred.view_mut());
            done.unwrap();
            assert_eq!(inferred, got, "{layer:?}");
        }
    }
}

#[test]
fn parameters_are_named_and_sized_by_them() {
    let named = |config| {
        let mut all = Vec::new();
        build::<f64>(config).for_each("", &mut |name, x| all.push((name.to_owned(), x.dims())));
        all
    };
    let variant = IkanDirect {
        points: 3,
        ..Default::default()
    };
    let config = MultiHeadConfig {
        heads: 2,
        variant: variant.into(),
        ..Default::default()
    };
    let all = named(config.clone());
    let names: Vec<&str> = all.iter().map(|(name, _)| &name[..]).collect();
    let [q, k, v, o] = ["query", "key", "value", "output"]
        .map(|map| [format!("{map}.weight"), format!("{map}.bias")]);
    let want: Vec<_> = [q, k, v, o]
        .into_iter()
        .flatten()
        .chain(["kernel".to_owned()])
        .collect();
    assert_eq!(names, want);
    let config = MultiHeadConfig {
        key_width: Some(4),
        value_width: Some(5),
        bias: false,
        ..config
    };
    let want = [
        ("query.weight", vec![8, WIDTH]),
        ("key.weight", vec![8, WIDTH]),
        ("value.weight", vec![10, WIDTH]),
        ("output.weight", vec![WIDTH, 10]),
        ("kernel", vec![2 * 2 * 3 * 4]),
    ];
    assert_eq!(
        named(config),
        want.map(|(name, dims)| (name.to_owned(), dims))
    );
}

#[test]
fn causality() {
    let of = |causal| {
        let variant = Softmax {}.into();
        build(MultiHeadConfig {
            heads: 2,
            variant,
            causal,
            ..Default::default()
        })
    };
    let (layer, free) = (of(true), of(false));
    let (x, y) = (sequence(2, 5), sequence(2, 7));
    let mask = Mask::none().with_key_lengths(vec![2, 5]);
    let longer = Mask::none().with_key_lengths(vec![2, 7]);
    let causal = |mask: &Mask| mask.clone().with_causality();
    let want = free
        .attend_self(x.clone(), &causal(&mask), PASS)
        .unwrap()
        .output;
    assert_ne!(
        want.as_vec(),
        free.attend_self(x.clone(), &mask, PASS)
            .unwrap()
            .output
            .as_vec()
    );
    let got = layer.attend_self(x.clone(), &mask, PASS).unwrap().output;
    assert_eq!(got.as_vec(), want.as_vec());
    let mut inferred = Array3::zeros((2, 5, WIDTH));
    let mut inference = layer.inference(PASS).unwrap();
    let (own, workspace) = (array(&x), Workspace::new());
    inference
        .attend_self(own.view(), &mask, &workspace, inferred.view_mut())
        .unwrap();
    assert_eq!(inferred, array(&want));
    let [got, want] = [(&layer, &longer), (&free, &causal(&longer))].map(|(layer, mask)| {
        layer
            .attend(x.clone(), y.clone(), mask, PASS)
            .unwrap()
            .output
            .as_vec()
    });
    assert_eq!(got, want);
    let [got, want] = [(&layer, &longer), (&free, &causal(&longer))].map(|(layer, mask)| {
        layer
            .inspect(x.clone(), y.clone(), mask, PASS)
            .unwrap()
            .weights
    });
    assert_eq!(got, want);
    // dfdx's `Module` takes the sequences with and without lengths.
    let seed = layer.config().seed;
    let pass = Pass::Evaluation { seed };
    for mask in [Mask::none(), mask] {
        let want = free
            .attend_self(x.clone(), &causal(&mask), pass)
            .unwrap()
            .output;
        let got = layer.forward((x.clone(), mask.clone()));
        assert_eq!(got.as_vec(), want.as_vec());
        let got = of(true).forward_mut((x.clone(), mask));
        assert_eq!(got.as_vec(), want.as_vec());
    }
    let got = layer.forward(x.clone());
    assert_eq!(got.as_vec(), layer.forward((x, Mask::none())).as_vec());
}

/// CAT's maps have (D + H) D parameters, those of softmax attention 3 D^2, the map to the output aside.
#[test]
fn scores_are_cheaper_than_queries_and_keys() {
    let heads = 2;
    let parameters = |variant| {
        let layer = build::<f64>(MultiHeadConfig {
            heads,
            variant,
            bias: false,
            ..Default::default()
        });
        let maps = layer.maps.iter().map(|map| {
            let (outputs, inputs) = *map.weight.shape();
            outputs * inputs
        });
        maps.sum::<usize>()
    };
    assert_eq!(parameters(Cat::default().into()), (WIDTH + heads) * WIDTH);
    assert_eq!(parameters(Softmax {}.into()), 3 * WIDTH * WIDTH);
}
