"""A hostile client: it opens a port of a switch, and misuses all descriptors that it was given.

misuse.py USER GROUP carry PORT            sends sockets that take an hour to close into them
misuse.py USER GROUP shut PORT             shuts them down
misuse.py USER GROUP fill PORT             fills them, and makes them blocking
misuse.py USER GROUP crowd PORT ROUNDS     listens to its own so often that to wake it takes long
misuse.py USER GROUP many PORT             listens to hundreds of its own, each just quick enough to wake
misuse.py USER GROUP random PORT ROUNDS    does at random all that can be done with a descriptor

It runs as that user, takes root for it, says "done", and keeps the port until it is killed.
"""

import ctypes
import fcntl
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import termios
import time

import ringway

libc = ctypes.CDLL(None, use_errno=True)
FULL = struct.pack("=Q", 2**64 - 2)
EDGE = select.EPOLLIN | select.EPOLLET
SOL_SOCKET_OPTIONS = 80
F_SETSIG = 10


kept = []


def lingering():
    """A socket that takes an hour to close, as its other end is never read. It is not for us to close."""
    ours = socket.socket()
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        ours.connect(server.getsockname())
        kept.extend([ours, server.accept()[0]])
    ours.setblocking(False)
    try:
        while True:
            ours.send(bytes(4096))
    except BlockingIOError:
        pass
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 3600))
    return ours


def as_socket(descriptor):
    """The descriptor for calls on sockets. The kernel refuses the first of them if it is none."""
    copy = os.dup(descriptor)
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM, 0, fileno=copy)
    except OSError:
        os.close(copy)
        raise


