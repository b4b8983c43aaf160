//! Searches find the same translations however sentences are cut into batches, and on any number of threads.

use super::*;
use bochner_attention::{Copula, Form, Mikan, Performer, Posterior};
use bochner_numerics::operations::count;
use bochner_text::SourceBound;
use std::collections::HashSet;

fn model(of: [Variant; 3]) -> Translator<f64> {
    Translator::try_new(&Cpu::default(), &config(of, 16), Seed::new(3)).unwrap()
}

fn sources(count: usize) -> Vec<Vec<usize>> {
    let pairs = pairs(count, "sources").into_iter();
    pairs.map(|pair| pair.source).collect()
}

/// A model whose translations may end at each place, given two numbers that the end's logit is a product of.
fn ending([bias, weight]: [f64; 2]) -> Translator<f64> {
    let mut model = model(softmax());
    change(&mut model, |name, values| match name {
        "decoder.norm.beta" => values[0] = bias,
        "embedding.weight" => values[END * 16] = weight,
        _ => {}
    });
    model
}

/// Translations may end at once, and the padding and the unknown token may be written.
#[test]
fn an_n_best_list_holds_distinct_translations_by_score() {
    let (model, sources) = (ending([4.0, 0.75]), sources(9));
    let search = BeamConfig {
        alpha: 0.0,
        ..beam(8)
    };
    let allowed = BeamConfig {
        min_length: 2,
        banned: vec![Vocabulary::PADDING, Vocabulary::UNKNOWN],
        no_repeat_ngram: Some(2),
        ..search.clone()
    };
    let mut forbidden = 0;
    for search in [search, allowed.clone()] {
        let best = model.translate(&sources, &search, PASS).unwrap();
        let lists = model.n_best(&sources, &search, PASS).unwrap();
        assert_eq!(lists.len(), sources.len());
        for (list, best) in lists.into_iter().zip(best) {
            let list = list.unwrap();
            assert_eq!(list[0], best.unwrap());
            assert!(list.len() > 1 && list.len() <= 8);
            assert!(list.is_sorted_by(|a, b| a.score >= b.score));
            let distinct: HashSet<_> = list.iter().map(|found| &found.tokens).collect();
            assert_eq!(distinct.len(), list.len());
            let breaks = |found: &Translation| {
                let is_banned = |token| allowed.banned.contains(token);
                let pairs: Vec<_> = found.tokens.windows(2).collect();
                let repeats = (1..pairs.len()).any(|at| pairs[..at].contains(&pairs[at]));
                found.tokens.is_empty() || found.tokens.iter().any(is_banned) || repeats
            };
            let broken = list.iter().any(breaks);
            assert!(!(broken && search == allowed));
            forbidden += usize::from(broken);
        }
    }
    assert_eq!(forbidden, 9);
}

/// A last batch of one sentence, batches that are full, and beams so wide that a batch has fewer sentences.
#[test]
fn sentences_translated_together_are_what_each_is_alone() {
    let (model, sources) = (model(softmax()), sources(33));
    for width in [1, 3] {
        let alone: Vec<_> = sources
            .iter()
            .map(|source| translated(&model, source, width))
            .collect();
        for count in [32, 33] {
            let together = model.translate(&sources[..count], &beam(width), PASS);
            let together = together.unwrap();
            assert_eq!(together.len(), count);
            for (found, alone) in together.into_iter().zip(&alone) {
                let found = found.unwrap();
                assert_eq!(found.tokens, alone.tokens, "beam {width}");
                assert!((found.log_prob - alone.log_prob).abs() < 1e-9);
            }
        }
    }
}

