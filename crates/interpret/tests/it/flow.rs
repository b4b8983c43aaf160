//! The flow between modalities.

use bochner_interpret::Modality::{Padding, Text, Vision};
use bochner_interpret::{Error, InterModalityFlow, Modality, inter_modality_flow, modalities};
use bochner_numerics::check::random;
use ndarray::{Array1, Array4, ArrayView4, Axis, s};

const KINDS: [Modality; 5] = [Vision, Text, Vision, Text, Text];

/// Logits, and rows of probabilities from them.
fn softmax(logits: &Array4<f64>) -> Array4<f64> {
    let a = logits.mapv(f64::exp);
    let sums = a.sum_axis(Axis(3)).insert_axis(Axis(3));
    a / sums
}

fn inputs() -> [Array4<f64>; 2] {
    [
        random((3, 2, 5, 5), "logits"),
        random((3, 2, 5, 4), "values"),
    ]
}

fn of(a: &Array4<f64>, v: &Array4<f64>, kinds: &[Modality]) -> [Array1<f64>; 4] {
    let flow = inter_modality_flow(a.view(), Some(v.view()), kinds).unwrap();
    [
        flow.attention,
        flow.residual,
        flow.rollout,
        flow.norm_weighted.unwrap(),
    ]
}

fn assert_close(got: &[Array1<f64>; 4], want: &[Array1<f64>; 4]) {
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).iter().all(|x| x.abs() < 1e-14), "{got} {want}");
    }
}

#[test]
fn names_and_the_order_of_tokens_do_not_matter() {
    let [logits, v] = inputs();
    let a = softmax(&logits);
    let want = of(&a, &v, &KINDS);
    let other = |kind| if kind == Text { Vision } else { Text };
    assert_close(&of(&a, &v, &KINDS.map(other)), &want);
    let order = [4, 2, 0, 1, 3];
    let a = a.select(Axis(2), &order).select(Axis(3), &order);
    let v = v.select(Axis(2), &order);
    assert_close(&of(&a, &v, &order.map(|i| KINDS[i])), &want);
}

#[test]
fn what_is_added_to_all_crossing_logits_raises_every_flow() {
    let [mut logits, v] = inputs();
    let before = of(&softmax(&logits), &v, &KINDS);
    for ((.., i, j), x) in logits.indexed_iter_mut() {
        *x += if KINDS[i] == KINDS[j] { 0.0 } else { 0.1 };
    }
    for (after, before) in of(&softmax(&logits), &v, &KINDS).iter().zip(&before) {
        let rises = after.iter().zip(before).all(|(x, y)| x > y && *x < 1.0);
        assert!(rises, "{after} {before}");
    }
}

#[test]
fn nothing_crosses_between_blocks_and_everything_where_they_swap() {
    let [_, v] = inputs();
    let same = |i: usize, j: usize| KINDS[i] == KINDS[j];
    let apart = Array4::from_shape_fn((3, 2, 5, 5), |(_, _, i, j)| f64::from(u8::from(same(i, j))));
    assert!(of(&apart, &v, &KINDS).iter().flatten().all(|&x| x == 0.0));
    let crossing = apart.mapv(|x| 1.0 - x);
    let [attention, residual, _, norm_weighted] = of(&crossing, &v, &KINDS);
    assert!(attention.iter().chain(&norm_weighted).all(|&x| x == 1.0));
    // Twelve crossing weights are halved, and so are five of the residual stream.
    assert!(residual.iter().all(|x| (x - 12.0 / 17.0).abs() < 1e-15));
    let nothing = Array4::zeros((3, 2, 5, 5));
    assert!(of(&nothing, &v, &KINDS).iter().flatten().all(|&x| x == 0.0));
}

#[test]
fn padding_is_left_out_whatever_it_holds() {
    let [logits, v] = inputs();
    let a = softmax(&logits);
    let want = of(&a, &v, &KINDS);
    let (mut padded, mut values) = (
        Array4::from_elem((3, 2, 6, 6), f64::NAN),
        Array4::from_elem((3, 2, 6, 4), f64::INFINITY),
    );
    padded.slice_mut(s![.., .., ..5, ..5]).assign(&a);
    values.slice_mut(s![.., .., ..5, ..]).assign(&v);
    let kinds = [&KINDS[..], &[Padding]].concat();
    assert_close(&of(&padded, &values, &kinds), &want);
}

