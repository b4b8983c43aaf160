//! Asking a model which sets of tokens a prediction rests on.

use super::models::Predictor;
use super::{LARGEST, LEVEL, SAMPLES};
use crate::Error;
use bochner_interpret::{
    CausalStructure, Correlations, FisherZ, ValueCovariance, smallest_explanation,
};
use ndarray::Array2;
use std::collections::BTreeMap;

/// A prediction, and what was asked about it.
pub(super) struct Asked<'a> {
    pub(super) model: &'a dyn Predictor,
    pub(super) sequence: &'a [usize],
    pub(super) predicted: Option<usize>,
    pub(super) answers: BTreeMap<Vec<usize>, bool>,
}

impl Asked<'_> {
    /// Whether the prediction changes without the tokens at these places.
    pub(super) fn changes(&mut self, places: &[usize]) -> Result<bool, Error> {
        let mut places = places.to_vec();
        places.sort_unstable();
        if let Some(answer) = self.answers.get(&places) {
            return Ok(*answer);
        }
        let masked = self.model.without(self.sequence, &places);
        let answer = self.model.predict(&masked)? != self.predicted;
        self.answers.insert(places, answer);
        Ok(answer)
    }

    /// The first of some sets without which the prediction changes, and how many were asked for.
    pub(super) fn first(
        &mut self,
        sets: impl Iterator<Item = Vec<usize>>,
    ) -> Result<Option<Found>, Error> {
        for (set, asked) in sets.zip(1..) {
            if self.changes(&set)? {
                return Ok(Some(Found { set, asked }));
            }
        }
        Ok(None)
    }

    /// The smallest set that the graph of a head explains the prediction by, and how many heads have no graph. Node i
    /// is the token at `places[i]`.
    pub(super) fn explain(
        &mut self,
        heads: &[Array2<f64>],
        places: &[usize],
    ) -> Result<(Option<Found>, usize), Error> {
        let (mut best, mut asked, mut without) = (None::<Vec<usize>>, 0, 0);
        for weights in heads {
            let larger = best.as_ref().map_or(LARGEST, |set| set.len() - 1);
            let read = Correlations::of_attention(weights.view(), ValueCovariance::Identity);
            let correlations = match read {
                Ok(correlations) => correlations,
                Err(
                    bochner_interpret::Error::NearlyUniform { .. }
                    | bochner_interpret::Error::RankDeficient { .. },
                ) => {
                    without += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if larger == 0 {
                continue;
            }
            let test = FisherZ::new(&correlations, SAMPLES, LEVEL)?;
            let graph = CausalStructure::find(&test, Some(SAMPLES - 4))?.graph;
            let found = smallest_explanation(&graph, places.len(), larger, |set| {
                asked += 1;
                let set: Vec<usize> = set.iter().map(|&node| places[node]).collect();
                self.changes(&set)
            })?;
            best = found.or(best);
        }
        let own = |set: Vec<usize>| set.into_iter().map(|node| places[node]).collect();
        Ok((
            best.map(|set| Found {
                set: own(set),
                asked,
            }),
            without,
        ))
    }
}

/// A set without which a prediction changes, and how many sets were asked for until it was found.
pub(super) struct Found {
    pub(super) set: Vec<usize>,
    pub(super) asked: usize,
}

/// All sets of places by size, up to [`LARGEST`].
pub(super) fn all_sets(places: usize) -> impl Iterator<Item = Vec<usize>> {
    let of_size =
        move |size: u32| (1_usize..1 << places).filter(move |set| set.count_ones() == size);
    let sets = (1..=LARGEST as u32).flat_map(of_size);
    sets.map(move |set| {
        (0..places)
            .filter(|place| (set >> place) & 1 == 1)
            .collect()
    })
}
