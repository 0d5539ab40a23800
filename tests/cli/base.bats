#!/usr/bin/env bats
# What every command does alike.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# for_each FUNCTION: call it with every command; names all that fail.
for_each() {
	local command failed=""
	for command in $(commands); do
		"$1" "$command" || failed="$failed ${command##*/}"
	done
	if [ "$failed" ]; then
		echo "failed:$failed"
		return 1
	fi
}

@test "-h and --help show the usage on standard output, nothing else, and exit 0" {
	one() {
		"$1" -h >out 2>err </dev/null && [ ! -s err ] && head -1 out | grep -q "^usage: ${1##*/} " &&
			"$1" --help >out2 2>err </dev/null && [ ! -s err ] && cmp out out2
	}
	for_each one
}

@test "--version shows name and version, the same for all" {
	one() {
		"$1" --version >out 2>err </dev/null && [ ! -s err ] &&
			[ "$(cat out)" = "${1##*/} $version" ]
	}
	version=$(sed -n 's/^#define HPS_VERSION "\(.*\)"/\1/p' "$HPS_ROOT/lib/base/opt.h")
	[ "$version" ]
	for_each one
}

@test "an unknown option exits 2 with one line that names it and points to -h" {
	one() {
		local rc=0
		"$1" --no-such-option >out 2>err </dev/null || rc=$?
		[ "$rc" -eq 2 ] && [ ! -s out ] &&
			[ "$(tr -d "'" <err)" = "${1##*/}: unknown option --no-such-option; try ${1##*/} -h" ]
	}
	for_each one
}

@test "an empty value of any option, and an empty operand, are usage errors" {
	tried=0
	empty() { # COMMAND [SUBCOMMAND]
		local rc option
		for option in $("$@" -h | grep -oE -- '--[a-z-]+ [A-Z]' | cut -d ' ' -f 1 | sort -u) ""; do
			rc=0
			"$@" ${option:+"$option"} "" x >out 2>err </dev/null || rc=$?
			if [ "$rc" -ne 2 ] || [ -s out ]; then
				echo "$* $option '': exit $rc"
				return 1
			fi
			tried=$((tried + 1))
		done
	}
	one() {
		local part
		case ${1##*/} in
		hps-data) for part in gen conv stat; do empty "$1" $part || return 1; done ;;
		*) empty "$1" ;;
		esac
	}
	for_each one
	[ "$tried" -gt 70 ]
	[ "$(echo *)" = "err out" ]
}

@test "a file at its size limit exits 4, and is no signal's death" {
	case $HPS_BIN in *-thread*) skip "the thread sanitizer itself dies of it" ;; esac
	one() {
		local rc=0
		(ulimit -f 0 && exec "$1" -h >out) 2>/dev/null || rc=$?
		[ "$rc" -eq 4 ]
	}
	for_each one
}

@test "a full device exits 4, for -h and --version too" {
	one() {
		local rc=0 option
		for option in -h --version; do
			rc=0
			"$1" $option >/dev/full 2>err </dev/null || rc=$?
			[ "$rc" -eq 4 ] && [ -s err ] || return 1
		done
	}
	for_each one
}

@test "the filters tell an empty pipe as such, and exit 3" {
	one() {
		local rc=0
		case ${1##*/} in
		hps-plan | hps-provision) ;;
		*) return 0 ;;
		esac
		"$1" >out 2>err </dev/null || rc=$?
		[ "$rc" -eq 3 ] && [ ! -s out ] && grep -q '^hint: did the command before it' err
	}
	for_each one
}

@test "closed standard files are not taken by others" {
	cd "$BATS_TEST_TMPDIR"
	hps-data gen -n 5 -o rows.tsv <&- 2>&-
	[ "$(wc -l <rows.tsv)" = 5 ]
	for command in "$HPS_BIN"/hps-*; do
		rc=0
		"$command" --version >&- 2>err || rc=$?
		[ $rc = 4 ]
		grep -q "standard output" err
	done
	# messages of a server without a standard error must not land in what it opens
	"${HPS_TESTS:-$HPS_BIN/../tests}/cluster/make_job" \
		"$HPS_ROOT/testdata/models/narrow/ctrdnn.json" "$BATS_TEST_TMPDIR/s" 1 1 1 24 bsp ps one >job.json
	rc=0
	hps-serve --timeout 0.2 --state state job.json <&- >&- 2>&- || rc=$?
	[ $rc = 5 ]
	grep -Eqx '[0-9]+' state/here/lock
	[ "$(wc -l <state/here/lock)" = 1 ]
}

@test "matrices are multiplied in one thread, and only where there is room" {
	model="$HPS_ROOT/testdata/models/narrow/ctrdnn.json"
	case $HPS_BIN in *build-*) skip "a sanitizer takes more than any limit" ;; esac
	for kib in 150000 250000; do
		rc=0
		(ulimit -v $kib; exec timeout -k 2 30 hps-profile -q --quick "$model" 2>err >out) || rc=$?
		[ $rc = 0 ] || [ $rc = 6 ]
		[ $rc = 0 ] || grep -Eq "needs 128 MiB|memory" err
	done
	(ulimit -v 100000; hps-plan --version)
	# nothing of it is there before it is needed
	! ldd "$HPS_BIN/hps-work" | grep -q openblas
}