#[test]
fn values_have_no_scale() {
    let [logits, v] = inputs();
    let a = softmax(&logits);
    for scale in [1e-250, 1e300] {
        assert_close(&of(&a, &(scale * &v), &KINDS), &of(&a, &v, &KINDS));
    }
}

#[test]
fn the_rollout_of_one_layer_is_the_share_with_the_residual() {
    let [logits, v] = inputs();
    let [_, residual, rollout, _] = of(&softmax(&logits), &v, &KINDS);
    assert!(rollout[0] == residual[0] && rollout[1] != residual[1]);
}

#[test]
fn tokens_without_a_modality_of_their_own_are_refused() {
    let a = Array4::from_elem((1, 1, 2, 2), 0.5);
    let none: Option<ArrayView4<f64>> = None;
    let of = |kinds: &[Modality]| inter_modality_flow(a.view(), none, kinds);
    assert!(matches!(of(&[Text]), Err(Error::Argument(_))));
    assert!(matches!(of(&[Padding, Padding]), Err(Error::OnlyPadding)));
    assert_eq!(of(&[Text, Text]).unwrap().uniform, 0.0);
    let missing = modalities(3, &[0], &[2], &[]);
    let found = Error::NotPartitioned { token: 1, times: 0 };
    assert_eq!(missing.unwrap_err().to_string(), found.to_string());
    assert!(matches!(
        modalities(2, &[0, 1], &[2], &[]),
        Err(Error::Argument(_))
    ));
}

#[test]
fn weights_and_values_that_are_no_share_are_refused() {
    let mut a = Array4::from_elem((1, 1, 2, 2), 0.5);
    let v = Array4::from_elem((1, 1, 2, 3), f64::NAN);
    let kinds = [Vision, Text];
    let says = |refused: Result<InterModalityFlow, Error>| refused.unwrap_err().to_string();
    let error = says(inter_modality_flow(a.view(), Some(v.view()), &kinds));
    assert_eq!(error, "`v[[0, 0, 0, 0]]` is NaN, but must be finite");
    assert!(inter_modality_flow(a.view(), None, &kinds).is_ok());
    let short = v.slice(s![.., .., ..1, ..]);
    assert!(inter_modality_flow(a.view(), Some(short), &kinds).is_err());
    a[[0, 0, 0, 1]] = -0.5;
    let error = says(inter_modality_flow(a.view(), None, &kinds));
    assert!(
        error.starts_with("`a[[0, 0, 0, 1]]` is -0.5, but"),
        "{error}"
    );
    let oblong = a.slice(s![.., .., .., ..1]);
    let error = says(inter_modality_flow(oblong, None, &kinds));
    assert!(error.starts_with("`a` has shape"), "{error}");
}

#[test]
fn weights_are_multiplied_by_the_norms_of_the_values_that_they_fetch() {
    let heads = [[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]];
    let a = Array4::from_shape_fn((1, 2, 2, 2), |(_, m, i, j)| heads[m][i][j]);
    // Norms of 5 and 1 in the first head, and of 1 and 13 in the second.
    let values = [[[3.0, 4.0], [0.0, -1.0]], [[1.0, 0.0], [5.0, 12.0]]];
    let v = Array4::from_shape_fn((1, 2, 2, 2), |(_, m, j, c)| values[m][j][c]);
    let [.., norm_weighted] = of(&a, &v, &[Vision, Text]);
    // 1/2 and 5/4 cross, of 5 in the first head and 14 in the second.
    assert!((norm_weighted[0] - 1.75 / 19.0).abs() < 1e-15);
}

#[test]
fn padding_does_not_count_in_the_uniform_share() {
    let a = Array4::from_elem((1, 1, 5, 5), 0.25);
    let kinds = [Vision, Vision, Padding, Text, Vision];
    let flow = inter_modality_flow::<f64>(a.view(), None, &kinds).unwrap();
    assert!(flow.uniform == 6.0 / 16.0 && flow.attention[0] == flow.uniform);
}
