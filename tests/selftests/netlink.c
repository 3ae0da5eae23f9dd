// SPDX-License-Identifier: Apache-2.0
/*
 * netlink - the generic netlink family: who may what, what is refused, what the
 * kernel says of itself, and that nothing is forged. Crowds, bursts and reloads
 * are in netlink_crowd.c.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/genl.h"
#include "lib/lab.h"

#define BIG	(8 << 20)

FIXTURE(netlink) {
	struct genl g;
	struct genl_msg msg;
};

FIXTURE_SETUP(netlink)
{
	lab_fresh(false, "");
	ASSERT_EQ(0, lab_write("/sys/module/gpuwatch/parameters/heartbeat_ms", "100"));
	ASSERT_EQ(0, genl_open(&self->g));
}

FIXTURE_TEARDOWN(netlink)
{
	genl_close(&self->g);
}

static struct genl_attrs verdict(void)
{
	struct genl_attrs a = { .len = 0 };

	genl_put_u32(&a, GPUWATCH_A_VERDICT, GPUWATCH_VERDICT_UNKNOWN);
	genl_put_u32(&a, GPUWATCH_A_SEVERITY, GPUWATCH_SEVERITY_ERROR);
	return a;
}

static struct genl_attrs attach(uint32_t on)
{
	struct genl_attrs a = { .len = 0 };

	genl_put_u32(&a, GPUWATCH_A_ATTACH, on);
	return a;
}

/* The answer that follows the acknowledgement of SET; 1 when it never came. */
static int set(struct genl *g, struct genl_msg *msg, uint32_t on)
{
	struct genl_attrs a = attach(on);
	int err = genl_call(g, GPUWATCH_CMD_SET, &a, msg);

	if (err)
		return err;
	/* It may be quicker than the acknowledgement. */
	if (msg->cmd == GPUWATCH_CMD_SET)
		return (int)genl_u32(msg, GPUWATCH_A_RESULT);
	while (genl_recv(g, msg, 30000) > 0)
		if (msg->cmd == GPUWATCH_CMD_SET && msg->head->nlmsg_seq == g->seq)
			return (int)genl_u32(msg, GPUWATCH_A_RESULT);
	return 1;
}

/* The next event of @kind; false when none comes. */
static bool event(struct genl *g, struct genl_msg *msg, uint32_t kind)
{
	time_t end = time(NULL) + 10;

	while (time(NULL) < end)
		if (genl_recv(g, msg, 1000) > 0 && msg->cmd == GPUWATCH_CMD_EVENT &&
		    genl_u32(msg, GPUWATCH_A_EVENT) == kind)
			return true;
	printf("# no event %u came\n", kind);
	return false;
}

