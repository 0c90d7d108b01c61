//! Capture files as ports: the rings are those of a null port, and this process moves their packets.
//!
//! The daemon knows nothing of the file, which is opened with the rights of the program.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use ringway_abi::Dir;
use ringway_file::{FileRx, FileTx, Playback, Recorder, Recording, Skipped};
use ringway_kring::Kring;
use ringway_proto::{Options, Registration, RingSelection, is_printable};
use rustix::fd::AsFd;

use crate::{
    asked_twice,
    binding::Binding,
    driver::{LocalDriver, RingDriver},
    error::Error,
    file_spec::FileSpec,
    open_options::OpenOptions,
    port::Port,
    reopen::Opened,
};

/// The region of interfaces and pipes, with which frames are exchanged without copying.
const GLOBAL_REGION: u16 = 1;

const SLOTS: u32 = 1024;

const MORE_RIGHTS: &str = "this program has more rights than the user who started it (a set-user-ID bit, or file \
     capabilities), and opens no file by the name of a port; run it as that user, without them";

/// Opens the file that `spec` names as a port with one ring: to be received from, or to be sent to.
pub(crate) fn open(file: &FileSpec, options: &OpenOptions, spec: &str) -> Result<Port, Error> {
    // The name often comes from the program's command line, by which its user would reach files of
    // others.
    if ringway_environment::has_more_rights() {
        return Err(Error::Name { name: spec.into(), problem: MORE_RIGHTS.into() });
    }
    let asked = options.registration();
    let dir = direction(file, asked, spec)?;
    let wrong = |problem: String| Error::Name { name: spec.into(), problem };
    if let Some(what) = options.not_for_files() {
        return Err(wrong(format!("a capture file does not have {what}; leave that option out")));
    }
    let filter =
        asked_twice::filter(spec, file.filter.as_deref(), file.sample, options.asked_filter())?;
    let filters = filter.is_some() || file.sample.is_some();
    if let Some((option, does)) = file.misplaced(dir == Dir::Tx, filters) {
        return Err(wrong(format!("{option} is for a file that is {does}; leave it out")));
    }
    let session = options.session()?;
    let reg = Registration {
        rings: RingSelection::Null { sink: false },
        mem_id: if asked.mem_id == 0 { GLOBAL_REGION } else { asked.mem_id },
        tx_rings: (dir == Dir::Tx).into(),
        rx_rings: (dir == Dir::Rx).into(),
        tx_slots: if asked.tx_slots == 0 { SLOTS } else { asked.tx_slots },
        rx_slots: if asked.rx_slots == 0 { SLOTS } else { asked.rx_slots },
        extra_bufs: asked.extra_bufs,
        exclusive: asked.exclusive,
        ..Registration::default()
    };
    let binding = Binding::register(&session, &name_of_rings(&file.file), reg, Options::default())?;
    let driver = driver(file, dir, spec, &binding)?;
    let mut binding = binding.moved_by(spec, driver);
    if let Some(filter) = &filter {
        binding = binding.filtering(filter);
    }
    let opened = Opened::new(options.clone(), spec, &session);
    Ok(Port::new(binding, session, opened))
}

impl Port {
    /// Ends the [file](FileSpec) that the port writes to, as dropping the port does; what is sent from now
    /// on is dropped. A pipe that is not read is given up after five seconds. Other ports have nothing to end.
    ///
    /// # Errors
    /// When not everything could be written, now or before; [`stats`](Port::stats) has the number, as
    /// `ring_full`.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// # let path = std::env::temp_dir().join(format!("ringway-finish-{}.pcap", std::process::id()));
    /// # let path = path.display();
    /// let mut file = Port::options().tx_only().open(&format!("file:{path}"))?;
    /// file.tx(0).push(&[0xff; 60]);
    /// file.tx(0).sync();
    /// file.finish_file()?; // All of it is on the disk, or this says why not.
    /// # std::fs::remove_file(path.to_string()).unwrap();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn finish_file(&mut self) -> Result<(), Error> {
        self.binding().finish_local();
        self.binding().check_local(Dir::Tx)
    }
}

/// What the daemon calls the rings, `file:in.pcap@PID.NUMBER`: each opening of a file has rings of its own.
/// A path may be longer than the daemon's names are, and is not for all users to see.
fn name_of_rings(file: &Path) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// Bytes of a file's name: with what stands around them, they are fewer than 64.
    const MOST: usize = 32;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut shown = String::new();
    for letter in name.chars() {
        // Braces are for pipes; what is no letter of a terminal's is refused, or not shown.
        let letter = if !is_printable(letter) || "{}@".contains(letter) { '_' } else { letter };
        if shown.len() + letter.len_utf8() > MOST {
            break;
        }
        shown.push(letter);
    }
    format!("file:{shown}@{}.{}", std::process::id(), NEXT.fetch_add(1, Relaxed))
}

fn direction(file: &FileSpec, asked: &Registration, spec: &str) -> Result<Dir, Error> {
    let wrong = |problem: &str| Error::Name { name: spec.into(), problem: problem.into() };
    match (file.write, asked.without_tx, asked.without_rx) {
        (Some(true), true, _) => Err(wrong("a file that is written to has nothing to receive")),
        (Some(false), _, true) => Err(wrong("a file that is read takes no frames")),
        (Some(true), ..) | (None, _, true) => Ok(Dir::Tx),
        (Some(false), ..) | (None, true, _) => Ok(Dir::Rx),
        // A bridge opens either: what is there is read, and never overwritten.
        (None, false, false) if Path::new(&file.file).exists() => Ok(Dir::Rx),
        (None, false, false) if file.file == Path::new("-") => Err(wrong(
            "say which: file:-@read for standard input, file:-@write for standard output",
        )),
        (None, false, false) => Ok(Dir::Tx),
    }
}

fn driver(file: &FileSpec, dir: Dir, spec: &str, binding: &Binding) -> Result<RingDriver, Error> {
    let layout = binding.region().layout();
    Ok(RingDriver::Local(match dir {
        Dir::Rx => {
            let doorbell = binding.rings(dir).first().map(|ring| ring.doorbell().as_fd());
            let doorbell = doorbell.map(|fd| fd.try_clone_to_owned()).transpose();
            let doorbell = doorbell.map_err(Error::system("cannot copy a descriptor"))?;
            Box::new(FileRx::new(Playback::open(&file.file, file.replay, doorbell)?, layout))
        }
        Dir::Tx => {
            let mut recording = Recording::to(&file.file, spec);
            recording.snaplen = file.snaplen;
            recording.rotation = file.rotation;
            // One that is there is read, unless the name says that it is written. Those of a rotation are
            // none that a user has named: what is there stays.
            recording.overwrite = !file.rotation.is_on();
            Box::new(FileTx::new(Recorder::new(&recording)?, layout))
        }
    }))
}

impl LocalDriver for FileRx {
    fn check(&self, kring: &Kring, name: &str) -> Result<(), Error> {
        self.check_process()?;
        if !kring.is_ended() {
            return Ok(());
        }
        let end = || {
            let Skipped { frames, link } = self.skipped();
            Error::End { name: name.into(), cut: self.cut(), skipped: (frames, link) }
        };
        Err(self.error().map_or_else(end, Error::from))
    }
}

impl LocalDriver for FileTx {
    fn finish(&self, kring: &Kring) {
        FileTx::finish(self, kring);
    }

    fn check(&self, _kring: &Kring, _name: &str) -> Result<(), Error> {
        self.error().map_or(Ok(()), |error| Err(error.into()))
    }
}