/// Mechanisms that draw, keep sums or share keys; several batches, and a single one.
#[test]
fn threads_change_no_bit_of_a_translation() {
    let unconditional = Mikan {
        points: 4,
        posterior: Posterior::Unconditional,
        copula: Copula::Free,
        ..Mikan::default()
    };
    let sums = IkanDirect {
        points: 4,
        form: Form::LinearTime,
        ..IkanDirect::default()
    };
    let drawing = [
        Mikan::default().into(),
        unconditional.into(),
        softmax()[0].clone(),
    ];
    let sums = [
        Performer::default().into(),
        sums.into(),
        Performer::default().into(),
    ];
    for model in [softmax(), drawing, sums].map(model) {
        for (count, width) in [(40, 1), (40, 5)] {
            let translate = || model.translate(&sources(count), &beam(width), PASS);
            let on = |threads| {
                let found = on_threads(threads, translate).unwrap().into_iter();
                found.map(Result::unwrap).collect::<Vec<_>>()
            };
            let one = on(1);
            assert!(one.iter().any(|found| !found.tokens.is_empty()));
            assert_eq!(on(3), one, "beam {width}");
        }
    }
}

/// Searches that end leave their rows to the others, in whichever order they end; where a step was refused, all would be
/// searched again.
#[test]
fn sentences_together_cost_what_each_costs_alone() {
    let model = ending([1.0, 1.5]);
    let sources = [
        vec![5, 5, 4, 8],
        vec![4, 4, 4, 9],
        vec![8, 5, 5, 9],
        vec![6, 8, 4, 7],
    ];
    let reversed: Vec<_> = sources.iter().rev().cloned().collect();
    for width in [1, 3] {
        let each = sources
            .each_ref()
            .map(|source| count(|| translated(&model, source, width)));
        assert!(
            each.iter()
                .any(|(found, _)| found.tokens.len() > each[1].0.tokens.len())
        );
        let costs: u64 = each.iter().map(|(_, cost)| cost.multiply_adds).sum();
        for sources in [&sources[..], &reversed] {
            let (found, cost) = count(|| model.translate(sources, &beam(width), PASS));
            assert!(found.unwrap().iter().all(Result::is_ok));
            assert_eq!(cost.multiply_adds, costs, "beam {width}");
        }
    }
}

/// In one batch or in several, a draw is that of all sentences.
#[test]
fn no_draw_depends_on_the_place_in_the_batch() {
    let [_, itself, memory] = softmax();
    let model = model([Mikan::default().into(), itself, memory]);
    for width in [1, 5] {
        let found = model.translate(&vec![vec![4, 9, 6]; 33], &beam(width), PASS);
        let found: Vec<_> = found.unwrap().into_iter().map(Result::unwrap).collect();
        for other in &found {
            assert_eq!(other.tokens, found[0].tokens, "beam {width}");
            let off = other.log_prob - found[0].log_prob;
            assert!(off.abs() < 1e-9, "beam {width}: {off:e}");
        }
    }
}

#[test]
fn a_source_bounds_its_own_translation_whatever_its_neighbours_are() {
    let (model, sources) = (model(softmax()), sources(40));
    let source_bound = Some(SourceBound {
        per_token: 0.5,
        more: 2,
    });
    for width in [1, 3] {
        let bounded = BeamConfig {
            source_bound,
            ..beam(width)
        };
        let found = model.translate(&sources, &bounded, PASS).unwrap();
        let mut shorter = 0;
        for (source, found) in sources.iter().zip(found) {
            let max_length = source.len() / 2 + 2;
            let search = BeamConfig {
                max_length,
                ..beam(width)
            };
            let alone = model.translate(std::slice::from_ref(source), &search, PASS);
            let (found, alone) = (found.unwrap(), alone.unwrap().remove(0).unwrap());
            assert_eq!(found.tokens, alone.tokens);
            assert!(found.tokens.len() < max_length);
            shorter += usize::from(found.tokens != translated(&model, source, width).tokens);
        }
        assert!(shorter > 0);
    }
    let below = BeamConfig {
        source_bound: Some(SourceBound {
            per_token: -0.5,
            more: 2,
        }),
        ..beam(1)
    };
    assert!(matches!(
        model.translate(&sources, &below, PASS),
        Err(Error::Text(_))
    ));
}
