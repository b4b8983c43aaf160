//! The confusion matrix of a classifier, and the scores that follow from it.

use super::largest;
use crate::Error;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2};

/// The numbers of examples of each class, by the class that was predicted for them.
///
/// ```
/// use bochner_models::assessment::{Average, ConfusionMatrix};
///
/// let (classes, predicted) = ([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]);
/// let confusion = ConfusionMatrix::new(&classes, &predicted, 2)?;
/// assert_eq!(confusion.counts(), bochner_models::ndarray::arr2(&[[2, 1], [1, 1]]));
/// assert_eq!(confusion.accuracy(), 0.6);
/// assert_eq!(confusion.scores()[1].recall, 0.5);
/// assert!((confusion.average(Average::Macro).f1 - 7.0 / 12.0).abs() < 1e-15);
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfusionMatrix {
    counts: Array2<usize>,
}

/// Precision, recall and their harmonic mean.
///
/// With $n_{ij}$ examples of class $i$ that are taken for class $j$:
///
/// $$ P_c = \frac{n_{cc}}{\sum_i n_{ic}}, \qquad R_c = \frac{n_{cc}}{\sum_j n_{cj}}, \qquad
/// F_c = \frac{2 n_{cc}}{\sum_i n_{ic} + \sum_j n_{cj}} $$
///
/// A quotient of zeros is 0, as by default in scikit-learn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// The share of the examples taken for a class that are of it.
    pub precision: f64,
    /// The share of the examples of a class that are taken for it.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
}

/// The way in which the scores of all classes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The mean over the classes, each with the same weight. Classes that neither occur nor are predicted are left out.
    Macro,
    /// The scores of all examples together. All three are the accuracy.
    Micro,
    /// The mean over the classes, each weighted by its number of examples.
    Weighted,
}

impl ConfusionMatrix {
    /// Counts examples by their classes and the predicted classes, `[N]` both; there are `count` classes.
    ///
    /// # Errors
    /// [`Error::Argument`] without examples, unless there is one prediction for each, or for a class that there is not.
    pub fn new(classes: &[usize], predicted: &[usize], count: usize) -> Result<Self, Error> {
        argument::at_least_one("classes", classes.len())?;
        argument::shape("predicted", &[classes.len()], &[predicted.len()])?;
        let mut counts = Array2::zeros((count, count));
        for (&class, &predicted) in classes.iter().zip(predicted) {
            argument::index("classes", class, count)?;
            argument::index("predicted", predicted, count)?;
            counts[[class, predicted]] += 1;
        }
        Ok(Self { counts })
    }

    /// Counts examples by their classes, `[N]`, and the largest of their logits, `[N, classes]`, the first of equal ones.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); [`Error::Argument`] for a logit that is not finite.
    pub fn of_rows(logits: ArrayView2<f32>, classes: &[usize]) -> Result<Self, Error> {
        argument::finite("logits", logits.shape(), logits)?;
        let predicted: Vec<usize> = logits.rows().into_iter().map(largest).collect();
        Self::new(classes, &predicted, logits.ncols())
    }

    /// The counts, `[classes, classes]`: a row holds the examples of a class, a column those taken for it.
    pub fn counts(&self) -> ArrayView2<'_, usize> {
        self.counts.view()
    }

    /// The share of examples whose class is predicted.
    pub fn accuracy(&self) -> f64 {
        self.average(Average::Micro).recall
    }

    /// The scores of each class, in their order; zeros for one that neither occurs nor is predicted.
    pub fn scores(&self) -> Vec<Scores> {
        (0..self.counts.nrows())
            .map(|class| scores(self.hits_and_totals(class)))
            .collect()
    }

    /// The scores of all classes as one.
    pub fn average(&self, average: Average) -> Scores {
        let classes = 0..self.counts.nrows();
        let weight = |class| {
            let [_, of_class, taken] = self.hits_and_totals(class);
            match average {
                Average::Macro => f64::from(u8::from(of_class + taken > 0)),
                Average::Micro | Average::Weighted => of_class as f64,
            }
        };
        let total: f64 = classes.clone().map(weight).sum();
        let mean = |score: fn(&Scores) -> f64| {
            let scores = self.scores();
            let each = classes
                .clone()
                .map(|class| weight(class) * score(&scores[class]));
            each.sum::<f64>() / total
        };
        match average {
            Average::Micro => {
                let hits = self.counts.diag().sum();
                scores([hits, self.counts.sum(), self.counts.sum()])
            }
            Average::Macro | Average::Weighted => Scores {
                precision: mean(|scores| scores.precision),
                recall: mean(|scores| scores.recall),
                f1: mean(|scores| scores.f1),
            },
        }
    }

    /// The numbers of examples of a class that are taken for it, of all that are of it, and of all that are taken for it.
    fn hits_and_totals(&self, class: usize) -> [usize; 3] {
        [
            self.counts[[class, class]],
            self.counts.row(class).sum(),
            self.counts.column(class).sum(),
        ]
    }
}

fn scores([hits, of_class, taken]: [usize; 3]) -> Scores {
    let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
    Scores {
        precision: share(hits, taken),
        recall: share(hits, of_class),
        f1: share(2 * hits, of_class + taken),
    }
}
