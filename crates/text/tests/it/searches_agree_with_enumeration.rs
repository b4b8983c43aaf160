//! A beam wide enough finds what enumerating every sequence finds, and a narrow one never finds better.

use bochner_numerics::Seed;
use bochner_text::{
    BeamConfig, BeamSearch, Error, Found, Live, SourceBound, Stop, Tokens, beam_search,
};
use proptest::prelude::*;
use rand::Rng;

const TOKENS: Tokens = Tokens {
    vocabulary: 5,
    start: 0,
    end: 1,
};
const PLACES: usize = 4;

/// Logarithmic probabilities behind each pair of tokens; one in six tokens cannot follow.
fn model(seed: u64) -> Vec<f64> {
    let mut rng = Seed::new(seed).stream("model");
    let numbers = TOKENS.vocabulary.pow(3);
    let mut next = || match rng.gen_range(0..6) {
        0 => f64::NEG_INFINITY,
        _ => -rng.gen_range(0.0..4.0),
    };
    (0..numbers).map(|_| next()).collect()
}

fn row<'a>(model: &'a [f64], tokens: &[usize]) -> &'a [f64] {
    let before = tokens
        .len()
        .checked_sub(2)
        .map_or(TOKENS.start, |at| tokens[at]);
    let context = before * TOKENS.vocabulary + tokens[tokens.len() - 1];
    &model[context * TOKENS.vocabulary..][..TOKENS.vocabulary]
}

fn search(model: &[f64], config: &BeamConfig) -> Found {
    let step = |live: &[Live], log_probs: &mut [f64]| {
        let rows = log_probs.chunks_mut(TOKENS.vocabulary);
        live.iter()
            .zip(rows)
            .for_each(|(live, out)| out.copy_from_slice(row(model, &live.tokens)));
        Ok::<(), Error>(())
    };
    beam_search(&TOKENS, config, step).unwrap()
}

/// The scores of all sequences that can end, the best first.
fn enumerate(model: &[f64], config: &BeamConfig) -> Vec<f64> {
    let mut scores = Vec::new();
    let mut open = vec![(vec![TOKENS.start], 0.0)];
    while let Some((tokens, log_prob)) = open.pop() {
        for (token, &p) in row(model, &tokens).iter().enumerate().skip(1) {
            let (length, log_prob) = (tokens.len(), log_prob + p);
            let longer = [&tokens[1..], &[token]].concat();
            let repeats = config.no_repeat_ngram.is_some_and(|n| {
                let grams: Vec<_> = longer.windows(n).collect();
                (1..grams.len()).any(|at| grams[..at].contains(&grams[at]))
            });
            if log_prob == f64::NEG_INFINITY || config.banned.contains(&token) || repeats {
                continue;
            }
            if token == TOKENS.end {
                if length < config.min_length {
                    continue;
                }
                scores.push(config.score(log_prob, length));
            } else if length < PLACES {
                open.push(([&tokens[..], &[token]].concat(), log_prob));
            }
        }
    }
    scores.sort_unstable_by(|a, b| b.total_cmp(a));
    scores
}

fn config(beam: usize, alpha: f64, stop: Stop) -> BeamConfig {
    BeamConfig {
        beam,
        alpha,
        max_length: PLACES,
        stop,
        ..BeamConfig::default()
    }
}

