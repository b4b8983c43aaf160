pub(crate) mod squares;
