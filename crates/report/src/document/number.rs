//! Numbers as they are written in reports.

/// A number with three significant digits: `0.0123`, `512`, `1.23e-6`.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&exponent) {
        return format!("{value:.2e}");
    }
    let digits = (2.0 - exponent).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}

/// [`significant`] without zeros at the end.
pub(super) fn short(value: f64) -> String {
    let text = significant(value);
    let (digits, exponent) = match text.find('e') {
        Some(place) => text.split_at(place),
        None => (&*text, ""),
    };
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    format!("{digits}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_numbers_keep_three_digits() {
        for (value, all, without_zeros) in [
            (0.0, "0", "0"),
            (500.0, "500", "500"),
            (1500.0, "1500", "1500"),
            (-0.25, "-0.250", "-0.25"),
            (1.0, "1.00", "1"),
            (0.001234, "0.00123", "0.00123"),
            (1e-7, "1.00e-7", "1e-7"),
            (-2.34e-6, "-2.34e-6", "-2.34e-6"),
            (3e8, "3.00e8", "3e8"),
        ] {
            assert_eq!((&*significant(value), &*short(value)), (all, without_zeros));
        }
    }
}
