"""A client of Ringway, written from docs/control-protocol.md and docs/shared-memory.md alone.

It opens ports of switches and pipes, sends and receives, with nothing but the standard library. It shows
that the two documents are enough; for speed, use another language.
"""

import ctypes
import fcntl
import mmap
import os
import platform
import select
import socket
import stat
import struct
import threading
import time

VERSION = 7
LAYOUT_VERSION = 1
MAX_MESSAGE = 131072
MAX_DESCRIPTORS = 253
MORE_FRAGMENTS = 32


# ---- Encoding ----


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(string):
    encoded = string.encode()
    return varint(len(encoded)) + encoded


def option(encoded):
    return b"\0" if encoded is None else b"\1" + encoded


def registration(
    ring=None, exclusive=False, tx_slots=0, rx_slots=0, tx_rings=0, rx_rings=0, mem_id=0, extra_bufs=0
):
    """A Registration: all rings, or one."""
    rings = varint(0) if ring is None else varint(3) + varint(ring)
    flags = bytes([0, 0, exclusive, 0, 0, 0, 0])
    numbers = [tx_slots, rx_slots, tx_rings, rx_rings, 0, 0, mem_id, extra_bufs, 0]
    return rings + flags + b"".join(varint(number) for number in numbers)


def options(mode=None, buf_size=None):
    """Options: of those of the document, the two that need no structures."""
    encoded = [None, None, None, mode, buf_size, None, None, None]
    return b"".join(option(None if one is None else varint(one)) for one in encoded)


def register(name, asked=None, wanted=None):
    """The request Register, with its version."""
    return bytes([VERSION]) + varint(0) + text(name) + (asked or registration()) + (wanted or options())


def switch_new(bridge):
    """The request SwitchNew."""
    return bytes([VERSION]) + varint(16) + text(bridge) + varint(0)


class Message:
    """Reads a message from its beginning to its end."""

    def __init__(self, encoded):
        self.encoded, self.at = encoded, 0
        version = self.byte()
        if version == 0:
            raise ValueError(f"the daemon speaks versions {self.byte()} to {self.byte()}, and this client {VERSION}")
        if version != VERSION:
            raise ValueError("this is no answer to this client")

    def byte(self):
        self.at += 1
        return self.encoded[self.at - 1]

    def number(self):
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self):
        number = self.number()
        return number >> 1 if number & 1 == 0 else -(number + 1 >> 1)

    def numbers(self, count):
        return [self.number() for _ in range(count)]

    def flag(self):
        return self.byte() != 0

    def text(self):
        length = self.number()
        self.at += length
        return self.encoded[self.at - length : self.at].decode()

    def option(self, read):
        return read() if self.flag() else None

    def list(self, read):
        return [read() for _ in range(self.number())]


class Refused(Exception):
    """The daemon said no: a cause, and a sentence of port, problem and remedy, and of what was tried."""

    SYSTEM = 19
    OPTION_REFUSED = 2

    def __init__(self, message):
        self.cause, self.number = self.read_cause(message)
        port, problem, remedy = (message.text() for _ in range(3))
        for _option in range(2):
            if message.number() == self.OPTION_REFUSED:
                self.read_cause(message)
        refusals = "; ".join(message.list(lambda: self.refusal(message)))
        why = ": " + refusals if refusals else ""
        super().__init__((port + ": " if port else "") + problem + why + ("; " + remedy if remedy else ""))

    @classmethod
    def read_cause(cls, message):
        cause = message.number()
        return cause, message.signed() if cause == cls.SYSTEM else None

    @staticmethod
    def refusal(message):
        tried, problem, remedy = (message.text() for _ in range(3))
        return (f"not {tried}: " if tried else "") + problem + ("; " + remedy if remedy else "")


class Pool:
    def __init__(self, message):
        self.offset, self.size, self.total = message.numbers(3)


class Layout:
    """Where things are in a region."""

    def __init__(self, message):
        if message.number() != LAYOUT_VERSION:
            raise ValueError("a region of another version")
        self.ifs, self.rings, self.bufs = (Pool(message) for _ in range(3))
        self.headroom, self.memory = message.numbers(2)

    @property
    def max_slots(self):
        return (self.rings.size - 256) // 16

    @property
    def total(self):
        total = self.memory + self.rings.total * (512 + self.max_slots * 4)
        return (total + 4095) // 4096 * 4096

    def block(self, ring):
        if ring >= self.rings.total:
            raise ValueError("no such ring object")
        return self.memory + ring * 512

    def slots(self, ring):
        if ring >= self.rings.total:
            raise ValueError("no such ring object")
        return self.rings.offset + ring * self.rings.size + 256

    def buffer(self, index):
        """First byte of a buffer's data, or None."""
        if not 2 <= index < self.bufs.total:
            return None
        return self.bufs.offset + index * self.bufs.size + self.headroom

    @property
    def room(self):
        return self.bufs.size - self.headroom


