//! Explanations of predictions: the fewest tokens without which they change, found along the causal structure of
//! attention, in a recommender and in a classifier of sentences.

mod asked;
mod models;

use crate::Error;
use crate::study::case::Case;
use crate::study::{Allowed, Finding, Measure, SEED, Study};
use asked::{Asked, Found, all_sets};
use bochner_datasets::{Session, Sessions};
use bochner_numerics::Seed;
use bochner_report::Scale;
use bochner_report::statistics::{mean, sample_deviation};
use models::{Predictor, Recommender, Sentences, words};
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// The suite.
pub static EXPLANATIONS: Study = Study {
    name: "explanations",
    title: "Explanations by the causal structure of attention",
    part: "statement",
    opening,
    parts: &[recommender, sentences],
};

/// The sessions that recommender and classifier learn: 1 to 3 parents, fewer rivals, 3 to 5 neutral items.
const SESSIONS: Sessions = Sessions {
    genres: 4,
    items: 4,
    neutral: 12,
    most: 3,
    bystanders: [3, 5],
};

/// The largest set that is asked for: no more are needed than there are parents at most.
const LARGEST: usize = 3;

/// The level of the tests behind a graph.
const LEVEL: f64 = 0.01;

/// The width of a head: the number of samples behind a correlation.
const SAMPLES: usize = 32;

const HEADS: usize = 2;

fn opening(scale: Scale) -> String {
    let Size {
        training,
        explained,
        ..
    } = Size::of(scale);
    format!(
        "A session holds 1 to 3 items of one genre out of {}, which are the *parents* of what comes next, fewer items of \
         one rival genre, and 3 to 5 neutral items, in any order; what comes next is of the genre with the most items. \
         Models of one encoder layer with {HEADS} softmax heads of width {SAMPLES} learn from {training} sessions; \
         {explained} others are explained where they are foretold rightly. For each head of the deepest layer A A^T \
         gives partial correlations between the tokens and the prediction, Fisher's test at level {LEVEL} with {SAMPLES} \
         samples the graph, and the graph the sets that are asked for: by size up to {LARGEST}, the nearest first, until \
         one without which the model predicts something else is found. Of the heads' sets the smallest counts, of two of \
         one size that of the earlier head. *By weight* is the baseline without a graph: the tokens to which the \
         prediction gives the largest weights on average over heads, one after the other.",
        SESSIONS.genres
    )
}

/// Sessions to learn from, passes over them, and sessions to explain.
struct Size {
    training: usize,
    epochs: usize,
    explained: usize,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let (training, epochs, explained) = match scale {
            Scale::Smoke => (200, 6, 12),
            Scale::Desk => (2000, 20, 300),
            Scale::Paper => (8000, 40, 2000),
        };
        Self {
            training,
            epochs,
            explained,
        }
    }

    fn draw(&self) -> Result<[Vec<Session>; 2], Error> {
        let seed = Seed::new(SEED).child("explanations");
        let training = SESSIONS.draw(self.training, seed.child("training"))?;
        Ok([training, SESSIONS.draw(self.explained, seed.child("test"))?])
    }
}

/// The measures of a prediction that is right, name by name; those that were not found are left out.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, f64>);

const CHANGEABLE: &str = "share of predictions that change without some set of at most 3 tokens";
const EXPLAINED: &str = "share of these that the graphs explain";
const HEADLESS: &str = "share of heads whose weights are too even for a graph";
const SIZE: &str = "tokens of an explanation";
const SMALLEST: &str = "share of explanations as small as the smallest set there is";
const PARENTS: &str = "share of parents in explanations";
const OVER_TOP: &str = "share of parents in explanations, less that by weight";
const GAIN: &str = "share of parents in explanations, less that at random";
const SETS: &str = "sets asked for until an explanation is found";
const THROUGH_ALL: &str = "sets asked for where all are gone through by size";
const CHAIN: &str = "by weight: share that is explained";
const LONGER: &str =
    "by weight: tokens until the prediction changes, less those of the explanation";
