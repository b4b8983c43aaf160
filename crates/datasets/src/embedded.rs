//! The derived index lists that are published nowhere else and therefore travel with the crate.

macro_rules! embedded {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_bytes!(concat!("../data/", $file)))),*]
    };
}

const FILES: &[(&str, &[u8])] = embedded![
    "co2/released_test_mask.csv",
    "concrete/folds10.txt",
    "concrete/released_test_mask.csv",
    "housing/folds10.txt",
    "housing/released_test_mask.csv",
    "parkinsons/folds10.txt",
    "parkinsons/released_test_mask.csv",
    "passenger/released_test_mask.csv",
];

/// The bytes of an embedded file.
pub(crate) fn find(file: &str) -> Option<&'static [u8]> {
    FILES
        .iter()
        .find(|(name, _)| *name == file)
        .map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn embedded_files_are_the_pinned_ones() {
        for (file, bytes) in FILES {
            manifest::entry(file).unwrap().verify(file, bytes).unwrap();
        }
    }
}
