//! Transactions in each of their states, with a kernel that is simulated: whether the client
//! goes or the work fails there, nothing of them is left, and nothing is half done.

mod common;

use std::{
    os::unix::net::UnixDatagram,
    process::Command,
    sync::{Arc, Mutex},
};

use common::{
    World,
    asked::{Asked, close_all},
    faults::{Books, apart, books},
    select,
};
use ringway_nic_setup::simulated::{Fate, Kernel};
use ringway_proto::{
    Action, Ebpf, Error, Filter, NicMode, Options, PortShape, Request, RingSelection, RxSelector,
};
use ringway_region::Sizes;
use ringway_registry::{Caller, Done, Handle, Progress, Registry, Settings, Step, Subject, Work};
use ringway_testkit::{isolate_thread, skip_without_root};
use rustix::net::netdevice::name_to_index;

/// Devices for the indices of simulated ones.
const DEVICES: usize = 20;

/// How the request ends in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The client goes while the work is yet to be done.
    GoneBefore,
    /// It goes when the work has been done.
    GoneAfter,
    /// It goes when the registry has the result.
    GoneWithResult,
    /// What does the work ends.
    Lost,
    /// The kernel refuses the work's operation of that number, if there are as many.
    Refused(usize),
    /// The same operation is carried out, and what has done it ends before it says so.
    HelperGone(usize),
}

/// The operations that have come to the kernel, and which of them has another fate than to be done.
#[derive(Default)]
struct Operations {
    names: Vec<String>,
    fate: Option<(usize, Fate)>,
}

/// What there is of a request.
#[derive(Debug, PartialEq)]
struct Held {
    books: Books,
    kernel: Vec<(&'static str, u32)>,
    disagreements: Vec<String>,
}

struct Simulated {
    world: World,
    kernel: Arc<Kernel>,
    operations: Arc<Mutex<Operations>>,
    /// Rings of `n0` are its.
    own: Handle,
    rings: RingSelection,
}

impl Simulated {
    fn new(rings: RingSelection) -> Simulated {
        isolate_thread();
        // Their names can be looked up, and AF_PACKET sockets be bound to them.
        let name = |at| format!("n{at}");
        let pairs = (0..DEVICES).step_by(2);
        let pairs = pairs.map(|at| format!("ip link add n{at} type veth peer n{} && ", at + 1));
        let script = pairs.collect::<String>() + "true";
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        let socket = UnixDatagram::unbound().unwrap();
        let index = |at| name_to_index(&socket, &name(at)).unwrap();
        let kernel = Kernel::start((0..DEVICES).map(index)).unwrap();
        assert!(kernel.add("n0", 2, true));
        let operations = Arc::<Mutex<Operations>>::default();
        let log = operations.clone();
        kernel.on_operation(move |name| {
            let mut log = log.lock().unwrap();
            log.names.push(name.to_owned());
            let at = log.names.len() - 1;
            log.fate.filter(|(which, _)| *which == at).map_or(Fate::Done, |(_, fate)| fate)
        });
        let global_region = Sizes { buf_num: 4096, ..Sizes::GLOBAL };
        let settings = Settings { nic_slots: 16, global_region, ..Settings::default() };
        let mut world = World { registry: Registry::new(settings), caller: Caller::myself() };
        world.registry.deferred().defer_closings();
        let own = world.registry.open();
        let mut simulated = Simulated { world, kernel, operations, own, rings };
        simulated.have_rings();
        simulated
    }

    /// The rings, and their rules, that there are before each request.
    fn have_rings(&mut self) {
        self.world.register_on(self.own, "n0", select(self.rings)).unwrap();
        self.have_first_rules();
    }

    /// The handle is another one, as if its client had come anew.
    fn have_rings_anew(&mut self) {
        self.world.registry.close(self.own);
        close_all(&mut self.world);
        self.own = self.world.registry.open();
        self.have_rings();
    }

    fn ask(&mut self, handle: Handle, request: Request) {
        let Simulated { world, .. } = self;
        let answer = world.registry.call(handle, &world.caller, request.clone());
        answer.unwrap_or_else(|error| panic!("{request:?}: {error}"));
        close_all(world);
    }