def carry(descriptor, what):
    """Sends `what` into a descriptor, in place of the owner's own copy. Whether it has gone."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", what))]
    flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
    try:
        with as_socket(descriptor) as carrier:
            carrier.sendmsg([b"x"], rights, flags)
    except OSError:
        return False
    return True


def shut(descriptor, how):
    with as_socket(descriptor) as one:
        one.shutdown(how)


def fill(descriptor):
    """Leaves a count that no write can add to, which waits from now on."""
    os.set_blocking(descriptor, False)
    try:
        try:
            os.read(descriptor, 8)
        except OSError:
            pass
        os.write(descriptor, FULL)
    except BlockingIOError:
        # Another holder has added to it in between: the next time, then.
        pass
    finally:
        os.set_blocking(descriptor, True)


def arm_and_send(port):
    """Has the worker wake us, and wakes the worker, which has a frame to drop."""
    for ring in port.tx + port.rx:
        os.set_blocking(ring.doorbell, False)
        os.set_blocking(ring.other, False)
        ring.store(8, (ring.load(8) + 1) & 0xFFFFFFFF or 1)
    ring = port.tx[0]
    if ring.tail() != ring.head:
        struct.pack_into("<HH", port.memory, ring.slots + 16 * ring.head + 4, 60, 0)
        ring.head = ring.next(ring.head)
    ring.publish()


def set_option(descriptor):
    option = random.randrange(SOL_SOCKET_OPTIONS)
    size = random.choice([4, 8, 16])
    value = random.randbytes(size) if random.random() < 0.5 else bytes([1]).ljust(size, b"\0")
    with as_socket(descriptor) as one:
        one.setsockopt(random.choice([socket.SOL_SOCKET, 0, 1, 41]), option, value)


def set_flags(descriptor):
    flags = [os.O_NONBLOCK, os.O_APPEND, os.O_ASYNC, os.O_DIRECT]
    fcntl.fcntl(descriptor, fcntl.F_SETFL, sum(flag for flag in flags if random.random() < 0.5))


def own(descriptor):
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, random.choice([os.getpid(), os.getppid(), 1]))
    fcntl.fcntl(descriptor, F_SETSIG, random.choice([signal.SIGUSR1, signal.SIGIO, signal.SIGKILL]))


def control(descriptor):
    request = random.choice([termios.FIONBIO, termios.FIOASYNC, termios.FIONREAD, termios.TIOCOUTQ])
    fcntl.ioctl(descriptor, request, struct.pack("=i", random.randrange(2)))


def read(descriptor):
    os.preadv(descriptor, [bytearray(8)], -1, os.RWF_NOWAIT)


def write(descriptor):
    os.set_blocking(descriptor, False)
    os.write(descriptor, random.choice([FULL, struct.pack("=Q", 1), random.randbytes(8)]))


def watch(descriptor, sets=[]):
    """Listens to it, exclusively or not, with sets within sets."""
    if len(sets) < 8:
        sets.append(select.epoll())
    chosen, events = random.choice(sets), random.choice([EDGE, EDGE | select.EPOLLEXCLUSIVE, select.EPOLLIN])
    chosen.register(random.choice([descriptor, random.choice(sets).fileno()]), events)


def connect(descriptor):
    with as_socket(descriptor) as one:
        one.connect(random.choice(["", b"\0" + random.randbytes(5)]))


def crowd(port, rounds):
    """Has the worker wake us through thousands of listeners, one time after the other."""
    bells = [ring.doorbell for ring in port.tx + port.rx]
    copies = [[os.dup(bell) for _ in range(50)] for bell in bells]
    sets = [select.epoll() for _ in range(200)]
    for own in sets:
        for copy in [copy for bell in copies for copy in bell]:
            own.register(copy, select.EPOLLIN)
    heard = select.poll()
    for bell in bells:
        heard.register(bell, select.POLLIN)
    kept.extend(sets)
    for _ in range(rounds):
        for bell in bells:
            try:
                read(bell)
            except OSError:
                pass
        arm_and_send(port)
        if not heard.poll(10_000):
            sys.exit("nothing wakes us")


def many(name):
    """Has the worker wake us by hundreds of doorbells at once, each of which takes less than half a millisecond.
    Yields after each time."""
    ports = [ringway.Port(f"{name}{n}", tx_slots=64, rx_slots=64, tx_rings=4, rx_rings=4) for n in range(60)]
    heard = [ring for port in ports for ring in port.rx]
    sets = [select.epoll() for _ in range(500)]
    kept.extend(sets)
    for ring in heard:
        # The doorbell stays open, and what listens to the copies with it.
        copies = [os.dup(ring.doorbell) for _ in range(4)]
        for own in sets:
            for copy in copies:
                own.register(copy, select.EPOLLIN)
        for copy in copies:
            os.close(copy)
    while True:
        for ring in heard:
            ring.head = ring.tail()
            ring.store(4, ring.head)
            ring.store(0, ring.head)
            ring.store(8, (ring.load(8) + 1) & 0xFFFFFFFF or 1)
        for ring in ports[0].tx:
            if ring.tail() != ring.head:
                slot = ring.slots + 16 * ring.head
                (buffer,) = struct.unpack_from("<I", ports[0].memory, slot)
                start = ports[0].layout.buffer(buffer)
                ports[0].memory[start : start + 60] = b"\xff" * 6 + bytes([2, 0, 0, 0, 0x77, 2]) + bytes(48)
                struct.pack_into("<HH", ports[0].memory, slot + 4, 60, 0)
                ring.head = ring.next(ring.head)
            ring.publish()
        yield
        time.sleep(0.02)


def listen(descriptor):
    with as_socket(descriptor) as one:
        one.listen()


def duplicate(descriptor):
    os.close(os.dup(descriptor))


def splice(descriptor, pipe=[]):
    if not pipe:
        pipe.extend(os.pipe2(os.O_NONBLOCK))
    os.set_blocking(descriptor, False)
    ends = random.choice([(descriptor, pipe[1]), (pipe[0], descriptor)])
    os.splice(*ends, 8, flags=2)


def truncate(descriptor):
    os.ftruncate(descriptor, random.randrange(100))


def lock(descriptor):
    fcntl.flock(descriptor, random.choice([fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN]) | fcntl.LOCK_NB)


def seek(descriptor):
    os.lseek(descriptor, random.randrange(100), random.randrange(3))


def misuse(port, descriptors, rounds):
    # Signals that it has sent to itself.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    seed = int(os.environ.get("RINGWAY_SEED", time.time_ns()))
    random.seed(seed)
    print(f"RINGWAY_SEED={seed} repeats this run", flush=True)
    slow = [lingering() for _ in range(8)]
    calls = [
        lambda it: carry(it, random.choice(slow).fileno()),
        lambda it: carry(it, it),
        lambda it: carry(it, random.choice(descriptors)),
        lambda it: shut(it, random.randrange(3)),
        fill, set_option, set_flags, own, control, read, write, watch, connect, listen, duplicate,
        splice, truncate, lock, seek,
    ]
    for _ in range(rounds):
        try:
            random.choice(calls)(random.choice(descriptors))
        except OSError:
            pass
        arm_and_send(port)


def main():
    user, group, what, name = sys.argv[1:5]
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
    if what == "many":
        rounds = many(name)
        next(rounds)
        print("done", flush=True)
        for _ in rounds:
            pass
    port = ringway.Port(name)
    descriptors = [at for ring in port.tx + port.rx for at in (ring.doorbell, ring.other)]
    if what == "carry":
        gone = [carry(at, lingering().fileno()) for at in descriptors for _ in range(3)]
        print(f"{sum(gone)} of {len(gone)} were taken", flush=True)
    elif what == "shut":
        for at in descriptors:
            try:
                shut(at, socket.SHUT_RDWR)
            except OSError as error:
                print(error)
    elif what == "fill":
        arm_and_send(port)
        for at in descriptors:
            fill(at)
    elif what == "crowd":
        crowd(port, int(sys.argv[5]))
    elif what == "random":
        misuse(port, descriptors, int(sys.argv[5]))
    if what != "random":
        # Whatever became of the doorbell, the worker is to look, and to wake.
        port.tx[0].store(8, (port.tx[0].load(8) + 1) & 0xFFFFFFFF or 1)
        for ring in port.tx + port.rx:
            os.set_blocking(ring.other, False)
        try:
            arm_and_send(port)
        except OSError as error:
            print(error)
    print("done", flush=True)
    signal.pause()


main()
