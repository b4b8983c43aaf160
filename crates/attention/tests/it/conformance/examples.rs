//! Settings of every mechanism, to try and to refuse.

use bochner_attention::Variant;

/// Settings to try, every choice among them: as in a settings file, without the braces. All are smooth enough for finite
/// differences, with a floor that these can see across.
const EXAMPLES: [&str; 41] = [
    r#""mechanism": "softmax""#,
    r#""mechanism": "softmax", "scale": 1.0"#,
    r#""mechanism": "softmax", "scale": 0.1"#,
    r#""mechanism": "rbf-only""#,
    r#""mechanism": "expsin""#,
    r#""mechanism": "expsin", "period": 2.5"#,
    r#""mechanism": "linear""#,
    r#""mechanism": "ikan-direct", "points": 4, "floor": 0.01"#,
    r#""mechanism": "ikan-direct", "points": 4, "floor": 0.01, "p": 0.5"#,
    r#""mechanism": "ikan-direct", "points": 4, "floor": 0.01, "p": 3.0, "stationarity": "stationary""#,
    r#""mechanism": "ikan-direct", "points": 4, "floor": 0.01, "p": 1.0, "preset": "released""#,
    r#""mechanism": "ikan-direct", "points": 4, "floor": 0.01, "preset": "released", "stationarity": "stationary""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "independent", "stationarity": "stationary""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "independent""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "independent", "p": 3.0"#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "independent", "p": 3.0, "posterior": "unconditional""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "free", "p": 3.0, "stationarity": "stationary""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "free", "p": 3.0, "posterior": "unconditional""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "copula": "free", "posterior": "unconditional""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "p": 3.0"#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "p": 0.5"#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "stationarity": "stationary""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "beta": 0.0"#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "p": 3.0, "preset": "released""#,
    r#""mechanism": "mikan", "points": 4, "floor": 0.01, "beta": 0.0, "preset": "released""#,
    r#""mechanism": "cat""#,
    r#""mechanism": "cat", "form": "convolution""#,
    r#""mechanism": "cat", "form": "causal""#,
    r#""mechanism": "cat", "form": "averaged-key""#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.7, "weights": {"data": {"rows": 4, "trace": "data"}}"#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.7, "weights": {"data": {"rows": 9, "trace": "parameters"}}, "reduction": "example""#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.7, "weights": {"data": {"rows": 1, "trace": "parameters"}}"#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.7, "weights": "parameters""#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.7, "weights": "parameters", "reduction": "example""#,
    r#""mechanism": "primal", "rank": 2, "eta": 0.0, "weights": "parameters""#,
    r#""mechanism": "performer", "points": 5"#,
    r#""mechanism": "performer", "points": 4, "features": "hyperbolic", "coupling": "simplex", "redraw": {"every": {"steps": 2}}"#,
    r#""mechanism": "performer", "points": 4, "features": "hyperbolic", "coupling": "independent", "norms": "root""#,
    r#""mechanism": "performer", "points": 6, "features": {"relu": {"epsilon": 0.1}}, "norms": "root""#,
    // The window is so narrow that no number lies in it: differences see the steps of t as constant.
    r#""mechanism": "bipolar", "surrogate-width": 1e-9"#,
    r#""mechanism": "bipolar", "surrogate-width": 1e-9, "threshold": 0.9"#,
];

/// Settings that must be refused, and the name of what is wrong.
pub(crate) const REFUSED: [(&str, &str); 31] = [
    ("scale", r#""mechanism": "softmax", "scale": 0.0"#),
    ("scale", r#""mechanism": "softmax", "scale": -1.0"#),
    ("scale", r#""mechanism": "softmax", "scale": 1e31"#),
    ("period", r#""mechanism": "expsin", "period": 0.0"#),
    ("period", r#""mechanism": "expsin", "period": 1e7"#),
    ("p", r#""mechanism": "ikan-direct", "p": 0.0"#),
    ("p", r#""mechanism": "ikan-direct", "p": -1.0"#),
    ("points", r#""mechanism": "ikan-direct", "points": 0"#),
    (
        "points",
        r#""mechanism": "ikan-direct", "points": 1000000000000"#,
    ),
    ("floor", r#""mechanism": "ikan-direct", "floor": -1e-9"#),
    ("floor", r#""mechanism": "ikan-direct", "floor": 1.1"#),
    (
        "floor of the linear-time form",
        r#""mechanism": "ikan-direct", "floor": 1e-7, "form": "linear-time""#,
    ),
    (
        "queries of a block",
        r#""mechanism": "ikan-direct", "form": {"blocked": {"queries": 0, "keys": 8}}"#,
    ),
    (
        "keys of a block",
        r#""mechanism": "ikan-direct", "form": {"blocked": {"queries": 8, "keys": 0}}"#,
    ),
    ("p", r#""mechanism": "mikan", "p": 0.0"#),
    ("floor", r#""mechanism": "mikan", "floor": -1e-9"#),
    ("prior_std", r#""mechanism": "mikan", "prior-std": 0.0"#),
    ("beta", r#""mechanism": "mikan", "beta": -1.0"#),
    ("slope", r#""mechanism": "mikan", "slope": -0.1"#),
    ("points", r#""mechanism": "mikan", "points": 1000000000000"#),
    ("rank", r#""mechanism": "primal", "rank": 0"#),
    ("rank", r#""mechanism": "primal", "rank": 1000000000000"#),
    (
        "rows",
        r#""mechanism": "primal", "weights": {"data": {"rows": 0, "trace": "data"}}"#,
    ),
    ("eta", r#""mechanism": "primal", "eta": -0.1"#),
    ("value_width", r#""mechanism": "primal", "value-width": 0"#),
    ("points", r#""mechanism": "performer", "points": 0"#),
    (
        "points",
        r#""mechanism": "performer", "points": 1000000000000"#,
    ),
    (
        "redraw",
        r#""mechanism": "performer", "redraw": {"every": {"steps": 0}}"#,
    ),
    (
        "epsilon",
        r#""mechanism": "performer", "features": {"relu": {"epsilon": 0.0}}"#,
    ),
    ("threshold", r#""mechanism": "bipolar", "threshold": -0.1"#),
    (
        "surrogate_width",
        r#""mechanism": "bipolar", "surrogate-width": 0.0"#,
    ),
];

pub(crate) fn examples() -> Vec<Variant> {
    let read = |fields| {
        let text = format!("{{{fields}}}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    EXAMPLES.into_iter().map(read).collect()
}
