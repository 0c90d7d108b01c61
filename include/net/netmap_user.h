/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a program walks the shared memory of net/netmap.h, and, when
 * NETMAP_WITH_LIBS is defined before the first inclusion, a small library in
 * the manner of libpcap:
 *
 *	struct nm_desc *d = nm_open("vale0:a", NULL, 0, NULL);
 *	nm_inject(d, frame, length);
 *	ioctl(d->fd, NIOCTXSYNC, NULL);
 *	...
 *	poll(&(struct pollfd){ .fd = d->fd, .events = POLLIN }, 1, -1);
 *	while ((frame = nm_nextpkt(d, &hdr)))
 *		use(frame, hdr.len);
 *	nm_close(d);
 *
 * No function of this library but nm_open, nm_mmap and nm_close enters the
 * kernel: the program calls ioctl or poll when it wants packets to move.
 */
#ifndef _NET_NETMAP_USER_H_
#define _NET_NETMAP_USER_H_

#include <ctype.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <net/netmap.h>

#define NETMAP_DEVICE_NAME	"/dev/netmap"

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif

/*
 * From the mapping to a packet. A ring that the descriptor did not bind has
 * offset 0, so that NETMAP_TXRING and NETMAP_RXRING give the netmap_if itself.
 */
#define _NETMAP_OFFSET(type, ptr, offset) \
	((type)(void *)((char *)(ptr) + (offset)))

#define NETMAP_IF(_base, _ofs) \
	_NETMAP_OFFSET(struct netmap_if *, _base, _ofs)

#define NETMAP_TXRING(nifp, index) \
	_NETMAP_OFFSET(struct netmap_ring *, nifp, (nifp)->ring_ofs[index])

#define NETMAP_RXRING(nifp, index) \
	_NETMAP_OFFSET(struct netmap_ring *, nifp, \
		(nifp)->ring_ofs[(index) + (nifp)->ni_tx_rings + \
				 (nifp)->ni_host_tx_rings])

#define NETMAP_BUF(ring, index) \
	((char *)(ring) + (ring)->buf_ofs + \
	 (size_t)(index) * (ring)->nr_buf_size)

#define NETMAP_BUF_IDX(ring, buf) \
	(((char *)(buf) - ((char *)(ring) + (ring)->buf_ofs)) / \
	 (ring)->nr_buf_size)

/*
 * The most bytes that a slot can have. Where network interfaces are, buffers
 * begin with room for the kernel, and it is less than nr_buf_size. The field
 * is Ringway's own: netmap has zero there.
 */
#define NETMAP_DATA_SIZE(ring) \
	((ring)->nr_data_size ? (ring)->nr_data_size : (ring)->nr_buf_size)

/* Where in its buffer a packet starts; 0 without the OFFSETS option. */
#define NETMAP_ROFFSET(ring, slot) \
	((slot)->ptr & (ring)->offset_mask)

#define NETMAP_WOFFSET(ring, slot, offset) \
	do { \
		(slot)->ptr = ((slot)->ptr & ~(ring)->offset_mask) | \
			      ((offset) & (ring)->offset_mask); \
	} while (0)

#define NETMAP_BUF_OFFSET(ring, slot) \
	(NETMAP_BUF(ring, (slot)->buf_idx) + NETMAP_ROFFSET(ring, slot))

/* The slot after i. */
static inline uint32_t
nm_ring_next(struct netmap_ring *ring, uint32_t i)
{
	return unlikely(i + 1 == ring->num_slots) ? 0 : i + 1;
}

/* Slots that the program owns. */
static inline uint32_t
nm_ring_space(struct netmap_ring *ring)
{
	uint32_t head = ring->head, tail = ring->tail;

	return tail >= head ? tail - head : tail + ring->num_slots - head;
}

/* 1 while slots given to a tx ring have not come back. */
static inline int
nm_tx_pending(struct netmap_ring *ring)
{
	return nm_ring_next(ring, ring->tail) != ring->head;
}

