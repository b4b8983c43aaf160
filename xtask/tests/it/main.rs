//! Claims of the documents about themselves and about the workspace.

mod marks_of_documents_have_their_links;
mod readme_names_what_there_is;
