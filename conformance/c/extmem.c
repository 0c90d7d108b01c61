/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions in the program's own memory (S-EXT). */
#include "netns.h"
#include "request.h"

#include <sys/file.h>

#define MEMORY	(16u << 20)
#define HUGE	(2u << 20)	/* a huge page */

static char *
map_shared(int flags, int fd)
{
	void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			    MAP_SHARED | flags, fd, 0);

	require(memory != MAP_FAILED, "memory");
	return (char *)memory;
}

static char *
own_memory(void)
{
	return (char *)memory_new(MEMORY);
}

static struct nmreq_register
with_slots(uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_slots = reg.nr_rx_slots = slots;
	return reg;
}

/* ---- S-EXT-1: the memory ---- */

/* A port that lives in this memory, seen from both sides, and used. */
static void
check_memory(char *memory)
{
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY);
	struct port port, other;
	struct netmap_if *direct;

	memcpy(memory + MEMORY - 16, "from before", 12);
	port = port_open_with(own("vale$:ext"), register_all(), &option);
	check_number(option.nro_opt.nro_status, 0, "status");
	check(strcmp(memory + MEMORY - 16, "from before") == 0,
	      "what was in the memory is there");
	direct = NETMAP_IF(memory, port.reg.nr_offset);
	check(strncmp(direct->ni_name, own("vale$:ext"), 15) == 0 &&
	      direct->ni_flags & NI_PRIV_MEM,
	      "the interface is in it, and private");
	check_number(NETMAP_TXRING(direct, 0)->num_slots, 1024,
		     "so are its rings");
	port.mem[MEMORY - 1] = 'y';
	check(memory[MEMORY - 1] == 'y', "mmap shows the same");
	memory[MEMORY - 2] = 'z';
	check(port.mem[MEMORY - 2] == 'z', "and the other way round");

	/* Sent by what is written directly, received through the mapping. */
	other = port_open(own("vale$:peer"));
	port.nifp = direct;
	check_passes(&port, &other, "a frame out of the memory");
	port.nifp = NETMAP_IF(port.mem, port.reg.nr_offset);
	check_passes(&other, &port, "a frame into it");
	port_close(&port);
	check(gone_soon(own("vale$:ext")), "the port goes");
	memory[0] = 1;
	check_number(memory[MEMORY - 2], 'z', "the memory stays");
}

static void
private_memory(void)
{
	check_memory(own_memory());
}

static void
shared_memory(void)
{
	check_memory(map_shared(MAP_ANONYMOUS, -1));
}

static void
memory_of_a_file(void)
{
	FILE *file = tmpfile();

	require(file != NULL && ftruncate(fileno(file), MEMORY) == 0, "a file");
	check_memory(map_shared(0, fileno(file)));
}

static unsigned long
huge_pages(FILE *setting, unsigned long wanted)
{
	unsigned long before = 0;

	rewind(setting);
	require(fscanf(setting, "%lu", &before) == 1, "nr_hugepages");
	rewind(setting);
	fprintf(setting, "%lu\n", wanted > before ? wanted : before);
	fflush(setting);
	return before;
}

/*
 * Gives the machine some huge pages, until this process ends, however it ends.
 * Cases that want them at the same time take turns.
 */
static void
want_huge_pages(unsigned long count)
{
	FILE *setting;
	int alive[2], ready[2];
	char byte;

	need_root();
	setting = fopen("/proc/sys/vm/nr_hugepages", "r+");
	if (!setting)
		skip("the kernel has no huge pages");
	setbuf(setting, NULL);
	require(pipe(alive) == 0 && pipe(ready) == 0, "a guard");
	if (forked() == 0) {
		unsigned long before;

		setsid();
		close(alive[1]);
		require(flock(fileno(setting), LOCK_EX) == 0, "flock");
		before = huge_pages(setting, count);
		require(write(ready[1], "", 1) == 1, "write");
		while (read(alive[0], &byte, 1) > 0)
			;
		rewind(setting);
		fprintf(setting, "%lu\n", before);
		_exit(0);
	}
	close(alive[0]);
	close(ready[1]);
	fclose(setting);
	require(read(ready[0], &byte, 1) == 1, "huge pages");
}

static void
huge_memory(void)
{
	void *memory;

	want_huge_pages(MEMORY / HUGE);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (memory == MAP_FAILED)
		skip("the machine has no huge pages");
	check_memory((char *)memory);
}

