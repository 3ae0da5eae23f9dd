/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what gpuwatch.ko tells: subscriber [events|verdicts], as root. Build:
 * cc subscriber.c -o subscriber $(pkg-config --cflags --libs libnl-genl-3.0) */
#include <linux/gpuwatch_genl.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <stdio.h>
#include <sys/socket.h>

static unsigned long long last, lost;

static int message(struct nl_msg *msg, void *data)
{
	struct nlattr *a[GPUWATCH_A_MAX + 1];
	int cmd = ((struct genlmsghdr *)nlmsg_data(nlmsg_hdr(msg)))->cmd;
	unsigned long long seq, expected;

	(void)data;
	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUWATCH_A_MAX, NULL) || !a[GPUWATCH_A_SEQ])
		return NL_SKIP;
	seq = nla_get_u64(a[GPUWATCH_A_SEQ]);
	/* A heartbeat repeats the last number, so that a loss at the end shows too. */
	expected = cmd == GPUWATCH_CMD_HEARTBEAT ? last : last + 1;
	if (last && seq > expected) {
		lost += seq - expected;
		printf("lost %llu messages\n", seq - expected);
	}
	last = seq;
	if (cmd == GPUWATCH_CMD_EVENT && a[GPUWATCH_A_EVENT])
		printf("event %u pid %u\n", nla_get_u32(a[GPUWATCH_A_EVENT]),
		       a[GPUWATCH_A_PID] ? nla_get_u32(a[GPUWATCH_A_PID]) : 0);
	if (cmd == GPUWATCH_CMD_VERDICT && a[GPUWATCH_A_VERDICT] && a[GPUWATCH_A_SEVERITY])
		printf("verdict %u severity %u: %s\n", nla_get_u32(a[GPUWATCH_A_VERDICT]),
		       nla_get_u32(a[GPUWATCH_A_SEVERITY]),
		       a[GPUWATCH_A_TEXT] ? nla_get_string(a[GPUWATCH_A_TEXT]) : "");
	return fflush(stdout) ? NL_STOP : NL_OK;
}

int main(int argc, char **argv)
{
	struct nl_sock *sock = nl_socket_alloc();
	int bytes = 4 << 20, group, err;

	if (!sock || genl_connect(sock))
		return perror("generic netlink"), 2;
	group = genl_ctrl_resolve_grp(sock, GPUWATCH_GENL_NAME, argc > 1 ? argv[1] : "events");
	if (group < 0 || (err = nl_socket_add_membership(sock, group)) < 0)
		return fprintf(stderr, "joining: %s\n", nl_geterror(group < 0 ? group : err)), 2;
	setsockopt(nl_socket_get_fd(sock), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	nl_socket_disable_seq_check(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, message, NULL);
	/* ENOBUFS comes as "out of memory": the numbers will say how many were lost. */
	while ((err = nl_recvmsgs_default(sock)) >= 0 || err == -NLE_NOMEM)
		;
	fprintf(stderr, "lost %llu, ended: %s\n", lost, nl_geterror(err));
	return 1;
}
