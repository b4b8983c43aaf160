//! A model that counts, whose explanations are known.

use super::*;
use ndarray::Array2;

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

#[test]
fn sets_come_by_size() {
    let sets: Vec<_> = all_sets(4).collect();
    assert_eq!(sets.len(), 4 + 6 + 4);
    assert_eq!(sets[..5], [vec![0], vec![1], vec![2], vec![3], vec![0, 1]]);
    assert!(sets.is_sorted_by_key(Vec::len));
}
