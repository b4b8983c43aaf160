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
