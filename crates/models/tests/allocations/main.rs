//! Allocations of decoding, in a process whose allocator counts.

use bochner_attention::{Form, IkanDirect, Mask, Pass, Rotary, Softmax, Variant};
use bochner_models::attention::AttentionOptions;
use bochner_models::decoder::{Decoder, DecoderConfig, DecoderLayerConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::{TextTranslator, Translator, TranslatorConfig};
use bochner_nn::Parameters;
use bochner_numerics::allocations::{Counting, count, peak};
use bochner_numerics::{Seed, standard_normal};
use bochner_text::{BeamConfig, BeamSearch, Marks, SubwordConfig, Subwords, TokenCounts, Tokens};
use dfdx::prelude::Cpu;
use ndarray::Array3;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WIDTH: usize = 16;
const SENTENCES: usize = 2;
const STEPS: usize = 200;

fn decoder(attention: Variant) -> Decoder<f32> {
    let options = AttentionOptions {
        rotary: Some(Rotary::default()),
        ..Default::default()
    };
    let layer = DecoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 24,
        cross_attention: attention.clone(),
        attention,
        attention_options: options.clone(),
        cross_attention_options: options,
        dropout: 0.0,
        ..Default::default()
    };
    let config = DecoderConfig { layers: 2, layer };
    Decoder::try_new(&Cpu::default(), &config, Seed::new(5)).unwrap()
}

fn random(batch: usize, time: usize) -> Array3<f32> {
    let mut stream = Seed::new(3).stream("random");
    Array3::from_shape_simple_fn((batch, time, WIDTH), || standard_normal(&mut stream))
}

/// The steps of a search with a beam of this width that allocate, of all after the one that branches.
fn allocating(decoder: &Decoder<f32>, beam: usize) -> Vec<usize> {
    let pass = Pass::Evaluation { seed: Seed::new(8) };
    let memory = random(SENTENCES, 9);
    let mask = Mask::none().with_key_lengths(vec![9, 7]);
    let mut steps = decoder.steps(memory.view(), &mask, pass).unwrap();
    let mut output = Array3::zeros((SENTENCES, 1, WIDTH));
    let x = random(SENTENCES * beam, 1);
    let first = x.slice(ndarray::s![..SENTENCES, .., ..]);
    steps.step_into(first, output.view_mut()).unwrap();
    let branched: Vec<_> = (0..SENTENCES * beam).map(|row| row / beam).collect();
    steps.reorder(&branched).unwrap();
    let mut output = Array3::zeros(x.raw_dim());
    // Every other step the last two beams of each sentence go on from its first one.
    let parents = |row: usize| {
        if row % beam + 2 < beam {
            row
        } else {
            row / beam * beam
        }
    };
    let parents: Vec<_> = (0..SENTENCES * beam).map(parents).collect();
    let step = |i: &usize| {
        let (done, allocated) = count(|| {
            steps.step_into(x.view(), output.view_mut())?;
            match i % 2 {
                0 => steps.reorder(&parents),
                _ => Ok(()),
            }
        });
        done.unwrap();
        allocated > 0
    };
    (0..STEPS).filter(step).collect()
}

/// On one thread: another one's allocations would not be seen.
fn on_one_thread(f: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(f);
}

fn direct(form: Form) -> Variant {
    let points = 4;
    IkanDirect {
        points,
        form,
        ..Default::default()
    }
    .into()
}

/// Whether memory grows at a step: that of pairs and hypotheses by doubling, and what a step needs beside it by a quarter.
fn grows(step: usize) -> bool {
    let positions = step + 1;
    let quarter = 1 << (positions.ilog2().max(2) - 2);
    step.is_power_of_two() || positions.is_multiple_of(quarter)
}

#[test]
fn a_decoder_allocates_where_its_memory_grows_and_nowhere_else() {
    on_one_thread(|| {
        for attention in [Softmax::default().into(), direct(Form::Automatic)] {
            let decoder = decoder(attention);
            for beam in [1, 4] {
                let allocating = allocating(&decoder, beam);
                assert!(
                    allocating.iter().all(|&step| grows(step)),
                    "beam {beam}: {allocating:?}"
                );
            }
        }
    });
}

/// Sums that hypotheses no longer need become those of others.
#[test]
fn a_decoder_of_constant_states_allocates_in_its_first_steps_alone() {
    on_one_thread(|| {
        let decoder = decoder(direct(Form::LinearTime));
        for beam in [1, 4] {
            let allocating = allocating(&decoder, beam);
            let late = allocating.iter().any(|&step| step > 0);
            assert!(!late, "beam {beam}: {allocating:?}");
        }
    });
}

