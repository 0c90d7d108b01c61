/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of a registration: a region in the program's own memory (S-EXT), and
 * offsets in slots (S-OFF). Arguments: the API generation and a switch.
 */
#include "port.h"

#include <sys/wait.h>

#define MEMORY	(16u << 20)
#define HUGE	(2u << 20)

static const char *vale;

/* REGISTER with a list of options; returns what ioctl returns. */
static int
register_with(int fd, const char *name, struct nmreq_register *reg, void *option)
{
	struct nmreq_header header = header_of(NETMAP_REQ_REGISTER, name, reg);

	header.nr_options = (uintptr_t)option;
	return ioctl(fd, NIOCCTRL, &header);
}

static struct nmreq_opt_extmem
extmem(void *memory, uint64_t bytes)
{
	struct nmreq_opt_extmem option;

	memset(&option, 0, sizeof(option));
	option.nro_opt.nro_reqtype = NETMAP_REQ_OPT_EXTMEM;
	option.nro_usrptr = (uintptr_t)memory;
	option.nro_info.nr_memsize = bytes;
	return option;
}

static struct nmreq_opt_offsets
offsets(uint64_t max, uint64_t initial, uint32_t bits)
{
	struct nmreq_opt_offsets option;

	memset(&option, 0, sizeof(option));
	option.nro_opt.nro_reqtype = NETMAP_REQ_OPT_OFFSETS;
	option.nro_max_offset = max;
	option.nro_initial_offset = initial;
	option.nro_offset_bits = bits;
	return option;
}

static void *
memory_of(size_t bytes, int flags, int fd)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	require(memory != MAP_FAILED, "%zu bytes of memory", bytes);
	return memory;
}

/* The program's memory is the region, at its own address and through mmap. */
static void
own_memory(int huge)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);
	char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, flags, -1, 0);
	struct nmreq_register reg = register_all();
	struct nmreq_opt_extmem option;
	struct netmap_ring *ring;
	struct netmap_if *nifp;
	struct port other;
	char *mapped;
	int fd;

	if (memory == MAP_FAILED && huge) {
		printf("# no huge pages on this machine\n");
		return;
	}
	require(memory != MAP_FAILED, "memory");
	memset(memory + MEMORY - 4096, 'x', 4096);
	option = extmem(memory, MEMORY);
	fd = device_open();
	check_call(register_with(fd, name_of(vale, "ext"), &reg, &option), 0,
		   "S-EXT-1 a port in the program's memory");
	check_number(option.nro_opt.nro_status, 0, "S-EXT-4 status");
	check_number((long long)option.nro_usrptr, (long long)(uintptr_t)memory,
		     "S-EXT-4 address unchanged");
	check_number((long long)option.nro_info.nr_memsize, MEMORY,
		     "S-EXT-4 size unchanged");
	check_number(option.nro_info.nr_buf_pool_objtotal, 4098,
		     "S-EXT-1 defaults are written back");
	check_number((long long)reg.nr_memsize, MEMORY, "the region is the memory");
	check(memory[MEMORY - 1] == 'x', "what was in it is there");

	nifp = NETMAP_IF(memory, reg.nr_offset);
	check(strcmp(nifp->ni_name, name_of(vale, "ext")) == 0 &&
	      (nifp->ni_flags & NI_PRIV_MEM), "the interface is in the memory");
	ring = NETMAP_TXRING(nifp, 0);
	check_number(ring->num_slots, 1024, "so are its rings");
	mapped = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	require(mapped != MAP_FAILED, "mmap of the region");
	mapped[MEMORY - 1] = 'y';
	check(memory[MEMORY - 1] == 'y', "S-EXT-3 both are the same memory");

	other = port_open(name_of(vale, "ext_peer"));
	memset(NETMAP_BUF(ring, ring->slot[0].buf_idx), 0xff, 60);
	ring->slot[0].len = 60;
	ring->head = ring->cur = 1;
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0, "send");
	check(wait_events(other.fd, POLLIN, PATIENCE_MS) & POLLIN,
	      "a frame from the memory arrives at another port");

	{
		int second = device_open();
		struct nmreq_register again = register_all();
		struct nmreq_opt_extmem same = extmem(memory, MEMORY);

		again.nr_tx_slots = again.nr_rx_slots = 64;
		check_call(register_with(second, name_of(vale, "ext2"), &again, &same), 0,
			   "S-EXT-3 the same memory again");
		check_number(again.nr_mem_id, reg.nr_mem_id, "is the same region");
		close(second);
	}
	port_close(&other);
	munmap(mapped, MEMORY);
	close(fd);
	memory[0] = 1;
	check(1, "the memory outlives the port");
	munmap(memory, MEMORY);
}

/* A file that two processes map is one region. */
static void
shared_file(void)
{
	FILE *file = tmpfile();
	struct nmreq_register reg = register_all();
	struct nmreq_opt_extmem option;
	int fd = device_open(), status;
	char *memory;
	pid_t child;

	require(file != NULL && ftruncate(fileno(file), MEMORY) == 0, "a file");
	memory = memory_of(MEMORY, MAP_SHARED, fileno(file));
	option = extmem(memory, MEMORY);
	check_call(register_with(fd, name_of(vale, "file"), &reg, &option), 0,
		   "S-EXT-1 a port in a file");
	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct nmreq_register mine = register_all();
		char *again = memory_of(MEMORY, MAP_SHARED, fileno(file));
		int second = device_open();

		mine.nr_tx_slots = mine.nr_rx_slots = 64;
		option = extmem(again, MEMORY);
		check_call(register_with(second, name_of(vale, "file2"), &mine, &option), 0,
			   "S-EXT-3 the same file in another process");
		check_number(mine.nr_mem_id, reg.nr_mem_id, "is the same region");
		again[MEMORY - 1] = 'z';
		exit(check_failures != 0);
	}
	require(child > 0 && waitpid(child, &status, 0) == child, "the other process");
	check(status == 0, "the other process is content");
	check(memory[MEMORY - 1] == 'z', "what it stores is seen here");
	close(fd);
	munmap(memory, MEMORY);
	fclose(file);
}

