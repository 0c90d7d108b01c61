"""The examples of docs/control-protocol.md, as this client reads and writes them."""

import pathlib
import re

import ringway

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/control-protocol.md"


def examples():
    found = re.findall(r"^```text ([a-z-]+)\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    return {name: bytes.fromhex(re.sub(r";.*", "", code)) for name, code in found}


EXAMPLES = examples()

assert ringway.register("vale0:a") == EXAMPLES["register"]

one = ringway.registration(ring=1, exclusive=True, extra_bufs=300)
assert ringway.register("eth1", one, ringway.options(mode=3, buf_size=4096)) == EXAMPLES["register-one"]

assert ringway.switch_new("vale0") == EXAMPLES["switch-new"]

tag, _ = ringway.answer(EXAMPLES["done"])
assert tag == 0 and ringway.last_number(EXAMPLES["done"]) == 0

try:
    ringway.answer(EXAMPLES["refused"])
    assert False, "a refusal is an exception"
except ringway.Refused as refused:
    assert refused.cause == 1 and str(refused) == "vale0:a: in use; close it"

try:
    ringway.answer(EXAMPLES["refused-modes"])
    assert False, "a refusal is an exception"
except ringway.Refused as refused:
    assert refused.cause == 7 and str(refused) == "n0 cannot be opened: not zerocopy: no hook; raise it; not generic: no"

tag, message = ringway.answer(EXAMPLES["granted"])
assert tag == 1
grant = ringway.Grant(message)
assert message.number() == 5 and message.at == len(EXAMPLES["granted"])
assert grant.name == "vale0:a" and grant.mem_id == 2 and grant.timestamps
assert grant.layout.memory == 42369024 and grant.layout.max_slots == 1264
assert [(ring.is_rx, ring.object, ring.slots) for ring in grant.rings] == [(False, 0, 1024), (True, 1, 1024)]
print("as the document says")