const TOP_PARENTS: &str = "by weight, as many tokens: share of parents";
const TOP_CHANGES: &str = "by weight, as many tokens: share of predictions that change";
const RANDOM_PARENTS: &str = "control, as many tokens at random: share of parents";
const RANDOM_CHANGES: &str = "control, as many tokens at random: share of predictions that change";
const RENAMED: &str = "control, the graph under other tokens' names: share that is explained";
const RENAMED_SETS: &str = "control, that graph: sets asked for, less those of the graph itself";

/// The measures, and what they must be beyond scale smoke.
const MEASURES: [(&str, Allowed); 18] = [
    (CHANGEABLE, Allowed::Anything),
    (EXPLAINED, Allowed::AtLeast(0.8)),
    (HEADLESS, Allowed::Anything),
    (SIZE, Allowed::Anything),
    (SMALLEST, Allowed::AtLeast(0.8)),
    (PARENTS, Allowed::AtLeast(0.9)),
    (OVER_TOP, Allowed::AtLeast(-0.05)),
    (GAIN, Allowed::AtLeast(0.3)),
    (SETS, Allowed::Anything),
    (THROUGH_ALL, Allowed::Anything),
    (CHAIN, Allowed::Anything),
    (LONGER, Allowed::AtLeast(0.0)),
    (TOP_PARENTS, Allowed::Anything),
    (TOP_CHANGES, Allowed::Anything),
    (RANDOM_PARENTS, Allowed::Anything),
    (RANDOM_CHANGES, Allowed::AtMost(0.5)),
    (RENAMED, Allowed::Anything),
    (RENAMED_SETS, Allowed::AtLeast(0.0)),
];

const STATEMENT: &str = "The model is right in at least 0.9 of the sessions. The graphs explain at least 0.8 of those \
    predictions that some set of at most 3 tokens changes. At least 0.9 of the tokens in explanations are parents: at \
    least 0.3 more than of as many tokens at random, and at most 0.05 less than of as many by weight. Explanations are no \
    longer than the sets by weight on average, and at least 0.8 of them are as small as the smallest set there is. \
    Controls: as many tokens at random change at most half of the predictions; the same graph under other tokens' names \
    asks for no fewer sets until it finds one.";

impl Seen {
    fn of(
        model: &dyn Predictor,
        sequence: &[usize],
        session: &Session,
        case: &mut Case,
    ) -> Result<Self, Error> {
        let tokens = sequence.len();
        let (mut seen, places) = (Self::default(), (0..tokens).collect::<Vec<_>>());
        let mut note = |name, value: f64| seen.0.insert(name, value);
        let flag = |is: bool| f64::from(u8::from(is));
        let mut asked = Asked {
            model,
            sequence,
            predicted: Some(session.genre),
            answers: BTreeMap::new(),
        };
        let heads = model.attention(sequence)?;
        let mut by_weight = places.clone();
        let weight = |&place: &usize| -> f64 { heads.iter().map(|a| a[[tokens, place]]).sum() };
        by_weight.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        let [mut others, mut random] = [places.clone(), places.clone()];
        others.shuffle(case.stream());
        random.shuffle(case.stream());
        let parents = |set: &[usize]| {
            let own = set.iter().filter(|place| session.parents.contains(place));
            own.count() as f64 / set.len() as f64
        };

        let through = asked.first(all_sets(tokens))?;
        note(CHANGEABLE, flag(through.is_some()));
        let Some(through) = through else {
            return Ok(seen);
        };
        let (found, without) = asked.explain(&heads, &places)?;
        let (renamed, _) = asked.explain(&heads, &others)?;
        let chain =
            asked.first((1..=LARGEST.min(tokens)).map(|size| by_weight[..size].to_vec()))?;
        note(HEADLESS, without as f64 / heads.len() as f64);
        note(EXPLAINED, flag(found.is_some()));
        note(RENAMED, flag(renamed.is_some()));
        note(CHAIN, flag(chain.is_some()));
        let Some(Found { set, asked: sets }) = found else {
            return Ok(seen);
        };
        let size = set.len();
        note(SIZE, size as f64);
        note(PARENTS, parents(&set));
        note(SETS, sets as f64);
        for (name, than, changes, of) in [
            (TOP_PARENTS, OVER_TOP, TOP_CHANGES, &by_weight[..size]),
            (RANDOM_PARENTS, GAIN, RANDOM_CHANGES, &random[..size]),
        ] {
            note(name, parents(of));
            note(than, parents(&set) - parents(of));
            note(changes, flag(asked.changes(of)?));
        }
        note(SMALLEST, flag(through.set.len() == size));
        note(THROUGH_ALL, through.asked as f64);
        if let Some(chain) = chain {
            note(LONGER, chain.set.len() as f64 - size as f64);
        }
        if let Some(renamed) = renamed {
            note(RENAMED_SETS, renamed.asked as f64 - sets as f64);
        }
        Ok(seen)
    }
}