/* memcpy with the source first, quick for small multiples of 64 bytes. */
static inline void
nm_pkt_copy(const void *src, void *dst, int len)
{
	const char *from = (const char *)src;
	char *to = (char *)dst;

	if (unlikely(len >= 1024 || len % 64)) {
		memcpy(to, from, (size_t)len);
		return;
	}
	/* A constant length lets the compiler turn each turn into moves. */
	for (; len > 0; len -= 64, from += 64, to += 64)
		memcpy(to, from, 64);
}

/* Messages to stderr with time and place; ND is a silenced D. */
#ifndef ND
#define ND(...)		do {} while (0)
#define D(...)		nm_message(__func__, __LINE__, __VA_ARGS__)
/* At most lps messages a second from each place in the source. */
#define RD(lps, ...) \
	do { \
		static time_t nm_second; \
		static int nm_count; \
		struct timeval nm_now; \
		gettimeofday(&nm_now, NULL); \
		if (nm_now.tv_sec != nm_second) { \
			nm_second = nm_now.tv_sec; \
			nm_count = 0; \
		} \
		if (nm_count++ < (lps)) \
			D(__VA_ARGS__); \
	} while (0)
#endif

static inline void nm_message(const char *, int, const char *, ...)
	__attribute__((format(printf, 3, 4)));

static inline void
nm_message(const char *function, int line, const char *format, ...)
{
	char text[512];
	struct timeval now;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gettimeofday(&now, NULL);
	fprintf(stderr, "%03d.%06d %s [%d] %s\n", (int)(now.tv_sec % 1000),
		(int)now.tv_usec, function, line, text);
}

#ifdef NETMAP_WITH_LIBS
#define HAVE_NETMAP_WITH_LIBS

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define NM_ERRBUF_SIZE	512
#define MAXERRMSG	80

struct nm_desc;

/* Starts like struct pcap_pkthdr. */
struct nm_pkthdr {
	struct timeval	ts;
	uint32_t	caplen;	/* bytes that can be read at buf */
	uint32_t	len;	/* bytes of the packet */
	uint64_t	flags;	/* NM_MORE_PKTS */
#define NM_MORE_PKTS	1	/* nm_dispatch will call again */
	struct nm_desc	*d;
	struct netmap_slot *slot;	/* the packet's first slot */
	uint8_t		*buf;
};

/* Like struct pcap_stat. */
struct nm_stat {
	unsigned int ps_recv;
	unsigned int ps_drop;
	unsigned int ps_ifdrop;
};

struct nm_desc {
	struct nm_desc	*self;	/* tells a descriptor from other memory */
	int		fd;
	void		*mem;
	size_t		memsize;
	int		done_mmap;	/* this descriptor owns the mapping */
	struct netmap_if * const nifp;
	uint16_t	first_tx_ring, last_tx_ring, cur_tx_ring;
	uint16_t	first_rx_ring, last_rx_ring, cur_rx_ring;
	struct nmreq	req;	/* as NIOCREGIF returned it */
	struct nm_pkthdr hdr;	/* packet that nm_dispatch is at */

	struct netmap_ring * const some_ring;
	void * const	buf_start;	/* buffer 0 */
	void * const	buf_end;	/* end of the mapping */

	/* For the use of programs in libpcap's manner. */
	int		snaplen;
	int		promisc;
	int		to_ms;
	char		*errbuf;
	uint32_t	if_flags;
	uint32_t	if_reqcap;
	uint32_t	if_curcap;
	struct nm_stat	st;
	char		msg[NM_ERRBUF_SIZE];
};

typedef void (*nm_cb_t)(unsigned char *, const struct nm_pkthdr *,
			const unsigned char *);

#define P2NMD(p)		((const struct nm_desc *)(p))
#define IS_NETMAP_DESC(d)	((d) && P2NMD(d)->self == P2NMD(d))
#define NETMAP_FD(d)		(P2NMD(d)->fd)

/* Flags of nm_open: what to take from the descriptor given as arg. */
enum {
	NM_OPEN_NO_MMAP = 0x040000,	/* without arg: do not map */
	NM_OPEN_IFNAME = 0x080000,	/* name, ring and flags */
	NM_OPEN_ARG1 = 0x100000,
	NM_OPEN_ARG2 = 0x200000,	/* region */
	NM_OPEN_ARG3 = 0x400000,	/* extra buffers */
	NM_OPEN_RING_CFG = 0x800000	/* ring and slot counts */
};

