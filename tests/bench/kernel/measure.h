/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - counts the guest instructions of one call. The guest must run
 * with one instruction per nanosecond (boot --icount), where the time stamp
 * counter counts instructions. It knows no case and judges no number.
 */
#ifndef GW_BENCH_MEASURE_H
#define GW_BENCH_MEASURE_H

#include <stdint.h>

/* One call to measure, and what to do between rounds (may be NULL). */
struct bench_call {
	long (*call)(void *context);
	void *context;
	long expected;		/* what every call has to return */
	void (*between)(void *context);
	void *between_context;
};

/* Waits until the machine is quiet after boot, and learns what the loop costs. */
void bench_prepare(void);

/* Instructions per call: the middle of many short rounds. Ends the program when
 * a call does not return what it should. */
double bench_measure(const struct bench_call *bench);

/* The mean of one long run, with all that happens in the machine meanwhile. */
double bench_total(const struct bench_call *bench, int calls);

uint64_t bench_instructions(void);

/* A result line for the host: kind, case, value. */
void bench_report(const char *kind, const char *name, double value);

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);

/* A system call without the C library around it. */
static inline long bench_syscall(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}

#endif
