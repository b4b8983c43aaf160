//! Points in many dimensions on the plane that shows most of them.

use bochner_dense::ndarray::{Array2, Axis, concatenate};
use bochner_dense::symmetric_eigen;

/// The coordinates of points on their first two principal axes; zero on an axis that there is not.
///
/// `points` holds `dimensions` numbers per point, one after another. An axis points to where its coordinates have the
/// larger sum, later ones counting a little more, so that equal points give equal pictures.
pub fn principal_plane(points: &[f32], dimensions: usize) -> Vec<(f64, f64)> {
    let dimensions = dimensions.max(1);
    let rows = points.len() / dimensions;
    let values = points.iter().take(rows * dimensions).map(|&x| f64::from(x));
    let points = Array2::from_shape_vec((rows, dimensions), values.collect());
    let points = points.expect("as many numbers as rows and columns have");
    let Some(mean) = points.mean_axis(Axis(0)) else {
        return Vec::new();
    };
    let centred = points - mean;
    // One column of zeros, for points in one dimension.
    let none = Array2::zeros((rows, 1));
    let centred = concatenate![Axis(1), centred, none];
    let axes = match symmetric_eigen(centred.t().dot(&centred).view()) {
        Ok(eigen) => eigen.vectors,
        // Points that are not finite are not drawn.
        Err(_) => Array2::zeros((dimensions + 1, dimensions + 1)),
    };
    let mut coordinates = [0, 1].map(|place| {
        let axis = axes.column(dimensions - place);
        let weighted = axis
            .iter()
            .enumerate()
            .map(|(i, x)| (1.0 + 0.1 * i as f64) * x);
        let sign = if weighted.sum::<f64>() < 0.0 {
            -1.0
        } else {
            1.0
        };
        centred.dot(&axis.mapv(|x| sign * x)).into_iter()
    });
    let [first, second] = &mut coordinates;
    first.zip(second).collect()
}
