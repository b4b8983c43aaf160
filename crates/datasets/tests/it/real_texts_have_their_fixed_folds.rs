//! The fold rule on the sentence corpora in the directory `BOCHNER_DATA`.

use bochner_datasets::{DataStore, FOLDS, Policy, deal, manifest, unite_repeats};

/// Label and raw text of every row of the files, which are not all UTF-8.
fn corpus(files: &[&str]) -> Option<(Vec<usize>, Vec<Vec<u8>>)> {
    let Some(directory) = std::env::var_os("BOCHNER_DATA") else {
        eprintln!("skipped: BOCHNER_DATA does not name the directory of the real files");
        return None;
    };
    let store = DataStore::new(Policy::Offline)
        .with_directory(directory)
        .unwrap();
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
    Some((labels, texts))
}

fn check(files: &[&str], first: [usize; 16], sizes: [usize; FOLDS]) {
    let Some((labels, texts)) = corpus(files) else {
        return;
    };
    let mut folds = deal(&labels);
    unite_repeats(&mut folds, &texts);
    assert_eq!(folds[..16], first);
    let count = |fold| folds.iter().filter(|&&f| f == fold).count();
    assert_eq!(std::array::from_fn::<_, FOLDS, _>(count), sizes);
}

#[test]
fn mr() {
    let sizes = [1067, 1067, 1066, 1066, 1066, 1066, 1066, 1066, 1066, 1066];
    check(
        &["mr/rt-polarity.all"],
        [8, 9, 1, 2, 1, 6, 7, 5, 5, 5, 4, 6, 4, 1, 5, 8],
        sizes,
    );
}

#[test]
fn cr() {
    let sizes = [376, 378, 380, 378, 380, 378, 377, 376, 377, 375];
    check(
        &["cr/custrev.all"],
        [9, 3, 0, 5, 4, 1, 2, 4, 0, 9, 1, 4, 7, 7, 6, 6],
        sizes,
    );
}

#[test]
fn subj() {
    check(
        &["subj/subj.all"],
        [1, 1, 0, 5, 8, 5, 0, 8, 4, 5, 7, 6, 2, 6, 2, 5],
        [1000; 10],
    );
}

#[test]
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
fn trec() {
    let sizes = [547, 547, 545, 541, 554, 543, 537, 545, 548, 545];
    check(
        &["trec/TREC.train.all"],
        [4, 9, 9, 9, 1, 2, 7, 8, 6, 7, 2, 0, 9, 2, 8, 1],
        sizes,
    );
}