    /// The rules that all rings have before each request.
    fn have_first_rules(&mut self) {
        self.ask(self.own, filter("", RxSelector::Queues, Some("first")));
        self.ask(self.own, action(Some("first")));
    }

    /// Makes what a request that was answered has changed what it was.
    fn undo(&mut self, request: &Request) {
        match request {
            Request::NewInterface { name, .. } => {
                self.ask(self.own, Request::DeleteInterface { name: name.clone() });
            }
            // Its handle is closed, and a port keeps queues for its user's next program.
            Request::Register { .. } | Request::Stack => self.have_rings_anew(),
            _ => self.have_first_rules(),
        }
    }

    fn held(&mut self) -> Held {
        // It looks for what nobody holds any more, and closes its own ends of that.
        for name in ["n0", "n2"] {
            self.kernel.change(name, |_| ());
        }
        let kernel = self.kernel.held();
        Held {
            books: books(&mut self.world),
            kernel,
            disagreements: self.world.registry.disagreements(),
        }
    }

    /// What `f` comes to if that happens to an operation of it, and the operations.
    fn with_fate<T>(
        &mut self,
        fate: Option<(usize, Fate)>,
        f: impl FnOnce(&mut World) -> T,
    ) -> (T, Vec<String>) {
        *self.operations.lock().unwrap() = Operations { names: Vec::new(), fate };
        let result = f(&mut self.world);
        (result, std::mem::take(&mut *self.operations.lock().unwrap()).names)
    }

    /// Ends a request in the state that comes after so many pieces of work. `None`: it has no such state, or no
    /// such operation there.
    fn end(&mut self, request: &Request, state: usize, ending: Ending) -> Option<()> {
        let before = self.held();
        let is_registration = matches!(request, Request::Register { .. });
        let handle = if is_registration { self.world.registry.open() } else { self.own };
        let mut asked = Asked { handle, request: request.clone(), progress: Progress::default() };
        let done = (0..state).try_for_each(|_| {
            let done = next(&mut asked, &mut self.world).ok()?.run();
            asked.progress.put(done);
            Some(())
        });
        let work = done.and_then(|()| next(&mut asked, &mut self.world).ok());
        let Some(work) = work else {
            self.world.registry.end(asked.progress);
            self.close(handle);
            self.undo(request);
            return None;
        };
        let subject = work.subject().clone();
        let (fate, number) = match ending {
            Ending::Refused(number) => (Some((number, Fate::Refused(libc::ENOMEM))), number),
            Ending::HelperGone(number) => (Some((number, Fate::Lost)), number),
            _ => (None, 0),
        };
        let run = |this: &mut Simulated, work: Work| this.with_fate(fate, |_| work.run());
        let (result, operations) = match ending {
            Ending::GoneBefore => {
                self.world.registry.end(asked.progress);
                let (done, operations) = run(self, work);
                self.world.registry.discard(done);
                (None, operations)
            }
            Ending::GoneAfter => {
                let (done, operations) = run(self, work);
                self.world.registry.end(asked.progress);
                self.world.registry.discard(done);
                (None, operations)
            }
            Ending::GoneWithResult => {
                let (done, operations) = run(self, work);
                asked.progress.put(done);
                self.world.registry.end(asked.progress);
                (None, operations)
            }
            Ending::Lost => {
                drop(work);
                self.world.registry.discard(Done::lost(subject.clone()));
                self.world.registry.end(asked.progress);
                (None, Vec::new())
            }
            Ending::Refused(_) | Ending::HelperGone(_) => {
                let (done, operations) = run(self, work);
                asked.progress.put(done);
                (Some(asked.finish(&mut self.world)), operations)
            }
        };
        let (_, closing) = self.with_fate(None, close_all);
        self.close(handle);
        let is_there = fate.is_none() || number < operations.len();
        match result {
            Some(Ok(_)) => {
                // There may be another way to open an interface, and what a device is set to need not be known.
                let may_do_without = matches!(
                    request,
                    Request::Register { .. } | Request::Stack | Request::NewInterface { .. }
                );
                let is_done = !is_there || may_do_without;
                assert!(is_done, "{request:?} without one of {operations:?}");
                self.undo(request);
            }
            Some(Err(error)) => assert!(is_there, "{request:?}: {error}"),
            // Rules that were in force have been put back.
            None if matches!(subject, Subject::Interface(..)) && !is_registration => {
                let loads = |names: &[String]| names.iter().any(|name| name == "LoadRules");
                assert_eq!(loads(&operations), loads(&closing), "{request:?} {ending:?}");
            }
            None => {}
        }
        if is_registration {
            self.undo(request);
        }
        assert_eq!(self.held(), before, "{request:?} in state {state}: {ending:?}");
        is_there.then_some(())
    }

