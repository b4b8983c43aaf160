//! Documents as Markdown and HTML, and their pictures.

use bochner_report::account::Account;
use bochner_report::document::{
    Axis, Chart, Colours, Document, Marks, Matrix, Picture, Series, principal_plane, significant,
};
use bochner_report::plan::{Choices, Frame, OnRequest, Plan};
use bochner_report::suite::Card;
use bochner_report::{Results, Scale};

static CARD: Card = Card {
    scopes: ["Small models and two epochs; elsewhere at most 1,000 epochs, with patience."; 3],
    ..Card::EMPTY
};

#[test]
fn a_scale_is_described_with_the_epochs_that_are_run() {
    let frame = Frame {
        scale: Scale::Smoke,
        epochs: Some(30),
        on_request: OnRequest::LeftOut,
    };
    let account = Account {
        card: &CARD,
        plan: &Plan::new(&CARD, &[], frame, Choices::None),
        results: &Results::new(CARD.metric.direction),
        claims: &[],
        checks: &[],
        skipped: &[],
        preface: None,
        epochs: frame.epochs,
        notes: &[],
        artefacts: &|_| None,
    };
    let wanted = "Small models and 30 epochs; elsewhere at most 30 epochs, with patience.";
    assert!(account.document().to_markdown().contains(wanted));
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let mut document = Document::new("A < B");
    document.heading("First");
    document.text("run `cargo` & **wait**");
    document.pictures(
        "all",
        vec![
            Picture::Shades {
                title: "head 1".into(),
                side: 2,
                levels: vec![0, 128, 255, 64],
            },
            Picture::Matrix(Matrix {
                title: "heads".into(),
                names: vec![],
                side: 2,
                values: vec![1.0, -0.5, -0.5, 1.0],
                colours: Colours::Signed,
            }),
            Picture::Chart(Chart {
                title: "loss".into(),
                x: "epoch".into(),
                y: Axis::Log("loss".into()),
                series: vec![Series {
                    name: "MIKAN".into(),
                    marks: Marks::Line,
                    points: vec![(1.0, 1.0), (2.0, 0.1)],
                }],
            }),
        ],
    );
    let html = document.to_html();
    assert!(html.contains("<p>run <code>cargo</code> &amp; <strong>wait</strong></p>"));
    assert!(html.contains("A &lt; B") && html.contains("data:image/png;base64,"));
    assert!(html.contains("-0.50") && html.contains("<svg"));
    assert!(html.contains("<a href=\"#part-0\">First") && html.contains("<h2 id=\"part-0\">First"));
    for outside in ["http://", "https://", "src=\"/", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn single_asterisks_emphasise_words_and_not_products() {
    let mut document = Document::new("a");
    document.text("*By weight* is 2 * 3 * x, and **bold**, *partly*");
    let html = document.to_html();
    let want = "<em>By weight</em> is 2 * 3 * x, and <strong>bold</strong>, <em>partly</em>";
    assert!(html.contains(want), "{html}");
}

#[test]
fn sentences_in_tables_are_broken_and_numbers_are_not() {
    let mut document = Document::new("a");
    let claim = "the mean error is below the Transformer's for every p";
    let row = |claim: &str| vec![claim.to_owned(), "+0.46 ± 0.05".to_owned()];
    document.table(&["claim", "d"], vec![row("short"), row(claim)]);
    let html = document.to_html();
    for cell in ["short", claim] {
        assert!(html.contains(&format!("<td class=\"prose\">{cell}</td><td>+0.46")));
    }
}

#[test]
fn a_document_reads_as_markdown() {
    let mut document = Document::new("Title");
    document.heading("Part");
    document.list(vec!["one".into(), "two".into()]);
    document.table(&["a", "b"], vec![vec!["1".into(), "x|y".into()]]);
    document.part("Nothing", |document| document.pictures("none", vec![]));
    document.part("Rest", |document| document.text("text"));
    assert_eq!(
        document.to_markdown(),
        "# Title\n\n## Part\n\n* one\n* two\n\n| a | b |\n|---|---|\n| 1 | x\\|y |\n\n## Rest\n\ntext\n"
    );
}

#[test]
fn small_and_large_numbers_keep_three_digits() {
    for (value, text) in [
        (0.0, "0"),
        (500.0, "500"),
        (1500.0, "1500"),
        (-0.25, "-0.250"),
        (1.0, "1.00"),
        (0.001234, "0.00123"),
        (1e-7, "1.00e-7"),
        (-2.34e-6, "-2.34e-6"),
        (3e8, "3.00e8"),
    ] {
        assert_eq!(significant(value), text);
    }
}

#[test]
fn the_plane_shows_the_two_widest_directions() {
    // Widths 5, 3 and 1 along three axes.
    let points = [
        1.0, 0.0, 5.0, 1.0, 0.0, -5.0, 1.0, 3.0, 0.0, 1.0, -3.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    ];
    let plane = principal_plane(&points, 3);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(close(plane[0].0.abs(), 5.0) && close(plane[0].1, 0.0));
    assert!(close(plane[2].1.abs(), 3.0) && close(plane[2].0, 0.0));
    assert!(close(plane[4].0, 0.0) && close(plane[4].1, 0.0));
}

#[test]
fn one_dimension_and_no_points_are_no_trouble() {
    assert_eq!(principal_plane(&[], 3), []);
    let plane = principal_plane(&[1.0, 3.0], 1);
    assert!((plane[1].0.abs() - 1.0).abs() < 1e-9 && plane[1].1 == 0.0);
    assert_eq!(principal_plane(&[2.0, 2.0], 1), [(0.0, 0.0); 2]);
}
