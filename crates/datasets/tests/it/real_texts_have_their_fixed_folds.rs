//! The fold rule on the sentence corpora in the directory `BOCHNER_DATA`.

use crate::store;
use bochner_datasets::{FOLDS, deal, manifest, unite_repeats};

/// Label and raw text of every row of the files, which are not all UTF-8.
fn corpus(files: &[&str]) -> (Vec<usize>, Vec<Vec<u8>>) {
    let store = store();
    let (mut labels, mut texts) = (Vec::new(), Vec::new());
    for file in files {
        let stored = store.fetch(manifest::entry(file).unwrap()).unwrap();
        for line in stored
            .bytes
            .strip_suffix(b"\n")
            .unwrap()
            .split(|&byte| byte == b'\n')
        {
            labels.push(usize::from(line[0] - b'0'));
            texts.push(line[2..].to_vec());
        }
    }
    (labels, texts)
}

fn check(files: &[&str], first: [usize; 16], sizes: [usize; FOLDS]) {
    let (labels, texts) = corpus(files);
    let mut folds = deal(&labels);
    unite_repeats(&mut folds, &texts);
    assert_eq!(folds[..16], first);
    let count = |fold| folds.iter().filter(|&&f| f == fold).count();
    assert_eq!(std::array::from_fn::<_, FOLDS, _>(count), sizes);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn mr() {
    let sizes = [1067, 1067, 1066, 1066, 1066, 1066, 1066, 1066, 1066, 1066];
    check(
        &["mr/rt-polarity.all"],
        [8, 9, 1, 2, 1, 6, 7, 5, 5, 5, 4, 6, 4, 1, 5, 8],
        sizes,
    );
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn cr() {
    let sizes = [376, 378, 380, 378, 380, 378, 377, 376, 377, 375];
    check(
        &["cr/custrev.all"],
        [9, 3, 0, 5, 4, 1, 2, 4, 0, 9, 1, 4, 7, 7, 6, 6],
        sizes,
    );
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn subj() {
    check(
        &["subj/subj.all"],
        [1, 1, 0, 5, 8, 5, 0, 8, 4, 5, 7, 6, 2, 6, 2, 5],
        [1000; 10],
    );
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn sst2() {
    let files = [
        "sst2/stsa.binary.train",
        "sst2/stsa.binary.dev",
        "sst2/stsa.binary.test",
    ];
    let sizes = [960, 961, 961, 963, 961, 963, 961, 962, 960, 961];
    check(
        &files,
        [9, 9, 0, 9, 6, 9, 8, 2, 6, 4, 9, 2, 4, 2, 0, 1],
        sizes,
    );
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn trec() {
    let sizes = [547, 547, 545, 541, 554, 543, 537, 545, 548, 545];
    check(
        &["trec/TREC.train.all"],
        [4, 9, 9, 9, 1, 2, 7, 8, 6, 7, 2, 0, 9, 2, 8, 1],
        sizes,
    );
}