/* The next message of this command; false when none comes. */
static bool next_of(struct genl *g, struct genl_msg *msg, uint8_t cmd)
{
	while (genl_recv(g, msg, 10000) > 0)
		if (msg->cmd == cmd)
			return true;
	printf("# no message of command %u came\n", cmd);
	return false;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void see_stream(const struct nlattr *attr, void *data)
{
	uint64_t *seen = data;

	seen[genl_inner(attr, GPUWATCH_A_STREAM_GROUP) & 1]++;
}

static void count(const struct nlattr *attr, void *data)
{
	(void)attr;
	++*(unsigned int *)data;
}

TEST_F_TIMEOUT(netlink, state, 120)
{
	struct genl_attrs none = { .len = 0 };
	struct gpuwatch_info info;
	uint64_t streams[2] = { 0 };
	unsigned int causes = 0, hooks = 0, drivers = 0;
	int fd = open("/dev/gpuwatch", O_RDWR), node;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_ATTACHED));
	ASSERT_EQ(0, genl_join(&self->g, GPUWATCH_GROUP_EVENTS, BIG));
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	ASSERT_EQ(0, set(&self->g, &self->msg, 1));
	node = lab_node("/dev/nvidiactl"); /* its functions become known */
	ASSERT_EQ(0, ioctl(fd, GPUWATCH_IOC_GET_INFO, &info));
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	close(node);
	EXPECT_EQ(GPUWATCH_CMD_GET, self->msg.cmd);
	EXPECT_EQ(GPUWATCH_ABI_MAJOR, genl_u32(&self->msg, GPUWATCH_A_ABI_MAJOR));
	EXPECT_EQ(GPUWATCH_ABI_MINOR, genl_u32(&self->msg, GPUWATCH_A_ABI_MINOR));
	EXPECT_EQ(GPUWATCH_SCHEMA, genl_u32(&self->msg, GPUWATCH_A_SCHEMA));
	EXPECT_STREQ(info.release, genl_text(&self->msg, GPUWATCH_A_RELEASE));
	EXPECT_EQ(info.features, genl_u64(&self->msg, GPUWATCH_A_FEATURES));
	EXPECT_EQ(1, genl_u32(&self->msg, GPUWATCH_A_ATTACHED));
	EXPECT_EQ(1, genl_u32(&self->msg, GPUWATCH_A_PINNED));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_CONSUMERS));
	EXPECT_EQ(100, genl_u32(&self->msg, GPUWATCH_A_HEARTBEAT_MS));
	EXPECT_NE(0, genl_u64(&self->msg, GPUWATCH_A_INSTANCE));
	EXPECT_NE(NULL, self->msg.attrs[GPUWATCH_A_RINGS]);
	EXPECT_NE(NULL, self->msg.attrs[GPUWATCH_A_IMAGES]);
	genl_each(&self->msg, GPUWATCH_A_STREAM, see_stream, streams);
	EXPECT_EQ(1, streams[0]);
	EXPECT_EQ(1, streams[1]);
	genl_each(&self->msg, GPUWATCH_A_LOSS, count, &causes);
	EXPECT_EQ(GPUWATCH_CAUSE_EVENT_MEMORY + 1, causes);
	genl_each(&self->msg, GPUWATCH_A_HOOK, count, &hooks);
	EXPECT_EQ(info.nr_targets, hooks);
	genl_each(&self->msg, GPUWATCH_A_DRIVER, count, &drivers);
	EXPECT_LE(1, drivers);
	EXPECT_EQ(0, set(&self->g, &self->msg, 0));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_IN_FLIGHT));
	EXPECT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_ATTACHED));
	close(fd);
}

TEST_F(netlink, ring_loss_of_closed_readers_stays_counted)
{
	struct genl_attrs none = { .len = 0 };
	uint64_t before, after;

	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	before = genl_inner(self->msg.attrs[GPUWATCH_A_RINGS], GPUWATCH_A_RINGS_OFFERED);
	{
		struct gpuwatch_setup setup = { .abi_major = GPUWATCH_ABI_MAJOR, .ring_bytes = 65536 };
		int fd = open("/dev/gpuwatch", O_RDWR), i;

		ASSERT_EQ(0, ioctl(fd, GPUWATCH_IOC_SETUP, &setup));
		ASSERT_EQ(0, ioctl(fd, GPUWATCH_IOC_ENABLE));
		for (i = 0; i < 10; i++)
			close(lab_node("/dev/nvidiactl"));
		close(fd);
	}
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	after = genl_inner(self->msg.attrs[GPUWATCH_A_RINGS], GPUWATCH_A_RINGS_OFFERED);
	EXPECT_LE(before + 20, after);
	lab_wait_detached();
}

/* --- what is refused ------------------------------------------------------- */

static int bad_verdict(struct genl *g, void (*spoil)(struct genl_attrs *a))
{
	struct genl_attrs a = verdict();

	spoil(&a);
	return genl_call(g, GPUWATCH_CMD_VERDICT, &a, NULL);
}

