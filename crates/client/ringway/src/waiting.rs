//! How several ports, or what else has descriptors, are waited for at once.

/// Looks, and announces a wait.
///
/// ```
/// # use ringway_doc as Port;
/// use std::time::{Duration, Instant};
/// use ringway::{Interest, Prepared, Woken, prepare};
///
/// let mut port = Port::open("vale0:a")?;
/// match prepare(&mut port.waiter(Interest::Rx)) {
///     Prepared::Ready => println!("there are packets"),
///     Prepared::Armed(armed) => {
///         let woken = armed.sleep(Some(Instant::now() + Duration::from_millis(1)))?;
///         assert_eq!(woken, Woken::TimedOut);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_kring::prepare;

/// ```
/// # use ringway_doc as Port;
/// use ringway::{Interest, prepare};
///
/// let mut port = Port::open("vale0:a")?;
/// let ready = prepare(&mut port.waiter(Interest::Tx)).is_ready();
/// assert!(ready, "a new port has room to send");
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Prepared;

/// A wait that is announced.
///
/// ```
/// # use ringway_doc as Port;
/// use std::time::Instant;
/// use ringway::{Interest, Prepared, prepare};
///
/// let mut port = Port::open("vale0:a")?;
/// let mut waiter = port.waiter(Interest::Rx);
/// if let Prepared::Armed(armed) = prepare(&mut waiter) {
///     // For a loop of the program's own:
///     println!("{} descriptors to watch", armed.sources().as_slice().len());
///     // Or by poll(2), here:
///     println!("{:?}", armed.sleep(Some(Instant::now()))?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Armed;

/// ```
/// # use ringway_doc as Port;
/// use std::time::Instant;
/// use ringway::{Interest, Prepared, Woken, prepare};
///
/// let mut port = Port::open("vale0:a")?;
/// if let Prepared::Armed(armed) = prepare(&mut port.waiter(Interest::Rx)) {
///     match armed.sleep(Some(Instant::now()))? {
///         Woken::Notified => println!("look again"),
///         Woken::HungUp => println!("the daemon has ended"),
///         Woken::TimedOut => println!("nothing yet"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Woken;

/// A party that waits: a port's [waiter](crate::Port::waiter), or a type of the program's that has several, or
/// something else beside them.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{Interest, PortWaiter, Waiter, prepare};
///
/// /// A port, or a flag of the program.
/// struct Either<'p>(PortWaiter<'p>, bool);
///
/// impl Waiter for Either<'_> {
///     fn look(&mut self) -> bool {
///         self.1 || self.0.look()
///     }
///     fn arm(&mut self) -> bool {
///         self.0.arm()
///     }
///     fn pass_on(&mut self) {
///         self.0.pass_on();
///     }
/// }
///
/// let mut port = Port::open("vale0:a")?;
/// let mut either = Either(port.waiter(Interest::Rx), true);
/// assert!(prepare(&mut either).is_ready());
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Waiter;

/// A party that can sleep.
///
/// ```
/// # use ringway_doc as Port;
/// use std::{io, os::fd::AsFd, os::unix::net::UnixStream, time::Instant};
/// use ringway::{Interest, PortWaiter, Prepared, Sleeper, Sources, Waiter, Woken, prepare};
/// use rustix::event::PollFlags;
///
/// /// A port, and a socket on which another thread says that it is time to stop.
/// struct PortOrStop<'p>(PortWaiter<'p>, &'p UnixStream);
///
/// impl Waiter for PortOrStop<'_> {
///     fn look(&mut self) -> bool {
///         self.0.look()
///     }
///     fn arm(&mut self) -> bool {
///         self.0.arm()
///     }
///     fn pass_on(&mut self) {
///         self.0.pass_on();
///     }
/// }
///
/// impl Sleeper for PortOrStop<'_> {
///     fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
///         self.0.sources(sources);
///         sources.add(self.1.as_fd(), PollFlags::IN);
///     }
/// }
///
/// let (stop, stopped) = UnixStream::pair()?;
/// io::Write::write_all(&mut &stop, b"!")?;
/// let mut port = Port::open("vale0:a")?;
/// if let Prepared::Armed(armed) = prepare(&mut PortOrStop(port.waiter(Interest::Rx), &stopped)) {
///     assert_eq!(armed.sleep(None)?, Woken::Notified);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Sleeper;

/// What a sleep ends by.
///
/// ```
/// use std::{io, os::fd::AsFd, os::unix::net::UnixStream};
/// use ringway::Sources;
/// use rustix::event::PollFlags;
///
/// let (data, connection) = UnixStream::pair()?;
/// let mut sources = Sources::default();
/// sources.add(data.as_fd(), PollFlags::IN);
/// sources.add_connection(connection.as_fd());
/// let events: Vec<_> = sources.as_slice().iter().map(|(_, events)| *events).collect();
/// assert_eq!(events, [PollFlags::empty(), PollFlags::IN]);
/// # Ok::<(), io::Error>(())
/// ```
#[doc(inline)]
pub use ringway_kring::Sources;
