//! A process that is short of descriptors: each request is refused with a sentence, or granted; nothing ends,
//! nothing is left behind, and with enough of them all is as before.

mod common;

use std::fs::File;

use common::{World, all};
use ringway_proto::RegionInfo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than any of the requests takes.
const MANY: usize = 100;

fn open_descriptors() -> Vec<u64> {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok);
    fds.filter_map(|fd| fd.file_name().to_str()?.parse().ok()).collect()
}

/// Regions, ports, switches, handles and descriptors.
type Books = (Vec<RegionInfo>, Vec<(String, u32)>, Vec<String>, usize, usize);

fn books(w: &mut World) -> Books {
    let ports = w.ports().into_iter().map(|port| (port.name, port.users)).collect();
    let descriptors = open_descriptors().len();
    (w.regions(), ports, w.bridges(), w.registry.handles(), descriptors)
}

/// In a process of its own: the limit is for all of it.
#[test]
fn short_of_descriptors() {
    let mut w = World::new();
    let (other, _) = w.open("vale0:other");
    let before = books(&mut w);
    let last = open_descriptors().into_iter().max().unwrap_or(0);
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(last + MANY as u64), ..limits }).unwrap();
    // All that are free but so many.
    let take_all_but = |more: usize| {
        let mut taken: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - more);
        taken
    };
    for name in ["vale0:a", "vale1:a", "own{1", "vale0:other{1", "vale0:other"] {
        let mut refused = 0;
        for more in 0.. {
            assert!(more < MANY, "{name} is refused for ever");
            let taken = take_all_but(more);
            // A refusal has a cause and a sentence: `World` looks.
            let answer = w.register(name, all());
            drop(taken);
            match answer {
                Ok((handle, _)) => {
                    w.registry.close(handle);
                    assert_eq!(books(&mut w), before, "{name}");
                    break;
                }
                Err(_) => refused += 1,
            }
            assert_eq!(books(&mut w), before, "{name} with {more} descriptors more");
        }
        assert!(refused > 0, "{name}");
        let (handle, _) = w.open(name);
        w.registry.close(handle);
    }
    w.registry.close(other);
    w.assert_empty();
}
