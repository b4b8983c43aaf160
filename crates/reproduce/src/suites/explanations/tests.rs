//! A model that counts, whose explanations are known.

use super::*;
use ndarray::{Array2, Axis, s};

/// Predicts the genre with the most items, and attends to parents and rivals in this order and to nothing else.
struct Counts;

impl Predictor for Counts {
    fn predict(&self, sequence: &[usize]) -> Result<Option<usize>, Error> {
        let votes = |genre| {
            let own = |kind: &&usize| SESSIONS.genre(**kind) == Some(genre);
            sequence.iter().filter(own).count()
        };
        let most = (0..SESSIONS.genres).map(votes).max();
        let genres = 0..SESSIONS.genres;
        let ahead: Vec<usize> = genres.filter(|&genre| Some(votes(genre)) == most).collect();
        Ok(Some(ahead[0]).filter(|_| ahead.len() == 1))
    }

    fn attention(&self, sequence: &[usize]) -> Result<Vec<Array2<f64>>, Error> {
        let tokens = sequence.len();
        let mut weights = Array2::eye(tokens + 1);
        weights[[tokens, tokens]] = 0.1;
        for (place, &kind) in sequence.iter().enumerate() {
            if SESSIONS.genre(kind).is_some() {
                weights[[tokens, place]] = 1.0;
            }
        }
        Ok(vec![Array2::eye(tokens + 1), weights])
    }

    fn without(&self, sequence: &[usize], places: &[usize]) -> Vec<usize> {
        let left = (0..sequence.len()).filter(|place| !places.contains(place));
        left.map(|place| sequence[place]).collect()
    }
}

/// A model that counts is explained by as many parents as it is ahead by.
#[test]
fn explanations_of_a_model_that_counts_are_its_parents() {
    let sessions = SESSIONS.draw(60, Seed::new(9)).unwrap();
    for (session, number) in sessions.iter().zip(0..) {
        let mut case = Case::new(1, number);
        let seen = Seen::of(&Counts, &session.kinds, session, &mut case)
            .unwrap()
            .0;
        let lead = (session.parents.len() - session.rivals.len()) as f64;
        assert_eq!((seen[EXPLAINED], seen[PARENTS]), (1.0, 1.0), "{session:?}");
        assert_eq!((seen[SIZE], seen[SMALLEST]), (lead, 1.0), "{session:?}");
        assert!(seen.get(LONGER).is_none_or(|&longer| longer >= 0.0));
    }
}

/// All weight is on items of genres, so that without rivals the heaviest tokens are the parents; under other names the graph
/// asks for other tokens.
#[test]
fn the_baseline_takes_the_heaviest_tokens_and_the_control_other_ones() {
    let sessions = SESSIONS.draw(60, Seed::new(9)).unwrap();
    let (mut alone, mut renamed) = (0, 0.0);
    for (session, number) in sessions.iter().zip(0..) {
        let mut case = Case::new(1, number);
        let seen = Seen::of(&Counts, &session.kinds, session, &mut case)
            .unwrap()
            .0;
        renamed += seen[RENAMED];
        if session.rivals.is_empty() {
            alone += 1;
            let names = [TOP_PARENTS, OVER_TOP, TOP_CHANGES, CHAIN, LONGER];
            let by_weight = names.map(|name| seen[name]);
            assert_eq!(by_weight, [1.0, 0.0, 1.0, 1.0, 0.0], "{session:?}");
        }
    }
    assert!(alone > 10 && renamed < 48.0, "{alone} {renamed}");
}

#[test]
fn sessions_that_are_explained_are_not_those_that_were_learnt_from() {
    let [training, test] = Size::of(Scale::Smoke).draw().unwrap();
    assert_ne!(training[..test.len()], test[..]);
}

#[test]
fn the_classifier_looks_at_a_sentence_as_its_tokens_do_on_average() {
    let size = Size {
        training: 8,
        epochs: 1,
        explained: 1,
    };
    let [training, test] = size.draw().unwrap();
    let model = Sentences::trained(&size, &training).unwrap();
    let sequence = words(&test[0].kinds);
    let tokens = sequence.len();
    let share = tokens as f64 / (tokens + 1) as f64;
    for head in model.attention(&sequence).unwrap() {
        let of_tokens = head.slice(s![..tokens, ..tokens]);
        assert!(
            of_tokens
                .rows()
                .into_iter()
                .all(|row| (row.sum() - 1.0).abs() < 1e-5)
        );
        let mean = of_tokens.mean_axis(Axis(0)).unwrap();
        for place in 0..tokens {
            assert!((head[[tokens, place]] - share * mean[place]).abs() < 1e-12);
            assert_eq!(head[[place, tokens]], 0.0);
        }
        assert!((head[[tokens, tokens]] - (1.0 - share)).abs() < 1e-12);
    }
}

#[test]
fn sets_come_by_size() {
    let sets: Vec<_> = all_sets(4).collect();
    assert_eq!(sets.len(), 4 + 6 + 4);
    assert_eq!(sets[..5], [vec![0], vec![1], vec![2], vec![3], vec![0, 1]]);
    assert!(sets.is_sorted_by_key(Vec::len));
}
