/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that asks netlink about a port, and is cancelled in the call, ends
 * there, and leaves nothing behind: others ask, and have their answers.
 *
 * usage: cancelled_send PORT
 */
#define _GNU_SOURCE
#include "check.h"

#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

enum call { SEND, SENDTO, SENDMSG, WRITE, WRITEV, CALLS };

struct question {
	struct nlmsghdr head;
	struct ifinfomsg link;
	struct rtattr attribute;
	char name[IFNAMSIZ];
};

static const char *port;
static int netlink;
static enum call call;

static ssize_t
ask(void)
{
	struct question question;
	struct iovec whole = { &question, sizeof(question) };
	struct msghdr message;

	memset(&question, 0, sizeof(question));
	question.head.nlmsg_len = sizeof(question);
	question.head.nlmsg_type = RTM_GETLINK;
	question.head.nlmsg_flags = NLM_F_REQUEST;
	question.head.nlmsg_seq = 7;
	question.attribute.rta_type = IFLA_IFNAME;
	question.attribute.rta_len = RTA_LENGTH(IFNAMSIZ);
	strncpy(question.name, port, IFNAMSIZ - 1);
	memset(&message, 0, sizeof(message));
	message.msg_iov = &whole;
	message.msg_iovlen = 1;
	switch (call) {
	case SEND:
		return send(netlink, &question, sizeof(question), 0);
	case SENDTO:
		return sendto(netlink, &question, sizeof(question), 0, NULL, 0);
	case SENDMSG:
		return sendmsg(netlink, &message, 0);
	case WRITE:
		return write(netlink, &question, sizeof(question));
	default:
		return writev(netlink, &whole, 1);
	}
}

/* It is cancelled at the first call that can be. */
static void *
ask_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	ask();
	return unused;
}

/* The name in the next answer. */
static const char *
answer(void)
{
	static union {
		struct nlmsghdr head;
		char bytes[8192];
	} got;
	struct ifinfomsg *link = (struct ifinfomsg *)NLMSG_DATA(&got.head);
	struct rtattr *at = IFLA_RTA(link);
	struct pollfd one = { netlink, POLLIN, 0 };
	int left;

	require(poll(&one, 1, PATIENCE_MS) == 1, "an answer");
	memset(&got, 0, sizeof(got));
	require(recv(netlink, &got, sizeof(got), 0) > 0, "recv");
	require(got.head.nlmsg_type == RTM_NEWLINK, "an interface");
	for (left = (int)IFLA_PAYLOAD(&got.head); RTA_OK(at, left);
	     at = RTA_NEXT(at, left))
		if (at->rta_type == IFLA_IFNAME)
			return (const char *)RTA_DATA(at);
	return "";
}

int
main(int argc, char **argv)
{
	static const char *const names[CALLS] = { "send", "sendto", "sendmsg",
		"write", "writev" };

	port = argc > 1 ? argv[1] : "vale0:a";
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	require(netlink >= 0, "a socket");
	for (call = 0; call < CALLS; call++) {
		void *result = NULL;
		pthread_t thread;

		require(pthread_create(&thread, NULL, ask_cancelled,
				       NULL) == 0, "a thread");
		require(pthread_join(thread, &result) == 0, "the thread ends");
		check(result == PTHREAD_CANCELED, "%s: cancelled", names[call]);
		require(ask() == (ssize_t)sizeof(struct question), "%s",
			names[call]);
		check(strcmp(answer(), port) == 0, "%s: the answer",
		      names[call]);
	}
	return check_result();
}
