//! Requests that take long, in the steps that a daemon takes with them.

use ringway_proto::{Error, Reply, Request};
use ringway_registry::{Handle, Progress, Step, Subject, Work};

use super::World;

/// A request that is begun, and begun again.
pub struct Asked {
    pub handle: Handle,
    pub request: Request,
    pub progress: Progress,
}

impl Asked {
    pub fn new(world: &mut World, request: Request) -> Asked {
        Asked { handle: world.registry.open(), request, progress: Progress::default() }
    }

    pub fn begin(&mut self, world: &mut World) -> Step {
        world.registry.begin(self.handle, &world.caller, &self.request, &mut self.progress)
    }

    /// The work that it waits for.
    pub fn work(&mut self, world: &mut World) -> Work {
        match self.begin(world) {
            Step::Do(work) => work,
            _ => panic!("it takes no time"),
        }
    }

    /// What it waits for that others do, when its own interface is known.
    pub fn waits_for(&mut self, world: &mut World) -> Option<Subject> {
        loop {
            match self.begin(world) {
                Step::Do(work) if matches!(work.subject(), Subject::Names(_)) => {
                    self.progress.put(work.run());
                }
                Step::Wait(subject) => return Some(subject),
                _ => return None,
            }
        }
    }

    /// The work that opens what the request is about, when its names are known.
    pub fn opens(&mut self, world: &mut World) -> Work {
        loop {
            match self.begin(world) {
                Step::Do(work) if !matches!(work.subject(), Subject::Names(_)) => return work,
                Step::Do(work) => self.progress.put(work.run()),
                Step::Wait(subject) => panic!("it waits for {subject:?}"),
                Step::Answered(answer) => panic!("{:?}", answer.map(drop)),
            }
        }
    }

    /// Goes on to the end.
    pub fn finish(&mut self, world: &mut World) -> Result<Reply, Error> {
        loop {
            match self.begin(world) {
                Step::Do(work) => self.progress.put(work.run()),
                Step::Answered(answer) => return answer.map(|(reply, _)| reply),
                Step::Wait(_) => panic!("others are at it"),
            }
        }
    }
}

/// Does what was left to the caller. Returns what it was about.
pub fn close_all(world: &mut World) -> Vec<Subject> {
    let works = world.registry.deferred().closings();
    let closed = works.into_iter().map(|work| {
        let done = work.run();
        let subject = done.subject().clone();
        world.registry.discard(done);
        subject
    });
    closed.collect()
}
