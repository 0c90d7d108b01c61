/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments at the edge of readable memory, and what several chapters ask about
 * ports and processes.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "../../tests/c/options.h"

#include <sys/wait.h>
#include <time.h>

#define NO_REGION	60001	/* a mem_id that does not exist */

/* What a check says, with the row of the table that it is about. */
__attribute__((format(printf, 1, 2))) static inline const char *
line(const char *format, ...)
{
	static char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

/* size bytes, all zero, behind which a page without access begins. */
static inline void *
before_guard(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	char *mem = (char *)mmap(NULL, room + page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(mem != MAP_FAILED &&
		mprotect(mem + room, page, PROT_NONE) == 0, "guard page");
	return mem + room - size;
}

/* A copy of data in memory that cannot be written. */
static inline void *
read_only(const void *data, size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(mem != MAP_FAILED, "memory");
	memcpy(mem, data, size);
	require(mprotect(mem, size, PROT_READ) == 0, "read-only memory");
	return mem;
}

/* REGISTER with what most cases vary. */
static inline int
bind_as(int fd, const char *name, uint32_t mode, uint16_t ring, uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = mode;
	reg.nr_ringid = ring;
	reg.nr_flags = flags;
	return control(fd, NETMAP_REQ_REGISTER, name, &reg);
}

/* REGISTER of all rings. */
static inline int
bind_all(int fd, const char *name)
{
	return bind_as(fd, name, NR_REG_ALL_NIC, 0, 0);
}

/* REGISTER on a descriptor of its own, which is let go at once. */
static inline int
try_register(const char *name, struct nmreq_register reg)
{
	return control_once(NETMAP_REQ_REGISTER, name, &reg);
}

static inline struct port
port_open_flags(const char *name, uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_flags = flags;
	return port_open_as(name, reg);
}

/* A port with as many slots in each ring as asked. */
static inline struct port
port_open_slots(const char *name, uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_slots = reg.nr_rx_slots = slots;
	return port_open_as(name, reg);
}

/* PORT_INFO_GET on a descriptor of its own. */
static inline int
port_info(const char *name, struct nmreq_port_info_get *info)
{
	return control_once(NETMAP_REQ_PORT_INFO_GET, name, info);
}

/* POOLS_INFO_GET of something that exists. */
static inline struct nmreq_pools_info
pools_of(const char *name)
{
	struct nmreq_pools_info pools;

	memset(&pools, 0, sizeof(pools));
	require(control_once(NETMAP_REQ_POOLS_INFO_GET, name, &pools) == 0,
		"POOLS_INFO_GET %s", name);
	return pools;
}

/*
 * Asks again and again until the answer is yes, for what happens soon and
 * tells nobody.
 */
static inline int
soon(int (*answer)(const void *), const void *argument)
{
	struct timespec pause = { 0, 1000000 };
	int turns;

	for (turns = 0; turns < PATIENCE_MS; turns++) {
		if (answer(argument))
			return 1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static inline int
port_absent(const void *name)
{
	return !port_exists((const char *)name);
}

/* The end of a process reaches the service without an event for us. */
static inline int
gone_soon(const char *name)
{
	return soon(port_absent, name);
}

/* Waits for a child, which must have ended well. */
static inline void
check_child(pid_t child, const char *text)
{
	int status = -1;

	require(waitpid(child, &status, 0) == child, "waitpid");
	check(status == 0, "%s (status 0x%x)", text, (unsigned)status);
}

static inline pid_t
forked(void)
{
	pid_t child = fork();

	require(child >= 0, "fork");
	return child;
}

static inline int
thread_sleeps(const void *tid)
{
	char path[64], line[512], *end;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(const int *)tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length < 0 ? 0 : length] = 0;
	end = strrchr(line, ')');
	return end && end[1] && end[2] == 'S';
}

/* Lets a frame pass from one port to the other. */
static inline void
check_passes(const struct port *from, const struct port *to, const char *text)
{
	static uint32_t sequence = 1000;

	port_send(from, broadcast, mac_of(1), ++sequence);
	check_number(port_take(to), sequence, text);
}

#endif
