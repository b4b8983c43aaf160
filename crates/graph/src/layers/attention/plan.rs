//! A pass through a layer, forward and backward, without a tape.

use super::EdgeKernel;
use super::arrays::{Arrays, has_kernel};
use super::config::{AttentionKind, GraphAttentionConfig, Residual};
use super::spectral_points::Drawn;
use crate::attend::Kept;
use crate::engine::Call;
use crate::error::within;
use crate::layers::nodes::elements_of;
use crate::layers::rows::{add_to_rows, sum_of_rows};
use crate::{EdgeTerm, Error, Features, Graph, LayerError, Score, Settings};
use bochner_numerics::{DropoutMask, Real, Seed};
use bochner_ops::Mode;
use bochner_ops::rows::add_to;
use ndarray::{Array, Array2, ArrayD, ArrayView1, ArrayView2, Dimension};
use std::collections::BTreeMap;

/// A pass through a layer, without the nodes' features, the edges' attributes and the parameters.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) config: GraphAttentionConfig,
    pub(super) graph: Graph,
    pub(super) input_dropout: Option<DropoutMask>,
    value_dropout: Option<DropoutMask>,
    coefficient_dropout: Option<DropoutMask>,
    /// The seed of the noise behind the spectral points.
    noise: Seed,
}

/// The values that are kept of a pass.
#[derive(Debug)]
pub(super) struct Passed<T> {
    /// The transformed features, `[N, H F]`, of the targets, and of the sources where they are others.
    transformed: Vec<Array2<T>>,
    pub(super) drawn: Option<Drawn<T>>,
    pub(super) kept: Kept<T>,
}

/// The gradients that are wanted.
pub(super) struct Wanted<'a> {
    pub(super) nodes: bool,
    pub(super) attributes: bool,
    /// The names of the parameters.
    pub(super) parameters: Vec<&'a str>,
}

impl Wanted<'_> {
    /// Whether a gradient along one of these parameters is wanted.
    fn any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.parameters.contains(name))
    }
}

/// The gradients of a pass.
pub(super) struct PassGradients<T> {
    /// The gradients along the parameters by name: all that are wanted, and those that are computed with them.
    pub(super) parameters: BTreeMap<&'static str, ArrayD<T>>,
    pub(super) attributes: Option<Array2<T>>,
    /// The gradients along the transformed features, in the order in which these were kept; none if neither
    /// the nodes' gradients nor those of the weights are wanted.
    pub(super) transformed: Vec<Array2<T>>,
}

impl<T> PassGradients<T> {
    fn put<D: Dimension>(&mut self, name: &'static str, gradient: Array<T, D>) {
        self.parameters.insert(name, gradient.into_dyn());
    }
}

impl Plan {
    pub(super) fn new(config: &GraphAttentionConfig, graph: &Graph, mode: Mode) -> Self {
        let mask = |rate, purpose| crate::layers::mask(rate, mode.child(purpose));
        Self {
            graph: graph.clone(),
            input_dropout: mask(config.input_dropout, "input dropout"),
            value_dropout: mask(config.value_dropout, "value dropout"),
            coefficient_dropout: mask(config.coefficient_dropout, "coefficient dropout"),
            noise: match mode.child("spectral points") {
                Mode::Evaluation => config.seed,
                Mode::Training(seed) => seed,
            },
            config: config.clone(),
        }
    }

    /// The output before the activation, and the penalty, from features after their dropout.
    pub(super) fn forward<T: Real>(
        &self,
        nodes: &[Features<T>],
        attributes: Option<ArrayView2<T>>,
        p: &Arrays<T>,
    ) -> Result<(Array2<T>, T, Passed<T>), LayerError> {
        let map = |features: &Features<T>, weight, bias: Option<ArrayView1<T>>| {
            let mut mapped = features.product(weight)?;
            if let Some(bias) = bias {
                add_to_rows(&mut mapped, bias);
            }
            Ok::<_, Error>(mapped)
        };
        let mut transformed = vec![map(&nodes[0], p.weight, p.weight_bias)?];
        let last = &nodes[nodes.len() - 1];
        match p.source_weight {
            Some(weight) => transformed.push(map(last, weight, p.source_weight_bias)?),
            None if nodes.len() > 1 => transformed.push(map(last, p.weight, p.weight_bias)?),
            None => {}
        }
        let drawn = self.draw(&transformed, p)?;
        let settings = self.settings(attributes, p, drawn.as_ref());
        let [targets, sources] = ends(&transformed);
        let (output, kept) = Call::new(&self.graph, targets, sources, &settings)?.attend()?;
        let output = self.finish(output, nodes[0], p)?;
        let penalty = drawn.as_ref().map_or(T::zero(), Drawn::penalty);
        let passed = Passed {
            transformed,
            drawn,
            kept,
        };
        Ok((output, penalty, passed))
    }

