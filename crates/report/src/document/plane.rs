//! Points in many dimensions on the plane that shows most of them.

/// Steps of the power iteration: pictures need no more digits.
const STEPS: usize = 200;

/// The coordinates of points on their first two principal axes.
///
/// `points` holds `dimensions` numbers per point, one after another.
pub fn principal_plane(points: &[f32], dimensions: usize) -> Vec<(f64, f64)> {
    let centred = centred(points, dimensions);
    let mut covariance = covariance(&centred, dimensions);
    let first = leading(&covariance, dimensions);
    deflate(&mut covariance, &first);
    let second = leading(&covariance, dimensions);
    centred
        .chunks(dimensions.max(1))
        .map(|point| (dot(point, &first), dot(point, &second)))
        .collect()
}

fn centred(points: &[f32], dimensions: usize) -> Vec<f64> {
    let d = dimensions.max(1);
    let n = (points.len() / d).max(1) as f64;
    let mut mean = vec![0.0; d];
    for (place, &value) in points.iter().enumerate() {
        mean[place % d] += f64::from(value) / n;
    }
    let centre = |(place, &value): (usize, &f32)| f64::from(value) - mean[place % d];
    points.iter().enumerate().map(centre).collect()
}

fn covariance(centred: &[f64], d: usize) -> Vec<f64> {
    let mut covariance = vec![0.0; d * d];
    for point in centred.chunks(d.max(1)) {
        for (place, cell) in covariance.iter_mut().enumerate() {
            *cell += point[place / d] * point[place % d];
        }
    }
    covariance
}

/// The eigenvector of the largest eigenvalue; zero if the matrix is.
fn leading(matrix: &[f64], d: usize) -> Vec<f64> {
    // No symmetry of the data makes this start orthogonal to the answer but by accident.
    let mut vector: Vec<f64> = (0..d).map(|i| 1.0 + 0.1 * i as f64).collect();
    for _ in 0..STEPS {
        let mut next: Vec<f64> = matrix.chunks(d).map(|row| dot(row, &vector)).collect();
        let norm = dot(&next, &next).sqrt();
        if norm == 0.0 {
            return next;
        }
        next.iter_mut().for_each(|x| *x /= norm);
        vector = next;
    }
    vector
}

/// Takes an eigenvector's part away from a matrix.
fn deflate(matrix: &mut [f64], vector: &[f64]) {
    let d = vector.len();
    let image: Vec<f64> = matrix
        .chunks(d.max(1))
        .map(|row| dot(row, vector))
        .collect();
    let value = dot(&image, vector);
    for (place, cell) in matrix.iter_mut().enumerate() {
        *cell -= value * vector[place / d] * vector[place % d];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_shows_the_two_widest_directions() {
        // Widths 5, 3 and 1 along three axes.
        let points = [
            1.0, 0.0, 5.0, 1.0, 0.0, -5.0, 1.0, 3.0, 0.0, 1.0, -3.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0,
            0.0,
        ];
        let plane = principal_plane(&points, 3);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(close(plane[0].0.abs(), 5.0) && close(plane[0].1, 0.0));
        assert!(close(plane[2].1.abs(), 3.0) && close(plane[2].0, 0.0));
        assert!(close(plane[4].0, 0.0) && close(plane[4].1, 0.0));
    }

    #[test]
    fn one_dimension_and_no_points_are_no_trouble() {
        assert_eq!(principal_plane(&[], 3), []);
        let plane = principal_plane(&[1.0, 3.0], 1);
        assert!((plane[1].0.abs() - 1.0).abs() < 1e-9 && plane[1].1 == 0.0);
        assert_eq!(principal_plane(&[2.0, 2.0], 1), [(0.0, 0.0); 2]);
    }
}
