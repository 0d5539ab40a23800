#!/usr/bin/env bats
# hps-plan --simulate and --trace.

load helpers

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$HPS_ROOT/testdata/profiles/two-types.json
}

# simulated JQ WORDS ARG...: a member of the report on a plan.
simulated() {
	local what=$1 words=$2
	shift 2
	hps-plan -q --simulate "$words" "$@" "$P" | jq -c ".simulation | $what"
}

# refused TEXT ARG...: exit status 2, nothing on standard output.
refused() {
	local text=$1
	shift
	run --separate-stderr hps-plan "$@" "$P"
	output_is ""
	output=$stderr
	status_is 2
	output_has "$text"
}

@test "the report is a section of the document, the same for the same seed" {
	hps-plan -q -t 3e5 --simulate asp,jitter=0.3 "$P" >a.json
	hps-plan -q -t 3e5 --simulate asp,jitter=0.3 "$P" | cmp a.json -
	jq -e '.simulation | .sync == "asp" and .jitter == 0.3 and .steps == 20 and .warm_steps == 4
		and .throughput_samples_per_s > 0 and .seed == 1' a.json
	# Shares of the time of every stage add up.
	jq -e '[.simulation.stages[].time | add | . > 0.999999 and . < 1.000001] | all' a.json
	[ "$(hps-plan -q -t 3e5 --simulate asp,jitter=0.3 --seed 2 "$P" | jq .simulation)" != \
		"$(jq .simulation a.json)" ]
	# A plan that is made anew drops it; the rest of the pipe does not mind it.
	hps-plan -q a.json | jq -e '.simulation == null'
	hps-provision -q a.json | jq -e '.deployment.batch'
}

@test "a straggler stops bsp, and costs asp its share" {
	bsp=$(simulated .throughput_samples_per_s bsp -m 'fixed:cpu*4')
	slow=$(simulated .throughput_samples_per_s 'bsp,stragglers=0.25*10' -m 'fixed:cpu*4')
	asp=$(simulated .throughput_samples_per_s 'asp,steps=200' -m 'fixed:cpu*4')
	less=$(simulated .throughput_samples_per_s 'asp,steps=200,stragglers=0.25*10' -m 'fixed:cpu*4')
	# One of four is ten times as slow: 0.775 of the speed is left.
	jq -en "$slow < 0.3 * $bsp and $less > 0.7 * $asp and $less < 0.85 * $asp"
	[ "$(simulated '[.sync, .bound]' ssp:3 -m 'fixed:cpu*4')" = '["ssp",3]' ]
}

@test "the table tells the difference to the prediction and where time goes" {
	run hps-plan -q --text --simulate steps=5 "$P"
	status_is 0
	output_has "to the prediction; bsp, 5 steps"
	output_has "bubble"
}

@test "words that do not hold are named" {
	refused 'simulate: "foo": unknown word' --simulate foo
	refused 'simulate: "jitter=x": expected a number from 0 to 10' --simulate bsp,jitter=x
	refused 'simulate: "stragglers=0.5": expected SHARE*FACTOR' --simulate stragglers=0.5
	refused 'simulate: "stragglers=2*3": expected a number from 0 to 1' --simulate 'stragglers=2*3'
	refused 'simulate: "steps=0": expected an integer from 1' --simulate steps=0
	refused 'simulate: "ssp:-1": expected an integer from 0' --simulate ssp:-1
	refused 'simulate: "jitter=nan"' --simulate jitter=nan
	refused '--simulate and --trace run one plan' --simulate bsp --pareto 3
	refused '--simulate and --trace run one plan' --trace t.json --compare exact
	[ ! -e t.json ]
}

@test "the trace is what a browser opens" {
	hps-plan -q -m 'fixed:cpu*2|cpu*1' --trace trace.json "$P" >out.json
	jq -e '.simulation == null and .plan' out.json
	# Every slice has its row named; each of 4 steps has a forward of each micro-batch and stage.
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "thread_name") | [.pid, .tid]] as $rows
		| [.traceEvents[] | select(.ph == "X")]
		| length > 0 and all(.[]; .dur >= 0 and .ts >= 0 and ([.pid, .tid] as $r
			| any($rows[]; . == $r)))' trace.json
	n=$(jq '[.traceEvents[] | select(.name == "forward")] | length' trace.json)
	[ "$n" -gt 0 ] && [ $((n % 8)) -eq 0 ]
	# Slices of one row do not overlap.
	jq -e '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid]) | all(.[];
		sort_by(.ts) | . as $e | all(range(1; length);
			$e[.].ts >= $e[. - 1].ts + $e[. - 1].dur - 1e-3))' trace.json
	hps-plan -q -m 'fixed:cpu*2|cpu*1' --trace - "$P" | cmp trace.json -
	run hps-plan -q --trace - --text "$P"
	status_is 2
	run hps-plan -q --trace none/trace.json "$P"
	status_is 4
}
