#!/usr/bin/env bats
# hps-plan on long work: what it tells on a terminal, and what an interrupt leaves.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$HPS_ROOT/testdata/profiles
}

teardown() {
	[ -z "${pid:-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

# hard: a job whose proof is far beyond any test: 40 layers on 24 types of one unit each, so that
# every subset of types counts.
hard() {
	jq -n '
		def draw($i): (($i * 7919 + 104729) * 31 % 1009) / 1009;
		40 as $L | 24 as $T |
		{ hps: 1,
		  cluster: { network: { bandwidth: 1e9, latency: 0 }, types: [range($T) as $t |
			{ name: "t\($t)", price: (0.5 + 4 * draw($t)), limit: 1 }] },
		  profile: { digest: "0000000000000000", batch: 100,
			layers: [range($L) as $l | { name: "l\($l)", param_bytes: 4e6, output_bytes: 4e3,
				cut_forward_bytes: (if $l == $L - 1 then 0 else 4e3 * (1 + draw($l + 50)) end),
				cut_backward_bytes: (if $l == $L - 1 then 0 else 4e3 end) }],
			types: [range($T) as $t | { name: "t\($t)", layers: [range($L) as $l |
				{ oct: (0.01 * (0.2 + draw($t * 37 + $l * 11)) / (0.5 + 4 * draw($t))),
				  alpha: 0.9 }] }] } }' >hard.json
}

# interrupted LINE ARG...: start hps-plan -v ARG..., interrupt it once LINE, a pattern, is told, and wait
# for its end: rc, and the document in out.json.
interrupted() {
	local line=$1 told
	shift
	rm -f told
	mkfifo told
	hps-plan -v "$@" >out.json 2>told 3>&- &
	pid=$!
	exec 4<told
	while read -r told <&4; do
		case $told in *$line*) break ;; esac
	done
	kill -INT "$pid"
	cat <&4 >rest
	exec 4<&-
	rc=0
	wait "$pid" || rc=$?
	pid=
}

@test "interrupt: the best plan so far, marked, exit 0" {
	hard
	for method in rl rl+polish rl-rnn exact auto anneal genetic bayes random; do
		echo "$method"
		interrupted "best *evaluations" -m "$method" --budget 1000000s --form paper -t 1000 hard.json
		[ "$rc" -eq 0 ]
		jq -e --arg m "$method" '.plan.interrupted and (.plan.proven | not) and .plan.method == $m and
			.plan.evaluations > 1 and .plan.bound <= .plan.cost_per_sample' out.json
		[ "$(jq -S 'del(.plan)' out.json)" = "$(jq -S . hard.json)" ]
	done
	# Pictures are drawn all the same, with as much of the frontier as there is.
	interrupted "best *evaluations" -m anneal --budget 1000000s --form paper -t 1000 --plot cut.svg \
		--explain hard.json
	[ "$rc" -eq 0 ]
	grep -q "(interrupted)</text>" cut.svg
	grep -q "layers elsewhere" rest
	# What was written is a plan like any other: it costs what it says.
	jq -r '[.plan.stages[] | "\(.type)*\(.units)@\(.first)-\(.last)"] | join("|")' out.json >stages
	hps-plan -q --form paper -t 1000 -m "fixed:$(cat stages)" hard.json >again.json
	jq -e --slurpfile a again.json '(.plan.cost_per_sample / $a[0].plan.cost_per_sample - 1) as $off |
		$off < 1e-9 and $off > -1e-9' out.json
}

@test "interrupt: reports end early too, and say so" {
	hard
	interrupted "best *evaluations" --compare anneal,random --budget 1000000s --form paper hard.json
	[ "$rc" -eq 0 ]
	jq -e 'length == 4 and all(.plan.interrupted)' out.json
	interrupted "best *evaluations" -m anneal --pareto 5 --budget 1000000s --form paper hard.json
	[ "$rc" -eq 0 ]
	grep -q "interrupted: the frontier ends early" rest
	jq -e 'length == 1 and .[0].interrupted' out.json
}

# early ARG...: interrupt hps-plan while it waits for its input.
early() {
	rm -f job
	mkfifo job
	hps-plan -q "$@" job >out.json 2>rest 3>&- &
	pid=$!
	exec 4>job
	kill -INT "$pid"
	cat hard.json >&4
	exec 4>&-
	rc=0
	wait "$pid" || rc=$?
	pid=
}

@test "interrupt: before the search began" {
	hard
	for method in rl exact anneal; do
		early -m "$method" --form paper
		[ "$rc" -eq 0 ]
		jq -e '.plan.interrupted and (.plan.stages | length) > 0' out.json
		# The plan that it has by then may be too slow: then there is none, and why.
		early -m "$method" --form paper -t 2000
		[ "$rc" -eq 1 ]
		[ ! -s out.json ]
		grep -q "below the floor of 2000" rest
		grep -q "hint: it was interrupted before a plan was found" rest
	done
}

# on_terminal ARG...: what hps-plan tells on a terminal.
on_terminal() {
	command -v script >/dev/null || skip "no script(1)"
	script -qec "hps-plan $* >out.json" /dev/null </dev/null >screen
	jq -e .plan.stages out.json
}

@test "progress on a terminal, and none elsewhere or with -q" {
	on_terminal -m anneal --budget 300000 "$P/two-types.json"
	grep -q "planning \[=* *\]  *[0-9]*%.*best [0-9]" screen
	on_terminal -q -m anneal --budget 3000 "$P/two-types.json"
	[ ! -s screen ]
	hps-plan -m anneal --budget 3000 "$P/two-types.json" 2>told >out.json
	[ ! -s told ]
}
