//! Assembles one graph from eight files.

use super::{CsrMatrix, GraphDefect};
use crate::Split;
use bochner_numerics::argument;

/// Validation nodes of the standard split.
const VALIDATION: usize = 500;

/// The files of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    X,
    Y,
    Tx,
    Ty,
    AllX,
    AllY,
    Graph,
    TestIndex,
}

impl Part {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Tx => "tx",
            Self::Ty => "ty",
            Self::AllX => "allx",
            Self::AllY => "ally",
            Self::Graph => "graph",
            Self::TestIndex => "test.index",
        }
    }
}

/// The contents of the files of labels and of the test index. Nothing is checked here: pins fix the
/// contents, and `tests/it/planetoid_files_are_as_described.rs` shows that they fit together.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    pub(super) y: Vec<usize>,
    pub(super) ty: Vec<usize>,
    pub(super) ally: Vec<usize>,
    pub(super) test: Vec<usize>,
    pub(super) nodes: usize,
}

impl Labels {
    /// The class of each node.
    pub(super) fn assembled(&self) -> Vec<Option<usize>> {
        let mut labels: Vec<_> = self.ally.iter().copied().map(Some).collect();
        labels.resize(self.nodes, None);
        for (&node, &label) in self.test.iter().zip(&self.ty) {
            labels[node] = Some(label);
        }
        labels
    }

    pub(super) fn standard_split(&self) -> Split {
        let training = self.y.len();
        let mut test = self.test.clone();
        test.sort_unstable();
        Split {
            train: (0..training).collect(),
            validation: (training..training + VALIDATION).collect(),
            test,
        }
    }
}

/// The features of all nodes from `x`, `tx` and `allx`.
///
/// # Errors
/// The file that does not fit to the others, and why. This check is for `allx` of Pubmed, whose contents
/// no test has seen.
pub(super) fn features(
    labels: &Labels,
    [x, tx, allx]: [&CsrMatrix; 3],
    columns: usize,
) -> Result<CsrMatrix, (Part, GraphDefect)> {
    let files = [
        (Part::X, x, labels.y.len()),
        (Part::Tx, tx, labels.test.len()),
        (Part::AllX, allx, labels.ally.len()),
    ];
    for (part, matrix, rows) in files {
        let found = [matrix.rows(), matrix.columns()];
        argument::shape("features", &[rows, columns], &found)
            .map_err(|error| (part, error.into()))?;
    }
    if let Some(row) = (0..x.rows()).find(|&row| x.row(row) != allx.row(row)) {
        let other = "allx";
        return Err((Part::X, GraphDefect::NotTheHead { row, other }));
    }
    let mut sources: Vec<_> = (0..allx.rows()).map(|row| Some((allx, row))).collect();
    sources.resize(labels.nodes, None);
    for (row, &node) in labels.test.iter().enumerate() {
        sources[node] = Some((tx, row));
    }
    Ok(CsrMatrix::gather(columns, &sources))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: usize = 507;

    /// Two training nodes, 500 validation nodes and one more; the test nodes 506 and 503; nodes 504 and
    /// 505 have no label.
    fn labels() -> Labels {
        let mut ally = vec![0; 503];
        ally[1] = 1;
        Labels {
            y: vec![0, 1],
            ty: vec![1, 0],
            ally,
            test: vec![506, 503],
            nodes: NODES,
        }
    }

    /// A matrix with one entry per row, in column 0; the values count up from `first`.
    fn rows(count: usize, first: f32) -> CsrMatrix {
        let values = (0..count).map(|i| first + i as f32).collect();
        CsrMatrix::new((count, 2), (0..=count).collect(), vec![0; count], values).unwrap()
    }

    #[test]
    fn test_rows_go_where_the_index_says_and_gaps_stay_empty() {
        let labels = labels();
        let assembled = labels.assembled();
        assert_eq!(assembled[..3], [Some(0), Some(1), Some(0)]);
        assert_eq!(assembled[502..], [Some(0), Some(0), None, None, Some(1)]);
        let parts = [&rows(2, 0.0), &rows(2, 1000.0), &rows(503, 0.0)];
        let matrix = features(&labels, parts, 2).unwrap();
        assert_eq!((matrix.rows(), matrix.entries()), (NODES, 505));
        assert_eq!(matrix.row(502).1, [502.0]);
        assert_eq!(
            (matrix.row(503).1, matrix.row(506).1),
            (&[1001.0][..], &[1000.0][..])
        );
        assert!(matrix.row(504).1.is_empty() && matrix.row(505).1.is_empty());
        let split = labels.standard_split();
        assert_eq!((split.train, split.test), (vec![0, 1], vec![503, 506]));
        assert_eq!(split.validation, (2..502).collect::<Vec<_>>());
    }

    #[test]
    fn features_that_do_not_fit_are_named() {
        let refused = |x: &CsrMatrix, tx: &CsrMatrix, allx: &CsrMatrix, columns| {
            features(&labels(), [x, tx, allx], columns).unwrap_err().0
        };
        let (x, tx, allx) = (rows(2, 0.0), rows(2, 0.0), rows(503, 0.0));
        assert_eq!(refused(&rows(3, 0.0), &tx, &allx, 2), Part::X);
        assert_eq!(refused(&x, &rows(3, 0.0), &allx, 2), Part::Tx);
        assert_eq!(refused(&x, &tx, &rows(502, 0.0), 2), Part::AllX);
        assert_eq!(refused(&rows(2, 0.5), &tx, &allx, 2), Part::X);
        assert_eq!(refused(&x, &tx, &allx, 3), Part::X);
    }
}
