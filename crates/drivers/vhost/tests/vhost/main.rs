//! A card, between a port's rings and a guest.

mod common;
mod frames;
mod hostile;
mod offloads;
mod waits;
