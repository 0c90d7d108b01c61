/* Walks through the functions of libpcap on one interface, and prints what each returns: the same, whichever
 * library is behind them. usage: pcap_walk DEVICE PEER: what is sent on PEER is received by DEVICE. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netdb.h>
#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <pcap/namedb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* All functions that there are, but for those of PF_RING's libpcap alone:
 * pcap_set_application_name, pcap_set_watermark. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char *device;
static int peer;

/* A line of the transcript; the name of the device is the same in all. */
static void say(const char *format, ...)
{
	char line[1024], *at;
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	while ((at = strstr(line, device)) != NULL) {
		char rest[1024];
		strcpy(rest, at + strlen(device));
		snprintf(at, (size_t)(line + sizeof line - at), "DEV%s", rest);
	}
	printf("%s\n", line);
	fflush(stdout);
}

/* A result, with the handle's text where it is an error. */
static void result(pcap_t *p, const char *what, int code)
{
	if (code < 0)
		say("%s: %d: %s", what, code, pcap_geterr(p));
	else
		say("%s: %d", what, code);
}

static void open_peer(const char *name)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = 0};
	to.sll_ifindex = (int)if_nametoindex(name);
	peer = socket(AF_PACKET, SOCK_RAW, 0);
	if (peer < 0 || bind(peer, (struct sockaddr *)&to, sizeof to) < 0) {
		perror(name);
		exit(2);
	}
}

/* Frame number `number`, of `length` bytes: UDP to that port. */
static void fill(unsigned char *frame, int number, int length, int port)
{
	static const unsigned char head[] = {
	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7, 8, 0, 0x45, 0, 0, 0, 0, 0,
	    0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0};
	memset(frame, number, (size_t)length);
	memcpy(frame, head, sizeof head);
	frame[36] = (unsigned char)(port >> 8);
	frame[37] = (unsigned char)port;
	frame[17] = (unsigned char)(length - 14);
	frame[16] = (unsigned char)((length - 14) >> 8);
}

static void send_one(int number, int length, int port)
{
	unsigned char frame[1514];
	fill(frame, number, length, port);
	if (send(peer, frame, (size_t)length, 0) != length) {
		perror("send");
		exit(2);
	}
}

static void send_some(int from, int count)
{
	for (int i = 0; i < count; i++)
		send_one(from + i, 60 + i, 9);
}

struct seen {
	pcap_t *p;
	int count, stop_after, nested;
	const char *what;
};

static void packet(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
	struct seen *seen = (struct seen *)user;
	seen->count++;
	say("%s: packet %d: caplen %u len %u, last byte %d", seen->what, seen->count, header->caplen, header->len,
	    bytes[header->caplen - 1]);
	if (seen->count == seen->stop_after)
		pcap_breakloop(seen->p);
}

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
	(void)header, (void)bytes;
	((struct seen *)user)->count++;
}

/* Reads until so many packets were seen. */
static void read_all(pcap_t *p, const char *what, int wanted)
{
	struct seen seen = {.p = p, .what = what};
	while (seen.count < wanted) {
		int code = pcap_dispatch(p, -1, packet, (u_char *)&seen);
		if (code < 0) {
			result(p, what, code);
			return;
		}
	}
}

static void set_filter(pcap_t *p, const char *text)
{
	struct bpf_program program;
	int code = pcap_compile(p, &program, text, 1, PCAP_NETMASK_UNKNOWN);
	char what[128];
	snprintf(what, sizeof what, "compile %s", text);
	result(p, what, code);
	if (code < 0)
		return;
	say("instructions: %u", program.bf_len);
	snprintf(what, sizeof what, "setfilter %s", text);
	result(p, what, pcap_setfilter(p, &program));
	pcap_freecode(&program);
	say("freed: %u", program.bf_len);
}

