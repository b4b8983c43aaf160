//! The read-outs of attention take the weights of every mechanism, or say what is wrong with them.

use bochner_attention::{
    Magnitude, Mask, Pass, Variant,
    card::Rows,
    kernels::Points,
    mechanism::{Inspection, Size, Streams},
    registry,
};
use bochner_interpret::Modality::{Text, Vision};
use bochner_interpret::{
    CausalStructure, Correlations, Error, FisherZ, OrderedSem, Similarity, ValueCovariance,
    attention_entropy, attention_guided_mask, attention_rollout, effective_rank, head_diversity,
    head_spread, inter_modality_flow, kept_queries, sem_from_attention, similarity_magnitude_trace,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array2, Array4, ArrayView2, ArrayView4, Axis, s};
use std::ops::RangeInclusive;

const HEADS: usize = 2;
const TOKENS: usize = 6;
const WIDTH: usize = 4;

type Read = fn(ArrayView4<f64>, ArrayView2<bool>) -> Result<Vec<f64>, Error>;

/// A read-out of the weights of one example, `[1, HEADS, TOKENS, TOKENS]`.
struct ReadOut {
    name: &'static str,
    read: Read,
    takes: Takes,
    /// The range of its numbers.
    within: RangeInclusive<f64>,
}

/// The weights that a read-out takes and that its range holds for.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// Weights that are not negative; the range is that of rows which sum to 1.
    Shares,
    /// Any weights.
    Any,
}

/// Every read-out of the weights of all heads, a line each.
fn read_outs() -> [ReadOut; 7] {
    let (log2, log_tokens, last) = (2f64.ln(), (TOKENS as f64).ln(), (TOKENS - 1) as f64);
    [
        shares("entropy", |a, q| flat(attention_entropy(a, q)), log_tokens),
        shares("diversity", |a, q| flat(head_diversity(a, q)), log2),
        shares("spread", |a, q| flat(head_spread(a, q)), 1.0),
        shares("rollout", |a, q| flat(attention_rollout(&[a; 2], q)), 1.0),
        shares("flow", |a, _| flows(a), 1.0),
        any("rank", |a, q| flat(effective_rank(a, q)), 1.0..=last + 1.0),
        any("guided mask", |a, _| guided(a), 0.0..=last),
    ]
}

fn shares(name: &'static str, read: Read, most: f64) -> ReadOut {
    ReadOut {
        takes: Takes::Shares,
        ..any(name, read, 0.0..=most)
    }
}

fn any(name: &'static str, read: Read, within: RangeInclusive<f64>) -> ReadOut {
    let takes = Takes::Any;
    ReadOut {
        name,
        read,
        takes,
        within,
    }
}

fn flat(numbers: Result<impl IntoIterator<Item = f64>, Error>) -> Result<Vec<f64>, Error> {
    Ok(numbers?.into_iter().collect())
}

fn flows(a: ArrayView4<f64>) -> Result<Vec<f64>, Error> {
    let kinds = [Vision, Text, Vision, Vision, Text, Text];
    let flow = inter_modality_flow(a, Some(a), &kinds)?;
    let weighted = flow.norm_weighted.expect("values are given");
    let all = [flow.attention, flow.residual, flow.rollout, weighted];
    Ok(all.into_iter().flatten().collect())
}

fn guided(a: ArrayView4<f64>) -> Result<Vec<f64>, Error> {
    let masked = attention_guided_mask(a.slice(s![0, 0, 1, ..]), 1, 3)?;
    assert!(masked.len() == 3 && masked[0] == 1, "{masked:?}");
    Ok(masked.into_iter().map(|token| token as f64).collect())
}

/// Queries, keys and values.
fn tokens() -> [Array4<f64>; 3] {
    let mut stream = Seed::new(28).stream("tokens");
    [(); 3].map(|()| {
        let shape = (1, HEADS, TOKENS, WIDTH);
        Array4::from_shape_simple_fn(shape, || standard_normal::<f64>(&mut stream))
    })
}

/// Returns the weights of a mechanism for random tokens; `None` if it has no weights to show.
fn inspected(variant: &Variant, mask: &Mask) -> Option<Inspection<f64>> {
    let mechanism = variant.mechanism::<f64>();
    let (card, seed) = (mechanism.card(), Seed::new(28));
    let [q, k, v] = tokens();
    let streams = Streams::asked_by(&card, [q.view(), k.view(), v.view()], mask);
    let size = Size {
        heads: HEADS,
        width: WIDTH,
    };
    let parameters = mechanism.initial(size, &mut seed.stream("parameters"));
    let shown = mechanism.inspect(&streams, &parameters.unwrap(), &Pass::Evaluation { seed });
    assert_eq!(shown.is_ok(), card.weights.is_yes(), "{}", card.name);
    shown.ok()
}