/*
 * Releases the descriptor, its fd, and the mapping if it is its own.
 * Returns 0, or EINVAL for what is no descriptor.
 */
static inline int
nm_close(struct nm_desc *d)
{
	if (!IS_NETMAP_DESC(d))
		return EINVAL;
	if (d->done_mmap && d->mem)
		munmap(d->mem, d->memsize);
	if (d->fd != -1)
		close(d->fd);
	memset((void *)d, 0, sizeof(*d));
	free(d);
	return 0;
}

/*
 * Maps the port's region, or shares the parent's mapping when both are in one
 * region, and fills in the fields that depend on it. Returns 0 or EINVAL.
 */
static inline int
nm_mmap(struct nm_desc *d, const struct nm_desc *parent)
{
	struct netmap_if *nifp;
	struct netmap_ring *ring;

	if (d->done_mmap)
		return 0;
	if (IS_NETMAP_DESC(parent) && parent->mem &&
	    parent->req.nr_arg2 == d->req.nr_arg2) {
		d->mem = parent->mem;
		d->memsize = parent->memsize;
	} else {
		void *mem = mmap(NULL, d->req.nr_memsize,
				 PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);

		if (mem == MAP_FAILED)
			return EINVAL;
		d->mem = mem;
		d->memsize = d->req.nr_memsize;
		d->done_mmap = 1;
	}

	nifp = NETMAP_IF(d->mem, d->req.nr_offset);
	ring = NETMAP_RXRING(nifp, d->first_rx_ring);
	if ((void *)ring == (void *)nifp)
		ring = NETMAP_TXRING(nifp, d->first_tx_ring);

	/* Const for everybody else. */
	*(struct netmap_if **)(uintptr_t)&d->nifp = nifp;
	*(struct netmap_ring **)(uintptr_t)&d->some_ring = ring;
	*(void **)(uintptr_t)&d->buf_start =
		(void *)ring == (void *)nifp ? NULL : NETMAP_BUF(ring, 0);
	*(void **)(uintptr_t)&d->buf_end = (char *)d->mem + d->memsize;
	return 0;
}

static inline int
nm_is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * Reads a decimal number, at *p and up to its end, as strtol does: no digits
 * mean 0. Returns -1 at the end of the string or out of [low, high].
 */
static inline long
nm_parse_number(const char **p, long low, long high)
{
	char *end;
	long number;

	if (**p == '\0')
		return -1;
	number = strtol(*p, &end, 10);
	*p = end;
	return number < low || number > high ? -1 : number;
}

/*
 * Bytes of a port's name, up to what says which rings of it. A "-" ends it
 * only where a ring's number follows: interfaces are named veth-a, too.
 */
static inline size_t
nm_name_length(const char *name)
{
	const char *p = name, *q;

	for (;; p++) {
		p += strcspn(p, "-*^~{}/@");
		if (*p != '-')
			break;
		for (q = p + 1; isdigit((unsigned char)*q); q++)
			;
		if (!nm_is_identifier(*q))
			break;
	}
	return (size_t)(p - name);
}

/*
 * Splits "netmap:BASE SUFFIX..." or "valeX:Y SUFFIX..." into a request:
 *
 *	^  *  -N  {N  }N	first only: host, NIC + host, one ring, pipe
 *	~N			first only: one receive queue (Ringway's own)
 *	/FLAGS			x z t r R T, see below
 *	@N			region, once
 *
 * *options is what follows: nothing, or Ringway's own options, from their "@".
 * Returns NULL, or what is wrong with the name.
 */