static void replace(struct genl_attrs *a, uint16_t type, const void *data, size_t len)
{
	static const uint16_t keep[] = { GPUWATCH_A_VERDICT, GPUWATCH_A_SEVERITY };
	unsigned int i;

	a->len = 0;
	for (i = 0; i < 2; i++)
		if (keep[i] != type)
			genl_put_u32(a, keep[i], 1);
	if (data)
		genl_put(a, type, data, len);
}

#define NUMBER(name, type, value) \
static void name(struct genl_attrs *a) \
{ \
	uint32_t v = (value); \
	replace(a, type, &v, sizeof(v)); \
}
#define WIDE(name, type) \
static void name(struct genl_attrs *a) \
{ \
	uint64_t v = 1; \
	replace(a, type, &v, sizeof(v)); \
}
#define BYTES(name, type, len) \
static void name(struct genl_attrs *a) \
{ \
	uint8_t v[512]; \
	memset(v, 'x', sizeof(v)); \
	replace(a, type, v, (len)); \
}

NUMBER(verdict_over, GPUWATCH_A_VERDICT, GPUWATCH_VERDICT_TAMPERED + 1)
NUMBER(verdict_huge, GPUWATCH_A_VERDICT, 0xffffffff)
NUMBER(severity_zero, GPUWATCH_A_SEVERITY, 0)
NUMBER(severity_over, GPUWATCH_A_SEVERITY, 6)
NUMBER(pid_zero, GPUWATCH_A_PID, 0)
NUMBER(pid_negative, GPUWATCH_A_PID, 0x80000000)
NUMBER(minor_over, GPUWATCH_A_GPU_MINOR, 1 << 20)
NUMBER(time_short, GPUWATCH_A_START_NS, 1)
WIDE(pid_wide, GPUWATCH_A_PID)
WIDE(forged_seq, GPUWATCH_A_SEQ)
WIDE(forged_time, GPUWATCH_A_TIME_NS)
WIDE(forged_realtime, GPUWATCH_A_REALTIME_NS)
WIDE(forged_instance, GPUWATCH_A_INSTANCE)
NUMBER(forged_pid, GPUWATCH_A_SUBMITTER_PID, 1)
NUMBER(forged_uid, GPUWATCH_A_SUBMITTER_UID, 0)
NUMBER(forged_event, GPUWATCH_A_EVENT, GPUWATCH_EVENT_OPEN)
NUMBER(of_set, GPUWATCH_A_ATTACH, 0)
NUMBER(unknown, GPUWATCH_A_MAX + 1, 1)
NUMBER(unknown_far, 9999, 1)
NUMBER(zero_type, 0, 1)
BYTES(number_short, GPUWATCH_A_VERDICT, 2)
BYTES(number_empty, GPUWATCH_A_SEVERITY, 0)
BYTES(digest_short, GPUWATCH_A_DIGEST, 31)
BYTES(digest_long, GPUWATCH_A_DIGEST, 33)
BYTES(rule_open, GPUWATCH_A_RULE, 10)
BYTES(rule_long, GPUWATCH_A_RULE, GPUWATCH_GENL_RULE_MAX + 1)
BYTES(text_long, GPUWATCH_A_TEXT, GPUWATCH_GENL_TEXT_MAX + 1)
BYTES(container_long, GPUWATCH_A_CONTAINER, GPUWATCH_GENL_CONTAINER_MAX + 1)

static void no_verdict(struct genl_attrs *a) { replace(a, GPUWATCH_A_VERDICT, NULL, 0); }
static void no_severity(struct genl_attrs *a) { replace(a, GPUWATCH_A_SEVERITY, NULL, 0); }
static void nothing(struct genl_attrs *a) { a->len = 0; }

static void trailing(struct genl_attrs *a)
{
	memset(a->data + a->len, 'x', 3);
	a->len += 3;
}

static void lying_length(struct genl_attrs *a)
{
	((struct nlattr *)(a->data + a->len - 8))->nla_len = 400;
}

