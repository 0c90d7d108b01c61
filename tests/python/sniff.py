"""Sends packets by scapy, or sniffs them, through libpcap: sniff.py send DEVICE, sniff.py sniff DEVICE FILTER."""

import sys

from scapy.all import IP, UDP, Ether, Raw, conf, sendp, sniff

conf.use_pcap = True
COUNT = 5


def packets(port):
    head = Ether(src="02:00:00:00:00:51", dst="ff:ff:ff:ff:ff:ff") / IP(src="10.0.0.1", dst="10.0.0.2")
    return [head / UDP(sport=7, dport=port) / Raw(b"load %d" % number) for number in range(COUNT)]


what, device = sys.argv[1:3]
if what == "send":
    sendp(packets(8) + packets(9), iface=device, verbose=False)
else:
    found = sniff(
        iface=device,
        filter=sys.argv[3],
        count=COUNT,
        started_callback=lambda: print("sniffing", flush=True),
    )
    for packet in found:
        print(packet[Raw].load.decode().rstrip("\0"))
