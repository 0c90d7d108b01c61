/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of several buffers (FM-SCATTER). */
#include "case.h"

#define LARGE	1728

/* A table of two parts behind the headroom of a buffer, for a frame that has these bytes. */
static struct qm_fd
two_parts(const uint8_t *frame, uint32_t first, uint32_t second)
{
	struct qm_fd fd = frame_of(2, frame, 0), one = frame_of(2, frame, first), two = frame_of(2, frame + first, second);
	struct qm_sg_entry *table = (struct qm_sg_entry *)(void *)bytes_of(&fd);

	memset(table, 0, 2 * sizeof(*table));
	qm_sg_entry_set64(&table[0], qm_fd_addr(&one));
	table[0].bpid = one.bpid;
	table[0].offset = HEADROOM;
	table[0].length = first;
	qm_sg_entry_set64(&table[1], qm_fd_addr(&two));
	table[1].bpid = two.bpid;
	table[1].offset = HEADROOM;
	table[1].length = second;
	table[1].final = 1;
	fd.format = qm_fd_sg;
	fd.length20 = first + second;
	return fd;
}

/* Before anything is opened there: ports hear of another MTU a moment after it is set. */
static void
wire_for_long_frames(void)
{
	wire_new();
	if (wire == VETH)
		shell("ip link set %s mtu 1770 && ip link set %s mtu 1770", own("n$"), own("f$"));
}

static void
receiving(void)
{
	static const uint32_t lengths[] = { 1665, 1728, 1729, 5000, 16 * LARGE };
	uint32_t i, k, count = wire == VETH ? 2 : COUNT(lengths);

	wire_for_long_frames();
	interface_on_wire(USUAL_POLICY, 0, 1, 20);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < count; i++) {
		uint32_t length = lengths[i], parts = (length + LARGE - 1) / LARGE, done = 0, same = 1;
		uint8_t *frame = ip_frame(length, 1, 2, (uint8_t)i);
		const struct qm_sg_entry *table;
		struct qm_fd fd, part;

		frame[12] = 0x99;
		far_send(frame, length);
		wait_frames(it.rest, i + 1);
		fd = it.rest->fds[i];
		check(fd.format == qm_fd_sg && fd.offset == HEADROOM && fd.length20 == length, "a table, behind 64 bytes");
		table = (const struct qm_sg_entry *)(const void *)bytes_of(&fd);
		memset(&part, 0, sizeof(part));
		for (k = 0; k < parts; k++) {
			check(table[k].bpid == 9 && !table[k].extension && table[k].final == (k + 1 == parts),
			      "buffers of the largest pool, the last one final");
			same = same && memcmp((uint8_t *)__dma_mem_ptov(qm_sg_addr(&table[k])) + table[k].offset,
					      frame + done, table[k].length) == 0;
			done += table[k].length;
		}
		check(same && done == length, "the parts are the frame");
		/* It is sent back, which frees all its buffers. */
		send_fd(&it.tx, &fd);
		check(far_gets(frame, length), "it can be sent as it is");
		while (buffers_free(2) < 20 || buffers_free(1) < 1)
			;
	}
}

static void
too_long(void)
{
	uint8_t *frame = ip_frame(16 * LARGE + 1, 1, 2, 0);

	if (wire == VETH)
		not_applicable("switch or pipe");
	interface_new(USUAL_POLICY, 0, 1, 20);
	fman_if_enable_rx(it.fif);
	frame[12] = 0x99;
	far_send(frame, 16 * LARGE + 1);
	far_send(frame, 60);
	wait_frames(it.rest, 1);
	check_number((long long)counted().too_long, 1, "more than 16 buffers: gone, and counted");
	check_number(it.rest->fds[0].length20, 60, "others go on");
	while (bman_acquire(it.pools[2], &(struct bm_buffer) { .opaque = 0 }, 1, 0) == 1)
		;
	far_send(frame, 1700);
	while (counted().no_buffer < 1)
		qman_poll();
	check_number(buffers_free(1), 0, "nor is one received for which there are not enough");
	drop(&it.rest->fds[0]);
	check_number(buffers_free(1), 1, "and what it has taken is back");
}

static void
rejected(void)
{
	uint8_t *frame = ip_frame(1700, 1, 2, 0);

	wire_for_long_frames();
	interface_on_wire(USUAL_POLICY, 0, 1, 20);
	fman_if_enable_rx(it.fif);
	frame[12] = 0x99;
	require(qman_retire_fq(&it.rest->fq, NULL) == 0 && qman_oos_fq(&it.rest->fq) == 0, "the queue is out of service");
	far_send(frame, 1700);
	while (counted().rejected < 1)
		qman_poll();
	while (buffers_free(2) < 20 || buffers_free(1) < 1)
		;
	check_number((long long)counted().received, 1, "no buffer of a frame that no queue takes is lost");
}

static void
sending(void)
{
	static const uint32_t lengths[][2] = { { 30, 30 }, { 1000, 514 }, { 1500, 1500 } };
	uint32_t i, count = wire == VETH ? 2 : COUNT(lengths);

	interface_new(USUAL_POLICY, 0, 0, 3);
	for (i = 0; i < count; i++) {
		uint32_t all = lengths[i][0] + lengths[i][1];
		const uint8_t *frame = ip_frame(all, 1, 2, (uint8_t)i);
		struct qm_fd fd = two_parts(frame, lengths[i][0], lengths[i][1]);

		send_fd(&it.tx, &fd);
		check(far_gets(frame, all), "one frame of two parts");
		while (buffers_free(2) < 3)
			;
	}
	check_number((long long)counted().transmitted, count, "all buffers are back");
}

static void
bad_tables(void)
{
	struct qm_sg_entry *table;
	struct qm_fd fd;
	uint32_t i;

	interface_new(USUAL_POLICY, 0, 0, 3);
	fd = two_parts(ip_frame(60, 1, 2, 0), 30, 30);
	table = (struct qm_sg_entry *)(void *)bytes_of(&fd);
	for (i = 0; i < 4; i++) {
		struct qm_sg_entry good[16];
		uint32_t k;

		memcpy(good, table, sizeof(good));
		switch (i) {
		case 0:
			for (k = 0; k < 16; k++) {
				table[k] = good[0];
				table[k].final = 0;
			}
			break;
		case 1:
			table[0].extension = 1;
			break;
		case 2:
			qm_sg_entry_set64(&table[1], 0x1000);
			break;
		case 3:
			table[1].length = 29;
			break;
		}
		send_fd(&it.tx, &fd);
		wait_frames(it.tx_error, i + 1);
		check(memcmp(&it.tx_error->fds[i], &fd, sizeof(fd)) == 0, "a table that is none comes back");
		memcpy(table, good, sizeof(good));
	}
	send_fd(&it.tx, &fd);
	check(far_gets(ip_frame(60, 1, 2, 0), 60), "and is sent when it is one");
}

static const struct test_case cases[] = {
	{ "FM-SCATTER-1", "receiving", receiving },
	{ "FM-SCATTER-2", "too long", too_long },
	{ "FM-SCATTER-2", "rejected", rejected },
	{ "FM-SCATTER-3", "sending", sending },
	{ "FM-SCATTER-4", "bad tables", bad_tables },
};

CHAPTER(cases)