class RingGrant:
    def __init__(self, message):
        self.is_rx = message.number() == 1
        self.index, self.object, self.slots, self.doorbell = message.numbers(4)
        self.link = message.number()
        if self.link == 2:
            (self.other,) = message.numbers(1)
        elif self.link == 3:
            self.peer_object, self.peer_slots, self.other = message.numbers(3)
        else:
            raise ValueError("this client opens ports of switches and pipes alone")


class Grant:
    """What a registration is answered with."""

    def __init__(self, message):
        self.name = message.text()
        self.kind, self.mem_id = message.numbers(2)
        self.layout = Layout(message)
        self.netif_offset = message.number()
        if message.number() in (3, 4):
            message.number()
        message.numbers(7)
        message.numbers(9)
        if any(message.numbers(8)):
            raise ValueError("options that were not asked for")
        self.rings = message.list(lambda: RingGrant(message))
        self.timestamps = message.flag()
        self.extra_bufs = message.list(lambda: message.numbers(2))
        self.switch_owner = message.option(message.number)


def answer(encoded):
    """A successful answer: the reply's tag, the message behind it, or the Refused."""
    message = Message(encoded)
    if message.number() == 1:
        raise Refused(message)
    return message.number(), message


# ---- The connection ----


def private_directory():
    user = os.getuid()
    if directory := os.environ.get("RINGWAY_DIR"):
        return directory
    for runtime in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}"):
        if runtime and os.path.isdir(runtime):
            found = os.stat(runtime)
            if found.st_uid == user and not found.st_mode & 0o022:
                return f"{runtime}/ringway"
    while (key := folder_key()) > 0 and os.path.isdir("/dev/shm"):
        directory = f"/dev/shm/ringway-{user}-{key:08x}"
        if not os.path.lexists(directory):
            return directory
        found = os.lstat(directory)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return directory
        remove_folder_key(key)
    return f"/tmp/ringway-{user}"


# add_key(2) and keyctl(2) have these numbers on most machines.
ADD_KEY, KEYCTL = (248, 250) if platform.machine() == "x86_64" else (217, 219)
USER_KEYRING = -4
UNLINK = 9


def folder_key():
    """The serial number of the user's key; -1 where the kernel keeps none."""
    return ctypes.CDLL(None).syscall(ADD_KEY, b"user", b"ringway", b"\0", 1, USER_KEYRING)


def remove_folder_key(key):
    ctypes.CDLL(None).syscall(KEYCTL, UNLINK, key, USER_KEYRING)