static inline const char *
nm_parse(const char *name, struct nmreq *req, const char **options)
{
	uint32_t flags = NR_REG_ALL_NIC;
	long ring = 0, region = 0;
	const char *p = name;
	size_t length;

	if (strncmp(name, NM_BDG_NAME, strlen(NM_BDG_NAME)) == 0) {
		while (nm_is_identifier(*p))
			p++;
		if (*p++ != ':')
			return "a VALE port is named valeX:Y";
		p += nm_name_length(p);
	} else {
		name += strlen("netmap:");
		p = name + nm_name_length(name);
	}
	length = (size_t)(p - name);
	if (length >= sizeof(req->nr_name))
		return "the name is longer than 15 characters";

	switch (*p) {
	case '^':
		flags = NR_REG_SW;
		p++;
		break;
	case '*':
		flags = NR_REG_NIC_SW;
		p++;
		break;
	case '-':
	case '~':
	case '{':
	case '}':
		flags = *p == '-' ? NR_REG_ONE_NIC :
			*p == '~' ? NR_REG_ONE_NIC | NR_RX_RINGS_ONLY :
			*p == '{' ? NR_REG_PIPE_MASTER : NR_REG_PIPE_SLAVE;
		p++;
		ring = nm_parse_number(&p, 0, NETMAP_RING_MASK - 1);
		if (ring < 0)
			return "a ring or pipe number is missing or too large";
		break;
	}

	while (*p && !(*p == '@' && p[1] >= 'a' && p[1] <= 'z')) {
		switch (*p++) {
		case '/':
			if (*p == '\0')
				return "no flag follows /";
			for (; *p && *p != '@'; p++) {
				switch (*p) {
				case 'x': flags |= NR_EXCLUSIVE; break;
				case 'z': flags |= NR_ZCOPY_MON; break;
				case 't': flags |= NR_MONITOR_TX; break;
				case 'r': flags |= NR_MONITOR_RX; break;
				case 'R': flags |= NR_RX_RINGS_ONLY; break;
				case 'T': flags |= NR_TX_RINGS_ONLY; break;
				default: return "unknown flag after /";
				}
			}
			break;
		case '@':
			if (region)
				return "the region is given twice";
			region = nm_parse_number(&p, 1, UINT16_MAX);
			if (region < 0)
				return "a region number is missing or invalid";
			break;
		default:
			return "unexpected character after the name";
		}
	}

	memset(req->nr_name, 0, sizeof(req->nr_name));
	memcpy(req->nr_name, name, length);
	req->nr_flags |= flags;
	req->nr_ringid = (uint16_t)(req->nr_ringid | ring);
	req->nr_arg2 = (uint16_t)region;
	*options = p;
	return NULL;
}

/* Takes from parent what the NM_OPEN_* flags name. */
static inline void
nm_inherit(struct nmreq *req, const struct nmreq *parent, uint64_t flags)
{
	req->nr_arg1 = flags & NM_OPEN_ARG1 ? parent->nr_arg1 : 4;
	if (flags & NM_OPEN_ARG2)
		req->nr_arg2 = parent->nr_arg2;
	req->nr_arg3 = flags & NM_OPEN_ARG3 ? parent->nr_arg3 : 0;
	if (flags & NM_OPEN_RING_CFG) {
		req->nr_tx_slots = parent->nr_tx_slots;
		req->nr_rx_slots = parent->nr_rx_slots;
		req->nr_tx_rings = parent->nr_tx_rings;
		req->nr_rx_rings = parent->nr_rx_rings;
	}
	if (flags & NM_OPEN_IFNAME) {
		memcpy(req->nr_name, parent->nr_name, sizeof(req->nr_name));
		req->nr_ringid = parent->nr_ringid;
		req->nr_flags = parent->nr_flags;
	}
}

/* Which rings nm_inject and the readers go through. */
static inline void
nm_set_rings(struct nm_desc *d)
{
	const struct nmreq *req = &d->req;

	switch (req->nr_flags & NR_REG_MASK) {
	case NR_REG_SW:
		d->first_tx_ring = d->last_tx_ring = req->nr_tx_rings;
		d->first_rx_ring = d->last_rx_ring = req->nr_rx_rings;
		break;
	case NR_REG_ALL_NIC:
		d->first_tx_ring = d->first_rx_ring = 0;
		d->last_tx_ring = (uint16_t)(req->nr_tx_rings - 1);
		d->last_rx_ring = (uint16_t)(req->nr_rx_rings - 1);
		break;
	case NR_REG_NIC_SW:
		d->first_tx_ring = d->first_rx_ring = 0;
		d->last_tx_ring = req->nr_tx_rings;
		d->last_rx_ring = req->nr_rx_rings;
		break;
	case NR_REG_ONE_NIC:
		d->first_tx_ring = d->last_tx_ring =
		d->first_rx_ring = d->last_rx_ring =
			req->nr_ringid & NETMAP_RING_MASK;
		break;
	default:
		d->first_tx_ring = d->last_tx_ring = 0;
		d->first_rx_ring = d->last_rx_ring = 0;
		break;
	}
	d->cur_tx_ring = d->first_tx_ring;
	d->cur_rx_ring = d->first_rx_ring;
}