static void
refusals(void)
{
	char *memory = memory_of(MEMORY, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *hole = memory_of(MEMORY, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct nmreq_register reg = register_all();
	struct nmreq_opt_extmem option = extmem(memory, 1 << 20), second;
	int fd = device_open();

	check_call(register_with(fd, name_of(vale, "no"), &reg, &option), ENOMEM,
		   "S-EXT-2 pools larger than the memory");
	check_number(option.nro_opt.nro_status, ENOMEM, "and the status says so");

	munmap(hole + MEMORY / 2, 4096);
	option = extmem(hole, MEMORY);
	check_call(register_with(fd, name_of(vale, "no"), &reg, &option), EFAULT,
		   "S-EXT-1 memory with a hole");
	check_number(option.nro_opt.nro_status, EFAULT, "and the status says so");

	option = extmem(memory, MEMORY);
	option.nro_info.nr_ring_pool_objsize = 512;
	check_call(register_with(fd, name_of(vale, "no"), &reg, &option), ENOMEM,
		   "S-EXT-3 rings too small for the slots");
	check_number(option.nro_opt.nro_status, 0, "which is not the option's fault");
	option = extmem(memory, MEMORY);
	option.nro_info.nr_ring_pool_objsize = 512;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	check_call(register_with(fd, name_of(vale, "no"), &reg, &option), 0,
		   "S-EXT-3 16 slots fit a ring of 512 bytes");
	close(fd);

	fd = device_open();
	reg = register_all();
	option = extmem(memory, MEMORY);
	second = extmem(memory, MEMORY);
	option.nro_opt.nro_next = (uintptr_t)&second;
	check_call(register_with(fd, name_of(vale, "no"), &reg, &option), EINVAL,
		   "S-EXT-4 two of them");
	check_number(option.nro_opt.nro_status, EINVAL, "status of the first");
	check_number(second.nro_opt.nro_status, EINVAL, "status of the second");
	close(fd);
	munmap(memory, MEMORY);
}

static void
offsets_on(const char *name, int initial)
{
	struct nmreq_opt_offsets option = offsets(128, (uint64_t)initial, 16);
	struct nmreq_register reg = register_all();
	struct netmap_ring *ring;
	struct netmap_if *nifp;
	int fd = device_open(), other = device_open();
	char *memory;

	check_call(register_with(fd, name, &reg, &option), 0, "S-OFF-1 offsets");
	check_number(option.nro_opt.nro_status, 0, "status");
	check_number((long long)option.nro_max_offset, 128, "S-OFF-3 effective maximum");
	memory = memory_of(reg.nr_memsize, MAP_SHARED, fd);
	nifp = NETMAP_IF(memory, reg.nr_offset);
	ring = NETMAP_TXRING(nifp, 0);
	check_number((long long)ring->offset_mask, 0xffff, "S-OFF-3 mask");
	check_number((long long)NETMAP_ROFFSET(ring, &ring->slot[3]), initial,
		     "S-OFF-4 initial offset");

	option = offsets(256, 0, 16);
	check_call(register_with(other, name, &reg, &option), EBUSY,
		   "S-OFF-3 a larger maximum");
	check_number(option.nro_opt.nro_status, EBUSY, "status");
	option = offsets(100, 50, 8);
	check_call(register_with(other, name, &reg, &option), 0,
		   "S-OFF-3 a smaller one");
	check_number((long long)option.nro_max_offset, 128, "S-OFF-3 gets the one there is");
	check_number((long long)NETMAP_ROFFSET(ring, &ring->slot[3]), initial,
		     "S-OFF-4 slots in use keep theirs");
	munmap(memory, reg.nr_memsize);
	close(other);
	close(fd);
}

static void
offset_refusals(const char *name)
{
	static const struct { uint64_t max, initial; uint32_t bits; } wrong[] = {
		{ 128, 0, 65 }, { 4096, 0, 16 }, { 300, 0, 8 }, { 128, 129, 16 },
	};
	struct nmreq_opt_offsets option;
	struct nmreq_register reg;
	unsigned i;
	int fd;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fd = device_open();
		reg = register_all();
		option = offsets(wrong[i].max, wrong[i].initial, wrong[i].bits);
		check_call(register_with(fd, name, &reg, &option), EINVAL,
			   "S-OFF-2 numbers that do not go together");
		check_number(option.nro_opt.nro_status, EINVAL, "status");
		close(fd);
	}
}

int
main(int argc, char **argv)
{
	require(argc == 3, "usage: options API SWITCH");
	api_select(argv[1]);
	vale = argv[2];

	own_memory(0);
	own_memory(1);
	shared_file();
	refusals();
	offsets_on("optpipe{1", 0);
	offsets_on("optpipe{2", 64);
	offset_refusals("optpipe{3");
	return check_result();
}