def connect_to(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def connect():
    """A connection to the daemon; a private one is started if there is none."""
    if named := os.environ.get("RINGWAY_SOCKET"):
        return connect_to(named)
    system = "/run/ringway/ringwayd.sock"
    if not os.environ.get("RINGWAY_DIR") and os.path.exists(system):
        return connect_to(system)
    directory = private_directory()
    path = f"{directory}/ringwayd.sock"
    while True:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        try:
            lock = os.open(f"{directory}/lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # The daemon that leaves removes the lock: the one that counts is still there.
            if not os.path.exists(f"{directory}/lock") or not os.path.samestat(
                os.fstat(lock), os.stat(f"{directory}/lock")
            ):
                continue
            try:
                return connect_to(path)
            except OSError:
                start(directory, path)
                return connect_to(path)
        finally:
            os.close(lock)


def start(directory, path):
    """Starts a daemon that finds its listening socket at descriptor 3."""
    if os.path.exists(path):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(128)
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
        actions = [*null, (os.POSIX_SPAWN_DUP2, listener.fileno(), 3)]
        command = ["ringwayd", "--private", directory]
        os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsid=True)


def call(connection, request):
    """Asks; the tag of the reply, what follows it, and the descriptors."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine:
        with theirs:
            socket.send_fds(connection, [request], [theirs.fileno()])
        encoded, descriptors, _, _ = socket.recv_fds(mine, MAX_MESSAGE, MAX_DESCRIPTORS)
        if not encoded:
            raise ConnectionError("the daemon has ended")
        tag, message = answer(encoded)
        # The number of descriptors is the last of an answer.
        count = last_number(encoded)
        while len(descriptors) < count:
            descriptors += socket.recv_fds(mine, MAX_MESSAGE, MAX_DESCRIPTORS)[1]
        return tag, message, descriptors


def last_number(encoded):
    at = len(encoded) - 1
    while encoded[at - 1] >= 0x80 and at > 1:
        at -= 1
    number = 0
    for shift, byte in enumerate(encoded[at:]):
        number |= (byte & 0x7F) << 7 * shift
    return number


# ---- Shared memory ----

_fence = threading.Lock()


def fence():
    """Orders stores before it with loads after it: on x86-64 a lock is taken by a locked instruction."""
    with _fence:
        pass


class Ring:
    """A ring and its kring. The program's cursors are here: nothing needs those of netmap's ring."""

    def __init__(self, port, grant, doorbells):
        self.layout, self.memory, self.count = port.layout, port.memory, grant.slots
        self.block, self.slots = self.layout.block(grant.object), self.layout.slots(grant.object)
        if not 0 < self.count <= self.layout.max_slots:
            raise ValueError("the slots do not fit the ring")
        self.doorbell, self.other = doorbells
        # Aligned words: each access is one load or one store.
        self.words = port.words
        self.head = self.index(self.load(0))

    def load(self, offset):
        return self.words[(self.block + offset) // 4]

    def store(self, offset, value):
        self.words[(self.block + offset) // 4] = value

    def index(self, number):
        """`number` if there is such a slot: the region is not to be believed."""
        return number if number < self.count else 0

    def next(self, slot):
        return 0 if slot + 1 == self.count else slot + 1

    def tail(self):
        return self.index(self.load(68))

    def publish(self):
        self.store(4, self.head)
        self.store(0, self.head)
        fence()
        # The number of the other party's last wait, and the last that was answered.
        number = self.load(72)
        if number not in (0, self.load(16)):
            self.store(16, number)
            notify(self.other)

    def wait(self, deadline, hangup):
        """Until there are slots, or the time is over. Whether there are."""
        while True:
            drain(self.doorbell)
            self.store(8, (self.load(8) + 1) & 0xFFFFFFFF or 1)
            fence()
            if self.tail() != self.head:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready = select.poll()
            ready.register(self.doorbell, select.POLLIN)
            ready.register(hangup, 0)
            for descriptor, events in ready.poll(left * 1000):
                if descriptor == hangup.fileno() and events & select.POLLHUP:
                    raise ConnectionError("the daemon has ended")


def notify(doorbell):
    try:
        os.write(doorbell, struct.pack("=Q", 1))
    except BlockingIOError:
        pass  # Another holder has filled it: it is readable.


def drain(doorbell):
    try:
        os.preadv(doorbell, [bytearray(8)], -1, os.RWF_NOWAIT)
    except BlockingIOError:
        pass  # It was not notified.


class Port:
    """A port of a switch that is open."""

    def __init__(self, name, **asked):
        self.connection = connect()
        request = register(name, registration(**asked))
        tag, message, descriptors = call(self.connection, request)
        if tag != 1:
            raise ValueError("not a grant")
        grant = Grant(message)
        self.name, self.layout = grant.name, grant.layout
        self.memory = mmap.mmap(descriptors[0], self.layout.total)
        self.words = memoryview(self.memory).cast("I")
        os.close(descriptors[0])
        doorbells = dict(enumerate(descriptors))
        self.tx, self.rx = [], []
        for ring in grant.rings:
            if ring.link != 2:
                raise ValueError("this client moves packets of switches alone")
            pair = doorbells[ring.doorbell], doorbells[ring.other]
            (self.rx if ring.is_rx else self.tx).append(Ring(self, ring, pair))

    def send(self, frame, timeout=30):
        """Sends one frame, in as many slots as it takes."""
        ring = self.tx[0]
        pieces = [frame[at : at + self.layout.room] for at in range(0, len(frame), self.layout.room)]
        deadline = time.monotonic() + timeout
        for piece in pieces:
            if ring.tail() == ring.head and not ring.wait(deadline, self.connection):
                raise TimeoutError("no room")
            slot = ring.slots + 16 * ring.head
            (buffer,) = struct.unpack_from("<I", self.memory, slot)
            start = self.layout.buffer(buffer)
            if start is None:
                raise ValueError("a slot without a buffer")
            self.memory[start : start + len(piece)] = piece
            flags = 0 if piece is pieces[-1] else MORE_FRAGMENTS
            struct.pack_into("<HH", self.memory, slot + 4, len(piece), flags)
            ring.head = ring.next(ring.head)
        ring.publish()

    def receive(self, timeout=30):
        """One frame, or None if none comes."""
        ring = self.rx[0]
        deadline = time.monotonic() + timeout
        frame = b""
        while True:
            if ring.tail() == ring.head and not ring.wait(deadline, self.connection):
                return None
            buffer, length, flags = struct.unpack_from("<IHH", self.memory, ring.slots + 16 * ring.head)
            start = self.layout.buffer(buffer)
            if start is not None:
                frame += self.memory[start : start + min(length, self.layout.room)]
            ring.head = ring.next(ring.head)
            ring.publish()
            if not flags & MORE_FRAGMENTS:
                return frame

    def close(self):
        self.words.release()
        self.memory.close()
        for ring in self.tx + self.rx:
            os.close(ring.doorbell)
            os.close(ring.other)
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
