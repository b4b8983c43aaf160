//! What decoding allocates, in a process whose allocator counts.

use bochner_attention::{IkanDirect, Mask, Pass, Softmax, Variant};
use bochner_models::decoder::{Decoder, DecoderConfig, DecoderLayerConfig};
use bochner_numerics::allocations::{Counting, count};
use bochner_numerics::{Seed, standard_normal};
use bochner_text::{BeamConfig, BeamSearch, Tokens};
use dfdx::prelude::Cpu;
use ndarray::Array3;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WIDTH: usize = 16;
const SENTENCES: usize = 2;
const STEPS: usize = 200;

fn decoder(attention: Variant) -> Decoder<f32> {
    let layer = DecoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 24,
        cross_attention: attention.clone(),
        attention,
        dropout: 0.0,
    };
    let config = DecoderConfig { layers: 2, layer };
    Decoder::try_new(&Cpu::default(), &config, Seed::new(5)).unwrap()
}

fn random(batch: usize, time: usize) -> Array3<f32> {
    let mut stream = Seed::new(3).stream("random");
    Array3::from_shape_simple_fn((batch, time, WIDTH), || standard_normal(&mut stream))
}

/// The steps of a search with a beam of this width that allocate, from the second one on.
fn allocating(decoder: &Decoder<f32>, beam: usize) -> usize {
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
    (0..STEPS).filter(step).count()
}

/// On one thread: another one's allocations would not be seen.
fn on_one_thread(f: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(f);
}

/// Memory grows by doubling, and what a step needs beside it in steps of a quarter.
#[test]
fn a_decoder_allocates_where_its_memory_grows_and_nowhere_else() {
    on_one_thread(|| {
        let direct = IkanDirect {
            points: 4,
            ..Default::default()
        };
        for attention in [Softmax::default().into(), Variant::from(direct)] {
            let decoder = decoder(attention);
            for beam in [1, 4] {
                let allocating = allocating(&decoder, beam);
                assert!(allocating <= STEPS / 4, "beam {beam}: {allocating}");
            }
        }
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
    // The first steps, and each time that hypotheses are twice as long.
    let allocating = (0..STEPS - 1).filter(step).count();
    assert!(allocating <= 16, "{allocating}");
}
