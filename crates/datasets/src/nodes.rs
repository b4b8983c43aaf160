//! Graphs whose nodes have features and classes: three citation graphs, and random ones.

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
pub use edges::EdgeList;
pub use planted::{PlantedGraph, PlantedPartition};
pub use set::PlanetoidSet;
pub use split::SplitSizes;

use crate::provenance::FileProvenance;
use crate::store::DataStore;
use crate::{Error, Split, manifest};
use assemble::{Labels, Part};
use parse::{parse_features, parse_graph, parse_labels, parse_test_index};

/// Loads a citation graph with its features.
///
/// The first rows of the features are the rows of `allx`; row $r$ of `tx` belongs to node
/// `test.index[r]`. The numbers of Citeseer's test nodes have 15 gaps: these nodes have edges, but
/// neither features nor a label, so their rows are empty.
///
/// The features are the published ones: ones for the words of Cora and Citeseer, TF-IDF weights for
/// Pubmed. [`CsrMatrix::scaled_to_sum_1`] scales them in the way that graph attention networks use,
/// and [`EdgeList::undirected`] gives each edge once, without self loops.
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
/// The errors of [`DataStore::load`]. All files are pinned, but the digest of `ind.pubmed.allx` was taken
/// from a record in another public repository and never compared with the file: should it be wrong,
/// the right file is refused with an [`Error::Checksum`].
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
/// The errors of [`DataStore::load`].
pub fn load_graph(set: PlanetoidSet, store: &DataStore) -> Result<PlanetoidGraph, Error> {
    let mut loader = Loader::new(set, store);
    let (edges, labels) = loader.structure()?;
    Ok(loader.graph(edges, &labels))
}

/// A citation graph with its features.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanetoidData {
    /// Edges, classes, split and the files that they were read from.
    pub graph: PlanetoidGraph,
    /// Features, shape `[n, d]`.
    pub features: CsrMatrix,
}

/// A citation graph without its features.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanetoidGraph {
    /// The name of the graph.
    pub set: PlanetoidSet,
    /// The edges as stored: in both directions, some of them repeated, some of them self loops.
    pub edges: EdgeList,
    /// The class of each node, length `n`; `None` for the 15 nodes of Citeseer without label.
    pub labels: Vec<Option<usize>>,
    /// The standard split: the first 20 nodes of each class, the next 500, the 1,000 of
    /// `test.index`.
    pub split: Split,
    /// The files that the graph was read from.
    pub provenance: Vec<FileProvenance>,
}

/// Reads files and remembers which ones.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn read<T>(part: Part, set: PlanetoidSet, parse: fn(&str, &[u8]) -> Result<T, Error>) -> T {
        Loader::new(set, &store()).read(part, parse).unwrap()
    }

    fn store() -> DataStore {
        let directory = std::env::var_os("BOCHNER_DATA");
        let directory = directory.expect("BOCHNER_DATA names the directory of the data files");
        DataStore::new(Policy::Offline)
            .with_directory(directory)
            .unwrap()
    }

    #[test]
    #[ignore = "needs the data files: BOCHNER_DATA names their directory"]
    fn test_rows_lie_at_the_nodes_of_the_index() {
        for set in [PlanetoidSet::Cora, PlanetoidSet::Citeseer] {
            let data = load(set, &store()).unwrap();
            let index = read(Part::TestIndex, set, parse_test_index);
            let tx = read(Part::Tx, set, parse_features);
            let ty = read(Part::Ty, set, parse_labels);
            assert_eq!((index.len(), tx.rows(), ty.len()), (1000, 1000, 1000));
            for (row, &node) in index.iter().enumerate() {
                assert_eq!(data.features.row(node), tx.row(row));
                assert_eq!(data.graph.labels[node], Some(ty[row]));
            }
            assert!(!index.is_sorted());
        }
    }

    #[test]
    #[ignore = "needs the data files: BOCHNER_DATA names their directory"]
    fn the_parts_of_pubmed_that_are_small_are_read() {
        let features = |part| read(part, PlanetoidSet::Pubmed, parse_features);
        let (x, tx) = (features(Part::X), features(Part::Tx));
        assert_eq!((x.rows(), x.columns(), x.entries()), (60, 500, 2819));
        assert_eq!((tx.rows(), tx.columns(), tx.entries()), (1000, 500, 50140));
    }
}
