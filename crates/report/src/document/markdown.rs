//! The document as Markdown.

use super::{Block, Document};

pub(super) fn render(document: &Document) -> String {
    let blocks: Vec<String> = document.blocks.iter().filter_map(block).collect();
    format!("# {}\n\n{}\n", document.title, blocks.join("\n\n"))
}

fn block(block: &Block) -> Option<String> {
    match block {
        Block::Heading(text) => Some(format!("## {text}")),
        Block::Text(text) => Some(text.clone()),
        Block::List(points) => Some(
            points
                .iter()
                .map(|point| format!("* {point}"))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        Block::Table { head, rows } => Some(table(head, rows)),
        Block::Figure { name, caption, .. } => Some(format!("![{caption}]({name}.svg)")),
        Block::Pictures { .. } => None,
    }
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut lines = vec![line(head), format!("|{}", "---|".repeat(head.len()))];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::Document;

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
}