/// A translator of two sentences that never end before the longest length.
fn translator(of_decoder: Variant) -> Translator<f32> {
    let (heads, hidden, dropout) = (2, 24, 0.0);
    let layer = EncoderLayerConfig {
        width: WIDTH,
        heads,
        hidden,
        attention: Softmax::default().into(),
        dropout,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let decoder = DecoderLayerConfig {
        width: WIDTH,
        heads,
        hidden,
        cross_attention: of_decoder.clone(),
        attention: of_decoder,
        dropout,
        ..Default::default()
    };
    let config = TranslatorConfig {
        tokens: 30,
        start: 2,
        end: 3,
        longest: 4 * STEPS,
        encoder: EncoderConfig::new(1, layer),
        decoder: DecoderConfig {
            layers: 2,
            layer: decoder,
        },
        attention_dropout: None,
        vocabulary: None,
        input_positions: Default::default(),
    };
    let mut model = Translator::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
    model.for_each_mut("", &mut |name, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        match name {
            "decoder.norm.beta" => values[0] = 10.0,
            "embedding.weight" => values[config.end * WIDTH] = -10.0,
            _ => return,
        }
        parameter.write(&values);
    });
    model
}

/// Each memory that grows does so once more in twice the steps: a call with twice the steps allocates more by a number
/// that does not depend on the steps.
#[test]
fn a_translation_of_more_steps_allocates_more_by_doublings_alone() {
    on_one_thread(|| {
        let mechanisms = [
            Softmax::default().into(),
            direct(Form::Automatic),
            direct(Form::LinearTime),
        ];
        for attention in mechanisms {
            let model = translator(attention);
            let sources = [vec![5, 6, 7], vec![8, 9]];
            for beam in [1, 4] {
                let allocated = [1, 2, 4, 8].map(|times| {
                    let search = BeamConfig {
                        beam,
                        max_length: 50 * times,
                        ..BeamConfig::default()
                    };
                    let pass = Pass::Evaluation { seed: Seed::new(8) };
                    let (found, allocated) = count(|| model.translate(&sources, &search, pass));
                    for found in found.unwrap() {
                        assert_eq!(found.unwrap().tokens.len(), 50 * times - 1);
                    }
                    allocated
                });
                let more: Vec<_> = allocated.windows(2).map(|pair| pair[1] - pair[0]).collect();
                // An allocation in every twentieth step would be ten more of them.
                assert!(more[2] <= more[0] + 4, "beam {beam}: {allocated:?}");
            }
        }
    });
}

/// The weights of the decoder, which are most of what a translation of one word takes.
#[test]
fn a_translator_of_lines_packs_its_weights_once() {
    on_one_thread(|| {
        let words = TokenCounts::of_words(["ein hund", "a dog"]);
        let subwords = Subwords::learn(&words, &SubwordConfig::default())
            .unwrap()
            .subwords;
        let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
        let (width, hidden, layers) = (96, 192, 3);
        let layer = EncoderLayerConfig {
            width,
            heads: 2,
            hidden,
            attention: Softmax::default().into(),
            dropout: 0.0,
            norm: NormPlacement::Pre,
            ..Default::default()
        };
        let encoder = EncoderConfig::new(layers, layer);
        let of_decoder = Softmax::default().into();
        let config = TranslatorConfig::transformer(&vocabulary, 6, encoder, of_decoder).unwrap();
        let model = Translator::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
        let translator = TextTranslator::new(model, subwords, Seed::new(1)).unwrap();
        let weights = layers * (8 * width * width + 2 * width * hidden) * size_of::<f32>();
        let [first, second] = [(); 2].map(|()| peak(|| translator.translate("hund")).1);
        assert!(
            first > weights && second < weights / 2,
            "{weights}: {first}, {second}"
        );
    });
}

#[test]
fn a_search_allocates_where_its_hypotheses_grow_and_nowhere_else() {
    let tokens = Tokens {
        vocabulary: 50,
        start: 0,
        end: 1,
    };
    let config = BeamConfig {
        beam: 4,
        ..Default::default()
    };
    let mut search = BeamSearch::new(tokens, &config).unwrap();
    let likely = |i: usize| -((i * 7 % 50) as f32) / 10.0;
    let mut row: Vec<f32> = (0..50).map(likely).collect();
    row[tokens.end] = f32::NEG_INFINITY;
    let rows = row.repeat(config.beam);
    let step = |_: &usize| {
        let rows = &rows[..search.live().len() * tokens.vocabulary];
        let (done, allocated) = count(|| search.advance(rows));
        done.unwrap();
        allocated > 0
    };
    // Where hypotheses are twice as long as when they last grew, and a step later those whose memory they take.
    let twice = |step: usize| step.is_power_of_two() || (step + 1).is_power_of_two();
    let allocating: Vec<_> = (0..STEPS - 1).filter(step).collect();
    assert!(allocating.iter().all(|&step| twice(step)), "{allocating:?}");
}
