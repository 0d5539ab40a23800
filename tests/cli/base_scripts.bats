#!/usr/bin/env bats
# The scripts that tests and builds stand on: a runner that let a failure pass would hide all
# the others.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir path
}

# program NAME: make standard input a program of that name.
program() {
	{
		echo '#!/bin/bash'
		cat
	} >"$1"
	chmod +x "$1"
}

# run_test FILE: under prove, as make check does.
run_test() {
	run prove --exec "$HPS_ROOT/scripts/run-test" "$1"
}

@test "run-test: the groups of a cmocka program become one plan" {
	program t <<-'END'
		[ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] || exit 1
		printf '1..2\nok 1 - a\nok 2 - b\n# ok - group\n1..1\nok 1 - c\n# ok - group\n'
	END
	run "$HPS_ROOT/scripts/run-test" ./t
	status_is 0
	output_is "ok 1 - a
ok 2 - b
ok 3 - c
1..3"
	run_test ./t
	status_is 0
	output_has 'Files=1, Tests=3'
}

@test "run-test: a failed test fails, and its details are shown" {
	program t <<-'END'
		printf '1..2\nok 1 - a\nnot ok 2 - b\n# 1 != 2\n# not ok - group\n'
		exit 1
	END
	run_test ./t
	status_is 1
	output_has './t: not ok - b'
	output_has '# 1 != 2'
	output_has 'Result: FAIL'
}

@test "run-test: a failed test fails though the program exits 0" {
	program t <<-'END'
		printf '1..1\nnot ok 1 - a\n'
	END
	run_test ./t
	status_is 1
}

@test "run-test: a skipped test of cmocka is no failure" {
	program t <<-'END'
		printf '1..2\nok 1 - a\nnot ok 2 # SKIP b\n'
	END
	run_test ./t
	status_is 0
	output_has 'All tests successful'
}

@test "run-test: a program that crashes fails, also after its last test" {
	program t <<-'END'
		printf '1..1\nok 1 - a\n'
		kill -SEGV $$
	END
	run_test ./t
	status_is 1
	output_has 'Result: FAIL'
}

@test "run-test: a program that ends early, or prints nothing, fails though it exits 0" {
	program t <<-'END'
		printf '1..3\nok 1 - a\n'
	END
	run_test ./t
	status_is 1
	output_has 'planned 3 tests, ran 1'
	program t <<-'END'
		exit 0
	END
	run_test ./t
	status_is 1
}

@test "run-test: a program that hangs is stopped and named" {
	program t <<-'END'
		printf '1..1\n'
		exec sleep 60
	END
	HPS_TEST_TIMEOUT=0.2 run_test ./t
	status_is 1
	output_has './t: stopped after 0.2 s'
}

@test "run-test: bats files run, their failures are shown" {
	echo '@test "good" { true; }' >good.bats
	run_test good.bats
	status_is 0
	output_has 'Tests=1'
	printf '@test "bad" {\n echo "the reason"\n false\n}\n' >bad.bats
	run_test bad.bats
	status_is 1
	output_has '# the reason'
}

# A pretended Debian: what is installed stands in the file `installed`, what apt has in `known`.
pretend_debian() {
	touch installed known
	program path/dpkg-query <<-END
		shift 3 # -W -f FORMAT
		for p; do grep -qx "\$p" $PWD/installed && echo "installed \$p"; done
	END
	program path/apt-get <<-END
		echo "apt-get \$*" >>$PWD/log
		case " \$* " in *" install "*) [ ! -e $PWD/broken ] || { echo "E: no such"; exit 100; } ;; esac
	END
	program path/apt-cache <<-END
		grep -qx "\$2" $PWD/known
	END
	program path/id <<-'END'
		echo 0
	END
	PATH=$PWD/path:$PATH
	unset HPS_NO_SETUP
}

build="gcc libc6-dev make libopenblas-dev libzmq3-dev libjansson-dev zlib1g-dev libzstd-dev"

@test "setup: nothing to do where all is there" {
	pretend_debian
	printf '%s\n' $build libmsgpack-dev >installed
	run "$HPS_ROOT/scripts/setup" build
	status_is 0
	output_is ""
	[ ! -e log ]
}

@test "setup: installs what is missing, and that alone" {
	pretend_debian
	printf '%s\n' $build libmsgpack-dev | grep -vx 'gcc\|libzstd-dev' >installed
	run "$HPS_ROOT/scripts/setup" build
	status_is 0
	output_is "setup: installing gcc libzstd-dev"
	grep -q ' update$' log
	grep -q ' install -y --no-install-recommends gcc libzstd-dev$' log
}

@test "setup: of alternatives, any that is installed will do, else the first that apt knows" {
	pretend_debian
	printf '%s\n' $build libmsgpack-c-dev >installed
	run "$HPS_ROOT/scripts/setup" build
	status_is 0
	[ ! -e log ]
	printf '%s\n' $build >installed
	echo libmsgpack-c-dev >known
	run "$HPS_ROOT/scripts/setup" build
	status_is 0
	grep -q ' install .* libmsgpack-c-dev$' log
}

@test "setup: a failure of apt is shown and fails" {
	pretend_debian
	touch broken
	run "$HPS_ROOT/scripts/setup" check
	status_is 1
	output_has 'E: no such'
	output_has 'setup: apt-get install'
}

@test "setup: neither root nor sudo: says what to install, and fails" {
	pretend_debian
	program path/id <<-'END'
		echo 1000
	END
	program path/sudo <<-'END'
		exit 1
	END
	printf '%s\n' $build >installed
	run "$HPS_ROOT/scripts/setup" build </dev/null
	status_is 1
	output_has 'apt-get install --no-install-recommends libmsgpack-dev'
	[ ! -e log ]
}

@test "setup: HPS_NO_SETUP=1 leaves the machine alone; an unknown step is refused" {
	pretend_debian
	HPS_NO_SETUP=1 run "$HPS_ROOT/scripts/setup" build check
	status_is 0
	output_is ""
	run "$HPS_ROOT/scripts/setup" nonsense
	status_is 2
	output_has 'unknown step nonsense'
}

bench="$HPS_ROOT/scripts/bench"

@test "bench: the lines whose name begins with the prefix, from the programs that may have them" {
	mkdir -p bench root/tests/bench
	program bench/bench_net <<-'END'
		echo '{"bench": "net.push", "value": 1}'
		echo '{"bench": "net.pull", "value": 2}'
		echo "$HPS_BENCH" >told
	END
	program bench/bench_netty <<-'END'
		echo '{"bench":"netty.x","value":3}'
	END
	program root/tests/bench/job.sh <<-'END'
		echo '{"bench": "job.rate", "value": 4}'
		exit 3
	END
	HPS_ROOT=root run "$bench" bench
	status_is 1
	output_has '"net.push"'
	output_has '"netty.x"'
	output_has '"job.rate"'
	output_has 'job.sh: exit status 3'
	HPS_ROOT=root run "$bench" bench net.pu
	status_is 0
	output_is '{"bench": "net.push", "value": 1}
{"bench": "net.pull", "value": 2}'
	[ "$(cat told)" = net.pu ]
	HPS_ROOT=root run "$bench" bench net.pul
	output_has '"net.pull"'
	[[ $output != *net.push* ]]
}