/// The mechanisms that show weights, with what they show.
fn shown(mask: &Mask, takes: fn(&Variant) -> bool) -> Vec<(Variant, Inspection<f64>)> {
    let variants = registry().into_iter().filter(takes);
    let shown = variants.filter_map(|variant| {
        let shown = inspected(&variant, mask)?;
        Some((variant, shown))
    });
    let shown: Vec<_> = shown.collect();
    assert!(shown.len() >= 8, "{}", shown.len());
    shown
}

#[test]
fn read_outs_are_finite_or_say_why_not() {
    let queries = kept_queries(&[TOKENS], TOKENS).unwrap();
    for (variant, shown) in shown(&Mask::none(), |_| true) {
        let is_share = shown.weights.iter().all(|&weight| weight >= 0.0);
        for ReadOut {
            name,
            read,
            takes,
            within,
        } in read_outs()
        {
            let name = format!("{name} of {}", variant.name());
            match read(shown.weights.view(), queries.view()) {
                Ok(numbers) => {
                    assert!(is_share || takes == Takes::Any, "{name}");
                    let bounded = takes == Takes::Any || variant.card().rows == Rows::One;
                    let (least, most) = (within.start() - 1e-9, within.end() + 1e-9);
                    let fits = |x: &f64| x.is_finite() && (!bounded || (least..=most).contains(x));
                    assert!(
                        !numbers.is_empty() && numbers.iter().all(fits),
                        "{name}: {numbers:?}"
                    );
                }
                Err(error) => {
                    let typed = matches!(error, Error::Argument(_));
                    assert!(
                        typed && !is_share && takes == Takes::Shares,
                        "{name}: {error}"
                    );
                    assert!(error.to_string().contains("[[0, "), "{name}: {error}");
                }
            }
        }
    }
}

/// A row or a weight that is not a number is refused by all read-outs in one way.
#[test]
fn no_read_out_passes_over_nan() {
    let queries = kept_queries(&[TOKENS], TOKENS).unwrap();
    let mut weights = Array4::from_elem((1, HEADS, TOKENS, TOKENS), 1.0 / TOKENS as f64);
    weights[[0, 0, 1, 4]] = f64::NAN;
    for ReadOut { name, read, .. } in read_outs() {
        let error = read(weights.view(), queries.view()).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{name}: {error}");
        let error = error.to_string();
        let placed = error.contains("[[0, 0, 1, 4]]") || error.contains("[4]");
        assert!(placed && error.contains("is NaN"), "{name}: {error}");
    }
}

/// Each example of a batch has its own numbers, which are those of its queries that are kept; behind them may be anything.
#[test]
fn examples_and_their_kept_queries_count_alone() {
    let lengths = [4, TOKENS];
    let queries = kept_queries(&lengths, TOKENS).unwrap();
    let mut stream = Seed::new(4).stream("weights");
    let weight = |(b, _, i, j): (usize, usize, usize, usize)| match (i, j) {
        (i, _) if i >= lengths[b] => f64::NAN,
        (_, j) if j >= lengths[b] => 0.0,
        _ => standard_normal::<f64>(&mut stream).abs(),
    };
    let weights = Array4::from_shape_fn((2, HEADS, TOKENS, TOKENS), weight);
    let by_queries = ["entropy", "diversity", "spread", "rollout", "rank"];
    for ReadOut { name, read, .. } in read_outs() {
        if !by_queries.contains(&name) {
            continue;
        }
        let numbers = |weights, queries| {
            let mut numbers = read(weights, queries).unwrap();
            numbers.retain(|&x| x != 0.0);
            numbers
        };
        let apart = [0, 1].map(|b| {
            let own = ..lengths[b];
            let alone = weights.slice(s![b..=b, .., own, own]);
            numbers(alone, queries.slice(s![b..=b, own]))
        });
        let together = numbers(weights.view(), queries.view());
        assert!(!apart[0].is_empty() && !apart[1].is_empty(), "{name}");
        let apart = apart.concat();
        let off = |(x, y): (&f64, &f64)| (x - y).abs() > 1e-12;
        assert_eq!(together.len(), apart.len(), "{name}");
        assert!(!together.iter().zip(&apart).any(off), "{name}");

        let none = Array2::from_elem((2, TOKENS), false);
        assert!(numbers(weights.view(), none.view()).is_empty(), "{name}");
        let all = Array2::from_elem((2, TOKENS), true);
        let error = read(weights.view(), all.view()).unwrap_err().to_string();
        assert!(error.contains("is NaN"), "{name}: {error}");
        let wide = Array2::from_elem((2, TOKENS + 1), true);
        let error = read(weights.view(), wide.view()).unwrap_err().to_string();
        assert!(error.starts_with("`queries`"), "{name}: {error}");
    }
    let error = kept_queries(&[4, 7], TOKENS).unwrap_err().to_string();
    assert_eq!(error, "`lengths[1]` is 7, but must be at most 6");
}

