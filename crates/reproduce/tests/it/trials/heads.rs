//! Measures of the heads of graph attention, beside the artefacts of the same heads.

use super::of_smoke;
use bochner_datasets::PlantedPartition;
use bochner_numerics::Seed;
use bochner_report::row::{Heads, Spread};
use bochner_reproduce::suites::FIGURE_5;
use bochner_reproduce::trial::Moment;
use bochner_reproduce::trial::nodes::heads::{
    CORRELATION, DEVIATION, DISTANCE, GROWTH, HEADS_REJECTED, KEPT_SIZE, KURTOSIS,
    LARGEST_KURTOSIS, LEAST_START, REJECTED, REJECTED_AT_START, SIZE, START, WITHIN,
};

/// The graph of scale smoke.
const PLANTED: PlantedPartition = PlantedPartition {
    nodes: 700,
    edges: 1400,
    classes: 7,
    features: 350,
    words: 18,
    same_class: 0.8,
    own_words: 0.4,
};

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

#[test]
fn measures_are_those_of_the_heads_that_are_kept() {
    let (source, unit) = of_smoke(&FIGURE_5, "planted", "MIKAN");
    let mut trial = source.start(&unit).unwrap();
    let look = |trial: &dyn bochner_reproduce::Trial| {
        let found = trial.findings(Moment::Last, &|| false).unwrap();
        (found.measures, found.artefacts)
    };
    let (start, _) = look(&*trial);
    assert_eq!(start[KEPT_SIZE], 1.0);
    assert!((start[START] - start[CORRELATION]).abs() < 1e-12);
    assert_eq!(start[HEADS_REJECTED], start[REJECTED_AT_START]);
    for _ in 0..5 {
        trial.model_mut().epoch().unwrap();
    }
    let (seen, artefacts) = look(&*trial);
    let close = |got: f64, want: f64, most: f64| {
        assert!((got - want).abs() <= most, "{got} {want}: {seen:?}");
    };

    // The copula.
    let heads: Heads = artefacts.get("heads").unwrap();
    let matrix = heads.correlation.unwrap();
    let side = matrix.len().isqrt();
    let places = || {
        matrix
            .iter()
            .enumerate()
            .map(|(i, &c)| (i % side == i / side, f64::from(c)))
    };
    let apart: Vec<f64> = places()
        .filter(|(own, _)| !own)
        .map(|(_, c)| c.abs())
        .collect();
    let distance = places().map(|(own, c)| (c - f64::from(u8::from(own))).powi(2));
    close(seen[CORRELATION], mean(apart.into_iter()), 1e-6);
    close(seen[DISTANCE], distance.sum::<f64>().sqrt(), 1e-6);
    close(
        seen[GROWTH],
        seen[CORRELATION] / seen[START].max(LEAST_START),
        1e-12,
    );
    assert!(seen[WITHIN] >= seen[CORRELATION] && seen[CORRELATION] != start[CORRELATION]);

    // The densities, of which other points are drawn.
    let points = heads.points.unwrap().concat();
    let size = mean(points.iter().map(|&x| f64::from(x).powi(2))).sqrt();
    close(seen[SIZE], size, 0.1 * size);
    close(seen[KEPT_SIZE], seen[SIZE] / start[SIZE], 1e-12);
    assert_eq!(
        seen[REJECTED],
        f64::from(u8::from(seen[HEADS_REJECTED] > 0.0))
    );
    assert!(seen[LARGEST_KURTOSIS].abs() >= seen[KURTOSIS].abs());

    // The weights of the edges, with one from each node to itself.
    let spread: Spread = artefacts.get("spread").unwrap();
    let edges = PLANTED.draw(Seed::new(5)).unwrap().edges.undirected();
    let mut degrees = vec![1_u32; PLANTED.nodes];
    edges.iter().flatten().for_each(|&node| degrees[node] += 1);
    let most = mean(degrees.iter().map(|&degree| f64::from(degree).ln()));
    close(spread.uniform, most, 1e-9);
    assert!(
        spread
            .entropies
            .iter()
            .all(|&nats| 0.0 < nats && nats < most + 1e-6)
    );
    let cells = spread.histogram.iter().zip(0..);
    let middles = cells.map(|(&count, cell)| count as f64 * (0.5 + f64::from(cell)) / 40.0);
    let count = spread.histogram.iter().sum::<usize>();
    assert_eq!(count, PLANTED.nodes + 2 * edges.len());
    close(
        spread.deviation,
        middles.sum::<f64>() / count as f64,
        0.5 / 40.0,
    );
    assert_eq!(seen[DEVIATION], spread.deviation);
}
