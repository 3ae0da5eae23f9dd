# SPDX-License-Identifier: Apache-2.0
# Test Anything Protocol for bash: numbered ok and not ok lines, a plan at the
# end, and an exit status that tells whether all passed. Sourced; it must not
# decide what is tested.
# shellcheck shell=bash

tap_number=0
tap_failed=0

# tap NAME COMMAND...: one test, which passes when the command does. What the
# command prints is shown, as comments, only when it fails.
tap() {
	local name=$1 output
	shift
	tap_number=$((tap_number + 1))
	if output=$("$@" 2>&1); then
		echo "ok $tap_number $name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_number $name"
		printf '# %s: exit status not 0\n' "$*"
		[ -z "$output" ] || sed 's/^/# /' <<<"$output"
	fi
}

# tap_skip NAME REASON
tap_skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number $1 # SKIP $2"
}

tap_end() {
	echo "1..$tap_number"
	[ "$tap_failed" -eq 0 ]
}
