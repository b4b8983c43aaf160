//! Results of a sequence do not depend, to the bit, on the rest of its batch or on its padding.

use crate::conformance::common::*;
use crate::conformance::plain::{attend, attend_vjp};
use bochner_attention::{
    Form, Magnitude, Mask, Settings,
    card::Penalty,
    kernels::{self, Points, RandomFeatureMap, Trained},
};
use ndarray::{Array3, Array4, Axis, concatenate, s};

/// Sizes of a batch whose first sequence is looked at.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    heads: usize,
    batch: usize,
    own: usize,
    padded: usize,
    /// The queries; as many as keys, which are padded with them, if there is no such number.
    queries: Option<usize>,
}

/// Kernels, the features of which are written down where there are any.
fn every_kernel(heads: usize, mask: &Mask) -> Vec<Settings<f32>> {
    let [w1, w2]: [Array4<f32>; 2] = ["w", "w2"].map(|name| random((1, heads, 3, WIDTH), name));
    let points = Points::Stationary { w: w1.view() };
    let [w1, w2] = [w1.view(), w2.view()];
    let frequencies: Array3<f32> = random((heads, 40, WIDTH), "frequencies");
    let map = RandomFeatureMap::Positive;
    let magnitude = Magnitude::Norm { p: 2.0 };
    let mut all = vec![
        Settings::softmax(mask),
        kernels::rbf(mask),
        kernels::expsin(2.7, mask),
        kernels::linear(mask),
        kernels::bipolar(0.5, 1.0, mask),
        kernels::squared(points, 1e-2, mask),
        kernels::squared(Points::Nonstationary { w1, w2 }, 1e-2, mask),
    ];
    for settings in &mut all {
        *settings = settings.clone().with_key_weight(magnitude);
    }
    all.push(kernels::random_features(
        frequencies.view(),
        map,
        Trained::No,
        mask,
    ));
    all
}

/// The first sequence's outputs, and its gradients of queries, keys and values.
fn of_first(
    settings: &Settings<f32>,
    [q, k, v]: [&Array4<f32>; 3],
    cotangent: &Array4<f32>,
    [queries, keys]: [usize; 2],
) -> [Array4<f32>; 4] {
    let attended = attend(q.view(), k.view(), v.view(), settings).unwrap();
    let g = attend_vjp(&attended, cotangent.view()).unwrap();
    let first = |x: &Array4<f32>, length: usize| x.slice(s![..1, .., ..length, ..]).to_owned();
    [
        first(&attended.output, queries),
        first(&g.q, queries),
        first(&g.k, keys),
        first(&g.v, keys),
    ]
}

/// `x` behind which zeros or other numbers stand, up to a length, and other sequences of that length.
fn among_others(
    x: &Array4<f32>,
    batch: usize,
    length: usize,
    padding: f32,
    purpose: &str,
) -> Array4<f32> {
    let (_, heads, own, width) = x.dim();
    let more = random::<f32, _>((1, heads, length - own, width), "padding") * padding;
    let first = concatenate(Axis(2), &[x.view(), more.view()]).unwrap();
    let others: Array4<f32> = random((batch - 1, heads, length, width), purpose);
    concatenate(Axis(0), &[first.view(), others.view()]).unwrap()
}