static void names(void)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	int port = 0, protocol = 0, first = 0, last = 0, found;
	say("%.16s", pcap_lib_version());
	say("status %s, %s, %s", pcap_statustostr(-5), pcap_statustostr(1), pcap_statustostr(-99));
	say("strerror %s", pcap_strerror(ENOENT));
	say("dlt %d %s %s %s", pcap_datalink_name_to_val("EN10MB"), pcap_datalink_val_to_name(1),
	    pcap_datalink_val_to_description(1), pcap_datalink_val_to_description_or_dlt(9999));
	say("tstamp %d %s %s", pcap_tstamp_type_name_to_val("host"), pcap_tstamp_type_val_to_name(3),
	    pcap_tstamp_type_val_to_description(0));
	say("init %d", pcap_init(PCAP_CHAR_ENC_LOCAL, errbuf));
	found = pcap_nametoport("domain", &port, &protocol);
	say("port %d %d %d", found, port, protocol);
	found = pcap_nametoportrange("10-20", &first, &last, &protocol);
	say("range %d %d %d", found, first, last);
	say("proto %d %d", pcap_nametoproto("udp"), pcap_nametoeproto("arp"));
}

/* Of the library's variables no header speaks. */
extern char pcap_version[];
extern struct eproto {
	const char *name;
	unsigned short number;
} eproto_db[];

static void more_names(void)
{
	char text[] = "1:2:3:4:5:6 host\n", errbuf[PCAP_ERRBUF_SIZE] = "";
	FILE *ethers = fmemopen(text, strlen(text), "r");
	struct pcap_etherent *entry = pcap_next_etherent(ethers);
	say("etherent: %d %s", entry->addr[5], entry->name);
	fclose(ethers);
	u_char *address = pcap_ether_aton("a:b:c:d:e:f");
	say("aton: %d %d", address[0], address[5]);
	free(address);
	say("hostton: %d", pcap_ether_hostton("nobody.is.called.so") != NULL);
	struct addrinfo *info = pcap_nametoaddrinfo("127.0.0.1");
	say("addrinfo: %d", info != NULL);
	if (info)
		freeaddrinfo(info);
	bpf_u_int32 **addresses = pcap_nametoaddr("127.0.0.1");
	say("address: %x", addresses ? **addresses : 0);
	say("net: %x, llc: %d", pcap_nametonetaddr("loopback"), pcap_nametollc("stp"));
	say("version: %s", pcap_version);
	for (struct eproto *at = eproto_db; at->name; at++)
		say("protocol: %s %x", at->name, at->number);
	char *first = pcap_lookupdev(errbuf);
	say("lookupdev: %d", first != NULL);
}

static void dead(void)
{
	pcap_t *p = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 1000, PCAP_TSTAMP_PRECISION_NANO);
	say("dead: %d %d", pcap_get_tstamp_precision(p), pcap_snapshot(p));
	pcap_close(p);
	p = pcap_open_dead(DLT_EN10MB, 100);
	struct seen seen = {.p = p, .what = "dead"};
	struct pcap_stat stats;
	say("dead: %d %d %d", pcap_datalink(p), pcap_snapshot(p), pcap_fileno(p));
	result(p, "dead dispatch", pcap_dispatch(p, 1, packet, (u_char *)&seen));
	result(p, "dead stats", pcap_stats(p, &stats));
	result(p, "dead inject", pcap_inject(p, "x", 1));
	result(p, "dead snaplen", pcap_set_snaplen(p, 1));
	pcap_close(p);
}

