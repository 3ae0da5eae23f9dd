// SPDX-License-Identifier: Apache-2.0
/*
 * netlink_crowd - many subscribers, bursts, and reloads of the module: who reads
 * loses nothing, who does not learns what he lost, and nobody else pays for it.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/genl.h"
#include "lib/lab.h"

#define BIG	(8 << 20)
#define CROWD	100

/* What one subscriber saw of one group. */
struct seen {
	uint64_t first, last;	/* numbers; 0: none yet */
	uint64_t messages;	/* without heartbeats */
	uint64_t missing;	/* numbers left out between first and last */
	uint64_t overruns;
	uint64_t backwards;
};

FIXTURE(crowd) {
	struct genl g;
	struct genl_msg msg;
};

FIXTURE_SETUP(crowd)
{
	lab_fresh(false, "");
	ASSERT_EQ(0, lab_write("/sys/module/gpuwatch/parameters/heartbeat_ms", "200"));
	ASSERT_EQ(0, genl_open(&self->g));
}

FIXTURE_TEARDOWN(crowd)
{
	genl_close(&self->g);
}

static void look(struct seen *seen, const struct genl_msg *msg)
{
	uint64_t seq = genl_u64(msg, GPUWATCH_A_SEQ);
	bool beat = msg->cmd == GPUWATCH_CMD_HEARTBEAT;

	if (!beat && msg->cmd != GPUWATCH_CMD_EVENT && msg->cmd != GPUWATCH_CMD_VERDICT)
		return;
	if (!seen->first)
		seen->first = seen->last = beat ? seq : seq - 1;
	if (beat) {
		if (seq < seen->last)
			seen->backwards++;
		else
			seen->missing += seq - seen->last;
	} else {
		seen->messages++;
		if (seq <= seen->last)
			seen->backwards++;
		else
			seen->missing += seq - seen->last - 1;
	}
	if (seq > seen->last)
		seen->last = seq;
}

/* All that is there now. */
static void drain(struct genl *g, struct seen *seen, struct genl_msg *msg)
{
	int got;

	while ((got = genl_recv(g, msg, 0))) {
		if (got == -ENOBUFS)
			seen->overruns++;
		else if (got > 0)
			look(seen, msg);
	}
}

static int set(struct genl *g, struct genl_msg *msg, uint32_t on)
{
	struct genl_attrs a = { .len = 0 };
	int err;

	genl_put_u32(&a, GPUWATCH_A_ATTACH, on);
	err = genl_call(g, GPUWATCH_CMD_SET, &a, msg);
	/* The answer may be quicker than the acknowledgement. */
	if (!err && msg->cmd == GPUWATCH_CMD_SET)
		return (int)genl_u32(msg, GPUWATCH_A_RESULT);
	while (!err && genl_recv(g, msg, 30000) > 0)
		if (msg->cmd == GPUWATCH_CMD_SET && msg->head->nlmsg_seq == g->seq)
			return (int)genl_u32(msg, GPUWATCH_A_RESULT);
	return err ? err : 1;
}

static void see_stream(const struct nlattr *attr, void *data)
{
	((uint64_t *)data)[genl_inner(attr, GPUWATCH_A_STREAM_GROUP) & 1] =
		genl_inner(attr, GPUWATCH_A_STREAM_SEQ);
}

/* The last number of group "events", by GET. */
static uint64_t last_number(struct genl *g, struct genl_msg *msg, unsigned int group)
{
	struct genl_attrs none = { .len = 0 };
	uint64_t last[2] = { 0 };

	if (genl_call(g, GPUWATCH_CMD_GET, &none, msg))
		abort();
	genl_each(msg, GPUWATCH_A_STREAM, see_stream, last);
	return last[group];
}

static uint64_t queue_dropped;

static void see_loss(const struct nlattr *attr, void *data)
{
	(void)data;
	if (genl_inner(attr, GPUWATCH_A_LOSS_CAUSE) == GPUWATCH_CAUSE_EVENT_QUEUE)
		queue_dropped = genl_inner(attr, GPUWATCH_A_LOSS_TOTAL);
}