TEST_F_TIMEOUT(netlink, verdict_policy, 120)
{
	static const struct {
		const char *name;
		void (*spoil)(struct genl_attrs *a);
	} cases[] = {
#define CASE(name) { #name, name }
		CASE(verdict_over), CASE(verdict_huge), CASE(severity_zero), CASE(severity_over),
		CASE(pid_zero), CASE(pid_negative), CASE(minor_over), CASE(time_short), CASE(pid_wide),
		CASE(forged_seq), CASE(forged_time), CASE(forged_realtime), CASE(forged_instance),
		CASE(forged_pid), CASE(forged_uid), CASE(forged_event), CASE(of_set), CASE(unknown),
		CASE(unknown_far), CASE(zero_type), CASE(number_short), CASE(number_empty),
		CASE(digest_short), CASE(digest_long), CASE(rule_open), CASE(rule_long), CASE(text_long),
		CASE(container_long), CASE(no_verdict), CASE(no_severity), CASE(nothing), CASE(trailing),
		CASE(lying_length),
	};
	struct genl_attrs good = verdict();
	struct genl listener;
	unsigned int i;

	ASSERT_EQ(0, genl_open(&listener));
	ASSERT_EQ(0, genl_join(&listener, GPUWATCH_GROUP_VERDICTS, BIG));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = bad_verdict(&self->g, cases[i].spoil);

		/* Only the one wrong thing: without it the message passes. */
		ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_VERDICT, &good, NULL));
		if (err != -EINVAL && err != -ERANGE) {
			printf("# %s: %d\n", cases[i].name, err);
			EXPECT_EQ(-EINVAL, err);
		}
	}
	/* Of all of them only the good ones were relayed. */
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]);) {
		ASSERT_EQ(1, genl_recv(&listener, &self->msg, 10000));
		if (self->msg.cmd != GPUWATCH_CMD_VERDICT)
			continue;
		ASSERT_EQ(GPUWATCH_VERDICT_UNKNOWN, genl_u32(&self->msg, GPUWATCH_A_VERDICT));
		i++;
	}
	ASSERT_TRUE(next_of(&listener, &self->msg, GPUWATCH_CMD_HEARTBEAT));
	genl_close(&listener);
}

TEST_F(netlink, set_and_get_policy)
{
	struct genl_attrs none = { .len = 0 }, good = verdict();
	struct genl_attrs a = attach(2);
	int err;

	EXPECT_NE(0, genl_call(&self->g, GPUWATCH_CMD_SET, &a, NULL));
	EXPECT_EQ(-EINVAL, genl_call(&self->g, GPUWATCH_CMD_SET, &none, NULL));
	a = attach(1);
	genl_put_u32(&a, GPUWATCH_A_TIMEOUT_MS, 5);
	EXPECT_EQ(-EINVAL, genl_call(&self->g, GPUWATCH_CMD_SET, &a, NULL));
	a = attach(0);
	genl_put_u32(&a, GPUWATCH_A_TIMEOUT_MS, GPUWATCH_GENL_TIMEOUT_MAX_MS + 1);
	EXPECT_NE(0, genl_call(&self->g, GPUWATCH_CMD_SET, &a, NULL));
	a = attach(0);
	genl_put_u32(&a, GPUWATCH_A_VERDICT, 1);
	EXPECT_EQ(-EINVAL, genl_call(&self->g, GPUWATCH_CMD_SET, &a, NULL));
	a = attach(1);
	EXPECT_EQ(-EINVAL, genl_call(&self->g, GPUWATCH_CMD_GET, &a, NULL));
	EXPECT_EQ(-EOPNOTSUPP, genl_call(&self->g, GPUWATCH_CMD_EVENT, &none, NULL));
	EXPECT_EQ(-EOPNOTSUPP, genl_call(&self->g, GPUWATCH_CMD_HEARTBEAT, &none, NULL));
	EXPECT_EQ(-EOPNOTSUPP, genl_call(&self->g, 0, &none, NULL));
	EXPECT_EQ(-EOPNOTSUPP, genl_call(&self->g, 200, &none, NULL));
	/* Older kernels do not look at these; newer ones must. */
	err = genl_call_odd(&self->g, GPUWATCH_CMD_VERDICT, &good, 7, 0);
	EXPECT_TRUE(err == -EINVAL || err == 0);
	printf("# reserved field: %d\n", err);
	err = genl_call_odd(&self->g, GPUWATCH_CMD_VERDICT, &good, 0, 0x400);
	EXPECT_TRUE(err == -EINVAL || err == 0);
	printf("# stray flag: %d\n", err);
	EXPECT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_GET, &none, &self->msg));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_ATTACHED));
}

