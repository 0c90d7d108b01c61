/*
 * What the kernel says of a device by its name: pcap_device DEVICE. With `down` behind it, the
 * device is taken down instead.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>

static int fd;
static const char *device;
static struct ifreq request;

static const char *
error(void)
{
	switch (errno) {
	case EACCES:
		return "EACCES";
	case EPERM:
		return "EPERM";
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

static void
sysfs_directory(void)
{
	char path[256];
	int directory;

	snprintf(path, sizeof(path), "/sys/class/net/%s", device);
	directory = open(path, O_RDONLY | O_DIRECTORY);
	printf("sysfs directory %s\n", directory < 0 ? error() : "is there");
	if (directory >= 0)
		close(directory);
}

/* Ways to ask about a link and to take the answer out of the socket. */
enum way { SENDTO, SENDMSG, WRITE, WRITEV, WAYS };

static ssize_t
tell(enum way way, int netlink, struct nlmsghdr *question)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec whole = { question, question->nlmsg_len };
	struct iovec parts[2] = { { question, NLMSG_HDRLEN },
		{ NLMSG_DATA(question), question->nlmsg_len - NLMSG_HDRLEN } };
	struct msghdr message = { &kernel, sizeof(kernel), &whole, 1, NULL, 0, 0 };

	switch (way) {
	case SENDTO:
		return sendto(netlink, question, question->nlmsg_len, 0,
		    (struct sockaddr *)&kernel, sizeof(kernel));
	case SENDMSG:
		return sendmsg(netlink, &message, 0);
	case WRITE:
		return write(netlink, question, question->nlmsg_len);
	default:
		return writev(netlink, parts, 2);
	}
}

static ssize_t
take(enum way way, int netlink, char *to, size_t size)
{
	struct sockaddr_nl from;
	socklen_t length = sizeof(from);
	struct iovec whole = { to, 0 }, parts[2] = { { to, 20 }, { to + 20, size - 20 } };
	struct msghdr message = { &from, sizeof(from), &whole, 1, NULL, 0, 0 };

	switch (way) {
	case SENDTO:
		return recvfrom(netlink, to, size, 0, (struct sockaddr *)&from, &length);
	case SENDMSG:
		/* As iproute2: how long is it? */
		whole.iov_len = recvmsg(netlink, &message, MSG_PEEK | MSG_TRUNC);
		message.msg_flags = 0;
		length = recvmsg(netlink, &message, 0);
		return message.msg_flags & MSG_TRUNC ? -1 : (ssize_t)length;
	case WRITE:
		return recv(netlink, to, size, 0);
	default:
		return readv(netlink, parts, 2);
	}
}

/* Asks by the device's name, or by its index. */
static void
link_by(enum way way, const char *what, unsigned short kind)
{
	static unsigned int number = 100;
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} message;
	struct ifinfomsg *link = NLMSG_DATA(&message.head);
	struct rtattr *attribute = IFLA_RTA(link);
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct pollfd ready = { netlink, POLLIN, 0 };
	const unsigned char *mac = NULL;
	unsigned int mtu = 0, queue = 0;
	ssize_t got;
	int left;

	memset(&message, 0, sizeof(message));
	message.head.nlmsg_type = RTM_GETLINK;
	message.head.nlmsg_flags = NLM_F_REQUEST;
	message.head.nlmsg_seq = ++number;
	message.head.nlmsg_len = NLMSG_LENGTH(sizeof(*link));
	if (kind == 0) {
		link->ifi_index = if_nametoindex(device);
	} else {
		attribute->rta_type = kind;
		attribute->rta_len = RTA_LENGTH(strlen(device) + 1);
		strcpy(RTA_DATA(attribute), device);
		message.head.nlmsg_len += RTA_ALIGN(attribute->rta_len);
	}
	printf("link by %s: ", what);
	if (tell(way, netlink, &message.head) != (ssize_t)message.head.nlmsg_len ||
	    poll(&ready, 1, 10000) != 1) {
		printf("%s\n", error());
		return;
	}
	memset(&message, 0, sizeof(message));
	got = take(way, netlink, message.bytes, sizeof(message));
	if (message.head.nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(&message.head))->error;
		printf("%s\n", error());
		close(netlink);
		return;
	}
	if (!NLMSG_OK(&message.head, got) || message.head.nlmsg_seq != number)
		printf("(%zd bytes, no. %u) ", got, message.head.nlmsg_seq);
	left = IFLA_PAYLOAD(&message.head);
	for (attribute = IFLA_RTA(link); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		switch (attribute->rta_type) {
		case IFLA_IFNAME:
			if (strcmp(RTA_DATA(attribute), device) != 0)
				printf("(of %s) ", (char *)RTA_DATA(attribute));
			break;
		case IFLA_ADDRESS:
			mac = RTA_DATA(attribute);
			break;
		case IFLA_MTU:
			mtu = *(unsigned int *)RTA_DATA(attribute);
			break;
		case IFLA_TXQLEN:
			queue = *(unsigned int *)RTA_DATA(attribute);
			break;
		}
	if (link->ifi_index != (int)if_nametoindex(device))
		printf("(index %d) ", link->ifi_index);
	if (mac != NULL)
		printf("%d %02x:%02x:%02x:%02x:%02x:%02x", link->ifi_type,
		    mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	printf("%s%s%s, mtu %u, txqlen %u\n", link->ifi_flags & IFF_UP ? ", up" : ", down",
	    link->ifi_flags & IFF_RUNNING ? " running" : "",
	    link->ifi_flags & IFF_LOOPBACK ? " loopback" : "", mtu, queue);
	/* That was all. */
	if (poll(&ready, 1, 0) != 0)
		printf("and more\n");
	close(netlink);
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
	if (argc > 2 && ask("down:", SIOCGIFFLAGS)) {
		request.ifr_flags &= ~IFF_UP;
		printf("%s\n", ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? "done" : error());
		return 0;
	}
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
	sysfs_directory();
	sysfs("address");
	sysfs("mtu");
	sysfs("operstate");
	sysfs("type");
	link_by(SENDTO, "name", IFLA_IFNAME);
	link_by(SENDMSG, "name", IFLA_IFNAME);
	link_by(WRITE, "name", IFLA_IFNAME);
	link_by(WRITEV, "alternative name", IFLA_ALT_IFNAME);
	link_by(SENDMSG, "index", 0);
	return 0;
}