static pid_t opener(unsigned long n)
{
	pid_t pid;
	unsigned long i;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	for (i = 0; i < n; i++)
		close(lab_node("/dev/nvidiactl"));
	_exit(0);
}

TEST_F_TIMEOUT(crowd, one_of_a_hundred_never_reads, 300)
{
	const unsigned long opens = lab_scaled(1000);
	struct genl *crowd = calloc(CROWD, sizeof(*crowd));
	struct seen *seen = calloc(CROWD, sizeof(*seen));
	struct pollfd *polls = calloc(CROWD, sizeof(*polls));
	struct seen stuck = { 0 };
	uint64_t begin, end;
	bool running = true;
	unsigned int i;
	time_t limit;
	pid_t pid;

	ASSERT_EQ(0, set(&self->g, &self->msg, 1));
	for (i = 0; i < CROWD; i++) {
		ASSERT_EQ(0, genl_open(&crowd[i]));
		/* The first one has little room and never reads. */
		ASSERT_EQ(0, genl_join(&crowd[i], GPUWATCH_GROUP_EVENTS, i ? BIG : 16384));
		polls[i].fd = crowd[i].fd;
		polls[i].events = POLLIN;
	}
	begin = last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
	pid = opener(opens);
	while (running) {
		running = !waitpid(pid, NULL, WNOHANG);
		poll(polls + 1, CROWD - 1, 10);
		for (i = 1; i < CROWD; i++)
			if (polls[i].revents)
				drain(&crowd[i], &seen[i], &self->msg);
	}
	end = last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
	EXPECT_LE(begin + 2 * opens, end);
	limit = time(NULL) + 120;
	for (i = 1; i < CROWD; i++) {
		while (seen[i].last < end && time(NULL) < limit) {
			poll(&polls[i], 1, 1000);
			drain(&crowd[i], &seen[i], &self->msg);
		}
		EXPECT_LE(end, seen[i].last);
		EXPECT_EQ(0, seen[i].missing);
		EXPECT_EQ(0, seen[i].overruns);
		EXPECT_EQ(0, seen[i].backwards);
		EXPECT_LE(end - begin, seen[i].messages);
	}
	printf("# %lu opens, %lu numbers; reader 1: %lu messages, %lu missing\n", opens,
	       (unsigned long)(end - begin), (unsigned long)seen[1].messages,
	       (unsigned long)seen[1].missing);
	/* It learns of its loss as soon as it looks, and of its size by a heartbeat at the latest. */
	drain(&crowd[0], &stuck, &self->msg);
	limit = time(NULL) + 60;
	while (stuck.last < end && time(NULL) < limit) {
		poll(polls, 1, 1000);
		drain(&crowd[0], &stuck, &self->msg);
	}
	EXPECT_LE(1, stuck.overruns);
	EXPECT_LT(0, stuck.missing);
	EXPECT_LE(end, stuck.last);
	EXPECT_EQ(stuck.last - stuck.first, stuck.messages + stuck.missing);
	printf("# the stuck one: %lu messages, %lu missing, %lu overruns\n",
	       (unsigned long)stuck.messages, (unsigned long)stuck.missing,
	       (unsigned long)stuck.overruns);
	for (i = 0; i < CROWD; i++)
		genl_close(&crowd[i]);
	free(crowd);
	free(seen);
	free(polls);
	EXPECT_EQ(0, set(&self->g, &self->msg, 0));
}