/*
 * NIOCREGIF with Ringway's own options, which only the newer request can
 * carry. There a pipe's id is part of the name.
 */
static inline int
nm_register_with(int fd, struct nmreq *req, const char *options)
{
	size_t length = strlen(options);
	struct nmreq_register reg;
	struct nmreq_header hdr;
	struct nmreq_option *option;
	int error;

	memset(&hdr, 0, sizeof(hdr));
	memset(&reg, 0, sizeof(reg));
	memcpy(hdr.nr_name, req->nr_name, sizeof(req->nr_name));
	reg.nr_mode = req->nr_flags & NR_REG_MASK;
	reg.nr_ringid = req->nr_ringid & NETMAP_RING_MASK;
	if (reg.nr_mode == NR_REG_PIPE_MASTER ||
	    reg.nr_mode == NR_REG_PIPE_SLAVE) {
		size_t end = strlen(hdr.nr_name);

		snprintf(hdr.nr_name + end, sizeof(hdr.nr_name) - end, "%c%u",
			 reg.nr_mode == NR_REG_PIPE_MASTER ? '{' : '}',
			 (unsigned int)reg.nr_ringid);
		reg.nr_mode = NR_REG_ALL_NIC;
		reg.nr_ringid = 0;
	}
	reg.nr_flags = req->nr_flags & ~(uint32_t)NR_REG_MASK;
	if (req->nr_ringid & NETMAP_NO_TX_POLL)
		reg.nr_flags |= NR_NO_TX_POLL;
	if (req->nr_ringid & NETMAP_DO_RX_POLL)
		reg.nr_flags |= NR_DO_RX_POLL;
	reg.nr_tx_slots = req->nr_tx_slots;
	reg.nr_rx_slots = req->nr_rx_slots;
	reg.nr_tx_rings = req->nr_tx_rings;
	reg.nr_rx_rings = req->nr_rx_rings;
	reg.nr_mem_id = req->nr_arg2;
	reg.nr_extra_bufs = req->nr_arg3;

	option = (struct nmreq_option *)calloc(1, sizeof(*option) + length);
	if (!option) {
		errno = ENOMEM;
		return -1;
	}
	option->nro_reqtype = NETMAP_REQ_OPT_RINGWAY;
	option->nro_size = sizeof(*option) + length;
	memcpy(option + 1, options, length);
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = NETMAP_REQ_REGISTER;
	hdr.nr_options = (uintptr_t)option;
	hdr.nr_body = (uintptr_t)&reg;
	error = ioctl(fd, NIOCCTRL, &hdr);
	free(option);
	if (error == -1)
		return -1;

	req->nr_offset = (uint32_t)reg.nr_offset;
	req->nr_memsize = (uint32_t)reg.nr_memsize;
	req->nr_tx_slots = reg.nr_tx_slots;
	req->nr_rx_slots = reg.nr_rx_slots;
	req->nr_tx_rings = reg.nr_tx_rings;
	req->nr_rx_rings = reg.nr_rx_rings;
	req->nr_arg2 = reg.nr_mem_id;
	req->nr_arg3 = reg.nr_extra_bufs;
	return 0;
}

