// SPDX-License-Identifier: Apache-2.0
/*
 * cgroup_v1 - hosts that still mount v1 hierarchies, alone or beside cgroup2:
 * id and path are of the v1 memory hierarchy where cgroup2 has nothing to say.
 */
#include <kselftest_harness.h>
#include <sys/stat.h>

#include "lib/verify.h"

#define V1_PATH "/docker/5f1c0ffee5f1c0ffee5f1c0ffee"

FIXTURE(cgroup_v1) {
	struct gw_reader r;
	struct gw_stream s;
	bool memory;		/* there is a v1 memory hierarchy */
	bool unified;		/* cgroup2 is mounted beside v1 */
};

FIXTURE_SETUP(cgroup_v1)
{
	struct gw_options o = {};

	self->memory = !access("/sys/fs/cgroup/memory/cgroup.procs", F_OK);
	self->unified = !access("/sys/fs/cgroup/unified/cgroup.procs", F_OK);
	lab_fresh(false, "");
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(cgroup_v1)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

static void check(struct __test_metadata *_metadata, const struct gw_stream *s, bool v1,
		  const char *path)
{
	unsigned int calls = 0, definitions = 0, wrong = 0;
	uint64_t id = 0;
	struct gw_verdict v;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);
		const struct gpuwatch_rec_cgroup *cg = gw_payload(rec);

		if (rec->type == GPUWATCH_REC_IOCTL) {
			calls++;
			wrong += !(rec->flags & GPUWATCH_F_CGROUP_V1) == v1;
			wrong += id && rec->cgroup_id != id;
			id = rec->cgroup_id;
		}
		if (rec->type == GPUWATCH_REC_CGROUP && cg->path_len == strlen(path) &&
		    !strncmp(path, (const char *)(cg + 1), cg->path_len)) {
			definitions++;
			wrong += cg->version != (v1 ? 1 : 2);
			wrong += !(rec->flags & GPUWATCH_F_CGROUP_V1) == v1;
			wrong += id && rec->cgroup_id != id;
			id = rec->cgroup_id;
		}
	}
	EXPECT_EQ(20, calls);
	EXPECT_LE(1, definitions);
	EXPECT_EQ(0, wrong);
	gw_verify(s, 64, NULL, &v);
	EXPECT_EQ(0, v.undefined + v.malformed + v.gaps);
}

/* Only the memory hierarchy knows the container. */
TEST_F(cgroup_v1, memory_hierarchy)
{
	const char *const argv[] = {
		"sh", "-c", "mkdir -p /sys/fs/cgroup/memory" V1_PATH " && echo 0 >/sys/fs/cgroup/memory" V1_PATH
		"/cgroup.procs && exec gw-storm --calls 20", NULL,
	};
	struct lab_run run;
	struct stat st;
	size_t i;

	if (!self->memory)
		SKIP(return, "this kernel has no v1 memory hierarchy");
	ASSERT_EQ(0, lab_run_drained(&run, argv, &self->r, &self->s));
	check(_metadata, &self->s, true, V1_PATH);
	ASSERT_EQ(0, stat("/sys/fs/cgroup/memory" V1_PATH, &st));
	for (i = 0; i < self->s.nr; i++) {
		if (gw_rec(&self->s, i)->type == GPUWATCH_REC_IOCTL) {
			EXPECT_EQ(st.st_ino, gw_rec(&self->s, i)->cgroup_id);
		}
	}
	rmdir("/sys/fs/cgroup/memory" V1_PATH);
}

/* In all hierarchies, as a container runtime does: cgroup2 wins where it is. */
TEST_F(cgroup_v1, container)
{
	const char *const argv[] = { "gw-container", "box", "--cgroup", V1_PATH, "--", "gw-storm",
				     "--calls", "20", NULL };
	struct lab_run run;

	if (!self->memory && !self->unified)
		SKIP(return, "this kernel has no v1 memory hierarchy");
	ASSERT_EQ(0, lab_run_drained(&run, argv, &self->r, &self->s));
	check(_metadata, &self->s, !self->unified, V1_PATH);
}

TEST_HARNESS_MAIN
