/* Opens two devices, sends from one to the other and closes them, many times in one process; then says how many more
 * descriptors it has, and how much more memory is mapped, than before. usage: pcap_leaks ROUNDS FROM TO [FILTER] */
#define _GNU_SOURCE
#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKETS = 20 };

static int seen;

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	(void)user;
	if (header->caplen >= 60 && packet[12] == 0x88 && packet[13] == 0xb5)
		seen++;
}

static void fail(const char *device, const char *why)
{
	fprintf(stderr, "%s: %s\n", device, why);
	exit(1);
}

static pcap_t *open_device(const char *device)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_live(device, 2000, 1, 10, error);
	if (p == NULL)
		fail(device, error);
	return p;
}

static void turn(const char *from, const char *to, const char *filter)
{
	u_char frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
	pcap_t *receiver = open_device(to), *sender = open_device(from);
	struct bpf_program program;
	struct pcap_stat stats;
	pcap_if_t *devices;
	char error[PCAP_ERRBUF_SIZE];
	if (pcap_compile(receiver, &program, filter, 1, PCAP_NETMASK_UNKNOWN) < 0 ||
	    pcap_setfilter(receiver, &program) < 0)
		fail(to, pcap_geterr(receiver));
	pcap_freecode(&program);
	seen = 0;
	for (int i = 0; i < PACKETS; i++)
		if (pcap_inject(sender, frame, sizeof frame) != sizeof frame)
			fail(from, pcap_geterr(sender));
	while (seen < PACKETS)
		if (pcap_dispatch(receiver, -1, count, NULL) < 0)
			fail(to, pcap_geterr(receiver));
	if (pcap_stats(receiver, &stats) < 0 || pcap_findalldevs(&devices, error) < 0)
		fail(to, pcap_geterr(receiver));
	pcap_freealldevs(devices);
	pcap_close(sender);
	pcap_close(receiver);
}

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int number = 0;
	while (readdir(folder) != NULL)
		number++;
	closedir(folder);
	return number;
}

/* Kilobytes of the address space in use. */
static long mapped(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[4096];
	unsigned long begin, end, sum = 0;
	while (fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && strstr(line, "[vsyscall]") == NULL)
			sum += end - begin;
	fclose(file);
	return (long)(sum >> 10);
}

int main(int count, char **arguments)
{
	int rounds = atoi(arguments[1]), before;
	const char *from = arguments[2], *to = arguments[3], *filter = count > 4 ? arguments[4] : "";
	long memory;
	/* What is made once, is. */
	for (int i = 0; i < 3; i++)
		turn(from, to, filter);
	before = descriptors();
	memory = mapped();
	for (int i = 0; i < rounds; i++)
		turn(from, to, filter);
	printf("descriptors %+d, mapped %+ld KiB\n", descriptors() - before, mapped() - memory);
	return 0;
}