fn measures(
    number: usize,
    scale: Scale,
    model: &dyn Predictor,
    test: &[(Vec<usize>, &Session)],
) -> Result<Vec<Measure>, Error> {
    let (mut all, mut right): (BTreeMap<&str, Vec<f64>>, _) = (BTreeMap::new(), 0);
    for (place, (sequence, session)) in test.iter().enumerate() {
        if model.predict(sequence)? != Some(session.genre) {
            continue;
        }
        right += 1;
        let seen = Seen::of(model, sequence, session, &mut Case::new(number, place))?;
        for (name, value) in seen.0 {
            all.entry(name).or_default().push(value);
        }
    }
    let right = f64::from(right) / test.len() as f64;
    let right = Measure::shown("share of sessions foretold rightly", right).at_least(0.9);
    let measured = MEASURES.into_iter().filter_map(|(name, allowed)| {
        let values = all.get(name).map_or(&[][..], Vec::as_slice);
        // Where no explanation was found there is no mean, and NaN is outside of every bound.
        let measure = match (mean(values), scale) {
            (Ok(value), _) => Measure::new(name, value, allowed),
            (Err(_), Scale::Smoke) => return None,
            (Err(_), _) => Measure::new(name, f64::NAN, allowed),
        };
        Some(match sample_deviation(values) {
            Ok(deviation) => measure.with_error(deviation / (values.len() as f64).sqrt()),
            Err(_) => measure,
        })
    });
    let mut measures: Vec<Measure> = std::iter::once(right).chain(measured).collect();
    if scale == Scale::Smoke {
        // A model that has hardly learnt anything is measured and not judged.
        let all = measures.iter_mut();
        all.for_each(|measure| measure.allowed = Allowed::Anything);
    }
    Ok(measures)
}

fn recommender(scale: Scale) -> Result<Finding, Error> {
    let size = Size::of(scale);
    let [training, test] = size.draw()?;
    let model = Recommender::trained(&size, &training)?;
    let test: Vec<_> = test.iter().map(|own| (own.kinds.clone(), own)).collect();
    Ok(Finding {
        number: 1,
        title: "a recommender",
        statement: STATEMENT,
        cases: size.explained,
        measures: measures(1, scale, &model, &test)?,
        remarks: vec![
            "The node of the prediction is the event behind the items that asks for the next one. An event is left out \
             of the session to see whether the prediction changes."
                .into(),
        ],
        ..Finding::default()
    })
}

fn sentences(scale: Scale) -> Result<Finding, Error> {
    let size = Size::of(scale);
    let [training, test] = size.draw()?;
    let model = Sentences::trained(&size, &training)?;
    let test: Vec<_> = test.iter().map(|own| (words(&own.kinds), own)).collect();
    Ok(Finding {
        number: 2,
        title: "a classifier of sentences",
        statement: STATEMENT,
        cases: size.explained,
        measures: measures(2, scale, &model, &test)?,
        remarks: vec![
            "The words are the items, the classes the genres. The classifier predicts from the mean over the tokens: the \
             row of the prediction's node is the mean of their rows times n / (n + 1), and 1 / (n + 1) for itself. A word \
             is replaced by the unknown word to see whether the prediction changes."
                .into(),
        ],
        ..Finding::default()
    })
}
