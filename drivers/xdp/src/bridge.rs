//! A NIC as a port of a bridge. PLACEHOLDER for compilation only.
use crate::{Error, Interface};
use ringway_vale::{Burst, Drops, Frame, Port};
use std::os::fd::BorrowedFd;

pub struct NicPort {}
impl NicPort {
    pub fn open(_interface: &Interface) -> Result<NicPort, Error> {
        unimplemented!()
    }
}
impl Port for NicPort {
    fn collect<'a>(&'a mut self, _: usize, _: &mut Burst<'a>, _: &mut Drops) -> u32 {
        unimplemented!()
    }
    fn release(&mut self, _: usize) {
        unimplemented!()
    }
    fn tx_rings(&self) -> usize {
        unimplemented!()
    }
    fn receives(&self) -> bool {
        unimplemented!()
    }
    fn deliver(&mut self, _: usize, _: &Frame, _: &Burst<'_>, _: &mut Drops) -> bool {
        unimplemented!()
    }
    fn flush(&mut self, _: bool) {
        unimplemented!()
    }
    fn arm(&mut self) {
        unimplemented!()
    }
    fn bell(&self) -> BorrowedFd<'_> {
        unimplemented!()
    }
    fn silence(&self) {
        unimplemented!()
    }
}
