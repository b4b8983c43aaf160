//! The example `translate` learns lines from two files and translates them from what it has saved.

use bochner_models::translator::TextTranslator;
use std::fs;

#[path = "../../examples/translate.rs"]
#[expect(dead_code, reason = "its main reads arguments and the standard input")]
mod translate;

const SOURCE: &str =
    "ein hund schläft .\nzwei hunde schlafen .\neine katze spielt .\nzwei katzen spielen .\n";
const TARGET: &str =
    "a dog is asleep .\ntwo dogs are asleep .\na cat is playing .\ntwo cats are playing .\n";

#[test]
fn it_translates_the_lines_that_it_has_learnt_from() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name| directory.path().join(name);
    let [source, target, saved] = ["train.de", "train.en", "translator"].map(place);
    fs::write(&source, SOURCE).unwrap();
    fs::write(&target, TARGET).unwrap();
    let files = [&source, &target].map(|file| file.to_str().unwrap());
    translate::train(files, 60, &saved).unwrap();
    let translator = TextTranslator::load(&saved).unwrap();
    let found = translator.translate_all(SOURCE.lines()).unwrap();
    let found: Vec<String> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, TARGET.lines().collect::<Vec<_>>());

    // A line without a partner is named, and what was saved before stays there.
    let before = fs::read(&saved).unwrap();
    fs::write(&target, "a dog is asleep .\n").unwrap();
    let error = translate::train(files, 1, &saved).unwrap_err().to_string();
    assert!(error.contains("lines 2 to 4 of "), "{error}");
    assert_eq!(fs::read(&saved).unwrap(), before);
}
