//! The models that are explained.

use super::{HEADS, SAMPLES, SESSIONS, Size};
use crate::Error;
use crate::study::SEED;
use bochner_attention::Softmax;
use bochner_datasets::Session;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::{classifier, next_event};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, Vocabulary};
use ndarray::{Array2, ArrayView1, ArrayView4, Axis, s};

/// A trained model whose predictions are explained.
pub(super) trait Predictor {
    /// The genre that is predicted; `None` if what is predicted is none.
    fn predict(&self, sequence: &[usize]) -> Result<Option<usize>, Error>;

    /// The weights of each head of the deepest layer, with the prediction as the last node.
    fn attention(&self, sequence: &[usize]) -> Result<Vec<Array2<f64>>, Error>;

    /// The sequence without the tokens at some places.
    fn without(&self, sequence: &[usize], places: &[usize]) -> Vec<usize>;
}

fn encoder() -> EncoderConfig {
    let layer = EncoderLayerConfig {
        width: HEADS * SAMPLES,
        heads: HEADS,
        hidden: HEADS * SAMPLES,
        attention: Softmax::default().into(),
        dropout: 0.1,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    EncoderConfig::new(1, layer)
}

fn training() -> TrainingConfig {
    TrainingConfig {
        learning_rate: 2e-3,
        clip_norm: Some(1.0),
        ..TrainingConfig::default()
    }
}

fn batches() -> BatchConfig {
    BatchConfig {
        tokens: 32 * 16,
        sentences: Some(32),
        ..BatchConfig::default()
    }
}

/// The weights of each head on one sequence.
fn heads(weights: ArrayView4<f32>) -> Vec<Array2<f64>> {
    let heads = weights.slice(s![0, .., .., ..]);
    heads
        .outer_iter()
        .map(|head| head.mapv(f64::from))
        .collect()
}

fn largest(logits: ArrayView1<f32>) -> Option<usize> {
    let places = 0..logits.len();
    places.max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
}

/// A model of next events. Behind the items stands an event that asks for the next one, as a masked item does in models
/// that read both ways: its row is the prediction's.
pub(super) struct Recommender(next_event::Trainer);

/// The kind of the event that asks; behind it are the kinds of what comes next, one for each genre.
const ASKS: usize = SESSIONS.kinds();

impl Recommender {
    pub(super) fn trained(size: &Size, sessions: &[Session]) -> Result<Self, Error> {
        let config = next_event::NextEventConfig {
            kinds: ASKS + 1 + SESSIONS.genres,
            encoder: encoder(),
            time: Vec::new(),
        };
        let events = |own: &Session| events(&own.kinds, own.genre);
        let task = next_event::Task::new(sessions.iter().map(events).collect(), batches())?;
        let seed = Seed::new(SEED).child("recommender");
        let mut trainer = next_event::Trainer::new(&config, &training(), task, seed)?;
        for _ in 0..size.epochs {
            trainer.epoch()?;
        }
        Ok(Self(trainer))
    }
}

/// The items, the event that asks, and the answer, which is not read.
fn events(items: &[usize], genre: usize) -> next_event::Events {
    let kinds = [items, &[ASKS, ASKS + 1 + genre]].concat();
    let times = vec![0.0; kinds.len()];
    next_event::Events { kinds, times }
}

impl Predictor for Recommender {
    fn predict(&self, sequence: &[usize]) -> Result<Option<usize>, Error> {
        let logits = self.0.predict(&[events(sequence, 0)])?.remove(0);
        let kind = largest(logits.row(sequence.len()));
        Ok(kind.and_then(|kind| kind.checked_sub(ASKS + 1)))
    }

    fn attention(&self, sequence: &[usize]) -> Result<Vec<Array2<f64>>, Error> {
        let mut layers = self.0.inspect(&[events(sequence, 0)])?;
        let deepest = layers.pop().expect("a layer");
        Ok(heads(deepest.weights.view()))
    }

    fn without(&self, sequence: &[usize], places: &[usize]) -> Vec<usize> {
        let left = (0..sequence.len()).filter(|place| !places.contains(place));
        left.map(|place| sequence[place]).collect()
    }
}

/// A classifier of sentences, whose words are the items and whose classes are the genres.
///
/// It predicts from the mean over the tokens, and has no token of its own for the prediction. The row of that node is
/// what a token would have that looks at the sentence as its tokens do on average: the mean of their rows for n tokens,
/// times n / (n + 1), and 1 / (n + 1) for itself, without which it would be a sum of the others and nothing could be
/// conditioned on them all.
pub(super) struct Sentences(classifier::Trainer);

/// Words have the numbers of items behind those that the text crate gives to padding and to unknown words.
const FIRST_WORD: usize = 2;

pub(super) fn words(items: &[usize]) -> Vec<usize> {
    items.iter().map(|item| FIRST_WORD + item).collect()
}

impl Sentences {
    pub(super) fn trained(size: &Size, sessions: &[Session]) -> Result<Self, Error> {
        let config = classifier::TextClassifierConfig::transformer(
            FIRST_WORD + SESSIONS.kinds(),
            SESSIONS.genres,
            16,
            encoder(),
        );
        let sentences = sessions.iter().map(|own| words(&own.kinds)).collect();
        let classes = sessions.iter().map(|own| own.genre).collect();
        // Unknown words are learnt, too, since explanations put them in the place of others.
        let task = classifier::Task::new(sentences, classes, batches())?.with_word_dropout(0.1)?;
        let seed = Seed::new(SEED).child("sentences");
        let mut trainer = classifier::Trainer::new(&config, &training(), task, seed)?;
        for _ in 0..size.epochs {
            trainer.epoch()?;
        }
        Ok(Self(trainer))
    }
}

impl Predictor for Sentences {
    fn predict(&self, sequence: &[usize]) -> Result<Option<usize>, Error> {
        let logits = self.0.predict(&[sequence.to_vec()])?;
        Ok(largest(logits.row(0)))
    }

    fn attention(&self, sequence: &[usize]) -> Result<Vec<Array2<f64>>, Error> {
        let mut layers = self.0.inspect(&[sequence.to_vec()])?;
        let deepest = layers.pop().expect("a layer");
        let tokens = sequence.len();
        let with_prediction = |head: Array2<f64>| {
            let mut all = Array2::zeros((tokens + 1, tokens + 1));
            all.slice_mut(s![..tokens, ..tokens]).assign(&head);
            let share = 1.0 / (tokens + 1) as f64;
            let sums = head.sum_axis(Axis(0)) * share;
            all.slice_mut(s![tokens, ..tokens]).assign(&sums);
            all[[tokens, tokens]] = share;
            all
        };
        let own = heads(deepest.weights.view());
        Ok(own.into_iter().map(with_prediction).collect())
    }

    fn without(&self, sequence: &[usize], places: &[usize]) -> Vec<usize> {
        let mut masked = sequence.to_vec();
        places
            .iter()
            .for_each(|&place| masked[place] = Vocabulary::UNKNOWN);
        masked
    }
}