proptest! {
    #[test]
    fn a_wide_beam_finds_everything_that_is_allowed_in_order(
        seed in any::<u64>(), alpha in 0.0..2.0, min_length in 1..=PLACES,
        banned in prop::collection::vec(2..TOKENS.vocabulary, 0..3),
        no_repeat_ngram in prop::option::of(1..=3_usize)
    ) {
        let model = model(seed);
        let settings = config(1000, alpha, Stop::Count);
        let wide = BeamConfig { min_length, banned, no_repeat_ngram, ..settings };
        let found = search(&model, &wide);
        let scores: Vec<f64> = found.hypotheses.iter().map(|found| found.score).collect();
        let all = enumerate(&model, &wide);
        prop_assert_eq!(scores.len(), all.len());
        prop_assert!(scores.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn a_narrow_beam_finds_none_better(
        seed in any::<u64>(), alpha in 0.0..2.0, beam in 1_usize..6, bound in any::<bool>()
    ) {
        let model = model(seed);
        let stop = if bound { Stop::Bound } else { Stop::Count };
        let narrow = config(beam, alpha, stop);
        let found = search(&model, &narrow);
        prop_assert!(found.hypotheses.len() <= beam && found.steps <= PLACES);
        prop_assert!(found.hypotheses.is_sorted_by(|a, b| a.score >= b.score));
        let best = enumerate(&model, &narrow).first().copied();
        for found in &found.hypotheses {
            prop_assert!(found.score <= best.unwrap() + 1e-12);
            prop_assert_eq!(found.tokens.last(), Some(&TOKENS.end));
            prop_assert!(!found.tokens.contains(&TOKENS.start));
        }
    }

    #[test]
    fn stopping_at_the_bound_loses_nothing(seed in any::<u64>(), alpha in 0.0..2.0) {
        // The bound holds because no logarithmic probability is above zero; the beam cuts nothing off here.
        let model = model(seed);
        let wide = config(1000, alpha, Stop::Bound);
        let found = search(&model, &wide);
        // Every continuation may be impossible.
        let score = found.hypotheses.first().map_or(f64::NEG_INFINITY, |best| best.score);
        let best = enumerate(&model, &wide).first().copied().unwrap_or(f64::NEG_INFINITY);
        prop_assert!(score == best || (score - best).abs() < 1e-12, "{} steps", found.steps);
    }

    #[test]
    fn parents_are_the_rows_that_hypotheses_continue(seed in any::<u64>(), beam in 1_usize..5) {
        let model = model(seed);
        let mut before: Vec<Vec<usize>> = vec![];
        let step = |live: &[Live], log_probs: &mut [f64]| {
            for (live, out) in live.iter().zip(log_probs.chunks_mut(TOKENS.vocabulary)) {
                if let Some(parent) = before.get(live.parent) {
                    assert_eq!(parent[..], live.tokens[..live.tokens.len() - 1]);
                }
                out.copy_from_slice(row(&model, &live.tokens));
            }
            before = live.iter().map(|live| live.tokens.clone()).collect();
            Ok::<(), Error>(())
        };
        beam_search(&TOKENS, &config(beam, 1.0, Stop::Count), step).unwrap();
    }
}

#[test]
fn wrong_settings_and_numbers_are_refused() {
    let with = |tokens: &Tokens, config: &BeamConfig, value: f32| {
        let step = |_: &[Live], log_probs: &mut [f32]| {
            log_probs.fill(value);
            Ok::<(), Error>(())
        };
        beam_search(tokens, config, step)
    };
    let good = config(2, 1.0, Stop::Count);
    assert!(with(&TOKENS, &good, -1.0).is_ok());
    let refused = |result: Result<Found, Error>, word: &str| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, Error::Argument(_)) && error.to_string().contains(word),
            "{error}"
        );
    };
    refused(
        with(&TOKENS, &config(0, 1.0, Stop::Count), -1.0),
        "`beam` is 0",
    );
    for (banned, said) in [(1, "another token than the end"), (5, "below 5")] {
        let banned = BeamConfig {
            banned: vec![banned],
            ..good.clone()
        };
        refused(with(&TOKENS, &banned, -1.0), said);
    }
    let bounded = |per_token| BeamConfig {
        source_bound: Some(SourceBound { per_token, more: 3 }),
        ..good.clone()
    };
    refused(
        with(&TOKENS, &bounded(1.0), -1.0),
        "`BeamConfig::for_source`",
    );
    assert!(with(&TOKENS, &bounded(1.0).for_source(2).unwrap(), -1.0).is_ok());
    for below in [-0.1, f64::NAN] {
        let error = bounded(below).for_source(2).unwrap_err().to_string();
        assert!(error.contains("`per_token`"), "{error}");
    }
    refused(with(&Tokens { end: 5, ..TOKENS }, &good, -1.0), "end");
    refused(with(&Tokens { start: 1, ..TOKENS }, &good, -1.0), "end");
    refused(with(&TOKENS, &good, f32::NAN), "log_probs");
    refused(with(&TOKENS, &good, f32::INFINITY), "log_probs");
    for at in 0..TOKENS.vocabulary {
        let step = |_: &[Live], log_probs: &mut [f32]| {
            log_probs.fill(-1.0);
            log_probs[at] = f32::NAN;
            Ok::<(), Error>(())
        };
        let error = beam_search(&TOKENS, &good, step).unwrap_err().to_string();
        assert!(error.contains(&format!("[0, {at}]")), "{error}");
    }
    // A model that can say nothing finds nothing.
    let none = with(&TOKENS, &good, f32::NEG_INFINITY).unwrap();
    assert_eq!((none.hypotheses.len(), none.steps), (0, 1));
}

#[test]
fn a_source_bounds_the_length_up_to_the_largest() {
    let longest = |per_token, more, tokens| {
        let config = BeamConfig {
            source_bound: Some(SourceBound { per_token, more }),
            max_length: 20,
            ..BeamConfig::default()
        };
        let found = config.for_source(tokens).unwrap();
        assert_eq!(found.source_bound, None);
        found.max_length
    };
    assert_eq!(longest(1.5, 2, 3), 6);
    assert_eq!(longest(1.5, 2, 100), 20);
    // A translation has its end at least.
    assert_eq!(longest(2.0, 0, 0), 1);
    assert_eq!(longest(f64::MAX, usize::MAX, usize::MAX), 20);
    let whole = BeamConfig::default();
    assert_eq!(whole.for_source(1).unwrap(), whole);
    let two = BeamConfig {
        min_length: 2,
        source_bound: Some(SourceBound {
            per_token: 0.0,
            more: 0,
        }),
        ..whole
    };
    assert_eq!(two.for_source(1).unwrap().max_length, 2);
}

