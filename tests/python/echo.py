"""Sends back each frame that arrives at a port of a switch, with source and destination exchanged, until
one says `end`.

usage: echo.py PORT
"""

import sys

from ringway import Port

with Port(sys.argv[1]) as port:
    print("open", flush=True)
    while (frame := port.receive(timeout=30)) is not None:
        port.send(frame[6:12] + frame[:6] + frame[12:])
        if frame[14:].startswith(b"end"):
            break