    fn draw<T: Real>(
        &self,
        transformed: &[Array2<T>],
        p: &Arrays<T>,
    ) -> Result<Option<Drawn<T>>, LayerError> {
        if !has_kernel(&self.config) {
            return Ok(None);
        }
        let nodes = ends(transformed);
        Drawn::new(&self.config, nodes, kernel(p), self.noise).map(Some)
    }

    fn settings<'a, 'p: 'a, T: Real>(
        &self,
        attributes: Option<ArrayView2<'a, T>>,
        p: &Arrays<'p, T>,
        drawn: Option<&'a Drawn<T>>,
    ) -> Settings<'a, T> {
        let a = p.a;
        let kernel = |p, floor| Score::Kernel {
            a,
            points: drawn.expect("drawn of a kernel with points").points(),
            p,
            floor,
        };
        let score = match self.config.kind {
            AttentionKind::Classic => Score::Classic { a },
            AttentionKind::Dynamic => Score::Dynamic { a },
            AttentionKind::Kernel(EdgeKernel::Softmax) => Score::Gaussian { a, p: Some(2.0) },
            AttentionKind::Kernel(EdgeKernel::RbfOnly) => Score::Gaussian { a, p: None },
            AttentionKind::Kernel(
                EdgeKernel::Direct { p, floor, .. } | EdgeKernel::Implicit { p, floor, .. },
            ) => kernel(p, floor),
        };
        let term = |(weight, attributes)| EdgeTerm {
            attributes,
            weight,
            b: p.edge_a,
        };
        Settings {
            score,
            slope: self.config.slope,
            edges: p.edge_weight.zip(attributes).map(term),
            merge: self.config.merge,
            dropout: self.coefficient_dropout,
            value_dropout: self.value_dropout,
        }
    }

    /// Adds residual and bias.
    fn finish<T: Real>(
        &self,
        mut output: Array2<T>,
        targets: Features<T>,
        p: &Arrays<T>,
    ) -> Result<Array2<T>, LayerError> {
        match (self.config.residual, p.residual, targets) {
            (Residual::None, ..) => {}
            (Residual::Added, Some(weight), _) => output += &targets.product(weight)?,
            (Residual::Added, None, Features::Dense(x)) => output += &x,
            (Residual::Added, None, Features::Sparse(x)) => output += &x.to_dense(),
        }
        if let Some(bias) = p.bias {
            add_to_rows(&mut output, bias);
        }
        Ok(output)
    }

    /// The gradients along the parameters, the attributes and the transformed features, as far as they are wanted.
    /// Along the edges they are computed together, if any of them is.
    pub(super) fn backward<T: Real>(
        &self,
        nodes: &[Features<T>],
        attributes: Option<ArrayView2<T>>,
        p: &Arrays<T>,
        passed: &Passed<T>,
        (output, penalty): (ArrayView2<T>, T),
        wanted: &Wanted,
    ) -> Result<PassGradients<T>, LayerError> {
        let mut found = PassGradients {
            parameters: BTreeMap::new(),
            attributes: None,
            transformed: Vec::new(),
        };
        if wanted.any(&["bias"]) {
            found.put("bias", sum_of_rows(output));
        }
        if wanted.any(&["residual"]) {
            found.put("residual", nodes[0].weight_vjp(output)?);
        }
        let maps = [
            "weight",
            "weight_bias",
            "source_weight",
            "source_weight_bias",
        ];
        let through = wanted.nodes || wanted.any(&maps);
        let of_kernel = wanted.any(&["kernel"]);
        let of_edges = wanted.attributes || wanted.any(&["edge_weight", "edge_a"]);
        if !(through || of_kernel || of_edges || wanted.any(&["a"])) {
            return Ok(found);
        }
        let settings = self.settings(attributes, p, passed.drawn.as_ref());
        let [x, y] = ends(&passed.transformed);
        let g = Call::new(&self.graph, x, y, &settings)?.vjp(&passed.kept, output)?;
        let (mut targets, mut sources) = (g.targets, g.sources);
        if let (Some(drawn), Some(points)) = (&passed.drawn, g.points)
            && (through || of_kernel)
        {
            let along = [&mut targets, &mut sources];
            let own = drawn.pull_back(&self.config, kernel(p), points, penalty, along)?;
            found.put("kernel", own);
        }
        found.put("a", g.a);
        if let Some(edges) = g.edges {
            found.attributes = Some(edges.attributes);
            found.put("edge_weight", edges.weight);
            if let Some(b) = edges.b {
                found.put("edge_a", b);
            }
        }
        if !through {
            return Ok(found);
        }
        found.transformed = if passed.transformed.len() == 1 {
            let sources = sources.as_slice().expect("allocated in row-major order");
            add_to(elements_of(&mut targets), sources);
            vec![targets]
        } else {
            vec![targets, sources]
        };
        along_maps(nodes, p, &mut found, wanted)?;
        Ok(found)
    }

    /// The gradients along dense features after their dropout, from those along the transformed ones.
    pub(super) fn along_nodes<T: Real>(
        &self,
        nodes: &[Features<T>],
        p: &Arrays<T>,
        transformed: &[Array2<T>],
        output: ArrayView2<T>,
    ) -> Result<Vec<Array2<T>>, LayerError> {
        let through = |features: &Features<T>, weight, along: ArrayView2<T>| {
            let along = features.features_vjp(weight, along)?;
            Ok::<_, Error>(along.expect("of dense features"))
        };
        let mut first = through(&nodes[0], p.weight, transformed[0].view())?;
        match (self.config.residual, p.residual) {
            (Residual::None, _) => {}
            (Residual::Added, Some(weight)) => first += &through(&nodes[0], weight, output)?,
            (Residual::Added, None) => first += &output,
        }
        let Some(along) = transformed.get(1) else {
            return Ok(vec![first]);
        };
        let weight = p.source_weight.unwrap_or(p.weight);
        let second = through(&nodes[nodes.len() - 1], weight, along.view())?;
        if nodes.len() == 1 {
            first += &second;
            return Ok(vec![first]);
        }
        Ok(vec![first, second])
    }
}

