//! Who sets up: this process, or a helper that has the privileges for it.
//!
//! Each [operation](crate::operation) is plain data and descriptors, and so is what comes of it. In a process
//! that has given its privileges up, and has named a [`Helper`], the functions of this crate send it, and
//! return the result; in any other they carry it out. What was set up is the caller's either way: links,
//! sockets and maps are descriptors, and what the helper had of them it has closed by then.

use std::{
    cell::RefCell,
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, OnceLock},
    thread,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Error, Parcel, in_netns, netns,
    operation::Operation,
    parcel::{Fd, pack, unpack},
};

/// A way to a process that does what [`carry_out`] does.
pub trait Helper: Send + Sync {
    /// Sends a request, and waits for the answer. `quick`: it is not to wait for others, which may take
    /// the kernel seconds.
    ///
    /// # Errors
    /// The process has ended; what it has begun, the kernel has undone. `NotConnected`: and there will be no
    /// other.
    fn call(&self, request: Parcel, quick: bool) -> io::Result<Parcel>;
}

static HELPER: OnceLock<Box<dyn Helper>> = OnceLock::new();

thread_local! {
    /// The network namespace that operations are for; `None`: this process's.
    static WITHIN: RefCell<Option<Arc<Fd>>> = const { RefCell::new(None) };
}

/// From now on, and for good, `helper` does what takes privileges, in place of this process.
pub fn use_helper(helper: impl Helper + 'static) {
    // It is named once.
    let _ = HELPER.set(Box::new(helper));
}

/// Whether another process sets up.
pub(crate) fn is_elsewhere() -> bool {
    HELPER.get().is_some()
}

/// What takes privileges, and of which there is one for each function of this crate that does.
pub(crate) trait Run: Serialize + Into<Operation> {
    type Output: Serialize + DeserializeOwned;

    /// Whether it takes the kernel no time.
    const QUICK: bool = false;

    /// For messages.
    fn interface(&self) -> &str;

    /// Carries it out in this process, in the calling thread's network namespace.
    fn run(self) -> Result<Self::Output, Error>;
}

/// An operation, and where.
#[derive(Serialize, Deserialize)]
struct Request {
    netns: Option<Arc<Fd>>,
    operation: Operation,
}

/// Has an operation carried out, by whom that is up to.
pub(crate) fn run<R: Run>(operation: R) -> Result<R::Output, Error> {
    let Some(helper) = HELPER.get() else { return operation.run() };
    let interface = operation.interface().to_owned();
    let ask = || -> io::Result<Result<R::Output, Error>> {
        let netns = WITHIN.with_borrow(Clone::clone);
        let request = pack(&Request { netns, operation: operation.into() })?;
        unpack(helper.call(request, R::QUICK)?)
    };
    ask().unwrap_or_else(|cause| Err(Error::Helper { interface, cause }))
}

/// The same for an operation that takes no privileges in the network namespace of this process.
pub(crate) fn run_where_needed<R: Run>(operation: R) -> Result<R::Output, Error> {
    match WITHIN.with_borrow(Option::is_some) || is_simulated() {
        true => run(operation),
        false => operation.run(),
    }
}

/// Runs `f`, whose operations are for network namespace `ns`: the helper enters it.
pub(crate) fn within<T>(ns: BorrowedFd<'_>, f: impl FnOnce() -> T) -> io::Result<T> {
    struct Restore(Option<Arc<Fd>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            WITHIN.set(self.0.take());
        }
    }
    let ns = Arc::new(Fd(ns.try_clone_to_owned()?));
    let _restore = Restore(WITHIN.replace(Some(ns)));
    Ok(f())
}

/// Runs `f` with the network namespace that operations are for; `None`: the helper's own.
pub(crate) fn with_netns<T>(
    f: impl FnOnce(Option<BorrowedFd<'_>>) -> io::Result<T>,
) -> io::Result<T> {
    match is_elsewhere() {
        true => WITHIN.with_borrow(|netns| f(netns.as_ref().map(|fd| fd.as_fd()))),
        false => f(Some(netns::netns_here()?.as_fd())),
    }
}

/// Runs both, `there` on a thread of its own, for the same network namespace. The kernel has some of what sets up wait for
/// all processors; what does not depend on that need not come after it.
pub fn beside<A, B: Send>(here: impl FnOnce() -> A, there: impl Fn() -> B + Sync) -> (A, B) {
    if is_simulated() {
        return (here(), there());
    }
    let within = WITHIN.with_borrow(Clone::clone);
    thread::scope(|scope| {
        let other = thread::Builder::new().name("set-up".into()).spawn_scoped(scope, || {
            // A new thread is where the one is that made it; what the helper is told is copied.
            WITHIN.set(within);
            there()
        });
        let here = here();
        let there = match other {
            Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // There can be no more threads.
            Err(_) => there(),
        };
        (here, there)
    })
}

/// Whether there is a kernel for simulations: then all comes in the same order each time.
fn is_simulated() -> bool {
    #[cfg(feature = "simulated")]
    return crate::simulated::is_on();
    #[cfg(not(feature = "simulated"))]
    false
}

/// What a request asks for, wherever.
#[cfg(feature = "simulated")]
pub(crate) fn operation_of(request: Parcel) -> io::Result<Operation> {
    unpack(request).map(|Request { operation, .. }| operation)
}

/// The helper's side: carries out a request of the process that has named this one. The answer is to be sent
/// whatever has come of it.
///
/// # Errors
/// It is no request, or there are no descriptors left for what has come of it, which is undone then.
pub fn carry_out(request: Parcel) -> io::Result<Parcel> {
    let Request { netns, operation } = unpack(request)?;
    match netns {
        None => operation.carry_out(),
        Some(netns) => {
            let interface = operation.interface().to_owned();
            in_netns(netns.as_fd(), || operation.carry_out()).unwrap_or_else(|cause| {
                pack::<Result<(), Error>>(&Err(Error::Netns { interface, cause }))
            })
        }
    }
}
