//! Graphs whose nodes have features and classes: three citation graphs, and drawn ones.

mod assemble;
mod csr;
mod defect;
mod edges;
mod parse;
mod planted;
mod set;
mod split;

pub use csr::CsrMatrix;
pub use defect::GraphDefect;
pub use edges::{EdgeCounts, EdgeList};
pub use parse::{parse_features, parse_graph, parse_labels, parse_test_index};
pub use planted::{PlantedGraph, PlantedPartition};
pub use set::PlanetoidSet;
pub use split::SplitSizes;

use crate::provenance::FileProvenance;
use crate::store::DataStore;
use crate::{Error, Split, manifest};
use assemble::{Labels, Part};

/// Loads a citation graph with its features.
///
/// Rows 0 to $|\mathrm{allx}|$ of the features are those of `allx`; row $r$ of `tx` is that of
/// node `test.index[r]`. The numbers of the test nodes of Citeseer have 15 gaps: these nodes have
/// edges, but neither features nor a label, so their rows are empty.
///
/// The features are as published: ones for the words of Cora and Citeseer, TF-IDF weights for
/// Pubmed. [`CsrMatrix::scaled_to_sum_1`] scales them as graph attention networks have them, and
/// [`EdgeList::undirected`] gives each edge once, without self loops.
///
/// ```no_run
/// use bochner_datasets::{DataStore, PlanetoidSet, Policy, nodes};
///
/// // Files are found as `data/cora/ind.cora.x`, or in the cache, or downloaded.
/// let store = DataStore::new(Policy::Download).with_directory("data")?;
/// let data = nodes::load(PlanetoidSet::Cora, &store)?;
/// assert_eq!(data.features.rows(), 2708);
/// assert_eq!(data.graph.edges.undirected().len(), 5278);
/// assert_eq!(data.graph.split.train.len(), 140);
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// What [`DataStore::load`] returns. All files are pinned. The digest of `ind.pubmed.allx` alone
/// was not taken from the file itself but from a record of it in another public repository; should
/// it be wrong, the right file is refused with an [`Error::Checksum`] that names no defect.
///
/// # Reference
/// Z. Yang, W. W. Cohen, R. Salakhutdinov, *Revisiting Semi-Supervised Learning with Graph
/// Embeddings*, 2016.
pub fn load(set: PlanetoidSet, store: &DataStore) -> Result<PlanetoidData, Error> {
    let mut loader = Loader::new(set, store);
    let (edges, labels) = loader.structure()?;
    let mut features = |part| loader.read(part, parse_features);
    let (x, tx) = (features(Part::X)?, features(Part::Tx)?);
    let allx = features(Part::AllX)?;
    let features = assemble::features(&labels, [&x, &tx, &allx], set.features());
    let features = features.map_err(|(part, defect)| loader.error(part, defect))?;
    let graph = loader.graph(edges, &labels);
    Ok(PlanetoidData { graph, features })
}

/// Loads a citation graph without its features, which need the largest of the files.
///
/// # Errors
/// What [`DataStore::load`] returns.
pub fn load_graph(set: PlanetoidSet, store: &DataStore) -> Result<PlanetoidGraph, Error> {
    let mut loader = Loader::new(set, store);
    let (edges, labels) = loader.structure()?;
    Ok(loader.graph(edges, &labels))
}

/// A citation graph with its features.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanetoidData {
    /// Edges, classes, split and the files that all of it was made from.
    pub graph: PlanetoidGraph,
    /// Features, shape `[n, d]`.
    pub features: CsrMatrix,
}

/// A citation graph without its features.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanetoidGraph {
    /// Which graph it is.
    pub set: PlanetoidSet,
    /// The edges as they are in the file: both directions, some repeated, some self loops.
    pub edges: EdgeList,
    /// The class of each node, length `n`; `None` for the 15 nodes of Citeseer without label.
    pub labels: Vec<Option<usize>>,
    /// The standard split: the first 20 nodes of each class, the next 500, the 1,000 of
    /// `test.index`.
    pub split: Split,
    /// The files it was made from.
    pub provenance: Vec<FileProvenance>,
}

/// Reads files and remembers which.
struct Loader<'a> {
    set: PlanetoidSet,
    store: &'a DataStore,
    provenance: Vec<FileProvenance>,
}

impl<'a> Loader<'a> {
    fn new(set: PlanetoidSet, store: &'a DataStore) -> Self {
        Self {
            set,
            store,
            provenance: Vec::new(),
        }
    }

    fn file(&self, part: Part) -> String {
        format!("{0}/ind.{0}.{1}", self.set.name(), part.name())
    }

    fn read<T>(
        &mut self,
        part: Part,
        parse: fn(&str, &[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let entry = manifest::entry(&self.file(part))?;
        let (value, provenance) = self.store.load(entry, parse)?;
        self.provenance.push(provenance);
        Ok(value)
    }

    fn structure(&mut self) -> Result<(EdgeList, Labels), Error> {
        let edges = self.read(Part::Graph, parse_graph)?;
        let labels = Labels {
            y: self.read(Part::Y, parse_labels)?,
            ty: self.read(Part::Ty, parse_labels)?,
            ally: self.read(Part::AllY, parse_labels)?,
            test: self.read(Part::TestIndex, parse_test_index)?,
            nodes: self.set.nodes(),
        };
        assemble::check_nodes(&edges, self.set.nodes())
            .and_then(|()| labels.check(self.set.classes()))
            .map_err(|(part, defect)| self.error(part, defect))?;
        Ok((edges, labels))
    }

    fn graph(self, edges: EdgeList, labels: &Labels) -> PlanetoidGraph {
        PlanetoidGraph {
            set: self.set,
            edges,
            labels: labels.assembled(),
            split: labels.standard_split(),
            provenance: self.provenance,
        }
    }

    fn error(&self, part: Part, defect: GraphDefect) -> Error {
        parse::in_file(&self.file(part))(defect)
    }
}
