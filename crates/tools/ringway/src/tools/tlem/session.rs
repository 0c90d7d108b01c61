//! Sessions: the first process of a session file runs the link, later ones change it, or end it.
//!
//! The file is the server's Unix socket. A process holds a lock on FILE.lock while it finds out whether a
//! server listens there, and becomes it otherwise, so that there are never two; then FILE.lock goes. What a
//! server that was killed leaves is a socket at which nobody listens, and is removed by the next.
//!
//! Only processes of one user meet: both sides look at the other's user. A request is the arguments of the
//! later process, each with a zero behind it; an answer is a line.

use super::options::{Given, Options};
use crate::error::{Error, Result};
use crate::link::Settings;
use crate::run_loop::Waker;
use rustix::fs::OFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// The longest request, and how long its next bytes may take.
const LONGEST: u64 = 1 << 16;
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries to accept, where the process has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers begin with. The end of a session is the end of the answer.
const DONE: &str = "tlem: done";
const ENDING: &str = "tlem: ending";
const REFUSED: &str = "tlem: refused: ";

/// What a process is in a session.
pub enum Role {
    First(Server),
    Later(UnixStream),
}

/// What a later process asks of the server.
pub enum Order {
    /// These settings; it is told when they are in effect.
    Change(Box<[Settings; 2]>, SyncSender<()>),
    End,
}

/// An order as it comes from the thread that serves the session.
enum Request {
    Change(Box<[Settings; 2]>, SyncSender<()>),
    /// It waits for the end of this.
    End(UnixStream),
}

/// The session of a server. The file goes with it, and then those are told who wait for the end.
pub struct Server {
    path: PathBuf,
    identity: (u64, u64),
    listener: UnixListener,
    requests: Option<Receiver<Request>>,
    waiting: Vec<UnixStream>,
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Value(format!("-s {}: {why}", path.display()))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "; make its directory first",
        ErrorKind::PermissionDenied => "; name a file in a directory of your own",
        ErrorKind::InvalidInput => "; name a shorter path",
        _ => "",
    };
    refused(path, &format!("{error}{remedy}"))
}

/// Becomes the server of a session, or meets it. `is_end`: it is to end, and there has to be one.
pub fn join(path: &Path, is_end: bool) -> Result<Role> {
    let fail = |error: io::Error| failed(path, &error);
    let _lock = Lock::take(path)?;
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        Err(error) => return Err(fail(error)),
        Ok(found) => {
            check_owner(path, found.uid())?;
            if !found.file_type().is_socket() {
                let why = "is no session of tlem; name a file that does not exist, or remove it";
                return Err(refused(path, why));
            }
            match UnixStream::connect(path) {
                Ok(stream) => {
                    let server = socket_peercred(&stream).map_err(|error| fail(error.into()))?;
                    check_owner(path, server.uid.as_raw())?;
                    return Ok(Role::Later(stream));
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(fail)?;
                }
                Err(error) => return Err(fail(error)),
            }
        }
    }
    if is_end {
        return Err(refused(path, "no session is running there, so none can be ended"));
    }
    Server::listen(path).map(Role::First)
}

