use ringway::Port;

fn main() -> Result<(), ringway::Error> {
    let mut a = Port::open("vale0:a")?; // a switch and two ports on it
    let mut b = Port::open("vale0:b")?;

    let mut tx = a.tx(0);
    tx.push(b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5hello");
    tx.sync(); // hands over all that was pushed

    b.wait_rx(None)?;
    for frame in b.rx(0).batch(64) {
        println!("{} bytes: {}", frame.len(), String::from_utf8_lossy(&frame.to_vec()[14..]));
    }
    Ok(())
}
