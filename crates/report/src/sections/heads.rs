//! Pictures of what heads have learnt.

use crate::document::{Axis, Chart, Colours, Marks, Matrix, Picture, Series, principal_plane};
use crate::row::Heads;
use bochner_numerics::{Seed, standard_normal};

/// The spectral points of each head on the first two principal axes of the points of all heads.
pub fn points(heads: &Heads) -> Option<Picture> {
    let points = heads.points.as_ref()?;
    Some(chart("spectral points by head", points, heads.dimensions))
}

/// Points of the density that attention has by definition, as many as the heads have.
pub fn gaussian_points(heads: &Heads, deviation: f32) -> Option<Picture> {
    let mut stream = Seed::new(0).stream("points of a Gaussian");
    let mut draw = |_: &f32| deviation * standard_normal::<f32>(&mut stream);
    let each = heads.points.as_ref()?.iter();
    let drawn: Vec<Vec<f32>> = each
        .map(|head| head.iter().map(&mut draw).collect())
        .collect();
    Some(chart("as many of a Gaussian", &drawn, heads.dimensions))
}

fn chart(title: &str, points: &[Vec<f32>], dimensions: usize) -> Picture {
    let all = points.concat();
    let places = principal_plane(&all, dimensions);
    let mut rest = places.as_slice();
    let series = points.iter().enumerate().map(|(i, head)| {
        let (own, others) = rest.split_at((head.len() / dimensions.max(1)).min(rest.len()));
        rest = others;
        Series {
            name: format!("{}", i + 1),
            marks: Marks::Dots,
            points: own.to_vec(),
        }
    });
    Picture::Chart(Chart {
        title: title.into(),
        x: Axis::Linear("first axis".into()),
        series: series.collect(),
        y: Axis::Linear("second axis".into()),
    })
}

/// The correlation of the heads, with numbers.
pub fn correlation(heads: &Heads) -> Option<Picture> {
    let values = heads.correlation.clone()?;
    let side = values.len().isqrt();
    (side * side == values.len()).then(|| {
        Picture::Matrix(Matrix {
            title: "correlation of the heads, mean over the latent dimensions".into(),
            names: (1..=side).map(|head| head.to_string()).collect(),
            side,
            values,
            colours: Colours::Signed,
        })
    })
}

/// The attention weights of each head, queries downwards.
pub fn weights(heads: &Heads) -> Vec<Picture> {
    let pictures = heads.weights.iter().enumerate().filter_map(|(i, shades)| {
        Some(Picture::Shades {
            title: format!("head {}, up to {:.3}", i + 1, shades.largest),
            side: shades.side,
            levels: shades.levels()?,
        })
    });
    pictures.collect()
}
