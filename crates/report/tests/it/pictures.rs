//! Pictures as SVG.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bochner_report::document::{Axis, Chart, Colours, Document, Marks, Matrix, Picture, Series};

/// Series of these points.
fn chart(x: Axis, y: Axis, series: &[&[(f64, f64)]]) -> String {
    let series = series.iter().enumerate().map(|(i, points)| Series {
        name: format!("series {i}"),
        marks: Marks::Line,
        points: points.to_vec(),
    });
    let chart = Chart {
        title: "t".into(),
        x,
        y,
        series: series.collect(),
    };
    chart.to_svg()
}

/// The values of all attributes of this name.
fn attributes<'a>(svg: &'a str, before: &str) -> Vec<&'a str> {
    let found = svg.split(before).skip(1);
    found
        .map(|rest| rest.split(['<', '>']).next().unwrap())
        .collect()
}

#[test]
fn ticks_are_round_and_inside_and_logarithms_are_marked_at_round_values() {
    let labels = |x, y, points: &[(f64, f64)]| {
        let svg = chart(x, y, &[points]);
        let labels = |anchor: &str| {
            let all = attributes(&svg, &format!("text-anchor=\"{anchor}\">"));
            let numbers = all.into_iter().filter(|label| label.parse::<f64>().is_ok());
            numbers.map(str::to_owned).collect::<Vec<_>>()
        };
        [labels("middle"), labels("end")]
    };
    let log = || Axis::Log("y".into());
    let [x, y] = labels("x".into(), log(), &[(0.01, 0.08), (0.97, 2.5)]);
    assert_eq!(x, ["0", "0.2", "0.4", "0.6", "0.8"]);
    assert_eq!(y, ["0.1", "0.2", "0.5", "1", "2"]);
    let [x, y] = labels(log(), "y".into(), &[(0.009, -0.03), (11.0, 1.07)]);
    assert_eq!(x, ["0.01", "0.1", "1", "10"]);
    assert!((3..=7).contains(&y.len()), "{y:?}");
}

#[test]
fn no_two_of_sixteen_series_look_alike() {
    let svg = chart("x".into(), "y".into(), &[&[(0.0, 0.0), (1.0, 1.0)][..]; 16]);
    for looks in [
        attributes(&svg, "<polyline class=\"line\" "),
        attributes(&svg, "width=\"10\" height=\"10\" "),
    ] {
        let mut looks: Vec<&str> = looks;
        assert_eq!(looks.len(), 16);
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 16);
    }
}

#[test]
fn error_bars_lie_inside_the_frame_and_reach_both_ends() {
    let chart = Chart {
        title: "t".into(),
        x: "x".into(),
        y: "y".into(),
        series: vec![Series {
            name: "s".into(),
            marks: Marks::Errors(vec![5.0, 1.0]),
            points: vec![(0.0, 0.0), (1.0, 1.0)],
        }],
    };
    let svg = chart.to_svg();
    // Two bars and the line that joins two dots.
    assert_eq!(
        (
            svg.matches("<polyline").count(),
            svg.matches("<circle").count()
        ),
        (3, 2)
    );
    assert!(
        svg.contains(">5</text>") || svg.contains(">4</text>"),
        "{svg}"
    );
    assert!(!svg.contains("y=\"-"), "{svg}");
}

#[test]
fn points_stay_inside_the_frame() {
    let chart = Chart {
        title: "t".into(),
        x: "x".into(),
        y: Axis::Log("y".into()),
        series: vec![Series {
            name: "s".into(),
            marks: Marks::Dots,
            points: vec![(0.0, 0.0), (1.0, 1e-3), (2.0, 10.0), (f64::NAN, 1.0)],
        }],
    };
    let svg = chart.to_svg();
    assert_eq!(svg.matches("<circle").count(), 2, "0 has no logarithm");
    let empty = Chart {
        series: vec![],
        ..chart
    };
    assert!(!empty.to_svg().contains("NaN"));
}

fn matrix(names: &[&str], colours: Colours) -> Matrix {
    Matrix {
        title: "m".into(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        side: 2,
        values: vec![0.0, -0.5, 0.25, 0.5],
        colours,
    }
}

#[test]
fn colours_run_from_white_to_the_largest() {
    for (colours, values, seen) in [
        (
            Colours::Signed,
            [1.0, -1.0],
            ["rgb(255,0,0)", "rgb(0,0,255)"],
        ),
        (
            Colours::Shares,
            [0.5, 0.0],
            ["rgb(113,113,255)", "rgb(255,255,255)"],
        ),
    ] {
        let svg = Matrix {
            values: [values, values].concat(),
            ..matrix(&[], colours)
        };
        let svg = svg.to_svg();
        assert!(seen.iter().all(|colour| svg.contains(colour)), "{svg}");
    }
}

#[test]
fn names_stand_beside_and_above_and_are_escaped() {
    let bare = matrix(&[], Colours::Shares).to_svg();
    let named = matrix(&["<s>", "of"], Colours::Shares).to_svg();
    assert!(bare.contains("viewBox=\"0 0 60 84\""), "{bare}");
    assert!(named.contains("viewBox=\"0 0 86 110\""), "{named}");
    assert_eq!(named.matches("&lt;s&gt;").count(), 2);
    assert_eq!(named.matches("<rect").count(), 4);
    assert!(named.contains("0.25"));
}

/// The file of a figure of these pictures.
fn file(pictures: Vec<Picture>) -> String {
    let mut document = Document::new("a");
    document.figure("figure", "", pictures);
    document.files().next().unwrap().1
}

fn shades(side: usize, levels: &[u8]) -> Picture {
    Picture::Shades {
        title: "head 1".into(),
        side,
        levels: levels.to_vec(),
    }
}

#[test]
fn pictures_of_a_file_do_not_lie_upon_each_other() {
    let matrix = Picture::Matrix(Matrix {
        title: String::new(),
        ..matrix(&[], Colours::Signed)
    });
    let file = file(vec![matrix.clone(), shades(1, &[7]), matrix]);
    // 60 and 144 wide with 16 between them; 160 high, and 84 below.
    assert!(file.contains("viewBox=\"0 0 220 260\""), "{file}");
    for place in ["x=\"0\" y=\"0\"", "x=\"76\" y=\"0\"", "x=\"0\" y=\"176\""] {
        assert!(file.contains(&format!("<svg {place} height=")), "{place}");
    }
    assert_eq!(file.matches("<svg").count(), file.matches("</svg>").count());
}

#[test]
fn a_picture_holds_its_levels_from_white_to_dark() {
    let levels: Vec<u8> = (0..144).map(|i| (i * 7 % 256) as u8).collect();
    let file = file(vec![shades(12, &levels)]);
    let (_, rest) = file.split_once("base64,").unwrap();
    let picture = BASE64_STANDARD
        .decode(rest.split('"').next().unwrap())
        .unwrap();
    let mut decoder = png::Decoder::new(std::io::Cursor::new(picture));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().unwrap();
    let palette = reader.info().palette.clone().unwrap();
    assert_eq!(palette.len(), 768);
    assert_eq!(
        (&palette[..3], &palette[765..]),
        (&[255; 3][..], &[8, 48, 107][..])
    );
    let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut decoded).unwrap();
    assert_eq!(decoded, levels);
}