/* --- who may --------------------------------------------------------------- */

static int in_child(int (*how)(struct genl *), struct genl *g)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(how(g));
	if (waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Each must be EPERM; else the number of the one that was not. */
static int all_refused(struct genl *g)
{
	struct genl_attrs none = { .len = 0 }, v = verdict(), s = attach(0);

	if (genl_join(g, GPUWATCH_GROUP_EVENTS, 0) != -EPERM)
		return 1;
	if (genl_join(g, GPUWATCH_GROUP_VERDICTS, 0) != -EPERM)
		return 2;
	if (genl_call(g, GPUWATCH_CMD_SET, &s, NULL) != -EPERM)
		return 3;
	if (genl_call(g, GPUWATCH_CMD_VERDICT, &v, NULL) != -EPERM)
		return 4;
	if (genl_call(g, GPUWATCH_CMD_GET, &none, NULL) != -EPERM)
		return 5;
	return 0;
}

static int to_nobody(void)
{
	return setgroups(0, NULL) || setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000);
}

static int as_nobody(struct genl *g)
{
	(void)g;
	struct genl mine;

	if (to_nobody() || genl_open(&mine))
		return 250;
	return all_refused(&mine);
}

/* With a socket that root opened: the sender counts too. */
static int as_nobody_with_roots_socket(struct genl *g)
{
	struct genl_attrs v = verdict(), s = attach(0);

	if (to_nobody())
		return 250;
	if (genl_call(g, GPUWATCH_CMD_VERDICT, &v, NULL) != -EPERM)
		return 1;
	return genl_call(g, GPUWATCH_CMD_SET, &s, NULL) != -EPERM ? 2 : 0;
}

static int map_root(void)
{
	return lab_write("/proc/self/setgroups", "deny") || lab_write("/proc/self/uid_map", "0 0 1") ||
	       lab_write("/proc/self/gid_map", "0 0 1");
}

static int as_namespace_root(struct genl *g)
{
	(void)g;
	struct genl mine;

	if (unshare(CLONE_NEWUSER) || map_root() || genl_open(&mine))
		return 250;
	return all_refused(&mine);
}

TEST_F(netlink, nobody) { EXPECT_EQ(0, in_child(as_nobody, &self->g)); }
TEST_F(netlink, namespace_root) { EXPECT_EQ(0, in_child(as_namespace_root, &self->g)); }
TEST_F(netlink, nobody_with_roots_socket)
{
	EXPECT_EQ(0, in_child(as_nobody_with_roots_socket, &self->g));
}

/* Root of own user and network namespaces: no family, and by raw ids nothing comes. */
static int as_container(struct genl *g)
{
	struct genl mine = { .family = g->family };
	const struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	struct genl_attrs none = { .len = 0 }, v = verdict();
	static struct genl_msg msg;
	int i;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) || map_root())
		return 250;
	if (genl_open(&mine) != -ENOENT)
		return 1;
	mine = (struct genl){ .family = g->family };
	mine.fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	if (mine.fd < 0 || bind(mine.fd, (void *)&me, sizeof(me)))
		return 251;
	if (genl_call(&mine, GPUWATCH_CMD_GET, &none, NULL) != -ENOENT)
		return 2;
	if (genl_call(&mine, GPUWATCH_CMD_VERDICT, &v, NULL) != -ENOENT)
		return 3;
	/* Joining a number need not fail; hearing something must. */
	for (i = 0; i < 2; i++)
		genl_join_raw(mine.fd, g->groups[i]);
	for (i = 0; i < 3; i++)
		close(open("/dev/nvidiactl", O_RDWR));
	return genl_recv(&mine, &msg, 1500) ? 4 : 0;
}

