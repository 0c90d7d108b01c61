/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that come from a port (FM-RECEIVE). */
#include "case.h"

static void
buffers(void)
{
	static const struct {
		uint32_t length, pool;
	} expected[] = { { 60, 7 }, { 256, 7 }, { 257, 8 }, { 640, 8 }, { 641, 9 }, { 1514, 9 } };
	uint32_t i;

	interface_new(USUAL_POLICY, 4, 4, 4);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < COUNT(expected); i++) {
		uint8_t *frame = ip_frame(expected[i].length, 1, 2, (uint8_t)i);
		struct sink *flow;
		struct qm_fd fd;

		/* All are of one flow. */
		flow = it.flows[fman_crc64_finish(fman_crc64_update(fman_crc64_init(), frame + 26, 8)) % FLOW_QUEUES];
		far_send(frame, expected[i].length);
		wait_frames(flow, i + 1);
		fd = flow->fds[i];
		check_number(fd.length20, expected[i].length, "its length");
		check_number(fd.bpid, expected[i].pool, "the smallest pool that fits");
		check(fd.format == qm_fd_contig && fd.offset == HEADROOM, "in one buffer, behind 64 bytes");
		check(memcmp(bytes_of(&fd), frame, expected[i].length) == 0, "as it was sent");
		drop(&fd);
	}
	check(buffers_free(0) == 4 && buffers_free(1) == 4 && buffers_free(2) == 4, "the buffers are back");
	check_number((long long)counted().received, COUNT(expected), "counted");
}

static void
enabling(void)
{
	uint8_t *frame = ip_frame(60, 1, 2, 0);
	struct sink *rest;

	interface_new(USUAL_POLICY, 8, 0, 0);
	rest = it.rest;
	frame[12] = 0x99;
	far_send(frame, 60);
	poll_all();
	check_number((long long)counted().received, 0, "nothing is taken before");
	fman_if_enable_rx(it.fif);
	wait_frames(rest, 1);
	fman_if_disable_rx(it.fif);
	far_send(frame, 60);
	poll_all();
	check(rest->frames == 1 && counted().received == 1, "nor after");
	fman_if_enable_all_rx();
	wait_frames(rest, 2);
	check(buffers_free(0) == 6, "what was sent meanwhile was waiting");
}

static void
depletion(void)
{
	uint8_t *frame = ip_frame(300, 1, 2, 0);

	interface_new(USUAL_POLICY, 1, 1, 1);
	frame[12] = 0x99;
	fman_if_enable_rx(it.fif);
	far_send(frame, 300);
	far_send(frame, 300);
	far_send(frame, 300);
	far_send(frame, 60);
	far_send(frame, 60);
	wait_frames(it.rest, 3);
	while (counted().no_buffer < 2)
		qman_poll();
	check(it.rest->fds[0].bpid == 8 && it.rest->fds[1].bpid == 9, "larger ones when the smaller pool is empty");
	check_number(it.rest->fds[2].bpid, 7, "a smaller pool has nothing for longer frames");
	check_number((long long)counted().no_buffer, 2, "frames without a buffer are counted, and gone");
	drop(&it.rest->fds[0]);
	far_send(frame, 300);
	wait_frames(it.rest, 4);
	check_number(it.rest->fds[3].bpid, 8, "buffers that come back are used");
}

static void
malformed(void)
{
	uint8_t *frame = ip_frame(60, 1, 2, 0);

	interface_new(USUAL_POLICY, 8, 0, 0);
	fman_if_enable_rx(it.fif);
	frame[14] = 0x44;
	far_send(frame, 60);
	frame[14] = 0x65;
	far_send(frame, 60);
	wait_frames(it.rx_error, 2);
	check(memcmp(bytes_of(&it.rx_error->fds[1]), frame, 60) == 0, "as it was sent");
	frame[14] = 0x45;
	frame[24] = frame[25] = 0xee;
	far_send(frame, 60);
	while (it.flows[0]->frames + it.flows[1]->frames + it.flows[2]->frames + it.flows[3]->frames == 0)
		qman_poll();
	check_number(it.rx_error->frames, 2, "checksums are not looked at");
	check_number((long long)counted().received, 3, "counted as received");
}

static int told;
static struct qm_mr_entry last_told;

static void
on_rejected(struct qman_portal *portal, const struct qm_mr_entry *message)
{
	check(portal != NULL, "a portal");
	told++;
	last_told = *message;
}

static void
rejection(void)
{
	uint8_t *frame = ip_frame(60, 1, 2, 0);
	struct qm_fd fd;
	int affine;

	interface_new(USUAL_POLICY, 8, 0, 0);
	frame[12] = 0x99;
	fman_if_enable_rx(it.fif);
	require(qman_retire_fq(&it.rest->fq, NULL) == 0 && qman_oos_fq(&it.rest->fq) == 0, "the queue is out of service");
	far_send(frame, 60);
	while (counted().rejected < 1)
		qman_poll();
	check_number(buffers_free(0), 8, "nobody wants to know: the buffer is back");
	for (affine = 0; affine < 2; affine++) {
		qman_set_dc_ern(on_rejected, affine);
		far_send(frame, 60);
		while (told < affine + 1)
			qman_poll();
		qman_set_dc_ern(NULL, affine);
		check_number(last_told.verb & QM_MR_VERB_TYPE_MASK, QM_MR_VERB_DC_ERN, "by an interface");
		check_number(last_told.dcern.portal, qm_dc_portal_fman0, "of the first Frame Manager");
		check_number(last_told.dcern.rc & QM_MR_RC_MASK, QM_MR_RC_ERROR, "there is no such queue");
		check_number(last_told.dcern.fqid, REST, "where it was to go");
		fd = last_told.dcern.fd;
		check(fd.length20 == 60 && memcmp(bytes_of(&fd), frame, 60) == 0, "it is the handler's");
		check_number(buffers_free(0), 7, "with its buffer");
		drop(&fd);
	}
	check(counted().rejected == 3 && counted().received == 3, "counted in any case");
}

static void
order(void)
{
	uint32_t i, in_order = 1;

	interface_new(USUAL_POLICY, 64, 0, 0);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < 64; i++) {
		uint8_t *frame = ip_frame(60, 1, 2, (uint8_t)i);

		frame[12] = 0x99;
		far_send(frame, 60);
	}
	wait_frames(it.rest, 64);
	for (i = 0; i < 64; i++)
		in_order = in_order && bytes_of(&it.rest->fds[i])[50] == (uint8_t)(i + 50) &&
			   it.rest->sequences[i] == i;
	check(in_order, "frames of one queue are in order, and numbered");
}

static const struct test_case cases[] = {
	{ "FM-RECEIVE-1", "buffers", buffers },
	{ "FM-RECEIVE-2", "enabling", enabling },
	{ "FM-RECEIVE-3", "depletion", depletion },
	{ "FM-RECEIVE-4", "malformed", malformed },
	{ "FM-RECEIVE-5", "rejection", rejection },
	{ "FM-RECEIVE-6", "order", order },
};

CHAPTER(cases)
