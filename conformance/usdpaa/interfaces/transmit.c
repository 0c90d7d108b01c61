/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that go to a port (FM-TRANSMIT). */
#include "case.h"

static void
order(void)
{
	uint32_t i;

	interface_new(USUAL_POLICY, 0, 0, 16);
	for (i = 0; i < 100; i++) {
		uint32_t length = 60 + i * 14;
		const uint8_t *frame = ip_frame(length, 1, 2, (uint8_t)i);
		struct qm_fd fd = frame_of(2, frame, length);

		send_fd(&it.tx, &fd);
		check(far_gets(frame, length), "as it was enqueued");
	}
	check_number(buffers_free(2), 16, "the buffers are back");
	for (i = 0; i < 16; i++) {
		struct qm_fd fd = frame_of(2, ip_frame(60, 1, 2, (uint8_t)i), 60);

		send_fd(&it.tx, &fd);
	}
	for (i = 0; i < 16; i++)
		check(far_gets(ip_frame(60, 1, 2, (uint8_t)i), 60), "in order");
	while (buffers_free(2) < 16)
		;
	check_number((long long)counted().transmitted, 116, "counted");
}

static void
confirmation(void)
{
	const uint8_t *frame = ip_frame(100, 1, 2, 3);
	struct qm_fd fd;

	interface_new(USUAL_POLICY, 0, 0, 2);
	fd = frame_of(2, frame, 100);
	fd.cmd = 0x12345678;
	send_fd(&it.confirmed, &fd);
	check(far_gets(frame, 100), "it is sent");
	wait_frames(it.confirm, 1);
	check(memcmp(&it.confirm->fds[0], &fd, sizeof(fd)) == 0, "and comes back as it was");
	check_number(buffers_free(2), 1, "with its buffer");
	send_fd(&it.confirmed, &it.confirm->fds[0]);
	check(far_gets(frame, 100), "it can be sent once more");
	wait_frames(it.confirm, 2);
	require(qman_retire_fq(&it.confirm->fq, NULL) == 0 && qman_oos_fq(&it.confirm->fq) == 0, "nobody wants to know");
	send_fd(&it.confirmed, &fd);
	check(far_gets(frame, 100), "and again");
	while (buffers_free(2) < 2)
		;
	check_number(it.confirm->frames, 2, "the buffer is back");
}

static void
unsendable(void)
{
	struct qm_fd good, bad;
	uint32_t i;

	interface_new(USUAL_POLICY, 0, 0, 2);
	good = frame_of(2, ip_frame(100, 1, 2, 3), 100);
	for (i = 0; i < 4; i++) {
		bad = good;
		switch (i) {
		case 0:
			qm_fd_addr_set64(&bad, 0x1000);
			break;
		case 1:
			bad.length20 = 0;
			break;
		case 2:
			bad.format = qm_fd_compound;
			break;
		case 3:
			bad._format2 = qm_fd_contig_big;
			bad.length29 = 0x1fffffff;
			break;
		}
		send_fd(&it.tx, &bad);
		wait_frames(it.tx_error, i + 1);
		check(memcmp(&it.tx_error->fds[i], &bad, sizeof(bad)) == 0, "to the error queue, as it was");
	}
	send_fd(&it.tx, &good);
	check(far_gets(ip_frame(100, 1, 2, 3), 100), "others go on");
	check(counted().unsendable == 4 && counted().transmitted == 1, "counted");
}

static void
short_circuit(void)
{
	struct qman_fq fq;
	uint32_t i;

	interface_new(POLICY(REF("back") REF("rest"), DISTRIBUTION("back", BY_ADDRESSES, 0x600, 1)
			     DISTRIBUTION("rest", "", 0x300, 1)), 0, 0, 4);
	sends_from(&fq, 0x600, QMAN_FQ_FLAG_NO_ENQUEUE, it.fif, NO_CONFIRM);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < 50; i++) {
		const uint8_t *frame = ip_frame(60 + i, 1, 2, (uint8_t)i);

		far_send(frame, 60 + i);
		check(far_gets(frame, 60 + i), "what comes goes back");
	}
	while (buffers_free(2) < 4)
		;
	check(counted().received == 50 && counted().transmitted == 50, "and no buffer is lost");
}

static void
loop(void)
{
	uint8_t *frame = ip_frame(100, 1, 2, 3);
	struct qm_fd fd;

	interface_new(USUAL_POLICY, 0, 0, 4);
	fman_if_enable_rx(it.fif);
	frame[12] = 0x99;
	fman_if_loopback_enable(it.fif);
	fd = frame_of(2, frame, 100);
	send_fd(&it.tx, &fd);
	wait_frames(it.rest, 1);
	fd = it.rest->fds[0];
	check(fd.length20 == 100 && memcmp(bytes_of(&fd), frame, 100) == 0, "it is received");
	while (buffers_free(2) < 3)
		;
	fman_if_loopback_disable(it.fif);
	frame[50] = 99;
	bytes_of(&fd)[50] = 99;
	send_fd(&it.tx, &fd);
	check(far_gets(frame, 100), "and was not sent");
}

static void
offline(void)
{
	uint8_t *frame = ip_frame(100, 1, 2, 3);
	struct qm_fd fd;

	interface_over("fm0-offline1=", CONFIG(PORT("OFFLINE", 1)), USUAL_POLICY, 0, 0, 4);
	check_number((long long)it.fif->mac_type, fman_offline, "its type");
	fman_if_enable_rx(it.fif);
	fman_if_loopback_disable(it.fif);
	frame[12] = 0x99;
	fd = frame_of(2, frame, 100);
	send_fd(&it.tx, &fd);
	wait_frames(it.rest, 1);
	check(memcmp(bytes_of(&it.rest->fds[0]), frame, 100) == 0, "what it sends it receives");
}

static void
room(void)
{
	uint32_t i, count, same = 1;

	if (wire != PIPE)
		not_applicable("pipe");
	interface_new(USUAL_POLICY, 0, 0, 0);
	count = port_rx(&it.far)->num_slots + 100;
	buffers_add(0, (int)count);
	for (i = 0; i < count; i++) {
		struct qm_fd fd = frame_of(0, ip_frame(60, 1, 2, (uint8_t)i), 60);

		send_fd(&it.tx, &fd);
	}
	while (counted().transmitted < count - 101)
		qman_poll();
	check(counted().transmitted < count, "more than the ring holds");
	for (i = 0; i < count; i++)
		same = same && far_gets(ip_frame(60, 1, 2, (uint8_t)i), 60);
	check(same, "waits for room, and none is lost");
	while (buffers_free(0) < (int)count)
		;
}

static const struct test_case cases[] = {
	{ "FM-TRANSMIT-1", "order", order },
	{ "FM-TRANSMIT-2", "confirmation", confirmation },
	{ "FM-TRANSMIT-3", "unsendable", unsendable },
	{ "FM-TRANSMIT-4", "short circuit", short_circuit },
	{ "FM-TRANSMIT-5", "loop", loop },
	{ "FM-TRANSMIT-5", "offline", offline },
	{ "FM-TRANSMIT-6", "room", room },
};

CHAPTER(cases)
