# SPDX-License-Identifier: Apache-2.0
# A private apt: finds, downloads and unpacks packages of Debian suites other
# than the host's own, from the mirrors the host itself uses. Sourced after
# lib.sh; it must not touch the host's package state, and names no host.
# shellcheck shell=bash

# Prints "URI keyring" of the host's sources whose suite matches regexp $1 and
# which have a component main (other vendors' mostly do not), in both formats of
# apt: one-line .list and deb822 .sources.
host_sources() {
	local files=() file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$file" ] && files+=("$file")
	done
	[ ${#files[@]} -gt 0 ] && awk -v suite="$1" '
		$1 == "deb" {
			key = ""; i = 2
			if ($i ~ /^\[/) {
				while (1) {
					word = $i; gsub(/[][]/, "", word)
					if (word ~ /^signed-by=/) key = substr(word, 11)
					if ($(i++) ~ /\]$/ || i > NF) break
				}
			}
			if ($(i + 1) ~ suite && $0 ~ / main( |$)/) print $i, key
		}' "${files[@]}"
	files=()
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -f "$file" ] && files+=("$file")
	done
	[ ${#files[@]} -gt 0 ] && awk -v suite="$1" '
		function flush(  n, i, u, s, hit) {
			n = split(suites, s, " "); hit = 0
			for (i = 1; i <= n; i++) if (s[i] ~ suite) hit = 1
			if (hit && types ~ /(^| )deb( |$)/ && components ~ /(^| )main( |$)/ && enabled !~ /^ *no/) {
				split(uris, u, " "); print u[1], key
			}
			types = uris = suites = components = key = enabled = ""
		}
		/^#/ { next }
		/^[ \t]*$/ { flush(); next }
		FNR == 1 && NR > 1 { flush() }
		/^Types:/ { types = substr($0, 7) }
		/^URIs:/ { uris = substr($0, 6) }
		/^Suites:/ { suites = substr($0, 8) }
		/^Components:/ { components = substr($0, 12) }
		/^Enabled:/ { enabled = substr($0, 9) }
		/^Signed-By: *\// { key = $2 }
		END { flush() }' "${files[@]}"
	return 0
}

# Opens a private apt in directory $1 for the suites $2... A suite that the
# mirror lacks is left out: the caller looks whether it got what it wants.
apt_open() {
	apt_dir=$1
	shift
	local suite uri key main security
	read -r main key < <(host_sources '^[a-z]+(-updates|-backports)?$' | head -n 1) || true
	[ "${main:-}" ] || die "no Debian mirror in /etc/apt/sources.list or sources.list.d; remedy: add the one for this release"
	read -r security _ < <(host_sources '(-security$|/updates$)' | head -n 1) || true
	: "${key:=/usr/share/keyrings/debian-archive-keyring.gpg}"
	mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
	for suite in "$@"; do
		uri=$main
		if [[ $suite == *-security ]]; then
			[ "${security:-}" ] || continue
			uri=$security
		fi
		echo "deb [signed-by=$key] $uri $suite main"
	done >"$apt_dir/sources.list"
	apt_options=(
		-o "Dir::Etc::sourcelist=$apt_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
		-o "Dir::State::lists=$apt_dir/lists" -o "Dir::Cache=$apt_dir/cache"
		-o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root
		-o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Dir::State::status=/dev/null
	)
	apt-get -qq "${apt_options[@]}" update >"$apt_dir/log" 2>&1 || true
}

apt_names() {
	apt-cache "${apt_options[@]}" pkgnames "$1"
}

apt_has() {
	apt-cache "${apt_options[@]}" show --no-all-versions "$1" >/dev/null 2>&1
}

# Prints the names of the packages that $1 depends on directly.
apt_depends() {
	apt-cache "${apt_options[@]}" show --no-all-versions "$1" |
		sed -n 's/^Depends: //p' | tr ',|' '\n' | awk '{ print $1 }'
}

# Downloads the packages $2... and unpacks them into directory $1. When one of
# them cannot be had it leaves $1 as it was, and fails.
apt_unpack() {
	local into=$1 deb debs=$apt_dir/debs
	shift
	rm -rf "$debs"
	mkdir -p "$debs" "$into"
	(cd "$debs" && apt-get -qq "${apt_options[@]}" download "$@" >>"$apt_dir/log" 2>&1) || return 1
	for deb in "$debs"/*.deb; do
		dpkg -x "$deb" "$into" || return 1
	done
	rm -rf "$debs"
}
