/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genl.h - generic netlink by hand, after the text of gpuwatch_genl.h alone: no
 * libnl, so that wrong messages can be made too. It judges nothing.
 */
#ifndef GW_SELFTESTS_GENL_H
#define GW_SELFTESTS_GENL_H

#include <linux/genetlink.h>
#include <linux/gpuwatch_genl.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

struct genl {
	int fd;
	uint32_t seq;
	uint16_t family;
	uint32_t groups[2];		/* by enum gpuwatch_genl_group */
};

struct genl_attrs {
	uint8_t data[8192];
	size_t len;
};

/* A received message; pointers lead into buf. */
struct genl_msg {
	uint8_t buf[32768] __attribute__((aligned(8)));
	struct nlmsghdr *head;
	uint8_t cmd;
	const struct nlattr *attrs[GPUWATCH_A_MAX + 1];	/* the last of each */
};

/* 0 or a negative errno; -ENOENT: no such family. */
int genl_open(struct genl *g);
void genl_close(struct genl *g);
int genl_resolve(struct genl *g);
/* Joins; @bytes of buffer, 0: as it is. */
int genl_join(struct genl *g, unsigned int group, int bytes);
int genl_join_raw(int fd, uint32_t id);

void genl_put(struct genl_attrs *a, uint16_t type, const void *data, size_t len);
void genl_put_u32(struct genl_attrs *a, uint16_t type, uint32_t value);
void genl_put_u64(struct genl_attrs *a, uint16_t type, uint64_t value);
void genl_put_text(struct genl_attrs *a, uint16_t type, const char *text);

/*
 * Sends; returns what the acknowledgement says. An answer that came before it goes
 * to @msg, whose cmd is 0 when there was none.
 */
int genl_call(struct genl *g, uint8_t cmd, const struct genl_attrs *a, struct genl_msg *msg);
/* The same with @reserved in the genetlink header and @flags added. */
int genl_call_odd(struct genl *g, uint8_t cmd, const struct genl_attrs *a, uint16_t reserved,
		  uint16_t flags);
/* 1: a message; 0: none within @ms; else a negative errno. */
int genl_recv(struct genl *g, struct genl_msg *msg, int ms);

uint32_t genl_u32(const struct genl_msg *msg, unsigned int type);
uint64_t genl_u64(const struct genl_msg *msg, unsigned int type);
const char *genl_text(const struct genl_msg *msg, unsigned int type);	/* "" when absent */

/* Calls @see for each attribute @type of the message, with its payload. */
void genl_each(const struct genl_msg *msg, unsigned int type,
	       void (*see)(const struct nlattr *attr, void *data), void *data);
uint64_t genl_inner(const struct nlattr *nest, unsigned int type);	/* u32 or u64; 0 */

#endif
