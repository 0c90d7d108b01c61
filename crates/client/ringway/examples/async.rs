//! Two tasks of one thread: one answers what it receives on a port, the other asks, and waits for the
//! answers.
//!
//! ```text
//! cargo run -p ringway --features async --example async -- vale0:asks vale0:answers
//! ```

use std::time::Duration;

use ringway::{AsyncPort, Error, Port};

const QUESTIONS: u32 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut names = std::env::args().skip(1);
    let mut next = |default: &str| names.next().unwrap_or(default.into());
    let asks = Port::open(&next("vale0:asks"))?;
    let answers = Port::open(&next("vale0:answers"))?;
    let answering = tokio::spawn(answer(AsyncPort::new(answers)?));
    let answered = ask(AsyncPort::new(asks)?).await;
    answering.abort();
    println!("{} questions were answered", answered?);
    Ok(())
}

/// Sends frames one by one, and waits for the answer to each.
async fn ask(mut port: AsyncPort) -> Result<u32, Error> {
    for number in 0..QUESTIONS {
        let question = frame(b'?', number);
        loop {
            port.writable().await?;
            port.tx(0).push(&question);
            port.tx(0).sync();
            // The other task may not be there yet: a switch keeps nothing for a port that is full.
            let answer = tokio::time::timeout(Duration::from_secs(1), answer_to(&mut port, number));
            if let Ok(answered) = answer.await {
                answered?;
                break;
            }
        }
    }
    Ok(QUESTIONS)
}

async fn answer_to(port: &mut AsyncPort, number: u32) -> Result<(), Error> {
    let wanted = frame(b'!', number);
    loop {
        port.received().await?;
        if port.rx(0).batch(64).any(|got| got.to_vec() == wanted) {
            return Ok(());
        }
    }
}

async fn answer(mut port: AsyncPort) -> Result<(), Error> {
    loop {
        port.received().await?;
        let (mut tx, mut rx) = port.split();
        let room = tx[0].space();
        for (question, mut slot) in rx[0].batch(room).zip(tx[0].batch(room)) {
            let mut answer = question.to_vec();
            if let Some(kind) = answer.get_mut(14) {
                *kind = b'!';
            }
            slot.write(&answer);
        }
        tx[0].sync();
    }
}

/// A broadcast frame of an experimental EtherType.
fn frame(kind: u8, number: u32) -> Vec<u8> {
    let mut frame = b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5".to_vec();
    frame.push(kind);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.resize(60, 0);
    frame
}