/* More than the queue holds: what is dropped is counted, and its numbers are missing. */
TEST_F_TIMEOUT(crowd, flood, 300)
{
	const unsigned long opens = lab_scaled(20000);
	struct genl crowd[40], listener;
	struct seen seen = { 0 };
	uint64_t begin, end, dropped;
	unsigned int i;
	time_t limit;
	pid_t pid;

	ASSERT_EQ(0, set(&self->g, &self->msg, 1));
	ASSERT_EQ(0, genl_open(&listener));
	ASSERT_EQ(0, genl_join(&listener, GPUWATCH_GROUP_EVENTS, 256 << 20));
	/* Who cost the worker time, and never read. */
	for (i = 0; i < 40; i++) {
		ASSERT_EQ(0, genl_open(&crowd[i]));
		ASSERT_EQ(0, genl_join(&crowd[i], GPUWATCH_GROUP_EVENTS, 0));
	}
	begin = last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
	genl_each(&self->msg, GPUWATCH_A_LOSS, see_loss, NULL);
	dropped = queue_dropped;
	pid = opener(opens);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	end = last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
	EXPECT_LE(begin + 2 * opens, end);
	limit = time(NULL) + 120;
	while (seen.last < end && time(NULL) < limit) {
		struct pollfd p = { .fd = listener.fd, .events = POLLIN };

		poll(&p, 1, 1000);
		drain(&listener, &seen, &self->msg);
	}
	last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
	genl_each(&self->msg, GPUWATCH_A_LOSS, see_loss, NULL);
	EXPECT_LE(end, seen.last);
	EXPECT_EQ(0, seen.overruns);
	EXPECT_EQ(0, seen.backwards);
	EXPECT_EQ(queue_dropped - dropped, seen.missing);
	EXPECT_EQ(seen.last - seen.first, seen.messages + seen.missing);
	printf("# %lu opens: %lu messages, %lu dropped by the queue\n", opens,
	       (unsigned long)seen.messages, (unsigned long)seen.missing);
	for (i = 0; i < 40; i++)
		genl_close(&crowd[i]);
	genl_close(&listener);
	EXPECT_EQ(0, set(&self->g, &self->msg, 0));
}

TEST_F_TIMEOUT(crowd, burst_of_verdicts, 300)
{
	const unsigned long n = lab_scaled(5000);
	struct genl_attrs a = { .len = 0 };
	struct genl listener;
	struct seen seen = { 0 };
	uint64_t begin, end;
	unsigned long i;
	char text[200];
	time_t limit;

	memset(text, 'v', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	genl_put_u32(&a, GPUWATCH_A_VERDICT, GPUWATCH_VERDICT_DENIED);
	genl_put_u32(&a, GPUWATCH_A_SEVERITY, GPUWATCH_SEVERITY_CRITICAL);
	genl_put_text(&a, GPUWATCH_A_TEXT, text);
	/* Before anybody listens they are numbered too. */
	begin = last_number(&self->g, &self->msg, GPUWATCH_GROUP_VERDICTS);
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_VERDICT, &a, NULL));
	EXPECT_EQ(begin + 1, last_number(&self->g, &self->msg, GPUWATCH_GROUP_VERDICTS));
	ASSERT_EQ(0, genl_open(&listener));
	ASSERT_EQ(0, genl_join(&listener, GPUWATCH_GROUP_VERDICTS, 64 << 20));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_VERDICT, &a, NULL));
	end = last_number(&self->g, &self->msg, GPUWATCH_GROUP_VERDICTS);
	EXPECT_EQ(begin + 1 + n, end);
	limit = time(NULL) + 60;
	while (seen.last < end && time(NULL) < limit) {
		struct pollfd p = { .fd = listener.fd, .events = POLLIN };

		poll(&p, 1, 1000);
		drain(&listener, &seen, &self->msg);
	}
	EXPECT_EQ(end, seen.last);
	EXPECT_EQ(n, seen.messages);
	EXPECT_EQ(0, seen.missing);
	EXPECT_EQ(0, seen.overruns);
	genl_close(&listener);
}

/* Numbers of nlctrl's own group, which tells of families. */
static int join_notify(struct genl *ctrl)
{
	const struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	int bytes = 1 << 20;

	*ctrl = (struct genl){ .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC) };
	if (ctrl->fd < 0 || bind(ctrl->fd, (void *)&me, sizeof(me)))
		return -errno;
	setsockopt(ctrl->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	return genl_join_raw(ctrl->fd, GENL_ID_CTRL); /* its group has its number, by contract */
}

