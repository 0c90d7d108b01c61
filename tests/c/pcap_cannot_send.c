/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Monitors do not send, and say so by their result, a text and errno.
 * usage: pcap_cannot_send DEVICE...
 */
#include "check.h"

#include <pcap/pcap.h>

int main(int argc, char **argv)
{
	static const u_char frame[60];
	char errbuf[PCAP_ERRBUF_SIZE];

	for (int at = 1; at < argc; at++) {
		pcap_t *handle = pcap_open_live(argv[at], 65535, 0, 10, errbuf);

		require(handle != NULL, "%s", errbuf);
		errno = EXDEV;
		check_call(pcap_inject(handle, frame, sizeof frame), EOPNOTSUPP, "pcap_inject");
		check(strstr(pcap_geterr(handle), "monitor") != NULL, "%s", pcap_geterr(handle));
		errno = EXDEV;
		check_call(pcap_sendpacket(handle, frame, sizeof frame), EOPNOTSUPP, "pcap_sendpacket");
		pcap_close(handle);
	}
	return check_result();
}
