//! The read-outs of attention take the weights of every mechanism, or say what is wrong with them.

use bochner_attention::{Mask, Pass, Rows, Size, Streams, Variant, registry};
use bochner_interpret::{
    CausalStructure, Correlations, Error, FisherZ, ValueCovariance, attention_entropy,
    attention_rollout, effective_rank, kept_queries,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array4, s};

const HEADS: usize = 2;
const TOKENS: usize = 6;
const WIDTH: usize = 4;

/// The weights of a mechanism on random tokens; `None` if it has none to show.
fn weights(variant: &Variant) -> Option<Array4<f64>> {
    let mechanism = variant.mechanism::<f64>();
    let (card, mask, seed) = (mechanism.card(), Mask::none(), Seed::new(28));
    let mut stream = seed.stream("tokens");
    let [q, k, v] = [(); 3].map(|()| {
        let shape = (1, HEADS, TOKENS, WIDTH);
        Array4::from_shape_simple_fn(shape, || standard_normal::<f64>(&mut stream))
    });
    let streams = Streams::asked_by(&card, [q.view(), k.view(), v.view()], &mask);
    let size = Size {
        heads: HEADS,
        width: WIDTH,
    };
    let parameters = mechanism.initial(size, &mut seed.stream("parameters"));
    let shown = mechanism.inspect(&streams, &parameters.unwrap(), &Pass::Evaluation { seed });
    assert_eq!(shown.is_ok(), card.weights.is_yes(), "{}", card.name);
    shown.ok().map(|shown| shown.weights)
}

#[test]
fn read_outs_are_finite_or_say_why_not() {
    let (mut read, mut graphs) = (0, 0);
    for variant in registry() {
        let (card, name) = (variant.card(), variant.name());
        let Some(weights) = weights(&variant) else {
            continue;
        };
        read += 1;
        let is_finite = |x: f64| x.is_finite();
        let is_share = weights.iter().all(|&weight| weight >= 0.0);
        let queries = kept_queries(&[TOKENS], TOKENS).unwrap();
        match attention_entropy(weights.view(), queries.view()) {
            Ok(entropy) => {
                let most = (TOKENS as f64).ln() + 1e-12;
                let fits = |&x: &f64| is_finite(x) && (card.rows != Rows::One || x <= most);
                assert!(is_share && entropy.iter().all(fits), "{name}: {entropy}");
            }
            Err(error) => assert!(matches!(error, Error::Argument(_)) && !is_share, "{name}"),
        }
        match attention_rollout(&[weights.view()], queries.view()) {
            Ok(rollout) => {
                assert!(is_share && rollout.iter().all(|&x| is_finite(x)), "{name}");
            }
            Err(error) => assert!(matches!(error, Error::Argument(_)) && !is_share, "{name}"),
        }
        let ranks = effective_rank(weights.view(), queries.view()).unwrap();
        let fits = |rank: &f64| (1.0 - 1e-9..TOKENS as f64 + 1e-9).contains(rank);
        assert!(ranks.iter().all(fits), "{name}: {ranks}");
        for head in 0..HEADS {
            let own = weights.slice(s![0, head, .., ..]);
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
    assert!(read > 8 && graphs > 8, "{read} {graphs}");
}
