/*
 * What the kernel says of a device by its name: pcap_device DEVICE.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>
#include <netinet/in.h>

static int fd;
static const char *device;
static struct ifreq request;

static const char *
error(void)
{
	switch (errno) {
	case ENODEV:
		return "ENODEV";
	case EADDRNOTAVAIL:
		return "EADDRNOTAVAIL";
	case EOPNOTSUPP:
		return "EOPNOTSUPP";
	}
	return strerror(errno);
}

/* Whether it was answered; the request is in `request`. */
static int
ask(const char *what, unsigned long number)
{
	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, device, sizeof(request.ifr_name) - 1);
	printf("%s ", what);
	if (ioctl(fd, number, &request) == 0) {
		if (strcmp(request.ifr_name, device) != 0)
			printf("(of %s) ", request.ifr_name);
		return 1;
	}
	printf("%s\n", error());
	return 0;
}

static void
address(const char *what, unsigned long number)
{
	const unsigned char *ip;

	if (!ask(what, number))
		return;
	ip = (const unsigned char *)&((struct sockaddr_in *)&request.ifr_addr)->sin_addr;
	printf("%d.%d.%d.%d\n", ip[0], ip[1], ip[2], ip[3]);
}

static void
sysfs(const char *name)
{
	char path[256], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", device, name);
	file = fopen(path, "r");
	if (file == NULL || fgets(line, sizeof(line), file) == NULL)
		snprintf(line, sizeof(line), "%s\n", error());
	if (file != NULL)
		fclose(file);
	printf("sysfs %s %s", name, line);
}

int
main(int argc, char **argv)
{
	char name[IF_NAMESIZE] = "";
	const unsigned char *mac;
	unsigned int index;
	unsigned int command = 3;	/* ETHTOOL_GDRVINFO */
	char info[256];

	if (argc < 2)
		return 2;
	device = argv[1];
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ask("flags", SIOCGIFFLAGS))
		printf("%s%s%s%s\n", request.ifr_flags & IFF_UP ? "up" : "down",
		    request.ifr_flags & IFF_BROADCAST ? " broadcast" : "",
		    request.ifr_flags & IFF_RUNNING ? " running" : "",
		    request.ifr_flags & IFF_MULTICAST ? " multicast" : "");
	if (ask("hwaddr", SIOCGIFHWADDR)) {
		mac = (const unsigned char *)request.ifr_hwaddr.sa_data;
		printf("%d %02x:%02x:%02x:%02x:%02x:%02x\n", request.ifr_hwaddr.sa_family,
		    mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	}
	if (ask("mtu", SIOCGIFMTU))
		printf("%d\n", request.ifr_mtu);
	if (ask("metric", SIOCGIFMETRIC))
		printf("%d\n", request.ifr_metric);
	if (ask("txqlen", SIOCGIFTXQLEN))
		printf("%d\n", request.ifr_qlen);
	address("addr", SIOCGIFADDR);
	address("netmask", SIOCGIFNETMASK);
	address("broadaddr", SIOCGIFBRDADDR);
	address("dstaddr", SIOCGIFDSTADDR);

	memcpy(info, &command, sizeof(command));
	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, device, sizeof(request.ifr_name) - 1);
	request.ifr_data = info;
	if (ioctl(fd, SIOCETHTOOL, &request) == 0)
		printf("ethtool %s\n", info + 4);
	else
		printf("ethtool %s\n", error());

	/* As programs set promiscuous mode. */
	if (ask("set flags:", SIOCGIFFLAGS)) {
		request.ifr_flags |= IFF_PROMISC;
		printf("%d\n", ioctl(fd, SIOCSIFFLAGS, &request));
	}
	index = if_nametoindex(device);
	if (index != 0 && if_indextoname(index, name) != NULL && strcmp(name, device) == 0)
		printf("index and name: the same\n");
	else
		printf("index and name: %u %s\n", index, name);
	sysfs("address");
	sysfs("mtu");
	sysfs("operstate");
	sysfs("type");
	return 0;
}