/* The steps of nm_open that can fail; returns NULL or what failed. */
static inline const char *
nm_bind(struct nm_desc *d, const char *ifname, uint64_t flags,
	const struct nm_desc *arg)
{
	const char *options = "";

	d->fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	if (d->fd == -1)
		return errno == ENOENT ?
			"there is no " NETMAP_DEVICE_NAME "; start the program "
			"with `ringway run --`, or link it with "
			"-lringway_netmap" : "cannot open " NETMAP_DEVICE_NAME
			" (RINGWAY_VERBOSE=1 says why)";
	if (!(flags & NM_OPEN_IFNAME)) {
		const char *error = nm_parse(ifname, &d->req, &options);

		if (error) {
			errno = EINVAL;
			return error;
		}
	}
	d->req.nr_version = NETMAP_API;
	d->req.nr_ringid &= NETMAP_RING_MASK;
	if (IS_NETMAP_DESC(arg) && flags)
		nm_inherit(&d->req, &arg->req, flags);
	d->req.nr_ringid = (uint16_t)(d->req.nr_ringid |
		(flags & (NETMAP_NO_TX_POLL | NETMAP_DO_RX_POLL)));
	if (*options) {
		if (nm_register_with(d->fd, &d->req, options) == -1)
			return "cannot register with these options "
				"(RINGWAY_VERBOSE=1 says why)";
	} else if (ioctl(d->fd, NIOCREGIF, &d->req) == -1) {
		return "NIOCREGIF failed (RINGWAY_VERBOSE=1 says why)";
	}

	nm_set_rings(d);
	if (!(flags & NM_OPEN_NO_MMAP) || arg) {
		int error = nm_mmap(d, arg);

		if (error) {
			errno = error;
			return "cannot map the region";
		}
	}
	return NULL;
}

/*
 * Opens a port. req, if not NULL, is the request to start from; arg a
 * descriptor to share memory with and, as flags say, to take settings from.
 *
 * Returns NULL on failure, with errno set: 0 when the name is not one of
 * netmap's at all and may be another's, EINVAL for a malformed one, for a
 * pipe's without "netmap:" or "vale" in front, and for a capture file's, else
 * what the step that failed gave.
 */
static inline struct nm_desc *
nm_open(const char *ifname, const struct nmreq *req, uint64_t flags,
	const struct nm_desc *arg)
{
	struct nm_desc *d;
	const char *error;

	if (strncmp(ifname, "netmap:", strlen("netmap:")) != 0 &&
	    strncmp(ifname, NM_BDG_NAME, strlen(NM_BDG_NAME)) != 0) {
		/* A pipe can be nobody else's. */
		if (ifname[strcspn(ifname, "{}")] != '\0') {
			D("%s: not a port's name; write netmap:%s", ifname,
			  ifname);
			errno = EINVAL;
		} else if (strncmp(ifname, "file:", strlen("file:")) == 0) {
			D("%s: a capture file has no rings; `ringway replay` "
			  "sends its packets to a port", ifname);
			errno = EINVAL;
		} else {
			errno = 0;
		}
		return NULL;
	}
	d = (struct nm_desc *)calloc(1, sizeof(*d));
	if (!d) {
		errno = ENOMEM;
		return NULL;
	}
	d->self = d;
	if (req)
		d->req = *req;
	error = nm_bind(d, ifname, flags, arg);
	if (error) {
		int cause = errno ? errno : EINVAL;

		D("%s: %s: %s", ifname, error, strerror(cause));
		nm_close(d);
		errno = cause;
		return NULL;
	}
	return d;
}

/*
 * Copies one packet into the first tx ring with room for all of it, trying
 * from the last ring used. Returns size, or 0 when no ring has room.
 */
static inline int
nm_inject(struct nm_desc *d, const void *buf, size_t size)
{
	uint16_t index = d->cur_tx_ring;
	int rings = d->last_tx_ring - d->first_tx_ring + 1;

	for (; rings > 0; rings--, index++) {
		struct netmap_ring *ring;
		struct netmap_slot *slot;
		const char *from = (const char *)buf;
		size_t left = size, room, chunk;
		uint32_t i;

		if (index > d->last_tx_ring)
			index = d->first_tx_ring;
		ring = NETMAP_TXRING(d->nifp, index);
		if ((void *)ring == (void *)d->nifp)
			continue;
		i = ring->cur;
		chunk = NETMAP_DATA_SIZE(ring);
		room = ring->tail >= i ? ring->tail - i :
			ring->tail + ring->num_slots - i;
		/* An empty packet needs a slot as well. */
		if (room == 0 || size > room * chunk)
			continue;

		for (;;) {
			size_t part = left < chunk ? left : chunk;

			slot = &ring->slot[i];
			slot->len = (uint16_t)part;
			nm_pkt_copy(from, NETMAP_BUF(ring, slot->buf_idx),
				    (int)part);
			i = nm_ring_next(ring, i);
			left -= part;
			if (left == 0)
				break;
			from += part;
			slot->flags = NS_MOREFRAG;
		}
		slot->flags = 0;
		ring->head = ring->cur = i;
		d->cur_tx_ring = index;
		return (int)size;
	}
	return 0;
}

