//! Figure 2: what the heads of IKAN and MIKAN look at in a sentence of MR, and how much they differ.
//!
//! The paper shows one sentence; what is tested is the mean over all test sentences, with a control that has no
//! dependence between heads.

use crate::Error;
use crate::mechanisms::{RELEASED, clipped, encoder, mechanism};
use crate::suite::{Source, Suite};
use crate::trial::sentences::corpora::generated;
use crate::trial::sentences::{Corpus, DIVERSITY, SPREAD, SentenceSettings};
use bochner_attention::Preset;
use bochner_datasets::{DataStore, Protocol, SentenceData, SentenceSet, sentences as corpora};
use bochner_report::check::Check;
use bochner_report::claim::{Claim, Hypothesis, Quantity};
use bochner_report::document::{Colours, Document, Matrix, Picture};
use bochner_report::plan::Arm;
use bochner_report::sections::{Column, Columns, Section, at_last, measures};
use bochner_report::suite::{At, Card, Metric, Model, Set};
use bochner_report::{Account, Number, Scale, Unit};

/// The suite.
pub static FIGURE_2: Suite = Suite::new(&CARD, load, CHECKS);

/// The row of MR that holds the paper's sentence, "just a kiss is a just a waste ."
const ROW: usize = 627;

/// The fold that tests on it.
const FOLD: usize = 8;

/// The folds at scale `desk`, that of the sentence first.
const FOLDS: [usize; 3] = [FOLD, 0, 1];

/// Heads whose weights are shown.
const SHOWN: usize = 4;

static CARD: Card = Card {
    name: "figure2",
    table: "Figure 2",
    title: "Figure 2, what heads look at in a sentence",
    sets: &[
        Set::new("mr", "MR", 10_662, Scale::Desk),
        Set::new("generated", "generated", 600, Scale::Smoke),
    ],
    models: &[
        Model::new("IKAN", &[]),
        Model::new("MIKAN", &["IKAN"]).judged(),
    ],
    metric: Metric::ACCURACY,
    baseline: "IKAN",
    against: "IKAN",
    opening: "The weights of each head on \"just a kiss is a just a waste .\", the paper's sentence, and over all test \
              sentences of each fold how much the heads differ: **diversity** is the mean Jensen-Shannon divergence between \
              the rows of two heads, in nats, **spread** the standard deviation of a weight over the heads, summed over the \
              words that are looked at, mean over the words that look. Both are taken in the epoch of the V-number.",
    scopes: [
        "Scale smoke tests the machinery on generated sentences.",
        "Scale desk has folds 8, 0 and 1 of MR, three seeds each, one layer of width 128 with 8 heads and 6 epochs.",
        "Scale paper has all folds of MR, three seeds each, one layer of width 256 with 8 heads and 30 epochs.",
    ],
    smoke: "One seed, one layer of width 32 with 8 heads, 8 spectral points, 2 epochs.",
    decided: &[
        "MIKAN without correlation of the heads is IKAN: the two differ by the copula alone. So IKAN is that control, and \
         MIKAN in the reading of the released code, which has no dependence between heads, is the other.",
        "The sentence is a test sentence of fold 8, and is looked at there alone; the measures are those of all test \
         sentences of all folds. A verdict averages the seeds of a fold first, since they share its rows; the SE of tables is that over all \
         pairs of a fold and a seed.",
        "All settings are those that validation has chosen for Table 2 at scale desk: width 128 with 8 heads, 256 within the \
         feed-forward layer, 32 spectral points, dropout 0.1, word dropout 0.1, 6 epochs, batches of 64, a rate of 0.001. p is \
         1.5 for all.",
        "The reading of the released code differs from the paper's by more than the dependence of its heads, so that this \
         control also shows what else differs. IKAN is the control that differs by the dependence alone.",
    ],
    arms,
    claims,
    pictures: &[Section::Written(pictures)],
    tables: &[
        Section::Written(what_heads_look_at),
        Section::Numbers("How much the heads differ", "", &[MEASURES, ACCURACY]),
        Section::Numbers(
            "",
            "After the last epoch, reported and not judged:",
            &[AT_LAST],
        ),
    ],
    ..Card::EMPTY
};