/// A model that is sure of nothing: the shorter a line, the more probable.
#[test]
fn a_least_length_keeps_lines_from_being_empty() {
    let step = |_: &[Live], log_probs: &mut [f64]| {
        log_probs.fill(0.2_f64.ln());
        Ok::<(), Error>(())
    };
    let best = |min_length| {
        let config = BeamConfig {
            min_length,
            banned: vec![2],
            ..config(50, 0.0, Stop::Count)
        };
        let found = beam_search(&TOKENS, &config, step).unwrap();
        found.hypotheses[0].tokens.clone()
    };
    assert_eq!(best(1), [1]);
    assert_eq!(best(2), [3, 1]);
}

/// The end is the most probable token at first, and what follows the runner-up is certain.
#[test]
fn one_hypothesis_is_greedy_where_the_search_stops_at_its_end_alone() {
    let step = |live: &[Live], log_probs: &mut [f64]| {
        log_probs.fill(f64::NEG_INFINITY);
        match live[0].tokens.len() {
            1 => [log_probs[1], log_probs[2]] = [0.51_f64.ln(), 0.49_f64.ln()],
            4 => log_probs[1] = 0.0,
            _ => log_probs[2] = 0.0,
        }
        Ok::<(), Error>(())
    };
    let found = |stop| beam_search(&TOKENS, &config(1, 1.0, stop), step).unwrap();
    let greedy = found(Stop::Count);
    assert_eq!(
        (&greedy.hypotheses[0].tokens[..], greedy.steps),
        (&[1][..], 1)
    );
    let bound = found(Stop::Bound);
    assert_eq!(
        (&bound.hypotheses[0].tokens[..], bound.steps),
        (&[2, 2, 2, 1][..], 4)
    );
}

#[test]
fn a_score_is_what_its_formula_says() {
    let config = config(2, 2.0, Stop::Count);
    assert_eq!(config.score(-8.0, 1), -8.0);
    assert_eq!(config.score(-8.0, 7), -2.0);
}

/// The end is the second of the first two tokens, between which there is nothing to choose in the end.
#[test]
fn ends_count_among_the_first_alone_and_equal_ones_in_their_order() {
    let step = |live: &[Live], log_probs: &mut [f64]| {
        log_probs.fill(f64::NEG_INFINITY);
        for (live, row) in live.iter().zip(log_probs.chunks_mut(TOKENS.vocabulary)) {
            match live.tokens.len() {
                1 => [row[1], row[2]] = [-0.8, -0.6],
                _ => row[1] = -0.2,
            }
        }
        Ok::<(), Error>(())
    };
    let found = |beam| {
        let found = beam_search(&TOKENS, &config(beam, 0.0, Stop::Count), step).unwrap();
        let tokens = found.hypotheses.into_iter().map(|found| found.tokens);
        tokens.collect::<Vec<_>>()
    };
    assert_eq!(found(1), [vec![2, 1]]);
    assert_eq!(found(2), [vec![1], vec![2, 1]]);
}

#[test]
fn an_error_of_the_model_ends_the_search() {
    #[derive(Debug, PartialEq)]
    struct Broken;
    impl From<Error> for Broken {
        fn from(_: Error) -> Self {
            unreachable!("the settings are right")
        }
    }
    let step = |_: &[Live], _: &mut [f32]| Err(Broken);
    assert_eq!(
        beam_search(&TOKENS, &BeamConfig::default(), step),
        Err(Broken)
    );
}

/// Vocabularies of which most is passed over, with equal probabilities and without.
#[test]
fn a_step_ranks_as_a_sort_of_all_continuations_does() {
    let tokens = Tokens {
        vocabulary: 700,
        start: 0,
        end: 130,
    };
    let config = config(3, 0.6, Stop::Bound);
    let mut rng = Seed::new(5).stream("rows");
    for levels in [5, 1_000_000] {
        let mut search = BeamSearch::new(tokens, &config).unwrap();
        let mut live = vec![(vec![tokens.start], 0.0_f64)];
        for _ in 1..PLACES {
            let row =
                (0..live.len() * tokens.vocabulary).map(|_| -f64::from(rng.gen_range(0..levels)));
            let rows: Vec<f64> = row.collect();
            search.advance(&rows).unwrap();
            let mut all = Vec::new();
            for (place, (_, before)) in live.iter().enumerate() {
                for token in (0..tokens.vocabulary).filter(|&token| token != tokens.start) {
                    let log_prob = before + rows[place * tokens.vocabulary + token];
                    all.push((log_prob, token, place));
                }
            }
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            let going_on = all.into_iter().filter(|&(_, token, _)| token != tokens.end);
            let continued = going_on.take(config.beam).map(|(log_prob, token, place)| {
                ([&live[place].0[..], &[token]].concat(), log_prob)
            });
            live = continued.collect();
            let got = search
                .live()
                .iter()
                .map(|live| (live.tokens.clone(), live.log_prob));
            assert_eq!(got.collect::<Vec<_>>(), live);
        }
    }
}
