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
	# Prefixed, for a test sees the locals of its caller.
	local tap_name=$1 tap_output
	shift
	tap_number=$((tap_number + 1))
	if tap_output=$("$@" 2>&1); then
		echo "ok $tap_number $tap_name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_number $tap_name"
		printf '# failed: %s\n' "$*"
		[ -z "$tap_output" ] || printf '# %s\n' "${tap_output//$'\n'/$'\n# '}"
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