    /// Closes the handle of a registration.
    fn close(&mut self, handle: Handle) {
        if handle != self.own {
            self.world.registry.close(handle);
            close_all(&mut self.world);
        }
    }

    /// Ends a request in each of its states, in each way. Returns how many states it has.
    fn end_everywhere(&mut self, request: &Request) -> usize {
        let gone = [Ending::GoneBefore, Ending::GoneAfter, Ending::GoneWithResult, Ending::Lost];
        for state in 0.. {
            for ending in gone {
                if self.end(request, state, ending).is_none() {
                    return state;
                }
            }
            for failing in [Ending::Refused, Ending::HelperGone] {
                let failing = (0..).map(failing);
                failing.map_while(|ending| self.end(request, state, ending)).for_each(drop);
            }
        }
        unreachable!("it is answered in the end")
    }
}

/// The next work of a request, or its answer.
fn next(asked: &mut Asked, world: &mut World) -> Result<Work, Result<(), Error>> {
    match asked.begin(world) {
        Step::Do(work) => Ok(work),
        Step::Answered(answer) => Err(answer.map(drop)),
        Step::Wait(subject) => panic!("it waits for {subject:?}"),
    }
}

/// Without a name, for the rings of the handle.
fn filter(name: &str, rings: RxSelector, text: Option<&str>) -> Request {
    let insns = || ringway_filter::Program::everything().insns().to_vec();
    let filter = text.map(|text| Filter { text: text.into(), insns: insns(), one_in: 1 });
    Request::SetFilter { name: name.into(), rings, filter }
}

fn action(text: Option<&str>) -> Request {
    let insn = |code, immediate| Ebpf { code, registers: 0, offset: 0, immediate };
    let insns = || vec![insn(0xb7, 2), insn(0x95, 0)];
    let action =
        text.map(|text| Action { text: text.into(), insns: insns(), redirects: Vec::new() });
    Request::SetAction { name: "n0".into(), rings: RxSelector::Queues, action }
}

#[test]
fn transactions_that_end_early_leave_nothing() {
    let name = "transactions_that_end_early_leave_nothing";
    if skip_without_root(name) || apart(name) {
        return;
    }
    let mut of = Simulated::new(RingSelection::AllAndHost);
    // What is verified, and what is installed.
    for (request, states) in [
        (filter("n0", RxSelector::Queues, Some("second")), 2),
        (filter("n0", RxSelector::Queue(1), Some("second")), 2),
        (filter("n0", RxSelector::Queues, None), 1),
        (filter("n0", RxSelector::Host, Some("second")), 2),
        (filter("n0", RxSelector::Host, None), 0),
        (filter("", RxSelector::Queues, Some("second")), 2),
        (filter("", RxSelector::Queues, None), 1),
        (action(Some("second")), 2),
        (action(None), 1),
        // The pair that it is one end of.
        (Request::NewInterface { name: "per0".into(), shape: PortShape::default() }, 1),
    ] {
        assert_eq!(of.end_everywhere(&request), states, "{request:?}");
    }
    of.world.registry.close(of.own);
    close_all(&mut of.world);
    of.world.assert_empty();
    assert_eq!(of.kernel.held(), []);
}

/// A registration goes on from part to part, and so does a way to the stack where no program has host rings.
#[test]
fn requests_of_several_parts_that_end_early_leave_nothing() {
    let name = "requests_of_several_parts_that_end_early_leave_nothing";
    if skip_without_root(name) || apart(name) {
        return;
    }
    let mut of = Simulated::new(RingSelection::One(0));
    assert!(of.kernel.add("n2", 2, true) && of.kernel.add("n4", 1, true));
    // It keeps the region, whose memory is freed by threads.
    let (keeper, _) = of.world.open("n4");
    // The first one opens what stays open.
    let (first, _) = of.world.open("n2");
    of.world.registry.close(first);
    close_all(&mut of.world);
    let text = || Some("of a registration");
    let Request::SetFilter { filter, .. } = filter("", RxSelector::Queues, text()) else {
        unreachable!("that was asked for")
    };
    let Request::SetAction { action, .. } = action(text()) else {
        unreachable!("that was asked for")
    };
    let plain = Options { mode: Some(NicMode::Copy), ..Options::default() };
    let with_filter = Options { filter, ..plain.clone() };
    let with_both = Options { action, ..with_filter.clone() };
    let on = |name: &str, rings, options: &Options| Request::Register {
        name: name.into(),
        registration: select(rings),
        options: Box::new(options.clone()),
    };
    for (request, states) in [
        // Its name, its watch, and its queues.
        (on("n2", RingSelection::All, &plain), 3),
        (on("n2", RingSelection::Host, &plain), 3),
        (on("n2", RingSelection::AllAndHost, &plain), 4),
        // What is verified, and what is installed.
        (on("n2", RingSelection::AllAndHost, &with_filter), 6),
        (on("n2", RingSelection::All, &with_both), 7),
        // Beside a queue that a program has.
        (on("n0", RingSelection::One(1), &with_both), 6),
        (on("n0", RingSelection::Host, &plain), 2),
        (Request::Stack, 2),
    ] {
        assert_eq!(of.end_everywhere(&request), states, "{request:?}");
    }
    of.world.close([of.own, keeper]);
    close_all(&mut of.world);
    of.world.assert_empty();
    assert_eq!(of.kernel.held(), []);
}

/// A filter of host rings is loaded for what redirects the stack's frames then: if that has ended meanwhile, the
/// request is begun again, and not verified again.
#[test]
fn a_plan_whose_base_has_gone_is_made_anew() {
    let name = "a_plan_whose_base_has_gone_is_made_anew";
    if skip_without_root(name) || apart(name) {
        return;
    }
    let mut of = Simulated::new(RingSelection::AllAndHost);
    of.world.registry.close(of.own);
    close_all(&mut of.world);
    let [host, sender] = [RingSelection::Host, RingSelection::One(0)].map(|rings| {
        let handle = of.world.registry.open();
        let options = Options { mode: Some(NicMode::Copy), ..Options::default() };
        of.world.register_with(handle, "n0", select(rings), options).unwrap();
        handle
    });
    let request = filter("n0", RxSelector::Host, Some("first"));
    let mut asked = Asked { handle: host, request, progress: Progress::default() };
    let verified = asked.work(&mut of.world).run();
    asked.progress.put(verified);
    let loading = asked.work(&mut of.world);
    of.world.registry.close(sender);
    close_all(&mut of.world);
    assert!(of.kernel.held().iter().all(|(what, _)| *what != "egress"));
    let subject = loading.subject().clone();
    asked.progress.put(loading.run());
    assert_eq!(asked.waits_for(&mut of.world).as_ref(), Some(&subject));
    assert_eq!(close_all(&mut of.world), std::slice::from_ref(&subject));
    let loading = asked.work(&mut of.world);
    assert_eq!(loading.subject(), &subject, "it is verified once");
    asked.progress.put(loading.run());
    asked.finish(&mut of.world).unwrap();
    assert!(of.kernel.held().iter().any(|(what, _)| *what == "egress"));
    assert!(of.world.ports()[0].filters.iter().any(|filter| filter.host));
    of.world.registry.close(host);
    close_all(&mut of.world);
    of.world.assert_empty();
    assert_eq!(of.kernel.held(), []);
}