static void
memory_that_is_not_there(void)
{
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY);

	require(munmap(memory + MEMORY / 2, 4096) == 0, "munmap");
	check_call(try_with(own("vale$:a"), register_all(), &option), EFAULT,
		   "a page is missing");
	check_number(option.nro_opt.nro_status, EFAULT, "status");

	memory = own_memory();
	require(mprotect(memory + 8192, 4096, PROT_READ) == 0, "mprotect");
	option = extmem_of(memory, MEMORY);
	check_call(try_with(own("vale$:a"), register_all(), &option), EFAULT,
		   "a page cannot be written");
	check_number(option.nro_opt.nro_status, EFAULT, "status");

	require(mprotect(memory + 8192, 4096, PROT_NONE) == 0, "mprotect");
	option = extmem_of(memory, MEMORY);
	check_call(try_with(own("vale$:a"), register_all(), &option), EFAULT,
		   "a page cannot be read");
	require(mprotect(memory + 8192, 4096, PROT_READ | PROT_WRITE) == 0,
		"mprotect");
	option = extmem_of(memory, MEMORY);
	check_call(try_with(own("vale$:a"), register_all(), &option), 0,
		   "all of it can be read and written");
	check(!port_exists(own("vale$:a")), "nothing is left");
}

static void
defaults(void)
{
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY);
	struct nmreq_pools_info *info = &option.nro_info;

	check_call(try_with(own("vale$:a"), register_all(), &option), 0,
		   "nothing but memory");
	check(info->nr_if_pool_objtotal == 2 &&
	      info->nr_if_pool_objsize == 1024, "2 interfaces of 1024");
	check(info->nr_ring_pool_objtotal == 4 &&
	      info->nr_ring_pool_objsize == 20480, "4 rings of 20480");
	check(info->nr_buf_pool_objtotal == 4098 &&
	      info->nr_buf_pool_objsize == 2048, "4098 buffers of 2048");
}

static void
unrounded(void)
{
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY);
	struct nmreq_pools_info *info = &option.nro_info, pools;
	struct port port;

	info->nr_if_pool_objtotal = 3;
	info->nr_if_pool_objsize = 1000;
	info->nr_ring_pool_objtotal = 5;
	info->nr_ring_pool_objsize = 2000;
	info->nr_buf_pool_objtotal = 301;
	info->nr_buf_pool_objsize = 1000;
	port = port_open_with(own("vale$:a"), with_slots(64), &option);
	check(info->nr_if_pool_objtotal == 3 &&
	      info->nr_if_pool_objsize == 1000 &&
	      info->nr_ring_pool_objtotal == 5 &&
	      info->nr_ring_pool_objsize == 2000 &&
	      info->nr_buf_pool_objtotal == 301 &&
	      info->nr_buf_pool_objsize == 1000, "come back as they are");
	pools = pools_of(own("vale$:a"));
	check(pools.nr_if_pool_objtotal == 3 &&
	      pools.nr_if_pool_objsize == 1000 &&
	      pools.nr_ring_pool_objtotal == 5 &&
	      pools.nr_ring_pool_objsize == 2000 &&
	      pools.nr_buf_pool_objsize == 1000, "and are what there is");
	check_number(port_tx(&port)->nr_buf_size, 1000, "buffers of 1000");
}

/* ---- S-EXT-2: what fits ---- */

static void
what_fits(void)
{
	uint64_t exact = 2 * 1024 + 4 * 20480 + 4098 * 2048;
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, exact - 1);

	check_call(try_with(own("vale$:a"), register_all(), &option), ENOMEM,
		   "a byte less than the pools");
	check_number(option.nro_opt.nro_status, ENOMEM, "status");
	option = extmem_of(memory, 1 << 20);
	check_call(try_with(own("vale$:a"), register_all(), &option), ENOMEM,
		   "much less");
	option = extmem_of(memory, exact);
	check_call(try_with(own("vale$:a"), register_all(), &option), 0,
		   "as much");
	check_number(option.nro_opt.nro_status, 0, "status");
	option = extmem_of(memory, MEMORY);
	option.nro_info.nr_buf_pool_objtotal = 8192;
	check_call(try_with(own("vale$:a"), register_all(), &option), ENOMEM,
		   "buffers that leave no room for rings");
}

