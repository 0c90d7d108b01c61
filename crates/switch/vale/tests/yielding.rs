//! Senders are asked to yield the processor to a receiver that has no room.

mod common;

use common::{BROADCAST, Client, header};
use ringway_vale::{Clock, Forwarding, PortConfig, SteppedBridge};

/// Whether `client` was asked since the last time.
fn is_asked(client: &Client) -> bool {
    let csb = client.tx[0].csb();
    csb.app.is_asked_to_yield(&csb.service)
}

#[test]
fn a_sender_is_asked_while_the_receiver_gets_on() {
    let mut bridge = SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap();
    let [sender, receiver] = [16, 8].map(|slots| Client::new([1, 1], [16, slots], 0));
    for client in [&sender, &receiver] {
        bridge.attach(Box::new(client.port()), PortConfig::default()).unwrap();
    }
    let mut asks = |frames: usize| {
        for _ in 0..frames {
            sender.fill(0, &header(BROADCAST, [2, 0, 0, 0, 0, 1]), 14, 0, None);
        }
        sender.tx_sync(0);
        // What was freed is visible after the second.
        while bridge.round() {}
        sender.tx_sync(0);
        is_asked(&sender)
    };

    assert!(!asks(7), "all have found room");
    let while_it_stands: Vec<_> = (0..12).map(|_| asks(1)).collect();
    assert_eq!(while_it_stands[..8], [true; 8]);
    assert_eq!(
        while_it_stands[8..],
        [false; 4],
        "what takes nothing costs others nothing for long"
    );

    assert_eq!(receiver.receive(0, 3).len(), 3);
    assert!(asks(4), "it has got on");
    assert!(!asks(0), "nothing was lost");
    assert!(!is_asked(&receiver), "it has sent nothing");
    let [no_room, _] = receiver.rx[0].csb().service.lost();
    assert_eq!(no_room, 13, "its program is told at once");
}
