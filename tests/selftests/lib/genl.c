// SPDX-License-Identifier: Apache-2.0
/* genl.c - see genl.h. Trouble with what is not under test ends the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "genl.h"

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static void *payload(const struct nlattr *attr)
{
	return (uint8_t *)attr + NLA_HDRLEN;
}

static size_t payload_len(const struct nlattr *attr)
{
	return attr->nla_len - NLA_HDRLEN;
}

static const struct nlattr *next_attr(const uint8_t **at, const uint8_t *end)
{
	const struct nlattr *attr = (const void *)*at;

	if (end - *at < (ptrdiff_t)NLA_HDRLEN || attr->nla_len < NLA_HDRLEN || attr->nla_len > end - *at)
		return NULL;
	*at += NLA_ALIGN(attr->nla_len);
	return attr;
}

static const uint8_t *message_end(const struct genl_msg *msg)
{
	return (const uint8_t *)msg->head + msg->head->nlmsg_len;
}

static const uint8_t *message_attrs(const struct genl_msg *msg)
{
	return (const uint8_t *)msg->head + NLMSG_HDRLEN + GENL_HDRLEN;
}

void genl_put(struct genl_attrs *a, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)(a->data + a->len);

	if (a->len + NLA_HDRLEN + len + 8 > sizeof(a->data))
		abort();
	memset(attr, 0, NLA_HDRLEN + NLA_ALIGN(len));
	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy(payload(attr), data, len);
	a->len += NLA_HDRLEN + NLA_ALIGN(len);
}

void genl_put_u32(struct genl_attrs *a, uint16_t type, uint32_t value)
{
	genl_put(a, type, &value, sizeof(value));
}

void genl_put_u64(struct genl_attrs *a, uint16_t type, uint64_t value)
{
	genl_put(a, type, &value, sizeof(value));
}

void genl_put_text(struct genl_attrs *a, uint16_t type, const char *text)
{
	genl_put(a, type, text, strlen(text) + 1);
}

static void send_to(struct genl *g, uint16_t type, uint8_t cmd, uint8_t version,
		    const struct genl_attrs *a, uint16_t reserved, uint16_t flags)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	uint8_t buf[NLMSG_HDRLEN + GENL_HDRLEN + sizeof(a->data)] __attribute__((aligned(8))) = { 0 };
	struct nlmsghdr *head = (void *)buf;
	struct genlmsghdr *genl = (void *)(buf + NLMSG_HDRLEN);

	head->nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN + (a ? a->len : 0);
	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	head->nlmsg_seq = ++g->seq;
	genl->cmd = cmd;
	genl->version = version;
	genl->reserved = reserved;
	if (a)
		memcpy(buf + NLMSG_HDRLEN + GENL_HDRLEN, a->data, a->len);
	if (sendto(g->fd, buf, head->nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) < 0) {
		printf("# genl: send: %s\n", strerror(errno));
		abort();
	}
}

static void find_attrs(struct genl_msg *msg)
{
	const struct nlattr *attr;
	const uint8_t *at;

	msg->head = (void *)msg->buf;
	memset(msg->attrs, 0, sizeof(msg->attrs));
	msg->cmd = 0;
	if (msg->head->nlmsg_type < NLMSG_MIN_TYPE)
		return;
	msg->cmd = ((struct genlmsghdr *)(msg->buf + NLMSG_HDRLEN))->cmd;
	at = message_attrs(msg);
	while ((attr = next_attr(&at, message_end(msg))))
		if ((attr->nla_type & NLA_TYPE_MASK) <= GPUWATCH_A_MAX)
			msg->attrs[attr->nla_type & NLA_TYPE_MASK] = attr;
}

int genl_recv(struct genl *g, struct genl_msg *msg, int ms)
{
	struct pollfd p = { .fd = g->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return 0;
	n = recv(g->fd, msg->buf, sizeof(msg->buf), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	find_attrs(msg);
	return 1;
}

/* Up to the acknowledgement of the last request; others' messages are dropped. */
static int await(struct genl *g, struct genl_msg *answer)
{
	static struct genl_msg msg;
	struct timespec begin, now;
	int got;

	if (answer)
		answer->cmd = 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		got = genl_recv(g, &msg, 1000);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > 60) {
			printf("# genl: no acknowledgement\n");
			abort();
		}
		if (got <= 0 || msg.head->nlmsg_seq != g->seq)
			continue;
		if (msg.head->nlmsg_type == NLMSG_ERROR)
			return *(int *)(msg.buf + NLMSG_HDRLEN);
		if (answer) {
			memcpy(answer->buf, msg.buf, sizeof(msg.buf));
			find_attrs(answer);
		}
	}
}

