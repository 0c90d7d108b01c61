//! A client of what a next version of the control protocol could be; see `tests/upgrade.rs`.
//!
//! ```text
//! traffic-next echo PORT       as `traffic echo`
//! traffic-next ask             the new request, and the new field of an answer
//! traffic-next open PORT       opens the port with the new option, and says what the grant has of it
//! ```

use std::process::ExitCode;

use ringway::{Control, Error, Index, Registration, Session};
use ringway_proto::{Grant, Options, Request, VERSION};
use ringway_tests::echo::echo;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["echo", port] => echo(port),
        ["ask"] => ask(),
        ["open", port] => open(port),
        _ => panic!("see the head of this program for its arguments"),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    println!("{:?}: {error}", error.cause());
    ExitCode::FAILURE
}

fn ask() -> Result<(), Error> {
    println!("this is {VERSION}, and the daemon is {}", Control::connect_running()?.daemon()?.next);
    let (Index(answer), _) = Session::connect_running()?.call(Request::Next(77))?;
    println!("the answer is {answer}");
    Ok(())
}

fn open(port: &str) -> Result<(), Error> {
    let options = Box::new(Options { next: Some(88), ..Options::default() });
    let (name, registration) = (port.into(), Registration::default());
    let request = Request::Register { name, registration, options };
    let (grant, _): (Box<Grant>, _) = Session::connect_running()?.call(request)?;
    println!("granted with {:?}", grant.options.next);
    Ok(())
}
