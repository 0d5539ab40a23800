#!/usr/bin/env bats
# Commands, headers and man pages say the same, and the examples in the pages run.
#
# Convention for examples: in the EXAMPLES section of man/hps-*.1, a line of a display
# (.Dl, or .Bd -literal) that begins with "$ " is run, in the order of the page, all in one
# shell with -e and pipefail, with the commands and scripts/ in PATH. "> " continues the line
# before. A line with another prompt ("host1$ ") is only shown: what starts a daemon, or needs
# another host. The directory holds a link to testdata/, a copy of every file of
# testdata/{models,clusters,profiles,examples} (of equal names the first), and a small train.tsv
# and test.tsv. Each example should take a second or two.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# A pretended repository with one command hps-x, its page, and the real hps(7) and headers.
pretend() {
	mkdir -p root/scripts root/man root/lib root/bin
	cp "$HPS_ROOT/scripts/check-docs" root/scripts/
	cp -r "$HPS_ROOT/lib/base" "$HPS_ROOT/lib/job" root/lib/
	cp "$HPS_ROOT/man/hps.7" root/man/
	cat >root/bin/hps-x <<-'END'
		#!/bin/sh
		cat <<'HELP'
		usage: hps-x [-hqv] [-m METHOD] [--limit TYPE=N]...
		             [JOB]

		Try it.

		options:
		  -m, --method METHOD       how
		      --limit TYPE=N        units
		  -h, --help                show this help
		HELP
	END
	chmod +x root/bin/hps-x
	cat >root/man/hps-x.1 <<-'END'
		.Dd November 29, 2026
		.Dt HPS-X 1
		.Os hps
		.Sh NAME
		.Nm hps-x
		.Nd try it
		.Sh SYNOPSIS
		.Nm
		.Op Fl hqv
		.Op Fl m Ar METHOD
		.Oo Fl \-limit Ar TYPE=N Oc Ns ...
		.Op Ar JOB
		.Sh DESCRIPTION
		.Bl -tag -width Ds
		.It Fl m , Fl \-method Ar METHOD
		How.
		.It Fl \-limit Ar TYPE=N
		Units.
		.It Fl h , Fl \-help
		Help.
		.El
		.Sh EXIT STATUS
		0
		.Sh EXAMPLES
		Look, then count:
		.Dl $ echo one >file
		.Dl host1$ not run
		.Bd -literal -offset indent
		$ cat file |
		> wc -l
		1
		host1$ not run |
		> either
		.Ed
		.Sh SEE ALSO
		.Xr hps 7
	END
}

check() {
	HPS_BIN=$BATS_TEST_TMPDIR/root/bin run root/scripts/check-docs "$@"
}

@test "every command agrees with its page, hps(7) with the headers" {
	[ "$(commands | wc -l)" -gt 0 ]
	run check-docs
	status_is 0
	output_is ""
}

@test "a command that agrees with its page passes" {
	pretend
	check
	status_is 0
	output_is ""
}

@test "a command without a page fails" {
	pretend
	rm root/man/hps-x.1
	check
	status_is 1
	output_is "hps-x: no page man/hps-x.1"
}

@test "a SYNOPSIS that differs fails" {
	pretend
	sed -i '/^\.Op Fl m/d' root/man/hps-x.1
	check
	status_is 1
	output_has "SYNOPSIS: hps-x [-hqv] [--limit TYPE=N]... [JOB]"
}

@test "an option that the page lacks, or has alone, or spells otherwise, fails" {
	pretend
	sed -i '/^\.It Fl h/d' root/man/hps-x.1
	check
	status_is 1
	output_has "< -h, --help"
	pretend
	sed -i 's/^\.It Fl h .*/&\n.It Fl \\-old/' root/man/hps-x.1
	check
	status_is 1
	output_has "> --old"
	pretend
	sed -i 's/^\(\.It .*\) Ar METHOD/\1 Ar NAME/' root/man/hps-x.1
	check
	status_is 1
	output_has "> -m, --method NAME"
}

@test "a section that is missing fails" {
	pretend
	sed -i '/^\.Sh EXIT STATUS/d' root/man/hps-x.1
	check
	status_is 1
	output_is "hps-x: man/hps-x.1 has no section EXIT STATUS"
}

@test "an exit status that hps(7) lacks or words otherwise fails" {
	pretend
	sed -i '/^\.It 7$/,+1d' root/man/hps.7
	check
	status_is 1
	output_has "< 7 a backend or device"
	pretend
	sed -i 's|^the network or a peer$|the net|' root/man/hps.7
	check
	status_is 1
	output_has "> 5 the net"
}

@test "a member of the job document that hps(7) does not name fails" {
	pretend
	echo '/* hps_get_u32(at, "thingummy" */' >>root/lib/job/model.c
	check
	status_is 1
	output_is 'hps(7): member "thingummy" is not described'
}

@test "examples are taken from the page, and those only" {
	pretend
	check --examples hps-x
	status_is 0
	output_is "echo one >file
cat file |
wc -l"
}

# What an example finds around it.
furnish() {
	local dir f
	ln -s "$HPS_ROOT/testdata" testdata
	for dir in models clusters profiles examples; do
		for f in "$HPS_ROOT/testdata/$dir"/*; do
			if [ -f "$f" ] && [ ! -e "${f##*/}" ]; then
				cp "$f" . # no link: an example may write to it
			fi
		done
	done
	if [ -x "$HPS_BIN/hps-data" ]; then
		[ -e train.tsv ] || hps-data gen --rows 2000 --seed 1 -o train.tsv
		[ -e test.tsv ] || hps-data gen --rows 500 --seed 2 -o test.tsv
	fi
}

@test "the pages' examples run" {
	local page name failed="" n=0
	for page in "$HPS_ROOT"/man/hps-*.1; do
		name=$(basename "$page" .1)
		mkdir "$name"
		(cd "$name" && furnish)
		check-docs --examples "$name" >"$name.sh"
		[ -s "$name.sh" ] || continue
		n=$((n + 1))
		if ! (cd "$name" && timeout $((${HPS_TEST_TIMEOUT:-280} / 2)) bash -e -o pipefail "../$name.sh") >"$name.log" 2>&1 </dev/null; then
			echo "the examples of $name fail:"
			cat "$name.sh" "$name.log"
			failed="$failed $name"
		fi
	done
	[ "$n" -gt 0 ] || skip "no page has examples to run"
	[ -z "$failed" ]
}
