//! Learns subwords from the lines of standard input and prints them as a `tokenizer.json`.
//!
//! ```sh
//! cargo run --release --package bochner-text --example tokenizer_json 1000 < train.txt > tokenizer.json
//! ```

#![allow(clippy::print_stdout)]

use bochner_text::{SubwordConfig, Subwords, TokenCounts, lines};
use std::error::Error;
use std::io::Read;

fn main() -> Result<(), Box<dyn Error>> {
    let merges = std::env::args().nth(1).ok_or("name the number of merges")?;
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let words = TokenCounts::of_words(lines("standard input", &text)?);
    let config = SubwordConfig {
        merges: merges.parse()?,
        ..Default::default()
    };
    print!(
        "{}",
        Subwords::learn(&words, &config)?
            .subwords
            .to_tokenizer_json()?
    );
    Ok(())
}
