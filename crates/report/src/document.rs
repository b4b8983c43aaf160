//! Reports: the same document as Markdown and as one HTML file that needs nothing else.

mod chart;
mod matrix;
mod number;
mod plane;
mod png;
mod svg;
mod templates;

pub use chart::{Axis, Chart, Marks, Series};
pub use matrix::{Colours, Matrix};
pub use number::significant;
pub use plane::principal_plane;

use serde::{Serialize, Serializer};

/// A report, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The title.
    pub title: String,
    /// The parts that follow it.
    pub blocks: Vec<Block>,
    /// Tables that are files of their own beside the report: their names and contents.
    pub tables: Vec<(String, String)>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// A heading; the text that follows belongs to it.
    Heading(String),
    /// A paragraph. Text between back quotes is code, between double asterisks it is bold.
    Text(String),
    /// Points.
    List(Vec<String>),
    /// A table.
    Table {
        /// The columns' names.
        head: Vec<String>,
        /// The cells, row by row.
        rows: Vec<Vec<String>>,
    },
    /// Pictures side by side, in the HTML file.
    Pictures {
        /// The name, without its ending, of the file beside the Markdown file that holds them too, if there is one.
        file: Option<String>,
        /// The caption.
        caption: String,
        /// The pictures.
        #[serde(serialize_with = "elements")]
        pictures: Vec<Picture>,
    },
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Lines or dots over two axes.
    Chart(Chart),
    /// A matrix in 256 shades.
    Shades {
        /// The title.
        title: String,
        /// Rows and columns.
        side: usize,
        /// The cells, row by row: from the lightest to the darkest.
        levels: Vec<u8>,
    },
    /// A small matrix, with numbers.
    Matrix(Matrix),
}

/// Gives the templates the pictures as elements of a page.
fn elements<S: Serializer>(pictures: &[Picture], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pictures.iter().map(svg::element))
}

impl Document {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds a heading and a paragraph, unless they are empty.
    pub(crate) fn headed(&mut self, heading: &str, text: &str) {
        if !heading.is_empty() {
            self.heading(heading);
        }
        if !text.is_empty() {
            self.text(text);
        }
    }

    /// Adds a part under a heading; an empty part leaves no trace.
    pub fn part(&mut self, heading: impl Into<String>, write: impl FnOnce(&mut Self)) {
        let start = self.blocks.len();
        write(self);
        if self.blocks.len() > start {
            self.blocks.insert(start, Block::Heading(heading.into()));
        }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds points; none leave no trace.
    pub fn list(&mut self, points: Vec<String>) {
        if !points.is_empty() {
            self.blocks.push(Block::List(points));
        }
    }

    /// Adds a table.
    pub fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>) {
        self.blocks.push(Block::Table {
            head: head.iter().map(|name| (*name).to_owned()).collect(),
            rows,
        });
    }

    /// Adds pictures with a file of their own; none leave no trace.
    pub fn figure(
        &mut self,
        name: impl Into<String>,
        caption: impl Into<String>,
        pictures: Vec<Picture>,
    ) {
        let file = Some(name.into());
        self.add_pictures(file, caption.into(), pictures);
    }

    /// The files beside the report, figures as SVG and tables: their names and contents.
    pub fn files(&self) -> impl Iterator<Item = (String, String)> {
        let figures = self.blocks.iter().filter_map(|block| match block {
            Block::Pictures { file, pictures, .. } => {
                Some((format!("{}.svg", file.as_ref()?), svg::file(pictures)))
            }
            _ => None,
        });
        figures.chain(self.tables.iter().cloned())
    }

    /// Adds pictures; none leave no trace.
    pub fn pictures(&mut self, caption: impl Into<String>, pictures: Vec<Picture>) {
        self.add_pictures(None, caption.into(), pictures);
    }

    fn add_pictures(&mut self, file: Option<String>, caption: String, pictures: Vec<Picture>) {
        if !pictures.is_empty() {
            self.blocks.push(Block::Pictures {
                file,
                caption,
                pictures,
            });
        }
    }

    /// The report as Markdown, without its pictures.
    pub fn to_markdown(&self) -> String {
        templates::markdown(self)
    }

    /// The report as one HTML file, pictures inside.
    pub fn to_html(&self) -> String {
        templates::html(self)
    }
}
