//! Pictures of what heads have learnt.

use crate::report::{Axis, Chart, Marks, Picture, Series, principal_plane};
use crate::store::Heads;

/// The spectral points of each head on the first two principal axes of all of them.
pub(super) fn points(heads: &Heads) -> Option<Picture> {
    let points = heads.points.as_ref()?;
    let plane = principal_plane(&points.concat(), heads.dimensions);
    let mut rest = plane.as_slice();
    let series = points.iter().enumerate().map(|(i, head)| {
        let (own, others) = rest.split_at((head.len() / heads.dimensions.max(1)).min(rest.len()));
        rest = others;
        Series {
            name: format!("{}", i + 1),
            marks: Marks::Dots,
            points: own.to_vec(),
        }
    });
    Some(Picture::Chart(Chart {
        title: "spectral points by head".into(),
        x: "first axis".into(),
        y: Axis::Linear("second axis".into()),
        series: series.collect(),
    }))
}

/// The correlation of the heads, with numbers.
pub(super) fn correlation(heads: &Heads) -> Option<Picture> {
    let values = heads.correlation.clone()?;
    let side = values.len().isqrt();
    (side * side == values.len()).then(|| Picture::Correlation {
        title: "correlation of the heads, mean over the latent dimensions".into(),
        side,
        values,
    })
}