static void
surplus(void)
{
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY);
	struct nmreq_register reg = register_all();
	struct nmreq_pools_info pools;
	struct port port;

	reg.nr_extra_bufs = 100000;
	port = port_open_with(own("vale$:a"), reg, &option);
	pools = pools_of(own("vale$:a"));
	/* 16 MB less rings and interfaces; some may lie across pages. */
	check(pools.nr_buf_pool_objtotal > 4098 + 3000 &&
	      pools.nr_buf_pool_objtotal <= 8192,
	      "the rest is buffers (got %u)", pools.nr_buf_pool_objtotal);
	check(port.reg.nr_extra_bufs > 4098 &&
	      port.reg.nr_extra_bufs < pools.nr_buf_pool_objtotal - 2047,
	      "which can be had (got %u)", port.reg.nr_extra_bufs);
}

/* ---- S-EXT-3: the same again, and what does not fit ---- */

static void
same_memory(void)
{
	char *memory = own_memory(), *other = own_memory();
	struct nmreq_opt_extmem one = extmem_of(memory, MEMORY),
				two = extmem_of(memory, MEMORY),
				three = extmem_of(other, MEMORY);
	struct port a, b, c, d;

	a = port_open_with(own("vale$:a"), with_slots(64), &one);
	b = port_open_with(own("vale$:b"), with_slots(64), &two);
	c = port_open_with(own("vale$:c"), with_slots(64), &three);
	d = port_open(own("vale$:d"));
	check_number(b.reg.nr_mem_id, a.reg.nr_mem_id, "one region");
	check(c.reg.nr_mem_id != a.reg.nr_mem_id &&
	      d.reg.nr_mem_id != a.reg.nr_mem_id,
	      "other memory is another region");
	check(a.nifp->ni_flags & NI_PRIV_MEM && b.nifp->ni_flags & NI_PRIV_MEM,
	      "private");
	check(b.reg.nr_offset != a.reg.nr_offset,
	      "with an interface for each port");
	check_passes(&a, &b, "from one to the other");
	check_passes(&c, &a, "from other memory");
}

static void
same_memory_in_another_process(void)
{
	FILE *file = tmpfile();
	struct nmreq_opt_extmem option;
	struct port port;
	char *memory;
	pid_t child;

	require(file != NULL && ftruncate(fileno(file), MEMORY) == 0, "a file");
	memory = map_shared(0, fileno(file));
	option = extmem_of(memory, MEMORY);
	port = port_open_with(own("vale$:a"), with_slots(64), &option);
	fflush(stdout);
	child = forked();
	if (child == 0) {
		char *again = map_shared(0, fileno(file));
		struct port mine;

		option = extmem_of(again, MEMORY);
		mine = port_open_with(own("vale$:b"), with_slots(64), &option);
		again[MEMORY - 1] = 'z';
		_exit(mine.reg.nr_mem_id != port.reg.nr_mem_id);
	}
	check_child(child, "the same file elsewhere is the same region");
	check_number(memory[MEMORY - 1], 'z', "what is stored there is here");
}

/* The option is good, the region too small for the port. */
static void
too_small_for_the_port(void)
{
	static const struct {
		uint32_t ring_size, slots, bufs;
		int error;
		const char *text;
	} asked[] = {
		{ 512, 1024, 0, ENOMEM, "1024 slots in rings of 512" },
		{ 512, 17, 0, ENOMEM, "17 slots in rings of 512" },
		{ 512, 16, 0, 0, "16 slots in rings of 512" },
		{ 256 + 16 * 100, 100, 0, 0, "100 slots in what they take" },
		{ 0, 1024, 0, 0, "1024 slots in the default" },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq_opt_extmem option = extmem_of(own_memory(),
							   MEMORY);

		option.nro_info.nr_ring_pool_objsize = asked[i].ring_size;
		check_call(try_with(own("vale$:a"), with_slots(asked[i].slots),
				    &option), asked[i].error, asked[i].text);
		check_number(option.nro_opt.nro_status, 0,
			     "whatever comes of it, the option is good");
	}
}