/* Describes the packet at head and gives its slots back at the next sync. */
static inline void
nm_take_packet(struct netmap_ring *ring, struct nm_pkthdr *hdr)
{
	uint32_t i = ring->head;
	struct netmap_slot *slot = &ring->slot[i];
	const char *end = NETMAP_BUF(ring, slot->buf_idx);
	int adjacent = 1;

	hdr->ts = ring->ts;
	hdr->slot = slot;
	hdr->buf = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
	hdr->len = hdr->caplen = slot->len;
	while (slot->flags & NS_MOREFRAG) {
		adjacent = adjacent && slot->len == ring->nr_buf_size;
		end += ring->nr_buf_size;
		if (nm_ring_next(ring, i) == ring->tail)
			break;
		i = nm_ring_next(ring, i);
		slot = &ring->slot[i];
		adjacent = adjacent && end == NETMAP_BUF(ring, slot->buf_idx);
		hdr->len += slot->len;
		if (adjacent)
			hdr->caplen += slot->len;
	}
	ring->head = ring->cur = nm_ring_next(ring, i);
}

/*
 * Calls cb for each received packet, for cnt of them at most (0 and -1: no
 * limit). A call comes one packet late, so that every header but the last one
 * can say that more are to come. Returns the number of packets.
 */
static inline int
nm_dispatch(struct nm_desc *d, int cnt, nm_cb_t cb, unsigned char *arg)
{
	uint16_t index = d->cur_rx_ring;
	int rings = d->last_rx_ring - d->first_rx_ring + 1;
	int got = 0;

	if (cnt == 0)
		cnt = -1;
	d->hdr.d = d;
	d->hdr.flags = NM_MORE_PKTS;
	for (; rings > 0 && got != cnt; rings--, index++) {
		struct netmap_ring *ring;

		if (index > d->last_rx_ring)
			index = d->first_rx_ring;
		ring = NETMAP_RXRING(d->nifp, index);
		if ((void *)ring == (void *)d->nifp)
			continue;
		/* The next call goes on with the next ring. */
		d->cur_rx_ring = index == d->last_rx_ring ?
			d->first_rx_ring : index + 1;
		for (; !nm_ring_empty(ring) && got != cnt; got++) {
			if (got > 0)
				cb(arg, &d->hdr, d->hdr.buf);
			nm_take_packet(ring, &d->hdr);
		}
	}
	if (got > 0) {
		d->hdr.flags = 0;
		cb(arg, &d->hdr, d->hdr.buf);
	}
	return got;
}

/*
 * The next received slot, or NULL when all rings are empty; hdr receives ts,
 * len and caplen. Valid until the next sync.
 */
static inline unsigned char *
nm_nextpkt(struct nm_desc *d, struct nm_pkthdr *hdr)
{
	uint16_t index = d->cur_rx_ring;
	int rings = d->last_rx_ring - d->first_rx_ring + 1;

	for (; rings > 0; rings--, index++) {
		struct netmap_ring *ring;
		struct netmap_slot *slot;

		if (index > d->last_rx_ring)
			index = d->first_rx_ring;
		ring = NETMAP_RXRING(d->nifp, index);
		if ((void *)ring == (void *)d->nifp || nm_ring_empty(ring))
			continue;
		slot = &ring->slot[ring->head];
		hdr->ts = ring->ts;
		hdr->len = hdr->caplen = slot->len;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		d->cur_rx_ring = index;
		return (unsigned char *)NETMAP_BUF(ring, slot->buf_idx);
	}
	return NULL;
}

#endif /* NETMAP_WITH_LIBS */

#endif /* _NET_NETMAP_USER_H_ */