int genl_call(struct genl *g, uint8_t cmd, const struct genl_attrs *a, struct genl_msg *msg)
{
	send_to(g, g->family, cmd, GPUWATCH_GENL_VERSION, a, 0, 0);
	return await(g, msg);
}

int genl_call_odd(struct genl *g, uint8_t cmd, const struct genl_attrs *a, uint16_t reserved,
		  uint16_t flags)
{
	send_to(g, g->family, cmd, GPUWATCH_GENL_VERSION, a, reserved, flags);
	return await(g, NULL);
}

static void see_group(const struct nlattr *group, struct genl *g)
{
	const uint8_t *at = payload(group), *end = at + payload_len(group);
	const struct nlattr *attr;
	const char *name = "";
	uint32_t id = 0;

	while ((attr = next_attr(&at, end))) {
		if (attr->nla_type == CTRL_ATTR_MCAST_GRP_NAME)
			name = payload(attr);
		else if (attr->nla_type == CTRL_ATTR_MCAST_GRP_ID)
			id = *(uint32_t *)payload(attr);
	}
	if (!strcmp(name, GPUWATCH_GENL_GROUP_EVENTS))
		g->groups[GPUWATCH_GROUP_EVENTS] = id;
	else if (!strcmp(name, GPUWATCH_GENL_GROUP_VERDICTS))
		g->groups[GPUWATCH_GROUP_VERDICTS] = id;
}

int genl_resolve(struct genl *g)
{
	struct genl_attrs a = { .len = 0 };
	struct genl_msg msg;
	const uint8_t *at, *end;
	const struct nlattr *attr;
	int err;

	genl_put_text(&a, CTRL_ATTR_FAMILY_NAME, GPUWATCH_GENL_NAME);
	send_to(g, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, &a, 0, 0);
	err = await(g, &msg);
	if (err)
		return err;
	/* The numbers of nlctrl's attributes are as good as any. */
	g->family = *(uint16_t *)payload(msg.attrs[CTRL_ATTR_FAMILY_ID]);
	at = payload(msg.attrs[CTRL_ATTR_MCAST_GROUPS]);
	end = at + payload_len(msg.attrs[CTRL_ATTR_MCAST_GROUPS]);
	while ((attr = next_attr(&at, end)))
		see_group(attr, g);
	return 0;
}

int genl_open(struct genl *g)
{
	const struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	int err;

	*g = (struct genl){ .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC) };
	if (g->fd < 0 || bind(g->fd, (void *)&me, sizeof(me)))
		return -errno;
	err = genl_resolve(g);
	if (err)
		genl_close(g);
	return err;
}

void genl_close(struct genl *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

int genl_join_raw(int fd, uint32_t id)
{
	return setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &id, sizeof(id)) ? -errno : 0;
}

int genl_join(struct genl *g, unsigned int group, int bytes)
{
	if (bytes && setsockopt(g->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		return -errno;
	return genl_join_raw(g->fd, g->groups[group]);
}

uint32_t genl_u32(const struct genl_msg *msg, unsigned int type)
{
	return msg->attrs[type] ? *(uint32_t *)payload(msg->attrs[type]) : 0;
}

uint64_t genl_u64(const struct genl_msg *msg, unsigned int type)
{
	uint64_t value = 0;

	if (msg->attrs[type])
		memcpy(&value, payload(msg->attrs[type]), sizeof(value));
	return value;
}

const char *genl_text(const struct genl_msg *msg, unsigned int type)
{
	return msg->attrs[type] ? payload(msg->attrs[type]) : "";
}

void genl_each(const struct genl_msg *msg, unsigned int type,
	       void (*see)(const struct nlattr *attr, void *data), void *data)
{
	const uint8_t *at = message_attrs(msg);
	const struct nlattr *attr;

	while ((attr = next_attr(&at, message_end(msg))))
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			see(attr, data);
}

uint64_t genl_inner(const struct nlattr *nest, unsigned int type)
{
	const uint8_t *at = payload(nest), *end = at + payload_len(nest);
	const struct nlattr *attr;
	uint64_t value = 0;

	while ((attr = next_attr(&at, end)))
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			memcpy(&value, payload(attr), payload_len(attr) < 8 ? payload_len(attr) : 8);
	return value;
}
