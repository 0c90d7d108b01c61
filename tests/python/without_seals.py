"""Runs a program for which F_ADD_SEALS does nothing, and says that it did.

usage: without_seals.py PROGRAM [ARGUMENT...]
"""

import ctypes
import os
import struct
import sys

FCNTL, F_ADD_SEALS = 72, 1033
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO_0 = 0x7FFF0000, 0x00050000

# Offsets are those of struct seccomp_data: nr, and the low half of args[1].
FILTER = [
    (LOAD, 0, 0, 0),
    (EQUAL, 0, 3, FCNTL),
    (LOAD, 0, 0, 24),
    (EQUAL, 0, 1, F_ADD_SEALS),
    (RETURN, 0, 0, ERRNO_0),
    (RETURN, 0, 0, ALLOW),
]

code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *insn) for insn in FILTER))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(FILTER), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
    raise OSError(ctypes.get_errno(), "seccomp")
os.execvp(sys.argv[1], sys.argv[1:])