const MEASURES: Columns<'static> = &measures([DIVERSITY, SPREAD]);
const AT_LAST: Columns<'static> = &at_last([DIVERSITY, SPREAD]);

const CHECKS: &[Check] = &[Check::Rows(
    "heads differ, by at most log 2",
    |_| true,
    |row| {
        let found = row.measure(DIVERSITY);
        (!(found > 0.0 && found <= std::f64::consts::LN_2)).then(|| format!("{found:.3}"))
    },
)];

fn arms(at: &At<'_>) -> Vec<Arm> {
    let smoke = at.scale == Scale::Smoke;
    if smoke != (at.set.title == "generated") {
        return Vec::new();
    }
    let all: [usize; 10] = std::array::from_fn(|place| (FOLD + place) % 10);
    let (folds, seeds, width, points, epochs) = at.of_scale([
        (&FOLDS[..1], 1, 32, 8, 2),
        (&FOLDS[..], 3, 128, 32, 6),
        (&all[..], 3, 256, 64, 30),
    ]);
    let arm = |model, (preset, tag)| {
        let attention = mechanism(model, preset, Some(1.5), points);
        let settings = SentenceSettings {
            encoder: encoder(1, [width, 8], 0.1, attention),
            p: Some(1.5),
            points: Some(points),
            word_dropout: 0.1,
            longest: 60,
            batch: 64,
            training: clipped(1e-3, 1.0),
            epochs,
        };
        let runs = folds
            .iter()
            .flat_map(|&fold| (0..seeds).map(move |seed| (fold, seed)));
        Arm::new(at, model, Protocol::P10, runs, &settings).with_tag(tag)
    };
    vec![
        arm("IKAN", (Preset::Paper, None)),
        arm("MIKAN", (Preset::Paper, None)),
        arm("MIKAN", (Preset::Released, Some(RELEASED))),
    ]
}

fn claims() -> Vec<Claim> {
    let more = |than| Hypothesis::more(Quantity::Measure(DIVERSITY), "MIKAN", than, "MR");
    vec![Claim::all(
        "diversity",
        "MIKAN's heads differ more than IKAN's, and more than those of the released code, which do not depend on each other",
        vec![more("IKAN"), more("MIKAN").than_tagged(RELEASED)],
    )]
}

fn pictures(account: &Account<'_>, document: &mut Document) {
    let looked = looked(account);
    if looked.is_empty() {
        return;
    }
    document.text(
        "All weights of the first heads in the sentence, of the first seed, queries downwards; `figure2-weights.csv` holds \
         those of all heads and seeds.",
    );
    for sentence in looked.iter().filter(|sentence| sentence.unit.seed == 0) {
        let (model, reading) = (sentence.arm.model, sentence.reading());
        document.figure(
            format!("figure2-{}-{reading}", model.to_lowercase()),
            format!("{model} ({reading}), the first {SHOWN} heads."),
            (0..SHOWN).map(|head| sentence.picture(head)).collect(),
        );
    }
    let head = "model,preset,fold,seed,head,query,key,query word,key word,weight\n";
    let lines = looked.iter().flat_map(Looked::lines);
    let table = [head.to_owned()].into_iter().chain(lines).collect();
    document.tables.push(("figure2-weights.csv".into(), table));
}

fn what_heads_look_at(account: &Account<'_>, document: &mut Document) {
    let looked = looked(account);
    if looked.is_empty() {
        return;
    }
    document.heading("What the first heads look at");
    document.text(
        "The word to which each of the first heads gives most weight, and its weight, mean over the words of the sentence; \
         the number behind a word that recurs is its place.",
    );
    let heads: Vec<String> = (1..=SHOWN).map(|head| format!("head {head}")).collect();
    let names = ["model", "preset", "seed"].into_iter();
    let names: Vec<&str> = names.chain(heads.iter().map(String::as_str)).collect();
    document.table(&names, looked.iter().map(Looked::row).collect());
}

