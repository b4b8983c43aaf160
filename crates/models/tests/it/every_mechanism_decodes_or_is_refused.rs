//! Each mechanism of the registry in a decoder: either later positions change nothing before them, to the bit and in
//! training too, and decoding token by token gives the tokens of the whole pass, or the decoder refuses the mechanism.

use bochner_attention::{
    Cat, CatForm, Copula, IkanDirect, Mask, Mikan, Pass, Posterior, Softmax, Variant, registry,
};
use bochner_models::Error;
use bochner_models::decoder::{DecoderConfig, DecoderLayer, DecoderLayerConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::{Translator, TranslatorConfig};
use bochner_nn::Parameters;
use bochner_numerics::{Seed, standard_normal};
use bochner_text::BeamConfig;
use dfdx::prelude::*;

const WIDTH: usize = 8;
const TOKENS: usize = 12;
const START: usize = 2;
const END: usize = 3;
const LONGEST: usize = 7;

const TRAINING: Pass = Pass::Training {
    seed: Seed::new(7),
    dropout: 0.2,
};
const EVALUATION: Pass = Pass::Evaluation { seed: Seed::new(8) };

/// The registry, and settings under which mechanisms of it can be causal that usually are not.
fn mechanisms() -> Vec<Variant> {
    let unconditional = |copula| Mikan {
        posterior: Posterior::Unconditional,
        copula,
        ..Mikan::default()
    };
    let causal = Cat {
        form: CatForm::Causal,
    };
    let more = [
        unconditional(Copula::Free).into(),
        unconditional(Copula::Independent).into(),
        causal.into(),
    ];
    registry().into_iter().chain(more).collect()
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

#[test]
fn what_cannot_be_causal_or_attend_to_a_memory_is_refused_by_its_card() {
    let (mut taken, mut refused) = (0, 0);
    for mechanism in mechanisms() {
        let card = mechanism.card();
        let can = [
            card.causal.is_yes(),
            card.causal.is_yes() && card.cross.is_yes(),
        ];
        for ([itself, memory], can) in in_each_place(&mechanism).into_iter().zip(can) {
            match (layer(itself, memory), can) {
                (Ok(_), true) => taken += 1,
                (Err(Error::Attention(bochner_attention::Error::Unsupported { .. })), false) => {
                    refused += 1;
                }
                (got, _) => panic!("{mechanism:?}: {:?}", got.err()),
            }
        }
    }
    assert!(taken > 12 && refused > 8, "{taken}, {refused}");
}

type Sequences = Tensor<(usize, usize, usize), f64, Cpu>;

fn random(time: usize, purpose: &str) -> Sequences {
    let mut stream = Seed::new(3).stream(purpose);
    let values = (0..2 * time * WIDTH).map(|_| standard_normal(&mut stream));
    Cpu::default().tensor_from_vec(values.collect(), (2, time, WIDTH))
}

#[test]
fn a_later_position_changes_no_earlier_output_in_training_and_evaluation() {
    let (x, memory) = (random(5, "x"), random(4, "memory"));
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

/// A translator with random parameters, `None` if the decoder refuses its mechanisms.
fn translator(of_decoder: [Variant; 2]) -> Option<Translator<f64>> {
    let [itself, memory] = of_decoder;
    let config = TranslatorConfig {
        tokens: TOKENS,
        start: START,
        end: END,
        longest: LONGEST,
        encoder: EncoderConfig {
            layers: 1,
            layer: EncoderLayerConfig {
                width: WIDTH,
                heads: 2,
                hidden: 12,
                attention: softmax(),
                dropout: 0.3,
                norm: NormPlacement::Pre,
            },
        },
        decoder: DecoderConfig {
            layers: 2,
            layer: layer_config(itself, memory),
        },
        attention_dropout: None,
        vocabulary: None,
    };
    let mut model = match Translator::try_new(&Cpu::default(), &config, Seed::new(1)) {
        Ok(model) => model,
        Err(Error::Attention(bochner_attention::Error::Unsupported { .. })) => return None,
        Err(error) => panic!("{config:?}: {error}"),
    };
    let mut stream = Seed::new(2).stream("parameters");
    model.for_each_mut("", &mut |_, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        values
            .iter_mut()
            .for_each(|x| *x += 0.3 * standard_normal::<f64>(&mut stream));
        parameter.write(&values);
    });
    Some(model)
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

/// The logarithmic probability of a target, its end included, by a pass over all of it.
fn log_prob(model: &Translator<f64>, source: &[usize], target: &[usize]) -> f64 {
    let device = Cpu::default();
    let read = [&[START], target].concat();
    let lengths = [&[source.len()][..], &[read.len()]];
    let tensor = |tokens: &[usize]| device.tensor_from_vec(tokens.to_vec(), (1, tokens.len()));
    let logits = model.apply(tensor(source), tensor(&read), lengths, EVALUATION);
    let rows = logits.unwrap().output.as_vec();
    let next = target.iter().copied().chain([END]);
    let each = rows.chunks(TOKENS).zip(next).map(|(row, token)| {
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        row[token] - total.ln()
    });
    each.sum()
}

#[test]
fn token_by_token_gives_what_whole_passes_give_and_ends() {
    let sources = [vec![5, 6, 7], vec![11, 4, 4, 9, 10], vec![8]];
    let greedy = BeamConfig {
        beam: 1,
        max_length: LONGEST,
        ..BeamConfig::default()
    };
    let (mut decoding, mut written, mut cut) = (0, 0, 0);
    for mechanism in mechanisms() {
        for of_decoder in in_each_place(&mechanism) {
            let Some(model) = translator(of_decoder) else {
                continue;
            };
            // A mechanism may draw other points for the second sentence of a batch than for the first.
            let alone = |source: &Vec<usize>, beam| {
                model.translate(std::slice::from_ref(source), beam, EVALUATION)
            };
            match alone(&sources[0], &greedy) {
                Ok(_) => decoding += 1,
                // An average over draws, and what has no decoder.
                Err(Error::Attention(bochner_attention::Error::Unsupported { .. })) => continue,
                Err(error) => panic!("{mechanism:?}: {error}"),
            }
            let wide = BeamConfig {
                beam: 3,
                ..greedy.clone()
            };
            for source in &sources {
                let expected = by_whole_passes(&model, source);
                let found = alone(source, &greedy).unwrap().remove(0).unwrap();
                assert_eq!(found.tokens, expected, "{mechanism:?}");
                written += expected.len();
                cut += usize::from(expected.len() == LONGEST - 1);
                let found = alone(source, &wide).unwrap().remove(0).unwrap();
                let whole = log_prob(&model, source, &found.tokens);
                let error = (found.log_prob - whole).abs();
                assert!(error < 1e-8, "{mechanism:?}, {source:?}: {error:e}");
            }
        }
    }
    assert!(
        decoding > 10 && written > 60 && cut > 0,
        "{decoding}, {written}, {cut}"
    );
}

#[test]
fn linear_time_takes_no_dropout_on_weights() {
    let direct = IkanDirect {
        points: 4,
        form: bochner_attention::Form::LinearTime,
        ..IkanDirect::default()
    };
    let layer = layer(direct.into(), softmax()).unwrap();
    let masks = [&Mask::none(), &Mask::none()];
    let decode = |dropout| {
        let pass = Pass::Training {
            seed: Seed::new(7),
            dropout,
        };
        layer.apply(random(5, "x"), random(4, "memory"), masks, pass)
    };
    assert!(decode(0.0).is_ok());
    assert!(matches!(decode(0.2), Err(Error::Attention(_))));
}
