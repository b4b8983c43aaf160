//! Sessions that are drawn, not read: the items that decide which one comes next are known.

use crate::Error;
use crate::draws::Draws;
use bochner_numerics::{Seed, argument};

/// Sessions in which items vote for what comes next.
///
/// The next item belongs to the genre with the most items in the session. These items, 1 to `most`, are its *parents*.
/// The *rivals*, which are fewer and may be none, are of one other genre; all other items are neutral. The order of the
/// items does not matter.
///
/// ```
/// use bochner_datasets::Sessions;
/// use bochner_numerics::Seed;
///
/// let task = Sessions { genres: 3, items: 4, neutral: 10, most: 3, bystanders: [2, 5] };
/// for session in task.draw(100, Seed::new(1))? {
///     let genre = |&place: &usize| task.genre(session.kinds[place]);
///     assert!(session.parents.iter().all(|place| genre(place) == Some(session.genre)));
///     assert!(session.parents.len() > session.rivals.len());
/// }
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// Number of genres, at least 2.
    pub genres: usize,
    /// Number of kinds of items of each genre.
    pub items: usize,
    /// Number of kinds of neutral items.
    pub neutral: usize,
    /// The most parents that there are.
    pub most: usize,
    /// The fewest and the most neutral items of a session.
    pub bystanders: [usize; 2],
}

/// A session, and what its next item rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The kinds of its items, in the order of the session; [`Sessions::genre`] tells the genre of each.
    pub kinds: Vec<usize>,
    /// The genre of the next item.
    pub genre: usize,
    /// The places of the items of that genre, in ascending order.
    pub parents: Vec<usize>,
    /// The places of the items of the other genre.
    pub rivals: Vec<usize>,
}

impl Sessions {
    /// Draws so many sessions.
    ///
    /// # Errors
    /// [`Error::Argument`] for numbers beyond their bounds.
    pub fn draw(self, count: usize, seed: Seed) -> Result<Vec<Session>, Error> {
        let genres = self.genres as f64;
        argument::in_range(self.genres > 1, "genres", genres, "at least 2")?;
        argument::at_least_one("items", self.items)?;
        argument::at_least_one("neutral", self.neutral)?;
        argument::at_least_one("most", self.most)?;
        let [fewest, most] = self.bystanders;
        let allowed = format!("at most the most, {most}");
        argument::in_range(fewest <= most, "bystanders", fewest as f64, allowed)?;
        let mut draws = Draws::new(seed.child("sessions"));
        Ok((0..count).map(|_| self.session(&mut draws)).collect())
    }

    /// The number of kinds of items.
    pub const fn kinds(self) -> usize {
        self.genres * self.items + self.neutral
    }

    /// The genre of a kind of items; `None` for a neutral one.
    pub fn genre(self, kind: usize) -> Option<usize> {
        Some(kind / self.items).filter(|&genre| genre < self.genres)
    }

    fn session(self, draws: &mut Draws) -> Session {
        let genre = draws.below(self.genres);
        let rival = (genre + 1 + draws.below(self.genres - 1)) % self.genres;
        let votes = 1 + draws.below(self.most);
        let against = draws.below(votes);
        let [fewest, most] = self.bystanders;
        let bystanders = fewest + draws.below(most - fewest + 1);
        let mut kinds = Vec::with_capacity(votes + against + bystanders);
        for (genre, count) in [(genre, votes), (rival, against)] {
            kinds.extend((0..count).map(|_| genre * self.items + draws.below(self.items)));
        }
        let first = self.genres * self.items;
        kinds.extend((0..bystanders).map(|_| first + draws.below(self.neutral)));
        for last in (1..kinds.len()).rev() {
            kinds.swap(last, draws.below(last + 1));
        }
        let of = |genre| {
            let places = 0..kinds.len();
            let own = places.filter(|&place| self.genre(kinds[place]) == Some(genre));
            own.collect()
        };
        Session {
            genre,
            parents: of(genre),
            rivals: of(rival),
            kinds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Sessions = Sessions {
        genres: 3,
        items: 2,
        neutral: 4,
        most: 3,
        bystanders: [1, 3],
    };

    #[test]
    fn the_genre_of_the_most_items_is_the_next_ones() {
        let sessions = TASK.draw(600, Seed::new(4)).unwrap();
        let mut counts = [[0; 3]; 4];
        let (mut shortest, mut longest) = (usize::MAX, 0);
        for session in &sessions {
            let votes = |genre| {
                let own = |kind: &&usize| TASK.genre(**kind) == Some(genre);
                session.kinds.iter().filter(own).count()
            };
            let others = (0..3).filter(|&genre| genre != session.genre);
            let most = others.map(votes).max();
            assert!(Some(votes(session.genre)) > most, "{session:?}");
            assert_eq!(votes(session.genre), session.parents.len());
            assert_eq!(most, Some(session.rivals.len()));
            counts[session.parents.len()][session.rivals.len()] += 1;
            shortest = shortest.min(session.kinds.len());
            longest = longest.max(session.kinds.len());
        }
        // Up to three parents, and all numbers of rivals below theirs.
        for (parents, of) in counts.iter().enumerate() {
            for (rivals, &count) in of.iter().enumerate() {
                assert_eq!(count > 0, rivals < parents, "{parents}, {rivals}");
            }
        }
        assert_eq!((shortest, longest), (2, 8));
        // Parents stand at every place, the last one among them.
        let last = |session: &&Session| session.parents.last() == Some(&(session.kinds.len() - 1));
        assert!(sessions.iter().filter(last).count() > 150);
        assert_ne!(sessions, TASK.draw(600, Seed::new(5)).unwrap());
    }

    #[test]
    fn numbers_beyond_their_bounds_are_refused() {
        for wrong in [
            Sessions { genres: 1, ..TASK },
            Sessions { items: 0, ..TASK },
            Sessions { neutral: 0, ..TASK },
            Sessions { most: 0, ..TASK },
            Sessions {
                bystanders: [3, 2],
                ..TASK
            },
        ] {
            let refused = wrong.draw(1, Seed::new(1));
            assert!(matches!(refused, Err(Error::Argument(_))), "{wrong:?}");
        }
    }
}
