# SPDX-License-Identifier: Apache-2.0
# What the scripts of the kernel laboratory share: the place of the cache, its
# locks, and how to complain. Sourced by bash; it must do nothing on its own.
# shellcheck shell=bash disable=SC2034

lab_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo_dir=$(cd "$lab_dir/../../.." && pwd)
cache_dir=${GPUWATCH_CACHE:-$HOME/.cache/gpuwatch}
kernels_dir=$cache_dir/kernels
lab_kernels=(5.10 6.1 6.12 7.x)

die() {
	echo "${0##*/}: $*" >&2
	exit 2
}

# Fails unless $1 is a line of kernels the lab knows.
check_kernel() {
	local known
	for known in "${lab_kernels[@]}" debug-6.1; do
		[ "$1" = "$known" ] && return
	done
	die "'$1' is no kernel of the lab; it knows: ${lab_kernels[*]} debug-6.1"
}

# Holds the lock $1 until this shell ends. The lock is the kernel's, so one that
# an interrupted run left behind is free again.
take_lock() {
	mkdir -p "$kernels_dir"
	exec {lock_fd}>"$kernels_dir/.$1.lock"
	flock -n "$lock_fd" && return
	echo "${0##*/}: waiting for another run that prepares $1" >&2
	flock "$lock_fd"
}

# What the directory of kernel $1 was made of, empty when it is not complete.
stamp_of() {
	cat "$kernels_dir/$1/stamp" 2>/dev/null || true
}
