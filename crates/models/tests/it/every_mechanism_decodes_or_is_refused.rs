//! Each mechanism of the registry in a decoder: either later positions change nothing before them, to the bit and in
//! training too, and decoding token by token gives the tokens of the whole pass, or a translator refuses the mechanism.

use crate::common::{Sequences, change, random};
use crate::translators::{self, END, START, log_prob};
use bochner_attention::{Copula, Mask, Mikan, Pass, Posterior, Softmax, Variant, registry};
use bochner_models::Error;
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_models::translator::Translator;
use bochner_numerics::{Seed, Tolerance, standard_normal};
use bochner_text::BeamConfig;
use dfdx::prelude::*;

const WIDTH: usize = 8;
const TOKENS: usize = 12;
const LONGEST: usize = 7;

const TRAINING: Pass = Pass::Training {
    seed: Seed::new(7),
    dropout: 0.2,
};
const EVALUATION: Pass = Pass::Evaluation { seed: Seed::new(8) };

/// The registry, and settings under which mechanisms of it can be causal that usually are not, by what tells them apart.
fn named_mechanisms() -> Vec<(&'static str, Variant)> {
    let unconditional = |copula| Mikan {
        posterior: Posterior::Unconditional,
        copula,
        ..Mikan::default()
    };
    let more = [
        ("mikan, free", unconditional(Copula::Free).into()),
        (
            "mikan, independent",
            unconditional(Copula::Independent).into(),
        ),
    ];
    let registry = registry().into_iter();
    let named = registry.map(|variant| (variant.name(), variant));
    named.chain(more).collect()
}

fn mechanisms() -> impl Iterator<Item = Variant> {
    named_mechanisms().into_iter().map(|(_, variant)| variant)
}

fn softmax() -> Variant {
    Softmax::default().into()
}

fn layer_config(attention: Variant, cross_attention: Variant) -> DecoderLayerConfig {
    DecoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 12,
        attention,
        cross_attention,
        dropout: 0.3,
        ..Default::default()
    }
}

fn layer(attention: Variant, cross_attention: Variant) -> Result<DecoderLayer<f64>, Error> {
    let config = layer_config(attention, cross_attention);
    DecoderLayer::try_new(&Cpu::default(), &config, Seed::new(5))
}

/// The two places of a decoder's layer, of which one has the mechanism and the other softmax attention.
fn in_each_place(mechanism: &Variant) -> [[Variant; 2]; 2] {
    let [own, other] = [mechanism.clone(), softmax()];
    [[own.clone(), other.clone()], [other, own]]
}

/// Two sequences.
fn two(time: usize, purpose: &str) -> Sequences {
    random((2, time, WIDTH), purpose)
}

#[test]
fn a_later_position_changes_no_earlier_output_in_training_and_evaluation() {
    let (x, memory) = (two(5, "x"), two(4, "memory"));
    let mut values = x.as_vec();
    for example in values.chunks_mut(5 * WIDTH) {
        example[3 * WIDTH..]
            .iter_mut()
            .for_each(|x| *x = *x * 9.0 + 1.0);
    }
    let changed = Cpu::default().tensor_from_vec(values, *x.shape());
    let masks = [Mask::none(), Mask::none().with_key_lengths(vec![4, 3])];
    let mut checked = 0;
    for mechanism in mechanisms() {
        for [itself, of_memory] in in_each_place(&mechanism) {
            let Ok(layer) = layer(itself, of_memory) else {
                continue;
            };
            for pass in [TRAINING, EVALUATION] {
                let decode = |x: &Sequences| {
                    let (x, masks) = (x.clone(), [&masks[0], &masks[1]]);
                    let decoded = layer.apply(x, memory.clone(), masks, pass);
                    decoded.unwrap().output.as_vec()
                };
                let [before, after] = [decode(&x), decode(&changed)];
                let earlier = |all: &[f64]| {
                    let examples = all.chunks(5 * WIDTH);
                    examples
                        .map(|own| own[..3 * WIDTH].to_vec())
                        .collect::<Vec<_>>()
                };
                assert_eq!(earlier(&before), earlier(&after), "{mechanism:?}, {pass:?}");
                assert_ne!(before, after);
                checked += 1;
            }
        }
    }
    assert!(checked > 24, "{checked}");
}

