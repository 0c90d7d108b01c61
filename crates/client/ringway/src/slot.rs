//! A slot, its flags, and what stands beside a frame of a file.

/// A slot, as [`Slots::get`](crate::Slots::get) and [`Slots::set`](crate::Slots::set) have it.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::Slot;
///
/// let mut port = Port::open("vale0:a")?;
/// let mut tx = port.tx(0);
/// let mut slots = tx.slots();
/// let slot = Slot { len: 60, flags: 0, ..slots.get(0) };
/// slots.set(0, slot);
/// assert_eq!(slots.get(0), slot);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_region::Slot;

/// What a file says of a frame: [`RxFrame::recorded`](crate::RxFrame::recorded),
/// [`TxSlot::set_recorded`](crate::TxSlot::set_recorded).
///
/// ```
/// # use ringway_doc as Port;
/// # #[cfg(feature = "files")]
/// # fn main() -> Result<(), ringway::Error> {
/// use ringway::Recorded;
///
/// # let folder = std::env::temp_dir().join(format!("ringway-recorded-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("out.pcapng").display().to_string();
/// let mut file = Port::options().tx_only().open(&format!("file:{path}"))?;
/// let mut tx = file.tx(0);
/// for mut slot in tx.batch(1) {
///     slot.write(&[0; 60]);
///     slot.set_recorded(Recorded { time: 1_700_000_000_000_000_000, length: 1500 });
/// }
/// tx.sync();
/// file.finish_file()?;
///
/// let mut file = Port::options().rx_only().open(&format!("file:{path}"))?;
/// assert!(file.wait_rx(None)?);
/// for frame in file.rx(0).batch(1) {
///     assert_eq!(frame.recorded().map(|recorded| recorded.length), Some(1500));
/// }
/// # drop(file);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "files"))]
/// # fn main() {}
/// ```
#[doc(inline)]
pub use ringway_region::Recorded;

/// A flag of a [slot](crate::Slot).
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{NS_BUF_CHANGED, Slot};
///
/// let mut port = Port::options().extra_bufs(1).open("vale0:a")?;
/// let buffer = port.take_extra_bufs()[0];
/// let mut tx = port.tx(0);
/// let mut slots = tx.slots();
/// let old = slots.get(0);
/// slots.set(0, Slot { buf_idx: buffer, flags: NS_BUF_CHANGED, ..old });
/// port.return_extra_bufs([old.buf_idx]);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_abi::NS_BUF_CHANGED;

/// A flag of a [slot](crate::Slot), for ports that were opened with
/// [`OpenOptions::indirect`](crate::OpenOptions::indirect).
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{NS_INDIRECT, Slot};
///
/// let mut port = Port::options().indirect().open("vale0:a")?;
/// let frame = [0xff; 60]; // It stays where it is until the sync.
/// let mut tx = port.tx(0);
/// let mut slots = tx.slots();
/// let slot = Slot { len: 60, flags: NS_INDIRECT, ptr: frame.as_ptr() as u64, ..slots.get(0) };
/// slots.set(0, slot);
/// slots.advance(1);
/// tx.sync();
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_abi::NS_INDIRECT;

/// A flag of a [slot](crate::Slot).
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::NS_MOREFRAG;
///
/// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
/// let mut tx = a.tx(0);
/// let mut free = tx.batch(2);
/// let parts = [(&[1; 60][..], true), (&[2; 20], false)];
/// for (mut slot, (part, more)) in free.by_ref().zip(parts) {
///     slot.write_part(part, more);
/// }
/// drop(free);
/// tx.sync();
///
/// b.rx(0).sync();
/// let mut rx = b.rx(0);
/// let slots = rx.slots();
/// assert!(slots.get(0).flags & NS_MOREFRAG != 0 && slots.get(1).flags & NS_MOREFRAG == 0);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_abi::NS_MOREFRAG;

/// A flag of a [slot](crate::Slot).
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{NS_REPORT, Slot};
///
/// let mut port = Port::open("vale0:a")?;
/// let mut tx = port.tx(0);
/// let mut slots = tx.slots();
/// let slot = Slot { len: 60, flags: NS_REPORT, ..slots.get(0) };
/// slots.set(0, slot);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_abi::NS_REPORT;
