//! Points in many dimensions on a plane where near ones stay near: t-SNE, exact.
//!
//! L. van der Maaten and G. Hinton, Visualizing Data using t-SNE, 2008. It starts from the principal
//! plane instead of from random places, so that the same points give the same picture.

use super::principal_plane;

/// How many neighbours count, roughly; fewer where there are few points.
const PERPLEXITY: f64 = 30.0;

/// Halvings of the range in which a precision is looked for.
const HALVINGS: usize = 60;

/// Steps of the descent, in the first of which near points are pulled together the more.
const STEPS: usize = 750;
const EARLY_STEPS: usize = 250;
const EARLY_EXAGGERATION: f64 = 12.0;

/// The standard deviation of the first axis at the start.
const START: f64 = 1e-4;

type Place = [f64; 2];

/// Places of points on a plane such that neighbours are neighbours; distances mean little else.
///
/// `points` holds `dimensions` numbers per point, one after another.
pub fn neighbour_plane(points: &[f32], dimensions: usize) -> Vec<(f64, f64)> {
    let start = principal_plane(points, dimensions);
    let n = start.len();
    if n < 4 {
        return start;
    }
    let neighbours = affinities(&squared_distances(points, dimensions), n);
    let places = descend(&neighbours, small(&start));
    places.into_iter().map(|[x, y]| (x, y)).collect()
}

/// Between all pairs, `[n, n]`, in units of their mean.
fn squared_distances(points: &[f32], dimensions: usize) -> Vec<f64> {
    let points = || points.chunks(dimensions);
    let squared = |a: &[f32], b: &[f32]| {
        let apart = a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b));
        apart.map(|apart| apart * apart).sum::<f64>()
    };
    let all = points().flat_map(|a| points().map(move |b| squared(a, b)));
    let mut all: Vec<f64> = all.collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    if mean > 0.0 {
        all.iter_mut().for_each(|x| *x /= mean);
    }
    all
}

/// How much two points are neighbours of one another, `[n, n]`, adding up to one.
fn affinities(distances: &[f64], n: usize) -> Vec<f64> {
    let perplexity = PERPLEXITY.min((n - 1) as f64 / 3.0);
    let rows = distances.chunks(n).enumerate();
    let of_each: Vec<f64> = rows
        .flat_map(|(i, row)| neighbourhood(row, i, perplexity))
        .collect();
    let both = |place: usize| of_each[place] + of_each[place % n * n + place / n];
    (0..n * n)
        .map(|place| both(place) / (2 * n) as f64)
        .collect()
}

/// The weights of a point's neighbours: those of a Gaussian whose entropy is that of `perplexity`
/// equal ones, or as near as the distances allow.
fn neighbourhood(distances: &[f64], own: usize, perplexity: f64) -> Vec<f64> {
    let (mut low, mut high) = (-40.0_f64, 60.0_f64);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if entropy(&weights(distances, own, middle.exp())) > perplexity.ln() {
            low = middle;
        } else {
            high = middle;
        }
    }
    weights(distances, own, low.exp())
}

