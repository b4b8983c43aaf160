//! Lists of which some elements go.

/// Removes the first `count` elements; a list with room for more than twice `most` elements then gives back what
/// exceeds `most` and its length.
///
/// ```
/// use bochner_numerics::lists::remove_first;
///
/// let mut list = Vec::with_capacity(100);
/// list.extend(0..10);
/// remove_first(&mut list, 7, 60);
/// assert_eq!((&list[..], list.capacity()), (&[7, 8, 9][..], 100));
/// remove_first(&mut list, 1, 20);
/// assert!(list == [8, 9] && list.capacity() < 100);
/// ```
///
/// # Panics
/// If there are fewer elements.
pub fn remove_first<U>(list: &mut Vec<U>, count: usize, most: usize) {
    list.drain(..count);
    if list.capacity() / 2 > most {
        list.shrink_to(most);
    }
}

/// Keeps the rows of a list that are marked, one mark a row, in their order.
pub fn keep_marked<U: Copy>(list: &mut Vec<U>, marks: &[bool]) {
    let width = list.len().checked_div(marks.len()).unwrap_or(0);
    let mut end = 0;
    for (from, _) in marks.iter().enumerate().filter(|&(_, &kept)| kept) {
        list.copy_within(from * width..(from + 1) * width, end);
        end += width;
    }
    list.truncate(end);
}
