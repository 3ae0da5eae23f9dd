// SPDX-License-Identifier: Apache-2.0
/*
 * ring_read - read() and poll(): whole records, no busy waiting, and a wake-up
 * per watermark instead of one per record.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "lib/verify.h"

FIXTURE(ring_read) {
	int fd, node;
	struct gw_stream s;
};

FIXTURE_SETUP(ring_read)
{
	lab_fresh(false, "");
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	lab_pin(0);
}

FIXTURE_TEARDOWN(ring_read)
{
	close(self->fd);
	gw_stream_free(&self->s);
}

static void start(struct __test_metadata *_metadata, int fd, uint32_t watermark)
{
	struct gw_options o = { .ring_bytes = 1 << 20, .watermark = watermark };

	ASSERT_EQ(0, gw_setup(fd, &o));
	ASSERT_EQ(0, ioctl(fd, GPUWATCH_IOC_ENABLE));
}

static void calls(int fd, unsigned int n)
{
	uint8_t arg[64] = { 0 };

	while (n-- > 0)
		lab_transform(fd, arg, sizeof(arg));
}

/* Empties the ring; returns bytes. */
static size_t empty(int fd, struct gw_stream *s)
{
	static uint8_t buf[1 << 20];
	size_t bytes = 0;
	ssize_t got;

	while ((got = read(fd, buf, sizeof(buf))) > 0) {
		gw_stream_add(s, buf, got);
		bytes += got;
	}
	return bytes;
}

TEST_F(ring_read, nonblocking)
{
	static uint8_t buf[65536];
	struct gw_verdict v;

	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(ENXIO, errno);	/* before SETUP */
	start(_metadata, self->fd, 1);
	empty(self->fd, &self->s);
	gw_stream_clear(&self->s);
	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(EAGAIN, errno);
	self->node = lab_node("/dev/nvidiactl");
	calls(self->node, 50);
	close(self->node);
	EXPECT_LT(0, empty(self->fd, &self->s));
	gw_verify_parts(&self->s, &v);
	EXPECT_EQ(50, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_OPEN]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_RELEASE]);
	EXPECT_EQ(0, v.malformed);
	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(ring_read, small_buffer)
{
	struct gpuwatch_rec rec;
	uint8_t buf[4096];
	ssize_t got;

	start(_metadata, self->fd, 1);
	self->node = lab_node("/dev/nvidiactl");
	empty(self->fd, &self->s);
	calls(self->node, 3);
	EXPECT_EQ(-1, read(self->fd, &rec, sizeof(rec)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->fd, &rec, 0));
	/* Room for one record and a half: one whole record. */
	got = read(self->fd, buf, 400);
	ASSERT_LT(0, got);
	memcpy(&rec, buf, sizeof(rec));
	EXPECT_EQ(got, rec.len);
	got = read(self->fd, buf, sizeof(buf));
	EXPECT_EQ(2 * rec.len, got);
	/* Where the bytes don't fit into memory nothing is taken. */
	calls(self->node, 1);
	EXPECT_EQ(-1, syscall(SYS_read, self->fd, 16L, 65536L));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(rec.len, read(self->fd, buf, sizeof(buf)));
	close(self->node);
}

static void *call_later(void *arg)
{
	int *node = arg;

	usleep(300000);
	calls(*node, 1);
	return NULL;
}

TEST_F_TIMEOUT(ring_read, blocking, 20)
{
	static uint8_t buf[65536];
	pthread_t thread;
	uint64_t begin;

	start(_metadata, self->fd, 1);
	self->node = lab_node("/dev/nvidiactl");
	empty(self->fd, &self->s);
	fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) & ~O_NONBLOCK);
	begin = gw_now_ns();
	ASSERT_EQ(0, pthread_create(&thread, NULL, call_later, &self->node));
	EXPECT_LT(0, read(self->fd, buf, sizeof(buf)));
	EXPECT_LT(250000000, gw_now_ns() - begin);
	pthread_join(thread, NULL);
	close(self->node);
}

static void on_alarm(int number)
{
	(void)number;
}

