//! Numbers as they are printed.

/// Three significant digits.
pub(crate) fn short(value: f64) -> String {
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 3.0);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_printed() {
        for (value, text) in [
            (0.0894, "0.089"),
            (0.95, "0.950"),
            (5.118, "5.12"),
            (75.94, "75.9"),
            (4777.5, "4778"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