/// Adds the gradients along weight and bias of the map of the features, or of the two maps, as far as they are wanted.
fn along_maps<T: Real>(
    nodes: &[Features<T>],
    p: &Arrays<T>,
    found: &mut PassGradients<T>,
    wanted: &Wanted,
) -> Result<(), Error> {
    let maps = match p.source_weight {
        None => vec![("weight", "weight_bias", 0..found.transformed.len())],
        Some(_) => vec![
            ("weight", "weight_bias", 0..1),
            ("source_weight", "source_weight_bias", 1..2),
        ],
    };
    for (weight, bias, mut ends) in maps {
        let (first, second) = (ends.start, ends.nth(1));
        let along = |end: usize| found.transformed[end].view();
        let of_end = |end: usize| nodes[end.min(nodes.len() - 1)].weight_vjp(along(end));
        if wanted.any(&[weight]) {
            let mut gradient = of_end(first)?;
            if let Some(second) = second {
                gradient += &of_end(second)?;
            }
            found.put(weight, gradient);
        }
        if wanted.any(&[bias]) {
            let mut gradient = sum_of_rows(found.transformed[first].view());
            if let Some(second) = second {
                gradient += &sum_of_rows(found.transformed[second].view());
            }
            found.put(bias, gradient);
        }
    }
    Ok(())
}

/// The transformed features of the targets, and of the sources.
fn ends<T: Real>(transformed: &[Array2<T>]) -> [ArrayView2<'_, T>; 2] {
    let last = &transformed[transformed.len() - 1];
    [transformed[0].view(), last.view()]
}

/// Whether all numbers are finite.
pub(super) fn finite<T: Real>(x: ArrayView2<T>) -> bool {
    let x = x.as_standard_layout();
    let x = x.as_slice().expect("brought to row-major order");
    within(x, T::max_value())
}

/// The parameters of the source of spectral points.
fn kernel<'a, T: Real>(p: &Arrays<'a, T>) -> &'a [T] {
    let kernel = p.kernel.map(|kernel| kernel.to_slice());
    kernel.map_or(&[], |kernel| kernel.expect("a contiguous vector"))
}