/* A signal ends a read that waits; so does it end with the process. */
TEST_F_TIMEOUT(ring_read, interrupted, 20)
{
	struct sigaction action = { .sa_handler = on_alarm };
	static uint8_t buf[65536];

	start(_metadata, self->fd, 1);
	empty(self->fd, &self->s);
	fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) & ~O_NONBLOCK);
	sigaction(SIGUSR1, &action, NULL);
	if (fork() == 0) {
		usleep(200000);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(EINTR, errno);
}

static void *block_in_read(void *arg)
{
	static uint8_t buf[65536];

	/* Ends when the other thread makes a call. */
	if (read(*(int *)arg, buf, sizeof(buf)) < 0)
		return (void *)1;
	return NULL;
}

/* poll() and GET_STATS go on while another thread waits in read(). */
TEST_F_TIMEOUT(ring_read, waiting_blocks_nobody, 20)
{
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	pthread_t thread;
	void *failed;

	start(_metadata, self->fd, 1);
	self->node = lab_node("/dev/nvidiactl");
	empty(self->fd, &self->s);
	fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) & ~O_NONBLOCK);
	ASSERT_EQ(0, pthread_create(&thread, NULL, block_in_read, &self->fd));
	usleep(200000);
	EXPECT_EQ(0, poll(&p, 1, 0));
	gw_stats(self->fd);
	calls(self->node, 1);
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	close(self->node);
}

TEST_F(ring_read, poll_watermark)
{
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	const uint32_t watermark = 16384;
	unsigned int n;

	EXPECT_EQ(1, poll(&p, 1, 0));	/* before SETUP there is nothing to wait for */
	EXPECT_EQ(POLLERR, p.revents);
	start(_metadata, self->fd, watermark);
	self->node = lab_node("/dev/nvidiactl");
	empty(self->fd, &self->s);
	calls(self->node, 10);
	EXPECT_EQ(0, poll(&p, 1, 0));
	for (n = 10; !poll(&p, 1, 0) && n < 1000; n++)
		calls(self->node, 1);
	EXPECT_EQ(POLLIN, p.revents);
	gw_stream_clear(&self->s);
	empty(self->fd, &self->s);
	EXPECT_LE(watermark, self->s.used);
	EXPECT_GT(watermark + 1024, self->s.used);
	EXPECT_EQ(0, poll(&p, 1, 0));
	close(self->node);
}

struct poller {
	int fd;
	volatile int stop;
	unsigned int wakeups;
	struct gw_reader r;
	struct gw_stream s;
};

static void *poll_loop(void *arg)
{
	struct poller *me = arg;
	struct pollfd p = { .fd = me->r.fd, .events = POLLIN };

	while (!me->stop) {
		if (poll(&p, 1, 100) > 0)
			me->wakeups++;
		gw_reader_drain(&me->r, &me->s);
	}
	return NULL;
}

/* Many records, few wake-ups, no loss: the reader sleeps until it is worth it. */
TEST_F_TIMEOUT(ring_read, few_wakeups, 60)
{
	/* All fit into one ring, so that a slow machine loses none either. */
	struct gw_options o = { .ring_bytes = 4 << 20, .watermark = 1 << 16 };
	unsigned int n = lab_scaled(10000);
	static struct poller poller;
	struct gpuwatch_stats st;
	pthread_t thread;

	lab_pin(-1);
	ASSERT_EQ(0, gw_reader_start(&poller.r, &o));
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_loop, &poller));
	self->node = lab_node("/dev/nvidiactl");
	calls(self->node, n);
	close(self->node);
	poller.stop = 1;
	pthread_join(thread, NULL);
	st = gw_stats(poller.r.fd);
	EXPECT_LE(n, st.records);
	EXPECT_EQ(st.records, st.seq);
	/* One per watermark of bytes at most, and one more per ring. */
	EXPECT_GE(st.bytes / o.watermark + poller.r.info.nr_cpus, st.wakeups);
	EXPECT_LT(0, st.wakeups);
	printf("# %llu records, %llu bytes, %llu wake-ups, %u returns of poll\n",
	       (unsigned long long)st.records, (unsigned long long)st.bytes,
	       (unsigned long long)st.wakeups, poller.wakeups);
	gw_reader_stop(&poller.r);
	gw_stream_free(&poller.s);
}

TEST_HARNESS_MAIN