static void before(pcap_t *p)
{
	char errbuf[PCAP_ERRBUF_SIZE] = "";
	struct seen seen = {.p = p, .what = "before"};
	struct pcap_pkthdr *header;
	const u_char *bytes;
	struct pcap_stat stats;
	struct bpf_program program;
	int *list;
	result(p, "datalink", pcap_datalink(p));
	result(p, "datalink_ext", pcap_datalink_ext(p));
	result(p, "list_datalinks", pcap_list_datalinks(p, &list));
	result(p, "set_datalink", pcap_set_datalink(p, 1));
	result(p, "snapshot", pcap_snapshot(p));
	result(p, "bufsize", pcap_bufsize(p));
	result(p, "is_swapped", pcap_is_swapped(p));
	result(p, "major_version", pcap_major_version(p));
	result(p, "minor_version", pcap_minor_version(p));
	result(p, "stats", pcap_stats(p, &stats));
	result(p, "dispatch", pcap_dispatch(p, 1, packet, (u_char *)&seen));
	result(p, "loop", pcap_loop(p, 1, packet, (u_char *)&seen));
	result(p, "next_ex", pcap_next_ex(p, &header, &bytes));
	result(p, "inject", pcap_inject(p, "x", 1));
	result(p, "sendpacket", pcap_sendpacket(p, (const u_char *)"x", 1));
	result(p, "setdirection", pcap_setdirection(p, PCAP_D_IN));
	result(p, "setfilter", pcap_setfilter(p, NULL));
	result(p, "compile", pcap_compile(p, &program, "ip", 1, 0));
	result(p, "getnonblock", pcap_getnonblock(p, errbuf));
	say("errbuf: %s", errbuf);
	say("fileno: %d, selectable: %d", pcap_fileno(p), pcap_get_selectable_fd(p));
	say("file: %d, required timeout: %d", pcap_file(p) != NULL, pcap_get_required_select_timeout(p) != NULL);
	say("dump_open: %d", pcap_dump_open(p, "/dev/null") != NULL);
	say("error: %s", pcap_geterr(p));
}

static void settings(pcap_t *p)
{
	result(p, "can_set_rfmon", pcap_can_set_rfmon(p));
	result(p, "set_rfmon", pcap_set_rfmon(p, 0));
	result(p, "set_snaplen", pcap_set_snaplen(p, 100));
	result(p, "set_promisc", pcap_set_promisc(p, 1));
	result(p, "set_timeout", pcap_set_timeout(p, 20));
	result(p, "set_immediate_mode", pcap_set_immediate_mode(p, 1));
	result(p, "set_buffer_size", pcap_set_buffer_size(p, 1 << 20));
	result(p, "set_protocol_linux", pcap_set_protocol_linux(p, 3));
	result(p, "set_tstamp_type", pcap_set_tstamp_type(p, PCAP_TSTAMP_HOST));
	result(p, "set_tstamp_type -1", pcap_set_tstamp_type(p, -1));
	result(p, "set_tstamp_type 77", pcap_set_tstamp_type(p, 77));
	result(p, "set_tstamp_precision 77", pcap_set_tstamp_precision(p, 77));
	result(p, "set_tstamp_precision", pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO));
	say("precision: %d", pcap_get_tstamp_precision(p));
}

static void activated(pcap_t *p)
{
	char errbuf[PCAP_ERRBUF_SIZE] = "";
	int *list, links;
	result(p, "activate again", pcap_activate(p));
	result(p, "set_snaplen", pcap_set_snaplen(p, 100));
	result(p, "set_promisc", pcap_set_promisc(p, 1));
	result(p, "set_timeout", pcap_set_timeout(p, 20));
	result(p, "set_rfmon", pcap_set_rfmon(p, 0));
	result(p, "set_immediate_mode", pcap_set_immediate_mode(p, 1));
	result(p, "set_buffer_size", pcap_set_buffer_size(p, 1 << 20));
	result(p, "set_protocol_linux", pcap_set_protocol_linux(p, 3));
	result(p, "set_tstamp_type", pcap_set_tstamp_type(p, PCAP_TSTAMP_HOST));
	result(p, "set_tstamp_precision", pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO));
	result(p, "datalink", pcap_datalink(p));
	result(p, "datalink_ext", pcap_datalink_ext(p));
	links = pcap_list_datalinks(p, &list);
	say("list_datalinks: %d, the first %d", links > 0, list[0]);
	pcap_free_datalinks(list);
	result(p, "set_datalink 1", pcap_set_datalink(p, 1));
	result(p, "set_datalink 105", pcap_set_datalink(p, 105));
	result(p, "set_datalink 9999", pcap_set_datalink(p, 9999));
	result(p, "snapshot", pcap_snapshot(p));
	result(p, "is_swapped", pcap_is_swapped(p));
	result(p, "major_version", pcap_major_version(p));
	result(p, "minor_version", pcap_minor_version(p));
	say("bufsize: %d", pcap_bufsize(p) > 0);
	say("precision: %d", pcap_get_tstamp_precision(p));
	result(p, "getnonblock", pcap_getnonblock(p, errbuf));
	say("errbuf: %s", errbuf);
	say("fileno: %d, the same: %d", pcap_fileno(p) >= 0, pcap_fileno(p) == pcap_get_selectable_fd(p));
	say("file: %d, required timeout: %d", pcap_file(p) != NULL, pcap_get_required_select_timeout(p) != NULL);
	links = pcap_list_tstamp_types(p, &list);
	say("tstamp types: %d, the first %d", links > 0, list[0]);
	pcap_free_tstamp_types(list);
	pcap_perror(p, "perror");
}

