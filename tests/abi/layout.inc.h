/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Body of the layout tests, compiled as C and as C++: compares the layout as
 * this compiler sees it with include/abi/gpuwatch.abi, line by line, in TAP.
 * With "--print" it prints the layout instead.
 */
#include <linux/gpuwatch.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 160

static FILE *golden;
static int number, failures, print_only;

/* Next line of the golden list that is no comment; empty at the end. */
static void next_golden(char *line)
{
	line[0] = 0;
	while (fgets(line, LINE_MAX_BYTES, golden)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] && line[0] != '#')
			return;
	}
	line[0] = 0;
}

static void report_line(const char *line)
{
	char want[LINE_MAX_BYTES];

	if (print_only) {
		puts(line);
		return;
	}
	next_golden(want);
	number++;
	if (strcmp(line, want) == 0) {
		printf("ok %d - %s\n", number, line);
		return;
	}
	failures++;
	printf("not ok %d - is '%s', list says '%s'\n", number, line, want);
}

#define REPORT(...) \
	do { \
		snprintf(line, sizeof(line), __VA_ARGS__); \
		report_line(line); \
	} while (0)

int main(int argc, char **argv)
{
	char line[LINE_MAX_BYTES];

	print_only = argc > 1 && strcmp(argv[1], "--print") == 0;
	if (!print_only) {
		golden = fopen(GOLDEN, "r");
		if (!golden) {
			printf("not ok 1 - cannot read %s\n1..1\n", GOLDEN);
			return 1;
		}
	}
#include "layout_statements.inc"
	if (!print_only) {
		next_golden(line);
		number++;
		if (line[0]) {
			failures++;
			printf("not ok %d - list has more: '%s'\n", number, line);
		} else {
			printf("ok %d - list has no more lines\n", number);
		}
		printf("1..%d\n", number);
	}
	return failures != 0;
}