TEST_F_TIMEOUT(netlink, other_namespaces_hear_nothing, 120)
{
	struct genl_attrs none = { .len = 0 };
	struct genl witness;
	unsigned int opens = 0;

	ASSERT_EQ(0, set(&self->g, &self->msg, 1));
	ASSERT_EQ(0, genl_open(&witness));
	ASSERT_EQ(0, genl_join(&witness, GPUWATCH_GROUP_EVENTS, BIG));
	ASSERT_EQ(0, genl_call(&witness, GPUWATCH_CMD_GET, &none, &self->msg));
	EXPECT_EQ(0, in_child(as_container, &self->g));
	/* There was something to hear, heartbeats among it. */
	while (opens < 3 && event(&witness, &self->msg, GPUWATCH_EVENT_OPEN))
		opens++;
	EXPECT_EQ(3, opens);
	genl_close(&witness);
	EXPECT_EQ(0, set(&self->g, &self->msg, 0));
}

/* --- what is told ---------------------------------------------------------- */

TEST_F(netlink, verdict_is_relayed_with_the_kernels_words)
{
	struct genl_attrs a = verdict();
	struct genl listener;
	uint64_t before, after, real, seq;
	uint8_t digest[32];
	unsigned int i;

	for (i = 0; i < sizeof(digest); i++)
		digest[i] = i * 7;
	genl_put_u32(&a, GPUWATCH_A_PID, 4711);
	genl_put_u64(&a, GPUWATCH_A_START_NS, 0x123456789abcdefULL);
	genl_put_u64(&a, GPUWATCH_A_CGROUP_ID, 42);
	genl_put_u32(&a, GPUWATCH_A_GPU_MINOR, 3);
	genl_put(&a, GPUWATCH_A_DIGEST, digest, sizeof(digest));
	genl_put_text(&a, GPUWATCH_A_RULE, "unknown-module");
	genl_put(&a, GPUWATCH_A_TEXT, "one\033[31m\0two", 13);
	genl_put_text(&a, GPUWATCH_A_CONTAINER, "0123456789ab");
	ASSERT_EQ(0, genl_open(&listener));
	ASSERT_EQ(0, genl_join(&listener, GPUWATCH_GROUP_VERDICTS, BIG));
	before = now_ns(CLOCK_MONOTONIC);
	real = now_ns(CLOCK_REALTIME);
	ASSERT_EQ(0, genl_call(&self->g, GPUWATCH_CMD_VERDICT, &a, NULL));
	after = now_ns(CLOCK_MONOTONIC);
	ASSERT_TRUE(next_of(&listener, &self->msg, GPUWATCH_CMD_VERDICT));
	EXPECT_LE(before, genl_u64(&self->msg, GPUWATCH_A_TIME_NS));
	EXPECT_GE(after, genl_u64(&self->msg, GPUWATCH_A_TIME_NS));
	EXPECT_LE(real, genl_u64(&self->msg, GPUWATCH_A_REALTIME_NS));
	EXPECT_EQ(getpid(), genl_u32(&self->msg, GPUWATCH_A_SUBMITTER_PID));
	EXPECT_EQ(getuid(), genl_u32(&self->msg, GPUWATCH_A_SUBMITTER_UID));
	EXPECT_EQ(GPUWATCH_VERDICT_UNKNOWN, genl_u32(&self->msg, GPUWATCH_A_VERDICT));
	EXPECT_EQ(GPUWATCH_SEVERITY_ERROR, genl_u32(&self->msg, GPUWATCH_A_SEVERITY));
	EXPECT_EQ(4711, genl_u32(&self->msg, GPUWATCH_A_PID));
	EXPECT_EQ(0x123456789abcdefULL, genl_u64(&self->msg, GPUWATCH_A_START_NS));
	EXPECT_EQ(42, genl_u64(&self->msg, GPUWATCH_A_CGROUP_ID));
	EXPECT_EQ(3, genl_u32(&self->msg, GPUWATCH_A_GPU_MINOR));
	EXPECT_STREQ("unknown-module", genl_text(&self->msg, GPUWATCH_A_RULE));
	EXPECT_STREQ("one\033[31m", genl_text(&self->msg, GPUWATCH_A_TEXT));
	/* What lay behind the NUL is not relayed. */
	EXPECT_EQ(NLA_HDRLEN + 9, self->msg.attrs[GPUWATCH_A_TEXT]->nla_len);
	EXPECT_STREQ("0123456789ab", genl_text(&self->msg, GPUWATCH_A_CONTAINER));
	ASSERT_NE(NULL, self->msg.attrs[GPUWATCH_A_DIGEST]);
	EXPECT_EQ(0, memcmp(digest, (uint8_t *)self->msg.attrs[GPUWATCH_A_DIGEST] + NLA_HDRLEN, 32));
	seq = genl_u64(&self->msg, GPUWATCH_A_SEQ);
	ASSERT_TRUE(next_of(&listener, &self->msg, GPUWATCH_CMD_HEARTBEAT));
	EXPECT_EQ(seq, genl_u64(&self->msg, GPUWATCH_A_SEQ));
	EXPECT_EQ(GPUWATCH_GROUP_VERDICTS, genl_u32(&self->msg, GPUWATCH_A_GROUP));
	genl_close(&listener);
}

