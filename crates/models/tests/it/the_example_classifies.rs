//! The example `own_tsv` learns the labels of a file, and names them from what it has saved.

use bochner_models::classifier::SentenceClassifier;
use bochner_text::clean_str;
use std::fs;

#[path = "../../examples/own_tsv.rs"]
#[expect(dead_code, reason = "its main reads arguments and the standard input")]
mod own_tsv;

#[test]
fn it_names_the_labels_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let [file, saved] = ["own.tsv", "classifier"].map(|name| directory.path().join(name));
    // Labels with gaps, of which the first word decides.
    let words = [("10", "fine"), ("3", "dull"), ("7", "long")];
    let row = |i: usize| {
        let (label, word) = words[i % 3];
        format!("{label}\t{word} film number {i}\n")
    };
    let rows: String = (0..90).map(row).collect();
    fs::write(&file, format!("label\ttext\n{rows}")).unwrap();
    let seen = own_tsv::train(file.to_str().unwrap(), &saved).unwrap();
    assert_eq!(seen.counts().dim(), (3, 3));
    assert_eq!((seen.counts().sum(), seen.accuracy()), (9, 1.0));
    let classifier = SentenceClassifier::load(&saved).unwrap();
    assert_eq!(classifier.model().config().class_names, ["3", "7", "10"]);
    let lines = ["a long film", "dull", "fine , fine"].map(|line| clean_str(line.as_bytes()));
    assert_eq!(classifier.labels(&lines).unwrap(), ["7", "3", "10"]);
}