fn weights(distances: &[f64], own: usize, precision: f64) -> Vec<f64> {
    let others = || distances.iter().enumerate().filter(|&(j, _)| j != own);
    let nearest = others().fold(f64::INFINITY, |m, (_, &d)| m.min(d));
    let mut weights = vec![0.0; distances.len()];
    for (j, distance) in others() {
        weights[j] = (-precision * (distance - nearest)).exp();
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

fn entropy(weights: &[f64]) -> f64 {
    let positive = weights.iter().filter(|&&w| w > 0.0);
    -positive.map(|w| w * w.ln()).sum::<f64>()
}

/// The places, so near one another that every pair feels every other.
fn small(plane: &[(f64, f64)]) -> Vec<Place> {
    let squares = plane.iter().map(|(x, _)| x * x).sum::<f64>();
    let deviation = (squares / plane.len() as f64).sqrt();
    let scale = START / deviation.max(f64::MIN_POSITIVE);
    plane.iter().map(|(x, y)| [x * scale, y * scale]).collect()
}

/// Gradient descent with momentum and a gain for each coordinate.
fn descend(neighbours: &[f64], mut places: Vec<Place>) -> Vec<Place> {
    let rate = (places.len() as f64 / EARLY_EXAGGERATION / 4.0).max(50.0);
    let mut velocities = vec![[0.0; 2]; places.len()];
    let mut gains = vec![[1.0_f64; 2]; places.len()];
    for step in 0..STEPS {
        let (exaggeration, momentum) = match step < EARLY_STEPS {
            true => (EARLY_EXAGGERATION, 0.5),
            false => (1.0, 0.8),
        };
        let slopes = gradient(neighbours, &places, exaggeration);
        for (i, slope) in slopes.iter().enumerate() {
            for axis in 0..2 {
                let (velocity, gain) = (&mut velocities[i][axis], &mut gains[i][axis]);
                let onwards = *velocity * slope[axis] < 0.0;
                *gain = if onwards { *gain + 0.2 } else { *gain * 0.8 }.max(0.01);
                *velocity = momentum * *velocity - rate * *gain * slope[axis];
                places[i][axis] += *velocity;
            }
        }
    }
    places
}

/// Of the Kullback-Leibler divergence of the plane's neighbours from those wanted.
fn gradient(neighbours: &[f64], places: &[Place], exaggeration: f64) -> Vec<Place> {
    let n = places.len();
    let closeness = |i: usize, j: usize| {
        let [x, y] = difference(places, i, j);
        1.0 / (1.0 + x * x + y * y)
    };
    let total = (0..n).map(|i| (0..n).map(|j| closeness(i, j)).sum::<f64>());
    let total = total.sum::<f64>() - n as f64;
    let slope = |i: usize| {
        (0..n).fold([0.0; 2], |[x, y], j| {
            let close = closeness(i, j);
            let pull = 4.0 * close * (exaggeration * neighbours[i * n + j] - close / total);
            let [dx, dy] = difference(places, i, j);
            [x + pull * dx, y + pull * dy]
        })
    };
    (0..n).map(slope).collect()
}

fn difference(places: &[Place], i: usize, j: usize) -> Place {
    [places[i][0] - places[j][0], places[i][1] - places[j][1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, standard_normal};

    const DIMENSIONS: usize = 5;

    /// `each` points around each of three places, all in the same cube on the first two axes.
    fn clusters(each: usize) -> Vec<f32> {
        let mut stream = Seed::new(3).stream("points");
        let cluster = |place: usize| place / (each * DIMENSIONS);
        let spread = |axis: usize| if axis < 2 { 3.0 } else { 0.3 };
        (0..3 * each * DIMENSIONS)
            .map(|place| {
                let axis = place % DIMENSIONS;
                let centre = if axis == 2 + cluster(place) { 4.0 } else { 0.0 };
                let draw: f32 = standard_normal(&mut stream);
                centre + spread(axis) * draw
            })
            .collect()
    }

    fn nearest(plane: &[(f64, f64)], i: usize) -> usize {
        let distance = |j: usize| (plane[i].0 - plane[j].0).hypot(plane[i].1 - plane[j].1);
        let others = (0..plane.len()).filter(|&j| j != i);
        others
            .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
            .unwrap()
    }

    fn strangers(plane: &[(f64, f64)], each: usize) -> usize {
        let strange = |&i: &usize| nearest(plane, i) / each != i / each;
        (0..plane.len()).filter(strange).count()
    }

    #[test]
    fn neighbours_are_kept_where_the_principal_plane_mixes_them() {
        let points = clusters(40);
        assert!(strangers(&principal_plane(&points, DIMENSIONS), 40) > 20);
        let plane = neighbour_plane(&points, DIMENSIONS);
        assert!(
            strangers(&plane, 40) <= 3,
            "{} strangers",
            strangers(&plane, 40)
        );
    }

    #[test]
    fn neighbourhoods_have_the_perplexity() {
        let points = clusters(20);
        let distances = squared_distances(&points, DIMENSIONS);
        for (i, row) in distances.chunks(60).enumerate() {
            let weights = neighbourhood(row, i, 7.0);
            assert!((entropy(&weights).exp() - 7.0).abs() < 1e-6);
            assert_eq!(weights[i], 0.0);
        }
        let all = affinities(&distances, 60);
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(all[1], all[60]);
    }

    #[test]
    fn the_gradient_is_that_of_the_divergence() {
        let neighbours = affinities(&squared_distances(&clusters(3), DIMENSIONS), 9);
        let places = small(&principal_plane(&clusters(3), DIMENSIONS));
        let places: Vec<Place> = places.iter().map(|[x, y]| [x * 1e4, y * 1e4]).collect();
        let divergence = |places: &[Place]| {
            let pairs = (0..81).filter(|place| place / 9 != place % 9);
            let closeness = |place: usize| {
                let [x, y] = difference(places, place / 9, place % 9);
                1.0 / (1.0 + x * x + y * y)
            };
            let total: f64 = pairs.clone().map(closeness).sum();
            let of = |place: usize| {
                let p = neighbours[place];
                p * (p * total / closeness(place)).ln()
            };
            pairs.map(of).sum::<f64>()
        };
        for (i, slope) in gradient(&neighbours, &places, 1.0).iter().enumerate() {
            for axis in 0..2 {
                let moved = |by: f64| {
                    let mut places = places.clone();
                    places[i][axis] += by;
                    divergence(&places)
                };
                let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope[axis] - want).abs() < 1e-8, "{i}, {axis}");
            }
        }
    }

    #[test]
    fn points_that_coincide_and_few_points_are_no_trouble() {
        let finite = |plane: Vec<(f64, f64)>| plane.iter().all(|(x, y)| (x + y).is_finite());
        assert!(finite(neighbour_plane(&[1.0; 30], 3)));
        let mut points = clusters(10);
        points.extend_from_within(..50);
        points.extend([1e30; DIMENSIONS]);
        assert!(finite(neighbour_plane(&points, DIMENSIONS)));
        assert_eq!(neighbour_plane(&[], 3), []);
        assert_eq!(neighbour_plane(&[1.0, 3.0], 1).len(), 2);
    }
}