fn check_owner(path: &Path, uid: u32) -> Result<()> {
    match uid == geteuid().as_raw() {
        true => Ok(()),
        false => {
            let why = "belongs to another user; name a file in a directory of your own";
            Err(refused(path, why))
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Held while a process finds its role.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(session: &Path) -> Result<Lock> {
        let mut path = session.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.mode(0o600).custom_flags(flags.bits().cast_signed());
            let file = options.open(&path).map_err(|error| failed(&path, &error))?;
            let opened = file.metadata().map_err(|error| failed(&path, &error))?;
            check_owner(&path, opened.uid())?;
            if !opened.is_file() || opened.len() > 0 {
                let why = "is no lock of tlem; remove it, or name another session";
                return Err(refused(&path, why));
            }
            file.lock().map_err(|error| failed(&path, &error))?;
            // The one that held it has removed it meanwhile.
            let is_there = path.symlink_metadata();
            if is_there.is_ok_and(|there| identity(&there) == identity(&opened)) {
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the server for what the arguments say, and waits until it is so.
pub fn ask(path: &Path, mut server: UnixStream, args: &[String]) -> Result<()> {
    let mut request: Vec<u8> = Vec::new();
    for arg in args {
        request.extend_from_slice(arg.as_bytes());
        request.push(0);
    }
    if request.len() as u64 > LONGEST {
        return Err(refused(path, "these arguments are too long; shorten them"));
    }
    let mut answer = String::new();
    // What it says counts, even if it has not read everything, or has ended then.
    let _ = server.write_all(&request).and_then(|()| server.shutdown(Shutdown::Write));
    let _ = server.take(LONGEST).read_to_string(&mut answer);
    match answer.trim_end() {
        DONE | ENDING => Ok(()),
        "" => Err(refused(path, "the session has ended meanwhile; start tlem again")),
        answer => Err(match answer.strip_prefix(REFUSED) {
            Some(why) => Error::Value(why.into()),
            None => refused(path, "what answers there is no tlem; name another file"),
        }),
    }
}

impl Server {
    fn listen(path: &Path) -> Result<Server> {
        let fail = |error: io::Error| failed(path, &error);
        let listener = UnixListener::bind(path).map_err(fail)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(fail)?;
        let identity = identity(&path.symlink_metadata().map_err(fail)?);
        let path = path.to_path_buf();
        Ok(Server { path, identity, listener, requests: None, waiting: Vec::new() })
    }

    /// Answers later processes from now on, in a thread of its own.
    pub fn serve(&mut self, options: Options, waker: Waker) -> Result<()> {
        let fail = |source| Error::System { what: "starting a thread", source };
        let listener = self.listener.try_clone().map_err(fail)?;
        let (sender, requests) = channel();
        let mut desk = Desk { options, sender, waker };
        let serve = move || {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => desk.serve(stream),
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        };
        std::thread::Builder::new().name("session".into()).spawn(serve).map_err(fail)?;
        self.requests = Some(requests);
        Ok(())
    }

    /// The next order, if there is one.
    pub fn next(&mut self) -> Option<Order> {
        match self.requests.as_ref()?.try_recv().ok()? {
            Request::Change(settings, done) => Some(Order::Change(settings, done)),
            Request::End(stream) => {
                self.waiting.push(stream);
                Some(Order::End)
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Ok(_lock) = Lock::take(&self.path) else { return };
        let there = self.path.symlink_metadata();
        if there.is_ok_and(|there| identity(&there) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Where later processes are answered.
struct Desk {
    options: Options,
    sender: Sender<Request>,
    waker: Waker,
}

impl Desk {
    fn serve(&mut self, mut stream: UnixStream) {
        let is_own = socket_peercred(&stream).is_ok_and(|peer| peer.uid == geteuid());
        if !is_own {
            return;
        }
        let answer = match self.read(&stream).and_then(|given| self.carry_out(&stream, &given)) {
            Ok(answer) => answer.map(String::from),
            Err(why) => Some(format!("{REFUSED}{why}")),
        };
        if let Some(answer) = answer {
            // One that does not wait for it does not want it.
            let _ = stream.write_all(answer.as_bytes());
        }
    }

    fn read(&self, stream: &UnixStream) -> std::result::Result<Given, String> {
        let mut bytes = Vec::new();
        let patient = stream.set_read_timeout(Some(PATIENCE));
        let patient = patient.and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        let read = patient.and_then(|()| stream.take(LONGEST + 1).read_to_end(&mut bytes));
        let incomplete = || "the request is incomplete; ask by tlem -s".to_string();
        read.map_err(|_| incomplete())?;
        if bytes.len() as u64 > LONGEST {
            return Err("the request is too long; ask by tlem -s".into());
        }
        let Some((0, bytes)) = bytes.split_last() else { return Err(incomplete()) };
        let args = bytes.split(|byte| *byte == 0);
        let args = args.map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
        Given::parse(args).map_err(Option::unwrap_or_default)
    }

    /// What is to be answered. Nothing: the link has ended.
    fn carry_out(
        &mut self,
        stream: &UnixStream,
        given: &Given,
    ) -> std::result::Result<Option<&'static str>, String> {
        let cannot = |error: io::Error| error.to_string();
        if given.end {
            let mut waiting = stream.try_clone().map_err(cannot)?;
            waiting.write_all(ENDING.as_bytes()).map_err(cannot)?;
            self.order(Request::End(waiting));
            return Ok(None);
        }
        let options = self.options.changed(given)?;
        let (done, is_done) = sync_channel(1);
        self.order(Request::Change(Box::new(options.settings), done));
        if is_done.recv().is_err() {
            return Ok(None);
        }
        self.options = options;
        Ok(Some(DONE))
    }

    fn order(&self, request: Request) {
        // There is nobody to take it when the process ends.
        let _ = self.sender.send(request);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
    use std::os::unix::fs::symlink;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("ringway-session-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir(&folder).unwrap();
            Folder(folder)
        }

        fn session(&self) -> PathBuf {
            self.0.join("s")
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Leaves a socket as a server that is killed does. It never listens: a process that another test starts has a copy of
    /// it until it executes its program.
    fn leave(path: &Path) {
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    }

    fn why(joined: Result<Role>) -> String {
        joined.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_first_is_the_server_and_takes_its_file_along() {
        let folder = Folder::new("first");
        let path = folder.session();
        assert!(why(join(&path, true)).contains("no session is running"));
        let Role::First(server) = join(&path, false).unwrap() else { panic!("there is another") };
        assert!(matches!(join(&path, false), Ok(Role::Later(_))));
        assert!(matches!(join(&path, true), Ok(Role::Later(_))));
        assert_eq!(folder.files(), 1);
        drop(server);
        assert_eq!(folder.files(), 0);
    }

    /// Many at once: exactly one is the server, and all others meet it.
    #[test]
    fn one_of_many_is_the_server() {
        let folder = Folder::new("many");
        let path = folder.session();
        // What a killed server has left.
        leave(&path);
        let roles: Vec<Role> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| join(&path, false).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let servers = roles.iter().filter(|role| matches!(role, Role::First(_))).count();
        assert_eq!((servers, folder.files()), (1, 1));
    }

    #[test]
    fn what_is_no_session_is_refused_and_left_alone() {
        let folder = Folder::new("other");
        let path = folder.session();
        fs::write(&path, "notes").unwrap();
        assert!(why(join(&path, false)).contains("is no session of tlem; name a file"));
        assert_eq!(fs::read(&path).unwrap(), b"notes");
        fs::remove_file(&path).unwrap();
        symlink(folder.0.join("elsewhere"), &path).unwrap();
        assert!(why(join(&path, false)).contains("is no session of tlem"));
        fs::remove_file(&path).unwrap();
        let lock = folder.0.join("s.lock");
        fs::write(&lock, "notes").unwrap();
        assert!(why(join(&path, false)).contains("is no lock of tlem; remove it"));
        fs::remove_file(&lock).unwrap();
        symlink(folder.0.join("elsewhere"), &lock).unwrap();
        assert!(!why(join(&path, false)).is_empty());
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert!(!why(join(&path, false)).is_empty());
        assert!(why(join(&folder.0.join("no/s"), false)).contains("make its directory"));
        assert!(why(join(&folder.0.join("x".repeat(120)), false)).contains("shorter path"));
    }

    #[test]
    fn a_file_in_the_place_of_its_own_is_left_alone() {
        let folder = Folder::new("replaced");
        let path = folder.session();
        let Role::First(server) = join(&path, false).unwrap() else { panic!("there is another") };
        fs::remove_file(&path).unwrap();
        fs::write(&path, "notes").unwrap();
        drop(server);
        assert_eq!(fs::read(&path).unwrap(), b"notes");
    }

    #[test]
    fn an_answer_of_another_program_is_no_success() {
        for (answer, told) in [
            ("", "has ended meanwhile"),
            ("HTTP/1.1 400", "is no tlem; name another"),
            ("tlem: refused: -D: too much", "-D: too much"),
        ] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there.write_all(answer.as_bytes()).unwrap();
            drop(there);
            // The request is not read: the answer that was sent before it counts.
            let error = ask(Path::new("x"), here, &[]).unwrap_err().to_string();
            assert!(error.contains(told), "{answer}: {error}");
        }
    }
}