static void reading(pcap_t *p)
{
	char errbuf[PCAP_ERRBUF_SIZE] = "";
	struct seen seen = {.p = p, .what = "loop"};
	struct pcap_pkthdr *header, own;
	const u_char *bytes;
	struct timeval now;
	send_some(1, 5);
	read_all(p, "dispatch", 5);
	send_some(10, 5);
	result(p, "loop", pcap_loop(p, 3, packet, (u_char *)&seen));
	while ((bytes = pcap_next(p, &own)) == NULL)
		;
	say("next: %u %u %d", own.caplen, own.len, bytes[59]);
	int code;
	while ((code = pcap_next_ex(p, &header, &bytes)) == 0)
		;
	result(p, "next_ex", code);
	say("next_ex: %u %u %d", header->caplen, header->len, bytes[59]);
	gettimeofday(&now, NULL);
	say("time: %d, nanoseconds: %d", labs(now.tv_sec - header->ts.tv_sec) <= 2,
	    header->ts.tv_usec >= 0 && header->ts.tv_usec < 1000000000);

	/* More than is captured. */
	send_one(20, 1514, 9);
	read_all(p, "long", 1);

	say("setnonblock: %d", pcap_setnonblock(p, 1, errbuf));
	say("getnonblock: %d", pcap_getnonblock(p, errbuf));
	result(p, "dispatch of nothing", pcap_dispatch(p, -1, packet, (u_char *)&seen));
	result(p, "next_ex of nothing", pcap_next_ex(p, &header, &bytes));
	say("next of nothing: %d", pcap_next(p, &own) != NULL);
	struct pollfd fd = {.fd = pcap_get_selectable_fd(p), .events = POLLIN};
	pcap_dispatch(p, -1, packet, (u_char *)&seen);
	say("poll of nothing: %d", poll(&fd, 1, 0));
	send_some(30, 3);
	result(p, "poll", poll(&fd, 1, 10000));
	say("readable: %d", (fd.revents & POLLIN) != 0);
	read_all(p, "nonblocking", 3);
	pcap_dispatch(p, -1, packet, (u_char *)&seen);
	say("poll of nothing: %d", poll(&fd, 1, 0));
	say("setnonblock: %d", pcap_setnonblock(p, 0, errbuf));
}

static pcap_t *to_break;

static void handler(int number)
{
	(void)number;
	pcap_breakloop(to_break);
}

static void *breaker(void *unused)
{
	(void)unused;
	usleep(100000);
	pcap_breakloop(to_break);
	return NULL;
}

static void breaking(pcap_t *p)
{
	struct seen seen = {.p = p, .stop_after = 2, .what = "break"};
	struct sigaction action = {.sa_handler = handler};
	struct itimerval soon = {.it_value = {.tv_usec = 100000}};
	pthread_t thread;
	send_some(40, 4);
	say("loop: %d", pcap_loop(p, -1, packet, (u_char *)&seen));
	read_all(p, "after the break", 2);

	pcap_breakloop(p);
	say("dispatch: %d", pcap_dispatch(p, -1, packet, (u_char *)&seen));

	to_break = p;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	say("loop, by a signal: %d", pcap_loop(p, -1, packet, (u_char *)&seen));
	pthread_create(&thread, NULL, breaker, NULL);
	say("loop, by a thread: %d", pcap_loop(p, -1, packet, (u_char *)&seen));
	pthread_join(thread, NULL);
	send_some(50, 1);
	read_all(p, "after that", 1);
}

