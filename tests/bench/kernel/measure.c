// SPDX-License-Identifier: Apache-2.0
// See measure.h. A round is much shorter than the time between two timer ticks,
// so most rounds hold none, and neither does the middle one of them.

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "measure.h"

enum { kRoundInstructions = 400000, kCallsMax = 400, kRounds = 61, kWarmUp = 4, kSettleSeconds = 4 };

static double loop_cost;

void bench_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("gw-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

uint64_t bench_instructions(void)
{
	return __rdtsc();
}

void bench_report(const char *kind, const char *name, double value)
{
	printf("%s\t%s\t%.2f\n", kind, name, value);
	fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t round_of(const struct bench_call *bench, int calls)
{
	uint64_t begin = bench_instructions();
	long wrong = 0;
	int i;

	for (i = 0; i < calls; i++)
		wrong |= bench->call(bench->context) ^ bench->expected;
	begin = bench_instructions() - begin;
	if (wrong)
		bench_die("a call returned %ld instead of %ld", bench->call(bench->context),
			  bench->expected);
	return begin;
}

double bench_measure(const struct bench_call *bench)
{
	uint64_t rounds[kRounds];
	uint64_t one = round_of(bench, 16) / 16;
	int calls = one * kCallsMax < kRoundInstructions ? kCallsMax : (int)(kRoundInstructions / one);
	int i;

	for (i = -kWarmUp; i < kRounds; i++) {
		uint64_t spent = round_of(bench, calls);

		if (i >= 0)
			rounds[i] = spent;
		if (bench->between)
			bench->between(bench->between_context);
	}
	qsort(rounds, kRounds, sizeof(rounds[0]), by_value);
	return (double)rounds[kRounds / 2] / calls - loop_cost;
}

double bench_total(const struct bench_call *bench, int calls)
{
	round_of(bench, kCallsMax);
	return (double)round_of(bench, calls) / calls - loop_cost;
}

static long nothing(void *context)
{
	(void)context;
	return 0;
}

void bench_prepare(void)
{
	struct timespec settle = { .tv_sec = kSettleSeconds };
	struct bench_call empty = { .call = nothing };

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		bench_die("mlockall: %s", strerror(errno));
	nanosleep(&settle, NULL);
	loop_cost = bench_measure(&empty);
	if (loop_cost > 30)
		bench_die("an empty loop costs %.1f instructions: the guest does not run with --icount",
			  loop_cost);
}