static bool told(struct genl *ctrl, struct genl_msg *msg, uint8_t cmd)
{
	while (genl_recv(ctrl, msg, 10000) > 0)
		if (msg->cmd == cmd && !strcmp(genl_text(msg, CTRL_ATTR_FAMILY_NAME), "gpuwatch"))
			return true;
	return false;
}

TEST_F_TIMEOUT(crowd, reload_under_subscribers, 300)
{
	struct genl listeners[3], ctrl;
	uint64_t instance;
	unsigned int round, i;

	ASSERT_EQ(0, join_notify(&ctrl));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, genl_open(&listeners[i]));
		ASSERT_EQ(0, genl_join(&listeners[i], GPUWATCH_GROUP_EVENTS, BIG));
	}
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(1, genl_recv(&listeners[0], &self->msg, 10000));
		instance = genl_u64(&self->msg, GPUWATCH_A_INSTANCE);
		/* Open sockets do not keep the module. */
		ASSERT_EQ(0, lab_unload("gpuwatch"));
		ASSERT_TRUE(told(&ctrl, &self->msg, CTRL_CMD_DELFAMILY));
		EXPECT_EQ(-ENOENT, genl_resolve(&self->g));
		ASSERT_EQ(0, lab_load("gpuwatch.ko", "heartbeat_ms=100"));
		ASSERT_TRUE(told(&ctrl, &self->msg, CTRL_CMD_NEWFAMILY));
		for (i = 0; i < 3; i++) {
			struct seen old = { 0 };

			drain(&listeners[i], &old, &self->msg);
			ASSERT_EQ(0, genl_resolve(&listeners[i]));
			ASSERT_EQ(0, genl_join(&listeners[i], GPUWATCH_GROUP_EVENTS, 0));
		}
		ASSERT_EQ(0, genl_resolve(&self->g));
		last_number(&self->g, &self->msg, GPUWATCH_GROUP_EVENTS);
		ASSERT_EQ(0, set(&self->g, &self->msg, 1));
		close(lab_node("/dev/nvidiactl"));
		for (i = 0; i < 3; i++) {
			bool open = false;

			while (!open && genl_recv(&listeners[i], &self->msg, 10000) > 0)
				open = self->msg.cmd == GPUWATCH_CMD_EVENT &&
				       genl_u32(&self->msg, GPUWATCH_A_EVENT) == GPUWATCH_EVENT_OPEN;
			EXPECT_TRUE(open);
			EXPECT_NE(instance, genl_u64(&self->msg, GPUWATCH_A_INSTANCE));
		}
		ASSERT_EQ(0, set(&self->g, &self->msg, 0));
	}
	for (i = 0; i < 3; i++)
		genl_close(&listeners[i]);
	genl_close(&ctrl);
}

/* Modules come and go while others subscribe, ask and submit. */
TEST_F_TIMEOUT(crowd, reload_under_load, 300)
{
	struct genl_attrs v = { .len = 0 }, none = { .len = 0 };
	unsigned int round, i;
	pid_t pids[4];
	int status;

	genl_put_u32(&v, GPUWATCH_A_VERDICT, GPUWATCH_VERDICT_KNOWN);
	genl_put_u32(&v, GPUWATCH_A_SEVERITY, GPUWATCH_SEVERITY_INFO);
	fflush(stdout);
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		for (;;) {
			struct genl mine;

			if (genl_open(&mine))
				continue;
			genl_join(&mine, i & 1, 0);
			genl_call(&mine, GPUWATCH_CMD_VERDICT, &v, NULL);
			genl_call(&mine, GPUWATCH_CMD_GET, &none, NULL);
			close(open("/dev/nvidiactl", O_RDWR));
			genl_close(&mine);
		}
	}
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, lab_unload("gpuwatch"));
		ASSERT_EQ(0, lab_load("gpuwatch.ko", "heartbeat_ms=20"));
		usleep(50000);
	}
	for (i = 0; i < 4; i++) {
		kill(pids[i], SIGKILL);
		EXPECT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

TEST_HARNESS_MAIN
