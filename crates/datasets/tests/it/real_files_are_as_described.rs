//! The facts about the regression sets, checked on the files in the directory `BOCHNER_DATA`.

use crate::store;
use bochner_datasets::regression::{co2, concrete, housing, parkinsons};
use bochner_datasets::{
    AIRLINE_PASSENGERS, DataStore, MinMax, Origin, Protocol, RegressionData, RegressionSet, Rows,
    Table, load, manifest,
};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

fn parsed<T>(
    store: &DataStore,
    file: &str,
    parse: fn(&str, &[u8]) -> Result<T, bochner_datasets::Error>,
) -> T {
    store.load(manifest::entry(file).unwrap(), parse).unwrap().0
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()
}

fn bits(row: &[f64]) -> Vec<u64> {
    row.iter().map(|v| v.to_bits()).collect()
}

fn each(check: impl Fn(RegressionSet, Protocol, RegressionData)) {
    let store = store();
    for set in RegressionSet::ALL {
        for protocol in Protocol::REGRESSION {
            check(
                set,
                protocol,
                load(set, protocol, Rows::All, &store).unwrap(),
            );
        }
    }
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn every_file_that_is_here_is_the_pinned_one() {
    let store = store();
    let mut missing = Vec::new();
    for entry in manifest::entries() {
        match store.fetch(entry) {
            Ok(stored) => assert_eq!(stored.origin, Origin::Directory),
            Err(bochner_datasets::Error::Unavailable { .. }) => missing.push(&*entry.file),
            Err(error) => panic!("{error}"),
        }
    }
    // The features of Pubmed and the full IWSLT 2014 are too large to be kept beside the others.
    let allowed = ["pubmed/ind.pubmed.allx", "iwslt14-full/"];
    let is_allowed = |file: &str| allowed.iter().any(|allowed| file.starts_with(allowed));
    let unknown = missing.iter().filter(|file| !is_allowed(file));
    let unknown: Vec<_> = unknown.collect();
    assert!(unknown.is_empty(), "missing: {unknown:?}");
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn shapes_ranges_and_deviations_are_the_stated_ones() {
    each(|set, protocol, data| {
        assert_eq!(
            (data.inputs.rows(), data.target.len()),
            (set.rows(), set.rows())
        );
        assert_eq!(data.inputs.columns(), set.inputs());
        let target = Table::new(data.target.clone(), 1).unwrap();
        for table in [&data.inputs, &target] {
            for &(min, max) in MinMax::fit(table).ranges() {
                // The source rounded the scaled series, so 1 is not met to the bit.
                assert!(
                    (min + 1.0).abs().max((max - 1.0).abs()) < 1e-12,
                    "{set} {protocol}"
                );
            }
        }
        let wanted = match set {
            RegressionSet::Co2 => 0.544,
            RegressionSet::Passenger => 0.462,
            RegressionSet::Housing => 0.408,
            RegressionSet::Concrete => 0.416,
            RegressionSet::Parkinsons => 0.446,
        };
        assert!((deviation(&data.target) - wanted).abs() < 5e-4, "{set}");
    });
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn parts_of_the_splits_have_the_stated_sizes() {
    each(|set, protocol, data| {
        let sizes: Vec<usize> = data.splits.iter().map(|split| split.test.len()).collect();
        let wanted = match (protocol, set) {
            (Protocol::P10, RegressionSet::Co2) => vec![53, 53, 53, 53, 53, 53, 53, 52, 52, 52],
            (Protocol::P10, RegressionSet::Passenger) => {
                vec![15, 15, 15, 15, 14, 14, 14, 14, 14, 14]
            }
            (Protocol::P10, RegressionSet::Housing) => vec![50, 51, 51, 51, 51, 51, 51, 50, 50, 50],
            (Protocol::P10, RegressionSet::Concrete) => vec![103; 10],
            (Protocol::P10, RegressionSet::Parkinsons) => {
                vec![587, 588, 588, 588, 588, 588, 587, 587, 587, 587]
            }
            (Protocol::R90, RegressionSet::Co2) => vec![53; 10],
            (Protocol::R90, RegressionSet::Passenger) => vec![15; 10],
            (Protocol::R90, RegressionSet::Housing) => vec![51; 10],
            (Protocol::R90, RegressionSet::Concrete) => vec![103; 10],
            (Protocol::R90, RegressionSet::Parkinsons) => vec![588; 10],
            (Protocol::Fixed, _) => panic!("it is not among those of regression"),
        };
        assert_eq!(sizes, wanted, "{set} {protocol}");
        for (f, split) in data.splits.iter().enumerate() {
            let parts = [&split.train, &split.validation, &split.test];
            assert_eq!(parts.map(Vec::len).iter().sum::<usize>(), set.rows());
            match protocol {
                Protocol::P10 => assert_eq!(split.validation, data.splits[(f + 1) % 10].test),
                _ => assert!(split.validation.is_empty()),
            }
        }
    });
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn released_splits_are_no_partition() {
    each(|set, protocol, data| {
        let tested: BTreeSet<usize> = data
            .splits
            .iter()
            .flat_map(|split| split.test.clone())
            .collect();
        let share = tested.len() as f64 / set.rows() as f64;
        match protocol {
            Protocol::P10 => assert_eq!(share, 1.0),
            _ => assert!((0.6..0.7).contains(&share), "{set}: {share}"),
        }
    });
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn the_scaled_series_are_the_raw_ones() {
    let store = store();
    let months = parsed(&store, "co2/mauna-loa-c02-1965-2016.csv", co2::parse);
    assert_eq!(
        (months.len(), months[0].year, months[0].month),
        (627, 1965, 1)
    );
    let late = months.iter().filter(|m| (m.year, m.month) >= (1973, 5));
    let late = late.flat_map(|m| [m.date, m.ppm.unwrap()]);
    let raw = Table::new(late.collect(), 2).unwrap();
    let want = MinMax::fit(&raw).transform(&raw).unwrap();
    let data = load(RegressionSet::Co2, Protocol::P10, Rows::All, &store).unwrap();
    for i in 0..527 {
        assert!((data.inputs.row(i)[0] - want.row(i)[0]).abs() < 1e-12);
        assert!((data.target[i] - want.row(i)[1]).abs() < 1e-12);
    }

    let file = "passenger/international-airline-passengers.csv";
    let text = store.fetch(manifest::entry(file).unwrap()).unwrap().bytes;
    let lines = std::str::from_utf8(&text)
        .unwrap()
        .lines()
        .skip(1)
        .take(144);
    let counts = lines.enumerate().map(|(i, line)| {
        let month = format!("\"{}-{:02}\",", 1949 + i / 12, i % 12 + 1);
        line.strip_prefix(&month).unwrap().parse().unwrap()
    });
    assert_eq!(counts.collect::<Vec<u16>>(), AIRLINE_PASSENGERS);
    let data = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store).unwrap();
    let mut text = Vec::new();
    for part in ["passenger/train.csv", "passenger/test.csv"] {
        text.extend(
            store
                .fetch(manifest::entry(part).unwrap())
                .unwrap()
                .bytes
                .to_vec(),
        );
    }
    let lines = std::str::from_utf8(&text).unwrap().lines();
    for (i, line) in lines.enumerate() {
        let (month, count) = line.split_once(',').unwrap();
        assert!((data.inputs.row(i)[0] - month.parse::<f64>().unwrap()).abs() < 1e-12);
        assert!((data.target[i] - count.parse::<f64>().unwrap()).abs() < 1e-12);
    }
    assert_eq!(data.provenance.len(), 3);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn the_two_tables_of_concrete_hold_the_same_rows() {
    let store = store();
    let sorted = |protocol| {
        let data = load(RegressionSet::Concrete, protocol, Rows::All, &store).unwrap();
        let whole = |i: usize| {
            data.inputs
                .row(i)
                .iter()
                .chain([&data.target[i]])
                .map(|v| (v * 1e9).round() as i64)
                .collect()
        };
        let rows: Vec<Vec<i64>> = (0..1030).map(whole).collect();
        let mut ordered = rows.clone();
        ordered.sort();
        (rows, ordered)
    };
    let (raw, scaled) = (sorted(Protocol::P10), sorted(Protocol::R90));
    assert_eq!(raw.1, scaled.1);
    assert_ne!(raw.0, scaled.0);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn copies_of_concrete_rows_lie_in_several_folds() {
    let store = store();
    let raw = parsed(&store, "concrete/Concrete_Data-1.csv", concrete::parse);
    let data = load(RegressionSet::Concrete, Protocol::P10, Rows::All, &store).unwrap();
    let mut folds: BTreeMap<Vec<u64>, BTreeSet<usize>> = BTreeMap::new();
    for (fold, split) in data.splits.iter().enumerate() {
        for &i in &split.test {
            folds.entry(bits(raw.row(i))).or_default().insert(fold);
        }
    }
    assert_eq!(folds.len(), 1005);
    assert_eq!(folds.values().filter(|folds| folds.len() > 1).count(), 11);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn raw_tables_have_the_stated_facts() {
    let store = store();
    let housing = parsed(&store, "housing/housing.data", housing::parse);
    let prices: Vec<f64> = housing.column(13).collect();
    assert_eq!(MinMax::fit(&housing).ranges()[13], (5.0, 50.0));
    assert_eq!(prices.iter().filter(|&&price| price == 50.0).count(), 16);

    let parkinsons = parsed(
        &store,
        "parkinsons/parkinsons_updrs.data",
        parkinsons::parse,
    );
    let people: BTreeSet<u64> = parkinsons.column(0).map(f64::to_bits).collect();
    assert_eq!(people.len(), 42);
    assert_eq!(parkinsons.column(3).filter(|&time| time < 0.0).count(), 12);
    // subject, age, sex, time, Jitter(%), ..., PPE, total_UPDRS of the first recording.
    let first = parkinsons.row(0);
    assert_eq!(first[..5], [1.0, 72.0, 0.0, 5.6431, 0.00662]);
    assert_eq!(first[19..], [0.16006, 34.398]);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn kept_rows_keep_their_scale_and_their_fold() {
    let store = store();
    let set = RegressionSet::Parkinsons;
    let fifth = Rows::Every(NonZeroUsize::new(5).unwrap());
    for protocol in Protocol::REGRESSION {
        let all = load(set, protocol, Rows::All, &store).unwrap();
        let few = load(set, protocol, fifth, &store).unwrap();
        assert_eq!(few.target.len(), 1175);
        for i in 0..1175 {
            assert_eq!(few.inputs.row(i), all.inputs.row(5 * i));
            assert_eq!(few.target[i], all.target[5 * i]);
        }
        for (few, all) in few.splits.iter().zip(&all.splits) {
            for (few, all) in [
                (&few.train, &all.train),
                (&few.validation, &all.validation),
                (&few.test, &all.test),
            ] {
                let back: Vec<usize> = few.iter().map(|i| 5 * i).collect();
                let kept: Vec<usize> = all.iter().copied().filter(|i| i % 5 == 0).collect();
                assert_eq!(back, kept);
            }
        }
    }
}
