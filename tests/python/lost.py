"""Takes the memory of a port away from under the daemon, which does not seal it: others go on, and this
port alone is closed.
"""

import os
import select

from ringway import Port


def memfds():
    def is_region(fd):
        try:
            return os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:ringway")
        except OSError:
            return False

    return {int(fd) for fd in os.listdir("/proc/self/fd") if is_region(fd)}


FRAME = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x88\xb5" + bytes(46)

with Port("vale0:a") as sender, Port("vale0:c") as receiver:
    before = memfds()
    lost = Port("vale0:b")
    (memfd,) = memfds() - before
    os.ftruncate(memfd, 0)
    for _ in range(3):
        # It would be delivered to the lost port, too.
        sender.send(FRAME)
        assert receiver.receive() == FRAME, "others go on"
    hangup = select.poll()
    hangup.register(lost.connection, 0)
    assert hangup.poll(10_000), "the port is closed"
    with Port("vale0:b") as again:
        sender.send(FRAME)
        assert again.receive() == FRAME, "another port has its name"
print("others go on")
