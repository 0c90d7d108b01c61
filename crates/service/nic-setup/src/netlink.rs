//! What netlink's datagrams consist of, of any family: messages, and their attributes.

/// Kind of a message: the request failed (`NLMSG_ERROR`), or is done, where it asked for that.
pub(crate) const ERROR: u16 = 2;
/// Of an attribute's kind, without the bits that say what is in it.
const KIND_MASK: u16 = 0x3fff;

/// The messages of a datagram: kind, and what is behind `struct nlmsghdr`. It ends at one that is not
/// whole.
pub(crate) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(datagram.get(0..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(datagram.get(4..6)?.try_into().ok()?);
        let body = datagram.get(16..length)?;
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The payload of the first attribute of `kind`.
pub(crate) fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = u16::from_ne_bytes(attributes.get(0..2)?.try_into().ok()?) as usize;
        let this = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?) & KIND_MASK;
        let payload = attributes.get(4..length)?;
        if this == kind {
            return Some(payload);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}
