//! Limits of depth: exact separation ranks of small networks.

use crate::Error;
use crate::study::{Finding, Measure, SEED, Study};
use bochner_interpret::{
    ModularNetwork, Readout, SeparationRank, log3_separation_bound, separation_rank,
};
use bochner_numerics::Seed;
use bochner_report::Scale;
use ndarray::Array3;
use rand::Rng;
use std::time::Instant;

/// The suite.
pub static DEPTH: Study = Study {
    name: "depth",
    title: "Limits of depth",
    part: "statement",
    opening,
    parts: &[ranks, one_width_more],
};

/// Width, heads, depth, and the rank with three tokens on either side: the values that were known before this suite.
const KNOWN: [([usize; 3], usize); 17] = [
    ([1, 1, 1], 2),
    ([2, 1, 1], 3),
    ([3, 1, 1], 4),
    ([4, 1, 1], 5),
    ([1, 1, 2], 5),
    ([2, 1, 2], 18),
    ([3, 1, 2], 49),
    ([4, 1, 2], 110),
    ([1, 1, 3], 14),
    ([2, 1, 3], 232),
    ([2, 2, 1], 3),
    ([2, 2, 2], 17),
    ([2, 2, 3], 215),
    ([4, 2, 1], 5),
    ([4, 2, 2], 107),
    ([6, 2, 1], 7),
    ([8, 2, 1], 9),
];

/// The largest rank of the table, and a width whose rank was known to lie above 500; beyond scale smoke.
const LARGER: ([usize; 3], usize) = ([6, 2, 2], 379);
const ABOVE_500: [usize; 3] = [8, 2, 2];

/// One width more than the table has, at depth 2 and with one head.
const ONE_MORE: [usize; 3] = [6, 1, 2];

/// Seconds in which its rank must be found.
const TWO_MINUTES: f64 = 120.0;

fn opening(_: Scale) -> String {
    "Attention without softmax, activations, norms and residual stream, with random whole numbers modulo 1,000,003 for \
     maps and tokens, three tokens on either side; one component of the first token is read out. A rank is exact where \
     the grid is larger than it. Everything is deterministic."
        .to_owned()
}

fn seed(draw: u64) -> Seed {
    Seed::new(SEED).child("depth").nth(draw)
}

/// The rank of a network on a grid that is larger than `expected`.
fn rank(shape: [usize; 3], expected: usize, draw: u64) -> Result<SeparationRank, Error> {
    Ok(separation_rank(shape, expected + 8, seed(draw))?)
}

fn named([width, heads, depth]: [usize; 3]) -> String {
    format!("width {width}, heads {heads}, depth {depth}")
}

fn ranks(scale: Scale) -> Result<Finding, Error> {
    let draws = match scale {
        Scale::Smoke => 1,
        _ => 3,
    };
    let more = (scale != Scale::Smoke).then_some(LARGER);
    let mut measures = Vec::new();
    let mut above = 0;
    for (shape, expected) in KNOWN.into_iter().chain(more) {
        for draw in 0..draws {
            let found = rank(shape, expected, draw)?;
            let what = format!("rank, {}, draw {draw}", named(shape));
            measures.push(Measure::shown(what, found.rank as f64).exactly(expected as f64));
            let [width, heads, depth] = shape;
            let bound = log3_separation_bound(width, heads, depth as u32);
            above += usize::from((found.rank as f64).ln() / 3f64.ln() > bound + 1e-12);
        }
    }
    if scale != Scale::Smoke {
        let found = separation_rank(ABOVE_500, 1300, seed(0))?;
        let what = format!("rank, {}", named(ABOVE_500));
        measures.push(Measure::shown(what, found.rank as f64).at_least(501.0));
        let what = "its grid is larger than it (1 = yes)";
        let exact = u8::from(!found.is_lower_bound());
        measures.push(Measure::shown(what, f64::from(exact)).at_least(1.0));
    }
    let small = separation_rank([4, 1, 2], 40, seed(0))?;
    let flagged = f64::from(u8::from(small.is_lower_bound()));
    measures.extend([
        Measure::shown("ranks above (d + H)^((3^L - 1) / 2)", above as f64).at_most(0.0),
        Measure::shown(
            "control, a grid of 40 for a rank of 110: rank",
            small.rank as f64,
        )
        .exactly(40.0),
        Measure::shown(
            "control: it says that it is a lower bound (1 = yes)",
            flagged,
        )
        .at_least(1.0),
    ]);
    Ok(Finding {
        number: 1,
        title: "separation ranks are those of the table",
        statement: "The ranks are the known ones to the integer, whatever the random maps, and none lies above the \
                    bound of the theorem's upper side. Control: on a grid smaller than the rank the number found is \
                    the grid's size and is said to be a lower bound.",
        cases: measures.len(),
        measures,
        ..Finding::default()
    })
}

fn one_width_more(scale: Scale) -> Result<Finding, Error> {
    let grid = 512;
    let clock = Instant::now();
    let found = separation_rank(ONE_MORE, grid, seed(0))?;
    let seconds = clock.elapsed().as_secs_f64();
    let time = Measure::shown("seconds of the first draw", seconds);
    let mut measures = vec![
        Measure::shown("rank, first draw", found.rank as f64).within(111.0, grid as f64 - 1.0),
        // Times are not judged at scale smoke, which runs on any machine.
        match scale {
            Scale::Smoke => time,
            _ => time.at_most(TWO_MINUTES),
        },
    ];
    if scale != Scale::Smoke {
        let again = separation_rank(ONE_MORE, grid, seed(1))?;
        let other = over_another_prime(grid)?;
        let first = found.rank as f64;
        measures.extend([
            Measure::shown("rank, second draw", again.rank as f64).exactly(first),
            Measure::shown("rank modulo 2^31 - 1", other.rank as f64).exactly(first),
        ]);
    }
    Ok(Finding {
        number: 2,
        title: "depth 2 at width 6, one head",
        statement: "The rank, which the table does not have, is found on a grid of 512, larger than it, in less than \
                    two minutes. Control: other random maps, and another prime, give the same number.",
        cases: measures.len(),
        measures,
        ..Finding::default()
    })
}

fn over_another_prime(grid: usize) -> Result<SeparationRank, Error> {
    const PRIME: u64 = 2_147_483_647;
    let network = ModularNetwork::random(ONE_MORE, PRIME, seed(2))?;
    let [a, b] = inputs(grid, ONE_MORE[0], PRIME);
    Ok(network.separation_rank(a.view(), b.view(), FIRST)?)
}

const FIRST: Readout = Readout {
    token: 0,
    component: 0,
};

/// Settings of the three tokens on either side.
fn inputs(grid: usize, width: usize, prime: u64) -> [Array3<i64>; 2] {
    let mut stream = seed(3).stream("tokens");
    [(); 2].map(|()| {
        let mut token = || stream.gen_range(0..prime as i64);
        Array3::from_shape_simple_fn((grid, 3, width), &mut token)
    })
}