fn load(set: &Set, _arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    if set.name == "mr" {
        let data = corpora::load(SentenceSet::Mr, Protocol::P10, files)?;
        return Ok(Box::new(Corpus::new(&data).looked_at(ROW)));
    }
    let files = vec![generated(set.size)];
    let data = SentenceData::of_files(SentenceSet::Cr, Protocol::P10, files)?;
    let first = data.splits[FOLD].test[0];
    Ok(Box::new(Corpus::new(&data).looked_at(first)))
}

/// The weights of a unit on the sentence.
struct Looked<'a> {
    arm: &'a Arm,
    unit: &'a Unit,
    words: Vec<String>,
    /// The weights of each head, query by query.
    heads: Vec<Vec<f32>>,
}

/// The artefacts of the units that tested on the sentence.
fn looked<'a>(account: &Account<'a>) -> Vec<Looked<'a>> {
    let units = account
        .plan
        .compared()
        .flat_map(|arm| arm.units.iter().map(move |unit| (arm, unit)));
    let looked = units.filter_map(|(arm, unit)| {
        let found = (account.artefacts)(unit)?;
        let (words, heads): (Vec<_>, Vec<Vec<_>>) = (found.get("words")?, found.get("weights")?);
        let fits = |head: &Vec<f32>| head.len() == words.len() * words.len();
        (heads.len() >= SHOWN && heads.iter().all(fits)).then_some(Looked {
            arm,
            unit,
            words,
            heads,
        })
    });
    looked.collect()
}

impl Looked<'_> {
    /// The reading of the method.
    fn reading(&self) -> &str {
        self.arm.tag.as_deref().unwrap_or("paper")
    }

    /// A row of the table: what the first heads look at.
    fn row(&self) -> Vec<String> {
        let (model, reading) = (self.arm.model.to_owned(), self.reading().to_owned());
        let names = [model, reading, self.unit.seed.to_string()].into_iter();
        let heads = (0..SHOWN).map(|head| self.most_looked_at(head));
        names.chain(heads).collect()
    }

    /// The word to which a head gives most weight, and its weight.
    fn most_looked_at(&self, head: usize) -> String {
        let length = self.words.len();
        let mean = |key: usize| {
            let weights = self.heads[head].iter().skip(key).step_by(length);
            weights.sum::<f32>() / length as f32
        };
        let most = (0..length).max_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        let most = most.unwrap_or(0);
        format!("{}, {:.2}", self.name(most), mean(most))
    }

    /// A word, with its place in the sentence if it recurs.
    fn name(&self, place: usize) -> String {
        let word = &self.words[place];
        match self.words.iter().filter(|other| *other == word).count() {
            1 => word.clone(),
            _ => format!("{word} ({})", place + 1),
        }
    }

    fn picture(&self, head: usize) -> Picture {
        Picture::Matrix(Matrix {
            title: format!("head {}", head + 1),
            names: self.words.clone(),
            side: self.words.len(),
            values: self.heads[head].clone(),
            colours: Colours::Shares,
        })
    }

    /// The lines of all weights; words stand between quotes, since some are commas.
    fn lines(&self) -> impl Iterator<Item = String> {
        let quoted = |word: &String| format!("\"{}\"", word.replace('"', "\"\""));
        let words: Vec<String> = self.words.iter().map(quoted).collect();
        let (model, preset) = (self.arm.model, self.reading());
        let (fold, seed) = (self.unit.split, self.unit.seed);
        let heads = self.heads.iter().zip(1..);
        heads.flat_map(move |(weights, head)| {
            let line = |(place, weight): (usize, &f32)| {
                let (query, key) = (place / words.len(), place % words.len());
                format!(
                    "{model},{preset},{fold},{seed},{head},{},{},{},{},{weight}\n",
                    query + 1,
                    key + 1,
                    words[query],
                    words[key]
                )
            };
            weights.iter().enumerate().map(line).collect::<Vec<_>>()
        })
    }
}

const ACCURACY: Columns<'static> = &[
    ("validation", Column::Ours(Number::Validation)),
    ("V", Column::Ours(Number::V)),
    ("R-number", Column::Ours(Number::R)),
    ("n", Column::N),
];