static void
too_few_for_the_port(void)
{
	struct nmreq_register reg = with_slots(64);
	struct nmreq_opt_extmem option = extmem_of(own_memory(), MEMORY);

	reg.nr_tx_rings = 4;
	check_call(try_with(own("vale$:a"), reg, &option), ENOMEM,
		   "5 rings, of 4");
	/* 2 MB, rings included: 900 buffers at most. */
	option = extmem_of(own_memory(), 2 << 20);
	option.nro_info.nr_buf_pool_objtotal = 100;
	check_call(try_with(own("vale$:a"), with_slots(512), &option), ENOMEM,
		   "1024 buffers, of 900");
	option = extmem_of(own_memory(), 2 << 20);
	option.nro_info.nr_buf_pool_objtotal = 100;
	check_call(try_with(own("vale$:a"), with_slots(256), &option), 0,
		   "512 buffers, of 900");
}

static void
ports_in_use(void)
{
	struct nmreq_opt_extmem option = extmem_of(own_memory(), MEMORY);
	struct port port = port_open(own("vale$:a"));
	struct nmreq_register reg = register_all();
	int fd = register_with(own("vale$:a"), &reg, &option);

	check_call(fd, 0, "a port in use");
	check_number(option.nro_opt.nro_status, 0, "status");
	check_number(reg.nr_mem_id, port.reg.nr_mem_id,
		     "keeps its own region");
}

static void
of_interfaces(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_opt_extmem option = extmem_of(own_memory(), MEMORY);
	struct port port = port_open_with(cable.near, register_all(), &option);

	check(port.reg.nr_mem_id > 1 && port.nifp->ni_flags & NI_PRIV_MEM,
	      "an interface in memory of the program's");
	port_send(&port, broadcast, mac_of(1), 7);
	check_number(cable_take(&cable), 7, "sends");
	cable_send(&cable, broadcast, mac_of(2), 8);
	check_number(port_take(&port), 8, "and receives");
}

static void
of_pipes(void)
{
	struct nmreq_opt_extmem option = extmem_of(own_memory(), MEMORY);
	struct port parent, one, two;

	option.nro_info.nr_if_pool_objtotal = 4;
	option.nro_info.nr_ring_pool_objtotal = 8;
	parent = port_open_with(own("vale$:p"), with_slots(64), &option);
	one = port_open(own("vale$:p{1"));
	two = port_open(own("vale$:p}1"));
	check_number(one.reg.nr_mem_id, parent.reg.nr_mem_id,
		     "a pipe in its parent's memory");
	check_passes(&one, &two, "one way");
	check_passes(&two, &one, "the other way");
}

/* ---- S-EXT-4: the option ---- */

static void
values_of_the_option(void)
{
	char *memory = own_memory();
	struct nmreq_opt_extmem option = extmem_of(memory, MEMORY), second;
	struct nmreq_register reg = register_all();

	check_call(try_with(own("vale$:a"), reg, &option), 0, "REGISTER");
	check_number(option.nro_opt.nro_status, 0, "status");
	check(option.nro_usrptr == (uintptr_t)memory &&
	      option.nro_info.nr_memsize == MEMORY,
	      "address and size are unchanged");

	option = extmem_of(memory, MEMORY);
	second = extmem_of(memory, MEMORY);
	option.nro_opt.nro_next = (uintptr_t)&second;
	check_call(try_with(own("vale$:a"), reg, &option), EINVAL,
		   "two of them");
	check_number(option.nro_opt.nro_status, EINVAL, "status of the first");
	check_number(second.nro_opt.nro_status, EINVAL,
		     "status of the second");
}

static const struct test_case cases[] = {
	{ "S-EXT-1", "private memory", private_memory },
	{ "S-EXT-1", "shared memory", shared_memory },
	{ "S-EXT-1", "a file", memory_of_a_file },
	{ "S-EXT-1", "huge pages", huge_memory },
	{ "S-EXT-1", "memory that is not there", memory_that_is_not_there },
	{ "S-EXT-1", "defaults", defaults },
	{ "S-EXT-1", "numbers as they are", unrounded },
	{ "S-EXT-2", "what fits", what_fits },
	{ "S-EXT-2", "the surplus", surplus },
	{ "S-EXT-3", "the same memory", same_memory },
	{ "S-EXT-3", "the same file in another process",
	  same_memory_in_another_process },
	{ "S-EXT-3", "objects too small", too_small_for_the_port },
	{ "S-EXT-3", "objects too few", too_few_for_the_port },
	{ "S-EXT-3", "ports in use", ports_in_use },
	{ "S-EXT-3", "an interface", of_interfaces },
	{ "S-EXT-3", "pipes", of_pipes },
	{ "S-EXT-4", "status and values", values_of_the_option },
};

CHAPTER(cases)
