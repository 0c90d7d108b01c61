//! Lists that the registry answers with page by page.

use ringway_ipc::Page;

use crate::error::Error;

/// The items of all pages of a list, which begins at `from`.
pub(crate) fn all_pages<P, T>(
    from: P,
    mut page: impl FnMut(P) -> Result<Page<T, P>, Error>,
) -> Result<Vec<T>, Error> {
    let (mut all, mut next) = (Vec::new(), Some(from));
    while let Some(from) = next {
        let page = page(from)?;
        all.extend(page.items);
        next = page.next;
    }
    Ok(all)
}
