/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lab.h - what the tests need around them in the guest: modules loaded and
 * unloaded, device nodes, programs run, busy processes, the driver's witness.
 * It knows where the suite puts files; it judges nothing.
 */
#ifndef GW_SELFTESTS_LAB_H
#define GW_SELFTESTS_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../vm/simdrv/gwsim.h"
#include "reader.h"

#define LAB_DIR "/lab"

/* Modules. 0 or a negative errno; unloading never waits. */
int lab_load(const char *file, const char *params);
int lab_unload(const char *module);
bool lab_loaded(const char *module);
int lab_refcount(const char *module);
/* Value of a module's parameter; "" when there is none. */
const char *lab_param(const char *module, const char *name);

/*
 * The state a test starts from: gpuwatch loaded with @kretprobe, detached; the
 * simulated driver loaded with @params (shape=... compat=...); nodes there;
 * witness empty. What is so already is left as it is.
 */
void lab_fresh(bool kretprobe, const char *params);
void lab_driver_load(const char *params);
void lab_driver_unload(void);
void lab_nodes(void);
/* Loads gpuwatch.ko when it is not, and has it detached and unused. */
void lab_gpuwatch(bool kretprobe);
void lab_gpuwatch_unload(void);
/* Waits until hooks are out after the last consumer went. */
void lab_wait_detached(void);

/* Programs. argv ends with NULL; its stdout goes to a pipe. */
struct lab_run {
	pid_t pid;
	int out;
	char text[4096];
	size_t used;
};
void lab_start(struct lab_run *run, const char *const *argv);
bool lab_done(struct lab_run *run, int *status);	/* does not wait */
int lab_finish(struct lab_run *run);			/* waits; exit status */
/* Runs to its end while @r is drained into @to; exit status. */
int lab_run_drained(struct lab_run *run, const char *const *argv, struct gw_reader *r,
		    struct gw_stream *to);
unsigned long long lab_number(const struct lab_run *run, const char *key);

/* Processes that call TRANSFORM and BLOCK without end and check the answers. */
struct lab_busy {
	volatile struct lab_busy_shared {
		int stop;
		unsigned long long calls, wrong;
	} *shared;
	pid_t pids[16];
	unsigned int nr;
};
void lab_busy_start(struct lab_busy *busy, const char *const *nodes, unsigned int nr);
/* Waits until @more calls have been made since the last look. */
void lab_busy_wait(struct lab_busy *busy, unsigned long long more);
void lab_busy_stop(struct lab_busy *busy, unsigned long long *calls, unsigned long long *wrong);

/* The witness. */
void lab_witness_reset(void);
struct gwsim_totals lab_witness(void);
unsigned long long lab_witness_op(const struct gwsim_totals *t, int op);
unsigned long long lab_witness_calls(const struct gwsim_totals *t);
struct gwsim_log_entry *lab_witness_log(size_t *nr);

/* Small things. */
void lab_pin(int cpu);			/* -1: all */
int lab_write(const char *path, const char *text);
long long lab_read_number(const char *path);
long lab_meminfo_kb(const char *key);
void lab_mark(const char *text);	/* into the console */
bool lab_debug_kernel(void);
/* @n, or a tenth of it on the debug kernel. */
unsigned long lab_scaled(unsigned long n);
long lab_transform(int fd, uint8_t *arg, uint32_t bytes);
int lab_node(const char *path);

#endif
