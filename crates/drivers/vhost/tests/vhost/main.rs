//! A card, between a port's rings and a guest.

mod common;
mod frames;
mod hostile;
mod known_faults;
mod offloads;
mod waits;
