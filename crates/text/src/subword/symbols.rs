//! Symbols and their numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// Distinct symbols, numbered in the order in which they came.
///
/// Two ways of making the same text give the same symbol, as in subword-nmt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbols {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Symbols {
    /// The number of a symbol, which is a new one if the symbol is new.
    pub(super) fn number(&mut self, symbol: &str) -> u32 {
        if let Some(&number) = self.numbers.get(symbol) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).expect("fewer symbols than fit in memory");
        let text: Arc<str> = symbol.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    pub(super) fn get(&self, symbol: &str) -> Option<u32> {
        self.numbers.get(symbol).copied()
    }

    pub(super) fn text(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}
