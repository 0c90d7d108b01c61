//! Ports in tokio: the feature `async`.

use std::ops::{Deref, DerefMut};

use tokio::io::{Interest as Readiness, unix::AsyncFd};

use crate::{error::Error, pollable::PollablePort, port::Port, wait::Interest};

/// A port in a tokio runtime.
///
/// Everything else is as with [`Port`], which it derefs to: batches, syncs, without a call that waits.
/// A task that finds packets each time never yields to others by itself.
///
/// ```
/// use ringway::{AsyncPort, Interest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ringway::Error> {
/// # use ringway_doc as Port;
/// # let mut peer = Port::open("p}1")?;
/// # peer.tx(0).push(&[0; 60]);
/// # peer.tx(0).sync();
/// let mut port = AsyncPort::new(Port::open("p{1")?)?;
/// loop {
///     port.received().await?;
///     let frames: Vec<_> = port.rx(0).batch(64).map(|frame| frame.to_vec()).collect();
///     for frame in frames {
///         port.writable().await?;
///         port.tx(0).push(&frame);
///     }
///     port.tx(0).sync();
/// #   break;
/// }
/// port.ready(Interest::Both).await?;
/// let port = port.into_port();
/// # drop(port);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncPort {
    fd: AsyncFd<PollablePort>,
}

impl AsyncPort {
    /// Puts a port into the runtime that the call is made in.
    ///
    /// # Errors
    /// When the process (`ulimit -n`) or the system is out of descriptors. The port is closed then.
    ///
    /// # Panics
    /// Outside a runtime with I/O enabled.
    // Sound here: the descriptor is the port's own, and nothing hands it out to be exchanged.
    #[allow(deprecated)]
    pub fn new(port: Port) -> Result<AsyncPort, Error> {
        let fd = AsyncFd::with_interest(port.into_pollable()?, Readiness::READABLE);
        Ok(AsyncPort { fd: fd.map_err(Error::system("cannot put the port into the runtime"))? })
    }

    /// Waits until there are packets.
    ///
    /// # Errors
    /// Those of [`Port::wait`].
    pub async fn received(&mut self) -> Result<(), Error> {
        self.ready(Interest::Rx).await
    }

    /// Waits until there is room to send.
    ///
    /// # Errors
    /// Those of [`Port::wait`].
    pub async fn writable(&mut self) -> Result<(), Error> {
        self.ready(Interest::Tx).await
    }

    /// Waits for either; see [`Interest`]. Syncs the rings it waits for. It may be dropped and called
    /// again: nothing is lost.
    ///
    /// # Errors
    /// Those of [`Port::wait`].
    pub async fn ready(&mut self, interest: Interest) -> Result<(), Error> {
        self.check_rings(interest)?;
        if self.poll(interest) {
            return Ok(());
        }
        loop {
            let guard = self.fd.readable_mut().await;
            let mut guard = guard.map_err(Error::system("cannot wait for the port"))?;
            if guard.get_inner_mut().prepare(interest)? {
                return Ok(());
            }
            // Of a wake-up since then the runtime knows, or will.
            guard.clear_ready();
        }
    }

    /// Has another port in the place of this one, which is returned.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ringway::Error> {
    /// # use ringway_doc as Port;
    /// use std::time::Duration;
    /// use ringway::AsyncPort;
    ///
    /// let mut port = AsyncPort::new(Port::open("vale0:a")?)?;
    /// // When `received` has failed, since the daemon has ended:
    /// let mut reopening = port.reopening(Duration::from_secs(10));
    /// port.shut();
    /// loop {
    ///     if let Some(new) = reopening.attempt()? {
    ///         port.replace(new);
    ///         break;
    ///     }
    ///     tokio::time::sleep_until(reopening.due().into()).await;
    /// }
    /// # let mut peer = Port::open("vale0:b")?;
    /// # peer.tx(0).push(&[0xff; 60]);
    /// # peer.tx(0).sync();
    /// port.received().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(&mut self, port: Port) -> Port {
        self.fd.get_mut().replace(port)
    }

    /// [Shuts](Port::shut) the port, until another [replaces](Self::replace) it: every wait fails meanwhile.
    pub fn shut(&mut self) -> u64 {
        self.fd.get_mut().shut()
    }

    /// The port without the runtime.
    pub fn into_port(self) -> Port {
        self.fd.into_inner().into_port()
    }
}

impl Deref for AsyncPort {
    type Target = Port;

    fn deref(&self) -> &Port {
        self.fd.get_ref()
    }
}

impl DerefMut for AsyncPort {
    fn deref_mut(&mut self) -> &mut Port {
        self.fd.get_mut()
    }
}
