"""Runs a program as root of a user namespace that has the map of the one around it.

mapped.py PROGRAM ARGUMENT...

It takes the capabilities CAP_SETUID, CAP_SETGID and CAP_SETFCAP; in its namespace the program has all.
"""

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)
moved, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    if libc.unshare(CLONE_NEWUSER) != 0:
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    os.write(moved[1], b"x")
    os.read(mapped[0], 1)
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(moved[0], 1)
for ids in ("uid_map", "gid_map"):
    with open(f"/proc/{child}/{ids}", "w") as its:
        its.write("0 0 4294967295")
os.write(mapped[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