static void filters(pcap_t *p)
{
	struct bpf_insn none[] = {{0xffff, 0, 0, 0}};
	struct bpf_insn some[] = {{6, 0, 0, 20}};
	struct bpf_program bad = {1, none}, cut = {1, some};
	set_filter(p, "udp port");
	set_filter(p, "udp port 53");
	send_one(60, 60, 9);
	send_one(61, 60, 53);
	send_one(62, 60, 9);
	send_one(63, 60, 53);
	read_all(p, "filtered", 2);
	result(p, "setfilter of nonsense", pcap_setfilter(p, &bad));
	result(p, "setfilter of 20 bytes", pcap_setfilter(p, &cut));
	send_one(64, 60, 9);
	read_all(p, "cut", 1);
	set_filter(p, "");
	send_one(65, 60, 9);
	read_all(p, "everything", 1);
	struct pcap_pkthdr header = {.caplen = 60, .len = 60};
	unsigned char frame[60];
	struct bpf_program program;
	fill(frame, 1, 60, 53);
	say("compile_nopcap: %d", pcap_compile_nopcap(100, 1, &program, "udp port 53", 1, 0));
	say("offline_filter: %d, bpf_filter: %u", pcap_offline_filter(&program, &header, frame),
	    bpf_filter(program.bf_insns, frame, 60, 60));
	bpf_dump(&program, 1);
	say("bpf_validate: %d %d, image %s", bpf_validate(program.bf_insns, (int)program.bf_len),
	    bpf_validate(none, 1), bpf_image(program.bf_insns, 0));
	pcap_freecode(&program);
}

static void directions(pcap_t *p)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	struct seen seen = {.p = p, .what = "out"};
	result(p, "setdirection in", pcap_setdirection(p, PCAP_D_IN));
	send_some(70, 2);
	read_all(p, "in", 2);
	result(p, "setdirection out", pcap_setdirection(p, PCAP_D_OUT));
	send_some(72, 2);
	pcap_setnonblock(p, 1, errbuf);
	usleep(100000);
	result(p, "out", pcap_dispatch(p, -1, packet, (u_char *)&seen));
	pcap_setnonblock(p, 0, errbuf);
	result(p, "setdirection both", pcap_setdirection(p, PCAP_D_INOUT));
	send_some(74, 1);
	read_all(p, "both", 1);
}

static void sending(pcap_t *p)
{
	unsigned char frame[1600];
	char heard[2000];
	struct pollfd fd = {.fd = peer, .events = POLLIN};
	struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(3)}, now;
	socklen_t size = sizeof now;
	getsockname(peer, (struct sockaddr *)&now, &size);
	all.sll_ifindex = now.sll_ifindex;
	bind(peer, (struct sockaddr *)&all, sizeof all);
	fill(frame, 80, 1514, 9);
	result(p, "inject", pcap_inject(p, frame, 60));
	result(p, "sendpacket", pcap_sendpacket(p, frame, 1514));
	for (int i = 0; i < 2; i++) {
		say("heard: %d", poll(&fd, 1, 10000));
		long length = recv(peer, heard, sizeof heard, 0);
		say("bytes: %ld, the same: %d", length, length > 0 && !memcmp(heard, frame, (size_t)length));
	}
	say("inject of nothing: %d", pcap_inject(p, frame, 0) < 0);
	say("inject of less than a header: %d", pcap_inject(p, frame, 13));
	say("inject of a header: %d", pcap_inject(p, frame, 14));
	say("inject of more than the MTU allows: %d", pcap_inject(p, frame, 1519));
	say("sendpacket of more than the MTU allows: %d", pcap_sendpacket(p, frame, 1519));
	say("sendpacket of nothing: %d", pcap_sendpacket(p, frame, 0) < 0);
}