/// A translator with random parameters.
fn translator([itself, memory]: [Variant; 2]) -> Result<Translator<f64>, Error> {
    let of = [Mikan::default().into(), itself, memory];
    let config = translators::config(of, WIDTH, [TOKENS, LONGEST]);
    let mut model = Translator::try_new(&Cpu::default(), &config, Seed::new(1))?;
    let mut stream = Seed::new(2).stream("parameters");
    change(&mut model, |_, values| {
        let moved = |x: &mut f64| *x += 0.3 * standard_normal::<f64>(&mut stream);
        values.iter_mut().for_each(moved);
    });
    Ok(model)
}

/// The greedy translation by passes over all tokens so far.
fn by_whole_passes(model: &Translator<f64>, source: &[usize]) -> Vec<usize> {
    let device = Cpu::default();
    let tensor = |tokens: &[usize]| device.tensor_from_vec(tokens.to_vec(), (1, tokens.len()));
    let mut written = vec![START];
    while written.len() < LONGEST {
        let lengths = [&[source.len()][..], &[written.len()]];
        let logits = model.apply(tensor(source), tensor(&written), lengths, EVALUATION);
        let logits = logits.unwrap().output.as_vec();
        let last = &logits[logits.len() - TOKENS..];
        let allowed = (0..TOKENS).filter(|&token| token != START);
        let best = allowed.reduce(|a, b| if last[b] > last[a] { b } else { a });
        match best.unwrap() {
            END => break,
            token => written.push(token),
        }
    }
    written.split_off(1)
}

/// Compares what a model translates with whole passes. Returns how many tokens were written, and how many translations
/// ended at the last position.
fn compare(mechanism: &str, model: &Translator<f64>) -> [usize; 2] {
    let sources = [vec![5, 6, 7], vec![11, 4, 4, 9, 10], vec![8]];
    // A mechanism may draw other points for the second sentence of a batch than for the first.
    let alone = |source: &Vec<usize>, beam| {
        let search = BeamConfig {
            beam,
            ..model.search()
        };
        let found = model.translate(std::slice::from_ref(source), &search, EVALUATION);
        found.unwrap().remove(0).unwrap()
    };
    let (mut written, mut cut) = (0, 0);
    for source in &sources {
        let expected = by_whole_passes(model, source);
        assert_eq!(alone(source, 1).tokens, expected, "{mechanism}");
        written += expected.len();
        cut += usize::from(expected.len() == LONGEST - 1);
        let found = alone(source, 3);
        let whole = log_prob(model, source, &found.tokens, EVALUATION);
        let error = (found.log_prob - whole).abs();
        let bound = Tolerance::outputs::<f64>().bound([whole]);
        assert!(error <= bound, "{mechanism}, {source:?}: {error:e}");
    }
    [written, cut]
}

/// Mechanisms that cannot be causal, and in the attention to the source those that attend to their own sequence alone.
fn refused_by_cards() -> Vec<(&'static str, &'static str)> {
    let places = |(name, mechanism): (&'static str, Variant)| {
        let card = mechanism.card();
        let own = (!card.causal.is_yes()).then_some((name, "own"));
        let cross = !card.causal.is_yes() || !card.cross.is_yes();
        own.into_iter().chain(cross.then_some((name, "cross")))
    };
    named_mechanisms().into_iter().flat_map(places).collect()
}

#[test]
fn token_by_token_gives_what_whole_passes_give_or_the_translator_refuses() {
    let (mut decoding, mut written, mut cut) = (0, 0, 0);
    // Mechanisms that the layer refuses by their cards, and others that cannot go on token by token.
    let (mut by_card, mut by_steps) = (Vec::new(), Vec::new());
    for (name, mechanism) in named_mechanisms() {
        for (of_decoder, place) in in_each_place(&mechanism).into_iter().zip(["own", "cross"]) {
            match translator(of_decoder) {
                Ok(model) => {
                    decoding += 1;
                    let [tokens, at_last] = compare(name, &model);
                    (written, cut) = (written + tokens, cut + at_last);
                }
                Err(Error::Attention(bochner_attention::Error::Unsupported { .. })) => {
                    by_card.push((name, place));
                }
                Err(Error::Unsupported { what, instead }) => {
                    let says = if place == "own" {
                        "itself"
                    } else {
                        "the source"
                    };
                    assert!(what.ends_with(says) && instead.contains("`Softmax`"));
                    by_steps.push((name, place));
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    // Causal CAT weighs whole sequences.
    assert_eq!(by_steps, [("cat-causal", "own")]);
    assert_eq!(by_card, refused_by_cards());
    assert!(
        decoding > 10 && written > 60 && cut > 0,
        "{decoding}, {written}, {cut}"
    );
}