fn check(sizes: Sizes, form: Form) -> usize {
    let Sizes {
        heads,
        batch,
        own,
        padded,
        queries,
    } = sizes;
    let own_queries = queries.unwrap_or(own);
    let array = |length, width, purpose: &str| random((1, heads, length, width), purpose);
    let alone = [
        array(own_queries, WIDTH, "q"),
        array(own, WIDTH, "k"),
        array(own, VALUE_WIDTH, "v"),
    ];
    let cotangent = array(own_queries, VALUE_WIDTH, "cotangent");
    let lengths = (0..batch).map(|b| if b == 0 { own } else { padded - b });
    let padded_queries = queries.unwrap_or(padded);
    let all = [
        among_others(&alone[0], batch, padded_queries, 3.0, "other q"),
        among_others(&alone[1], batch, padded, 3.0, "other k"),
        among_others(&alone[2], batch, padded, 3.0, "other v"),
    ];
    let all_cotangents = among_others(&cotangent, batch, padded_queries, 0.0, "others");
    let mut checked = 0;
    for mask in [Mask::none(), Mask::none().with_causality()] {
        if mask.is_causal() && queries.is_some() {
            // Where queries stand depends on where the keys end, padding included.
            continue;
        }
        let with_lengths = mask.clone().with_key_lengths(lengths.clone().collect());
        let both = every_kernel(heads, &mask).into_iter();
        for (settings, among) in both.zip(every_kernel(heads, &with_lengths)) {
            let [settings, among] = [settings, among].map(|own| Settings { form, ..own });
            if settings.form_for(own, own, [WIDTH, VALUE_WIDTH]).is_err() {
                continue;
            }
            let sizes_of_first = [own_queries, own];
            let want = of_first(&settings, alone.each_ref(), &cotangent, sizes_of_first);
            let got = of_first(&among, all.each_ref(), &all_cotangents, sizes_of_first);
            for ((got, want), name) in got.iter().zip(&want).zip(["output", "q", "k", "v"]) {
                assert_eq!(got, want, "{name}: {sizes:?}, {among:?}");
            }
            checked += 1;
        }
    }
    checked
}

/// Short sequences, for which another form is faster than for the long ones beside them.
#[test]
fn in_the_form_that_is_faster() {
    let sizes = Sizes {
        heads: 2,
        batch: 3,
        own: 6,
        padded: 60,
        queries: None,
    };
    let mask = Mask::none();
    let chosen = |length| {
        let all = every_kernel(2, &mask).into_iter();
        let forms = all.map(|own| own.form_for(length, length, [WIDTH, VALUE_WIDTH]).unwrap());
        forms.filter(|&form| form == Form::LinearTime).count()
    };
    assert_eq!([chosen(sizes.own), chosen(sizes.padded)], [0, 3]);
    assert_eq!(check(sizes, Form::Automatic), 16);
    let queries = Some(5);
    assert_eq!(check(Sizes { queries, ..sizes }, Form::Automatic), 8);
}

/// Long enough for the queries of a head to be cut into chunks, whose gradients are summed up.
#[test]
fn pair_by_pair() {
    for own in [300, 530] {
        let sizes = Sizes {
            heads: 1,
            batch: 6,
            own,
            padded: 700,
            queries: None,
        };
        assert_eq!(check(sizes, Form::Pairwise), 16);
        let queries = Some(300);
        assert_eq!(check(Sizes { queries, ..sizes }, Form::Pairwise), 8);
    }
}

/// Long enough for the keys of a head to be summed up in parts.
#[test]
fn in_linear_time() {
    for (heads, own, padded) in [(8, 1100, 1700), (8, 1030, 2600), (1, 700, 900)] {
        let sizes = Sizes {
            heads,
            batch: 2,
            own,
            padded,
            queries: None,
        };
        assert_eq!(check(sizes, Form::LinearTime), 6);
        let queries = Some(300);
        assert_eq!(check(Sizes { queries, ..sizes }, Form::LinearTime), 3);
    }
}

/// An evaluation may draw, but not by the place in the batch.
#[test]
fn in_an_evaluation_of_every_mechanism() {
    for case in cases::<f32>() {
        let (mask, whole) = (Mask::none(), case.example(5, 5));
        let output = |order: &[usize]| {
            let [q, k, v] = [&whole.q, &whole.k, &whole.v].map(|x| x.select(Axis(0), order));
            let example = Example { q, k, v };
            let forward = case.forward(&example, &mask, &EVALUATION).unwrap();
            (forward.output, forward.penalty)
        };
        let (want, penalty) = output(&[0, 1]);
        for order in [&[1, 0][..], &[0], &[1]] {
            let (got, own_penalty) = output(order);
            assert_eq!(got, want.select(Axis(0), order), "{}: {order:?}", case.name);
            if case.card.penalty == Penalty::PerExample {
                let penalty = penalty.select(Axis(0), order);
                assert_eq!(own_penalty, penalty, "{}: {order:?}", case.name);
            }
        }
    }
}
