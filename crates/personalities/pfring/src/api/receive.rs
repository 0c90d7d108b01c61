//! Packets for the program.

use std::{
    ffi::c_int,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use super::of_ring;
use crate::{
    abi::*,
    admission::Place,
    argument::Out,
    errno::fails,
    parse::program,
    receive::Got,
    ring::{Ring, lock},
    rules::Outlet,
    state::REFLECTS,
};

/// Takes the next packet: 1, 0 if there is none, and what is wrong else.
#[inline]
pub fn recv(
    ring: &Ring,
    buffer: Out<*mut u8>,
    buffer_len: u32,
    header: Out<pfring_pkthdr>,
    wait: u8,
) -> c_int {
    let give = |from: &pfring_pkthdr, place| {
        hand_out(from, place, buffer, buffer_len);
        put_header(ring, from, header);
    };
    if !buffer.ptr().is_null() && ring.next_plain(give) {
        return 1;
    }
    recv_with_all(ring, buffer, buffer_len, header, wait)
}

#[inline(never)]
fn recv_with_all(
    ring: &Ring,
    buffer: Out<*mut u8>,
    buffer_len: u32,
    header: Out<pfring_pkthdr>,
    wait: u8,
) -> c_int {
    if !ring.is_enabled() {
        return ERROR_RING_NOT_ENABLED;
    }
    if !ring.may_receive() {
        return ERROR_NOT_SUPPORTED;
    }
    if ring.is_reentrant() && buffer_len == 0 || buffer.ptr().is_null() {
        return ERROR_INVALID_ARGUMENT;
    }
    if ring.is_closing() {
        return ERROR_GENERIC;
    }
    ring.forget_break();
    ring.send_bounced();
    let got = ring.next(wait != 0, |reader, place| {
        ring.count_received(1);
        hand_out(&reader.header, place, buffer, buffer_len);
        put_header(ring, &reader.header, header);
        ring.reflect(reader, place);
    });
    match got {
        Some(Got::Packet(_)) => 1,
        Some(Got::Nothing) => 0,
        Some(Got::Broken) => fails(0, libc::EINTR),
        Some(Got::Failed) => fails(ERROR_GENERIC, libc::ENODEV),
        None => ERROR_GENERIC,
    }
}

/// Where it lies, or copied into the program's memory.
#[inline]
fn hand_out(header: &pfring_pkthdr, place: Place, buffer: Out<*mut u8>, buffer_len: u32) {
    if buffer_len == 0 {
        buffer.put(place.0.cast_mut());
    } else if let Some(to) = buffer.get().filter(|to| !to.is_null()) {
        let count = header.caplen.min(buffer_len) as usize;
        // SAFETY: so many bytes were captured, and there is room for them.
        unsafe { std::ptr::copy_nonoverlapping(place.0, to, count) };
    }
}

/// As much of the header as the ring has.
#[inline]
fn put_header(ring: &Ring, from: &pfring_pkthdr, to: Out<pfring_pkthdr>) {
    if ring.is_long() {
        to.put(*from);
    } else if !to.ptr().is_null() {
        let (from, to) = (std::ptr::from_ref(from).cast::<u8>(), to.ptr().cast::<u8>());
        // SAFETY: a header's first bytes, and room for a header.
        unsafe { std::ptr::copy_nonoverlapping(from, to, SHORT) };
    }
}

of_ring! {
    fn pfring_recv(
        buffer: Out<*mut u8>, buffer_len: u32, header: Out<pfring_pkthdr>, wait: u8
    ) -> c_int, else ERROR_GENERIC, |ring| recv(ring, buffer, buffer_len, header, wait);
    fn pfring_recv_parsed(
        buffer: Out<*mut u8>, buffer_len: u32, header: Out<pfring_pkthdr>, wait: u8, level: u8, time: u8, hash: u8
    ) -> c_int, else ERROR_GENERIC, |ring| {
        let received = recv(ring, buffer, buffer_len, header, wait);
        if received > 0 {
            parse(buffer.get().unwrap_or(std::ptr::null_mut()), header, level, time, hash);
        }
        received
    };
    fn pfring_loop(looper: looper, user: *const u8, wait: u8) -> c_int, else ERROR_GENERIC, |ring| {
        let Some(looper) = looper else { return ERROR_GENERIC };
        if ring.is_closing() || !ring.may_receive() {
            return ERROR_GENERIC;
        }
        ring.set_program_receives();
        ring.enable();
        ring.forget_break();
        ring.each(wait != 0, |header, data| {
            // SAFETY: the program's function, with what it has asked for, and a packet that stays meanwhile.
            unsafe { looper(header, data, user) };
        })
    };
    fn pfring_is_pkt_available() -> c_int, else ERROR_GENERIC, |ring| ring.peek().is_some().into();
    fn pfring_poll(milliseconds: u32) -> c_int, else ERROR_GENERIC, |ring| poll(ring, milliseconds);
    fn pfring_next_pkt_time(time: Out<timespec>) -> c_int, else ERROR_GENERIC, |ring| match next_time(ring) {
        Ok(time_ns) => {
            let (tv_sec, tv_nsec) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
            time.put_some(Some(timespec { tv_sec: tv_sec as i64, tv_nsec: tv_nsec as i64 }))
        }
        Err(code) => code,
    };
    fn pfring_next_pkt_raw_timestamp(time: Out<u64>) -> c_int, else ERROR_GENERIC, |ring| match next_time(ring) {
        Ok(time_ns) => time.put_some(Some(time_ns)),
        Err(code) => code,
    };
    fn pfring_get_selectable_fd() -> c_int, else ERROR_GENERIC, |ring| {
        let fd = ring.fd();
        // Readable if there is something, from the beginning.
        ring.peek();
        fd
    };
    fn pfring_get_num_queued_pkts() -> u32, else 0, |ring| ring.queued();
    fn pfring_set_reflector_device(device: crate::argument::Text) -> c_int, else ERROR_GENERIC, |ring| {
        let mut reflector = lock(&ring.reflector);
        match device.get().filter(|_| reflector.is_none()).and_then(|name| Outlet::open(&name)) {
            Some(opened) => {
                *reflector = Some(opened);
                ring.state.set(REFLECTS, true);
                0
            }
            None => ERROR_GENERIC,
        }
    };
}

/// Waits for a packet: 1, 0 after that time or a break, -1 on a signal. A wait enables the ring, as `poll(2)` of
/// PF_RING's descriptor does.
fn poll(ring: &Ring, milliseconds: u32) -> c_int {
    if milliseconds > 0 {
        ring.enable();
    }
    let deadline = Instant::now() + Duration::from_millis(milliseconds.into());
    ring.polls.fetch_add(1, Relaxed);
    // From here on, a look that finds nothing leaves the descriptors unreadable.
    ring.watch();
    loop {
        if ring.peek().is_some() {
            return 1;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return 0;
        }
        // Rounded up: what is left is never nothing.
        match ring.poll((left.as_millis() as u32).saturating_add(1)) {
            Ok(0) => return 0,
            Ok(_) => {}
            Err(error) => return fails(ERROR_GENERIC, error.raw_os_error()),
        }
    }
}

/// When the next packet came, in nanoseconds.
fn next_time(ring: &Ring) -> Result<u64, c_int> {
    match ring.peek() {
        None => Err(ERROR_NO_PKT_AVAILABLE),
        Some(header) if { header.tv_sec } == 0 => Err(ERROR_WRONG_CONFIGURATION),
        Some(header) => Ok(header.timestamp_ns),
    }
}

fn parse(packet: *mut u8, header: Out<pfring_pkthdr>, level: u8, time: u8, hash: u8) -> c_int {
    let Some(mut parsed) = header.get().filter(|_| !packet.is_null()) else {
        return ERROR_INVALID_ARGUMENT;
    };
    let count = parsed.caplen.min(MAX_CAPLEN) as usize;
    let mut bytes = [0; 512];
    let count = count.min(bytes.len());
    // Other processes may change it where it is. No header that is read begins behind that.
    // SAFETY: so many bytes were captured.
    unsafe { std::ptr::copy_nonoverlapping(packet, bytes.as_mut_ptr(), count) };
    if time != 0 && { parsed.tv_sec } == 0 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        (parsed.tv_sec, parsed.tv_usec) = (now.tv_sec, now.tv_nsec / 1000);
    }
    let depth = program(&bytes[..count], &mut parsed, level, hash != 0);
    header.put(parsed);
    depth
}

/// # Safety
/// As PF_RING says: a packet, of which its header says how much there is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pfring_parse_pkt(
    packet: *mut u8,
    header: Out<pfring_pkthdr>,
    level: u8,
    time: u8,
    hash: u8,
) -> c_int {
    parse(packet, header, level, time, hash)
}