#[test]
fn queries_and_keys_are_traced_with_the_points_of_the_mechanism() {
    let [q, k, _] = tokens();
    let mut with_points = 0;
    for (variant, shown) in shown(&Mask::none(), |_| true) {
        let similarity = match &shown.points {
            None => Similarity::Rbf,
            Some((w1, w2)) => {
                with_points += 1;
                let points = Points::Nonstationary {
                    w1: w1.view(),
                    w2: w2.view(),
                };
                Similarity::Squared {
                    points,
                    floor: 1e-3,
                }
            }
        };
        let by = (&similarity, Magnitude::Norm { p: 2.0 });
        let trace = similarity_magnitude_trace(q.view(), k.view(), by, &Mask::none()).unwrap();
        let means = [
            trace.log10_similarity,
            trace.log10_magnitude,
            trace.log10_key_magnitude,
        ];
        let finite = |x: &f64| x.is_finite();
        assert!(
            means
                .iter()
                .all(|of| of.len() == HEADS && of.iter().all(finite)),
            "{}",
            variant.name()
        );
    }
    assert!(with_points > 1, "{with_points}");
}

/// The weights solve both equations of every token; the error names a token that has no equation.
#[test]
fn weights_behind_a_causal_mask_have_equations_or_say_why_not() {
    let mut solved = 0;
    let causal = Mask::none().with_causality();
    for (variant, shown) in shown(&causal, |variant| variant.card().causal.is_yes()) {
        for a in shown.weights.index_axis(Axis(0), 0).outer_iter() {
            match sem_from_attention(a) {
                Ok(OrderedSem { g_z, .. }) => {
                    solved += 1;
                    let size = g_z.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
                    let back = (Array2::eye(TOKENS) - &g_z).dot(&a) - Array2::from_diag(&a.diag());
                    let error = back.iter().fold(0.0, |error: f64, x| error.max(x.abs()));
                    assert!(error < 1e-12 * size, "{}: {error:e}", variant.name());
                }
                Err(Error::NoOwnWeight { token }) => {
                    assert_eq!(a[[token, token]], 0.0, "{}", variant.name());
                }
                Err(error) => panic!("{}: {error}", variant.name()),
            }
        }
    }
    assert!(solved > 8, "{solved}");
}

#[test]
fn heads_have_a_structure_or_say_why_not() {
    let mut graphs = 0;
    for (variant, shown) in shown(&Mask::none(), |_| true) {
        let name = variant.name();
        for own in shown.weights.index_axis(Axis(0), 0).outer_iter() {
            let correlations = match Correlations::of_attention(own, ValueCovariance::Identity) {
                Ok(correlations) => correlations,
                Err(error) => {
                    let typed = matches!(
                        error,
                        Error::NearlyUniform { .. }
                            | Error::RankDeficient { .. }
                            | Error::LowVariance { .. }
                    );
                    assert!(typed, "{name}: {error}");
                    continue;
                }
            };
            graphs += 1;
            let r = correlations.partial(0, 1, &[2, 3]).unwrap();
            assert!(r.abs() <= 1.0, "{name}: {r}");
            // Four samples are too few for what a search may ask, and enough if it asks for no set.
            let few = FisherZ::new(&correlations, 4, 0.5).unwrap();
            assert!(CausalStructure::find(&few, Some(0)).is_ok(), "{name}");
            if let Err(error) = CausalStructure::find(&few, None) {
                assert!(error.to_string().contains("`largest`"), "{name}: {error}");
            }
        }
    }
    assert!(graphs > 8, "{graphs}");
}