TEST_F_TIMEOUT(netlink, events, 120)
{
	struct genl_attrs none = { .len = 0 };
	struct genl listener;
	char comm[16] = "";
	uint64_t file;
	int fd;

	prctl(PR_SET_NAME, "a\nb\033c");
	prctl(PR_GET_NAME, comm);
	ASSERT_EQ(0, genl_open(&listener));
	ASSERT_EQ(0, genl_join(&listener, GPUWATCH_GROUP_EVENTS, BIG));
	ASSERT_EQ(0, genl_call(&listener, GPUWATCH_CMD_GET, &none, &self->msg));
	ASSERT_EQ(0, set(&self->g, &self->msg, 1));
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_ATTACHED));
	fd = lab_node("/dev/nvidia0");
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_OPEN));
	EXPECT_EQ(getpid(), genl_u32(&self->msg, GPUWATCH_A_PID));
	EXPECT_EQ(getuid(), genl_u32(&self->msg, GPUWATCH_A_UID));
	EXPECT_STREQ(comm, genl_text(&self->msg, GPUWATCH_A_COMM));
	EXPECT_EQ(GPUWATCH_NODE_GPU, genl_u32(&self->msg, GPUWATCH_A_NODE_KIND));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_GPU_MINOR));
	EXPECT_EQ(0, genl_u32(&self->msg, GPUWATCH_A_RESULT));
	EXPECT_NE(0, genl_u64(&self->msg, GPUWATCH_A_START_NS));
	EXPECT_NE(0, genl_u64(&self->msg, GPUWATCH_A_CGROUP_ID));
	file = genl_u64(&self->msg, GPUWATCH_A_FILE_ID);
	close(fd);
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_CLOSE));
	EXPECT_EQ(file, genl_u64(&self->msg, GPUWATCH_A_FILE_ID));
	lab_driver_unload();
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_DRIVER_GOING));
	lab_driver_load("");
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_DRIVER_LIVE));
	EXPECT_EQ(0, set(&self->g, &self->msg, 0));
	ASSERT_TRUE(event(&listener, &self->msg, GPUWATCH_EVENT_DETACHED));
	genl_close(&listener);
}

TEST_HARNESS_MAIN