static void savefile(pcap_t *p)
{
	char path[] = "/tmp/pcap_walk.XXXXXX", errbuf[PCAP_ERRBUF_SIZE];
	struct seen seen = {0};
	struct pcap_pkthdr *header;
	const u_char *bytes;
	close(mkstemp(path));
	pcap_dumper_t *dumper = pcap_dump_open(p, path);
	say("dump_open: %d", dumper != NULL);
	send_some(90, 3);
	say("loop: %d", pcap_loop(p, 3, pcap_dump, (u_char *)dumper));
	say("flush: %d, at %ld", pcap_dump_flush(dumper), pcap_dump_ftell(dumper));
	say("at %ld, file: %d", (long)pcap_dump_ftell64(dumper), pcap_dump_file(dumper) != NULL);
	pcap_dump_close(dumper);
	dumper = pcap_dump_open_append(p, path);
	say("dump_open_append: %d", dumper != NULL);
	send_some(95, 1);
	say("loop: %d", pcap_loop(p, 1, pcap_dump, (u_char *)dumper));
	pcap_dump_close(dumper);
	dumper = pcap_dump_fopen(p, fopen("/dev/null", "w"));
	say("dump_fopen: %d", dumper != NULL);
	pcap_dump_close(dumper);
	pcap_t *file = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, errbuf);
	say("file: %d %d %d", pcap_datalink(file), pcap_snapshot(file), pcap_get_tstamp_precision(file));
	result(file, "file next_ex", pcap_next_ex(file, &header, &bytes));
	say("caplen %u len %u", header->caplen, header->len);
	say("loop: %d", pcap_loop(file, -1, count, (u_char *)&seen));
	say("packets: %d, end: %d", seen.count, pcap_next_ex(file, &header, &bytes));
	say("selectable: %d", pcap_get_selectable_fd(file) >= 0);
	result(file, "file inject", pcap_inject(file, "x", 1));
	pcap_close(file);
	file = pcap_open_offline(path, errbuf);
	say("open_offline: %d %d", file != NULL, pcap_get_tstamp_precision(file));
	pcap_close(file);
	file = pcap_fopen_offline(fopen(path, "r"), errbuf);
	say("fopen_offline: %d", pcap_major_version(file));
	pcap_close(file);
	file = pcap_fopen_offline_with_tstamp_precision(fopen(path, "r"), PCAP_TSTAMP_PRECISION_NANO, errbuf);
	say("fopen_offline: %d", pcap_is_swapped(file));
	pcap_close(file);
	dumper = pcap_dump_open(p, "/nonexistent/file");
	say("dump_open: %d", dumper != NULL);
	say("error: %s", pcap_geterr(p));
	unlink(path);
}

static void statistics(pcap_t *p)
{
	struct pcap_stat stats;
	result(p, "stats", pcap_stats(p, &stats));
	say("received: %d, dropped: %u", stats.ps_recv > 0, stats.ps_drop);
}

static void lists(void)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	bpf_u_int32 net, mask;
	pcap_if_t *list, *at;
	int lo = 0;
	say("findalldevs: %d", pcap_findalldevs(&list, errbuf));
	for (at = list; at; at = at->next)
		lo |= !strcmp(at->name, "lo");
	say("lo: %d", lo);
	pcap_freealldevs(list);
	say("lookupnet lo: %d", pcap_lookupnet("lo", &net, &mask, errbuf));
	say("net %x mask %x", ntohl(net), ntohl(mask));
}

static void live(void)
{
	char errbuf[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_open_live(device, 80, 1, 20, errbuf);
	say("open_live: %d: %s", p != NULL, errbuf);
	say("snapshot: %d", pcap_snapshot(p));
	send_some(100, 2);
	read_all(p, "open_live", 2);
	pcap_close(p);
	p = pcap_open_live("nosuch0", 80, 1, 20, errbuf);
	say("open_live: %d: %s", p != NULL, errbuf);
	p = pcap_open_offline("/nonexistent/file", errbuf);
	say("open_offline: %d: %s", p != NULL, errbuf);
}

int main(int argc, char **argv)
{
	char errbuf[PCAP_ERRBUF_SIZE] = "";
	if (argc < 3)
		return 2;
	device = argv[1];
	open_peer(argv[2]);
	names();
	more_names();
	dead();
	lists();
	pcap_t *p = pcap_create(device, errbuf);
	say("create: %d", p != NULL);
	before(p);
	settings(p);
	result(p, "activate", pcap_activate(p));
	activated(p);
	reading(p);
	breaking(p);
	filters(p);
	directions(p);
	sending(p);
	savefile(p);
	statistics(p);
	pcap_close(p);
	live();
	return 0;
}
