#!/usr/bin/env bats
# hps-plan as a filter: what it reads, writes, and says where there is no plan.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$HPS_ROOT/testdata/profiles
}

# Under a sanitizer learning is some twenty times slower: there a tenth of its budget must do.
case $HPS_BIN in
*-address* | *-thread*) hps-plan() { command hps-plan --budget 3000 "$@"; } ;;
esac

# plan JQ ARG...: a member of the plan that hps-plan makes of the arguments.
plan() {
	local what=$1
	shift
	hps-plan -q "$@" | jq -c "$what"
}

# edited FILTER FILE: the file through jq, into edited.json.
edited() {
	jq "$1" "$2" >edited.json
}

# refused STATUS TEXT ARG...: exit status, the text on standard error, nothing on standard output.
refused() {
	rejected "$1" "$2" hps-plan "${@:3}"
}

bats_require_minimum_version 1.5.0

@test "writes the plan into the document and keeps the rest" {
	edited '.mine = {"a": [1, 2.5, "x"]}' "$P/ctrdnn-here.json"
	hps-plan edited.json >out.json
	jq -e '.mine == {"a": [1, 2.5, "x"]} and .model.name == "ctrdnn" and .plan.method == "rl"
		and .plan.proven and .plan.gap == 0 and .plan.simulated == false' out.json
	jq -e '[.plan.stages[] | .units] | add <= 2' out.json
	[ "$(jq -S 'del(.plan)' out.json)" = "$(hps-plan <edited.json | jq -S 'del(.plan)')" ]
	# A new plan drops the deployment of the old one, and takes the old plan's place.
	hps-provision out.json | hps-plan -m all:cpu >again.json
	jq -e '.deployment == null and .plan.method == "all:cpu"' again.json
}

@test "the same bytes for the same input, through JSON and msgpack" {
	hps-plan -q -t 300000 "$P/two-types.json" >a.json
	hps-plan -q -t 300000 "$P/two-types.json" >b.json
	cmp a.json b.json
	hps-plan -q --msgpack -t 300000 "$P/two-types.json" >a.msgpack
	[ "$(hps-plan -q -t 300000 a.msgpack | jq -S .)" = "$(jq -S . a.json)" ]
	hps-plan -q --msgpack -t 300000 a.json | cmp - a.msgpack
}

@test "methods and words that do not exist are named with those that do" {
	refused 2 'unknown method "magic"; methods are rl, ' -m magic "$P/two-types.json"
	refused 2 "heuristic, all:TYPE, fixed:TYPE*N" -m all "$P/two-types.json"
	refused 2 'no type "gpu"; the cluster has cpu, v100' -m all:gpu "$P/two-types.json"
	refused 2 'unknown objective "speed", expected one of cost_per_sample' \
		--objective speed "$P/two-types.json"
	refused 2 'unknown form "x"' --form x "$P/two-types.json"
	refused 2 'unknown evaluator "x"' --evaluator x "$P/two-types.json"
	refused 2 'expected a budget' --budget many "$P/two-types.json"
	refused 2 'expected a budget' --budget 0 "$P/two-types.json"
}

@test "a floor is a number above 0" {
	for floor in 0 -1 inf nan x ''; do
		refused 2 "" -t "$floor" "$P/two-types.json"
	done
}

@test "fixed: places stages, and chooses cuts that are left open" {
	[ "$(plan '.plan.stages' -m 'fixed:cpu*1@0-2|cpu*1@3-' "$P/ctrdnn-here.json")" = \
		'[{"first":0,"last":2,"type":"cpu","units":1},{"first":3,"last":5,"type":"cpu","units":1}]' ]
	[ "$(plan '[.plan.stages[] | [.first, .last]]' -m 'fixed:cpu*1|cpu*1' "$P/ctrdnn-here.json")" = \
		'[[0,3],[4,5]]' ]
	[ "$(plan '.plan.method' -m 'fixed:cpu*1|cpu*1' "$P/ctrdnn-here.json")" = '"fixed:cpu*1|cpu*1"' ]
	refused 2 "fixed:" -m 'fixed:cpu*1@0-2|cpu*1@4-' "$P/ctrdnn-here.json"
	refused 2 "fixed:" -m 'fixed:cpu*1||cpu*1' "$P/ctrdnn-here.json"
	refused 1 '3 units of type "cpu", the limit is 2' -m 'fixed:cpu*3' "$P/ctrdnn-here.json"
}

@test "no plan: which layer or stage, by how much, and the best there is" {
	refused 1 'no plan reaches 1e+06 samples/s: layer 3 "fc2" alone takes' -t 1e6 "$P/ctrdnn-here.json"
	output_has "the best throughput there is is 55454.4 samples/s"
	refused 1 "stage 0 (layers 0-5 on \"cpu\", 2 of 2 units) is bound by compute" \
		-m all:cpu -t 70000 --evaluator rate <(jq 'del(.cluster.hosts)' "$P/ctrdnn-here.json")
	refused 1 "all work shares 2 cores" -t 60000 "$P/ctrdnn-here.json"
	# And it does reach what it says.
	hps-plan -t 55454 "$P/ctrdnn-here.json" >out.json
	jq -e '.plan.throughput_samples_per_s >= 55454 and .plan.floor_samples_per_s == 55454' out.json
}

@test "the cheapest plan may be faster than asked" {
	[ "$(plan '.plan.throughput_samples_per_s > 225000' -t 50000 "$P/two-types.json")" = true ]
	[ "$(plan '.plan.throughput_samples_per_s < 62000' -t 50000 --objective price \
		"$P/two-types.json")" = true ]
}

@test "merge keeps neighbours apart" {
	plan '[.plan.stages[].type]' --form paper -t 51.2 --merge "$P/opt350.json" >types
	jq -e 'length > 1 and ([.[:-1], .[1:]] | transpose | all(.[0] != .[1]))' types
}

@test "what is planned with declared types says so" {
	[ "$(plan '.plan.simulated' "$P/two-types.json")" = false ]
	[ "$(plan '.plan.simulated' -m all:v100 "$P/two-types.json")" = true ]
}

@test "evaluator step is never faster, and rate's bound is its bound" {
	rate=$(plan .plan.cost_per_sample "$P/ctrdnn-here.json")
	hps-plan --evaluator step "$P/ctrdnn-here.json" >step.json
	jq -e --argjson rate "$rate" '.plan.evaluator == "step" and .plan.bound <= $rate * 1.000001 and
		.plan.cost_per_sample >= $rate and (.plan.proven | not) and .plan.gap > 0' step.json
}

@test "text: a table, and why" {
	run hps-plan --text --explain -t 300000 "$P/two-types.json"
	status_is 0
	output_has "throughput   319829 samples/s (floor 300000)"
	output_has "proven optimal"
	output_has "compute binds"
	output_has "floor binds: with one unit less 297297 samples/s are 0.901 % below it"
	output_has "one unit less: 297297 samples/s"
	output_has "(below the floor)"
	output_has "floor: 300000 costs 1.95 % more"
	output_has "2 fc1 on cpu: v100"
	run hps-plan --text --explain -t 1000 "$P/two-types.json"
	output_has "floor: 1000 does not bind, 225734 is cheaper"
	[[ $output != *"floor binds"* ]]
	# By the hour costs are by the hour; the last unit of a type is a limit.
	run hps-plan --text --explain -t 300000 --objective price --what-if cpu.limit=12 "$P/two-types.json"
	output_has "limit binds: all 12 units of cpu are in use"
	output_has "layers elsewhere (dollars per hour, units settled anew)"
	# With JSON on standard output, --explain goes to standard error.
	hps-plan --explain "$P/two-types.json" 2>why | jq -e .plan
	grep -q "stage 0: layers 0-5" why
}

@test "compare: methods side by side, with cuts and merged" {
	hps-plan -q --compare exact,anneal,all:cpu --budget 300 "$P/two-types.json" >list.json
	jq -e 'length == 6 and (map(.method) | unique) == ["all:cpu", "anneal", "exact"] and
		(map(.merge) | unique) == [false, true] and all(.plan.evaluations <= 300) and
		(.[0].plan.proven and .[0].plan.gap == 0)' list.json
	hps-plan -q --compare exact,anneal,all:cpu --budget 300 "$P/two-types.json" | cmp - list.json
	run hps-plan -q --compare exact,greedy --text "$P/two-types.json"
	status_is 0
	output_has "seconds  stages"
	[ "${#lines[@]}" -eq 5 ]
	output_has "bound"
	hps-plan -q --merge --compare exact,anneal --budget 300 "$P/two-types.json" |
		jq -e 'length == 2 and all(.merge)'
	refused 2 'unknown method "magic"' --compare exact,magic "$P/two-types.json"
	refused 2 "two reports" --compare all --pareto 3 "$P/two-types.json"
	refused 1 "no method finds a plan" --compare exact,greedy -t 1e12 "$P/two-types.json"
}

@test "policies: what was learned is kept, read, and used on another job" {
	hps-plan -t 2e5 --budget 4000 --save-policy my.policy "$P/two-types.json" >learned.json
	hps-plan -t 2e5 --budget 4000 "$P/two-types.json" | cmp - learned.json
	hps-plan -t 2e5 --budget 4000 --save-policy again.policy "$P/two-types.json" >/dev/null
	cmp my.policy again.policy
	# Its decision alone is one evaluation, on this job and on one with other types.
	hps-plan -t 2e5 --policy my.policy --rounds 0 "$P/two-types.json" >decided.json
	jq -e --slurpfile l learned.json '.plan.evaluations == 1 and .plan.method == "rl" and
		.plan.cost_per_sample <= 1.02 * $l[0].plan.cost_per_sample' decided.json
	hps-plan -t 2e4 --policy my.policy --rounds 0 "$P/ctrdnn-here.json" |
		jq -e '.plan.evaluations == 1 and .plan.throughput_samples_per_s >= 2e4'
	hps-plan --rounds 3 --policy my.policy --save-policy on.policy "$P/two-types.json" |
		jq -e '.plan.evaluations | . > 3 * 32 and . <= 3 * 32 + 4'
	! cmp -s my.policy on.policy || false
	hps-plan -m rl-rnn --budget 200 --save-policy rnn.policy "$P/two-types.json" >/dev/null
	refused 2 "the policy is of cell rnn, the method's is lstm" --policy rnn.policy "$P/two-types.json"
	refused 2 "one must be given" --rounds 0 "$P/two-types.json"
	refused 2 "not for exact" -m exact --policy my.policy "$P/two-types.json"
	refused 2 "one of -m rl, rl+polish and rl-rnn" -m auto --save-policy x "$P/two-types.json"
	refused 4 "none.policy" --policy none.policy "$P/two-types.json"
	head -c 100 my.policy >cut.policy
	refused 3 "cut.policy: a policy file cut short at 100 bytes" --policy cut.policy "$P/two-types.json"
	{ head -c 8 my.policy; printf '\2'; tail -c +10 my.policy; } >next.policy
	refused 3 "next.policy: a policy file of version 2, expected version 1" --policy next.policy "$P/two-types.json"
	refused 3 "not a policy file" --policy "$P/two-types.json" "$P/two-types.json"
	refused 4 "none/x" --budget 100 --save-policy none/x "$P/two-types.json"
}

@test "reward sim: what runs well, not what the formula likes" {
	local words=(-t 3e5 --simulate 'bsp,stragglers=0.1*3' --budget 400)
	hps-plan "${words[@]}" --reward sim "$P/two-types.json" >sim.json
	hps-plan "${words[@]}" --reward sim "$P/two-types.json" | cmp - sim.json
	hps-plan "${words[@]}" --reward formula "$P/two-types.json" >formula.json
	jq -e '.plan.throughput_samples_per_s >= 3e5 and .plan.bound <= .plan.cost_per_sample and
		(.simulation.throughput_samples_per_s / .plan.throughput_samples_per_s - 1 | fabs) < 1e-9' sim.json
	jq -e '.simulation.throughput_samples_per_s < 3e5' formula.json
	refused 2 'unknown reward "magic"' --reward magic "$P/two-types.json"
	refused 2 "exact goes by the formula" -m exact --reward sim "$P/two-types.json"
	refused 2 "go by the formula" --compare rl --reward sim "$P/two-types.json"
	refused 1 "where the reward is not the formula's" -t 1e6 --reward sim --budget 50 "$P/two-types.json"
}

@test "pareto: faster is dearer, and each plan can be had" {
	hps-plan -q --pareto 6 --text "$P/two-types.json" >frontier.tsv
	[ "$(head -1 frontier.tsv)" = "$(printf 'throughput\tcost\tbound\tgap\tplan')" ]
	awk -F'\t' 'NR > 1 { if ($1 <= t || $2 <= c || NF != 5) exit 1; t = $1; c = $2 }
		END { if (NR < 4) exit 1 }' frontier.tsv
	fixed=$(tail -1 frontier.tsv | cut -f5)
	[ "$(plan '.plan.throughput_samples_per_s | floor' -m "fixed:$fixed" "$P/two-types.json")" = \
		"$(tail -1 frontier.tsv | cut -f1 | cut -d. -f1)" ]
	hps-plan -q --pareto 3 "$P/two-types.json" | jq -e 'length <= 3 and all(.proven)'
	refused 2 "pareto" --pareto 0 "$P/two-types.json"
}

@test "what-if: another cluster, another plan" {
	hps-plan -t 300000 --what-if 'v100.price=0.01' "$P/two-types.json" >if.json 2>told
	jq -e '(.cluster.types[] | select(.name == "v100").price) == 0.01 and
		any(.plan.stages[]; .type == "v100")' if.json
	grep -q "what-if: .* -> .* dollars per million samples (-" told
	# The document is whole: what follows reads it.
	hps-plan -q -t 300000 if.json | jq -S .plan.stages >again
	jq -S .plan.stages if.json | cmp - again
	refused 2 'the cluster has no "tpu"; it has cpu, v100, network, ps, link, shard' \
		--what-if tpu.price=1 "$P/two-types.json"
	refused 2 "it has price, limit, memory, speed" --what-if v100.colour=1 "$P/two-types.json"
	refused 2 "v100.limit: expected an integer" --what-if v100.limit=0 "$P/two-types.json"
	refused 2 "expected NAME.FIELD=NUMBER" --what-if price=1 "$P/two-types.json"
	refused 2 "expected NAME.FIELD=NUMBER" --what-if v100.price "$P/two-types.json"
}

@test "what-if: hosts, and edits that something else overrides" {
	jq --slurpfile c "$HPS_ROOT/testdata/clusters/two-types.json" '.cluster = $c[0]' \
		"$P/two-types.json" >hosts.json
	refused 2 'has no "tpu"; it has cpu, v100, c0, c1, g0, network, ps, link, shard' \
		--what-if tpu.price=1 hosts.json
	refused 2 "c0.units.tpu: the cluster has no such type" --what-if c0.units.tpu=1 hosts.json
	refused 2 "it has memory, cores, ps_cores, units.TYPE" --what-if c0.price=1 hosts.json
	refused 2 "c0.cores: expected an integer" --what-if c0.cores=0 hosts.json
	hps-plan --what-if v100.limit=99,v100.bandwidth=1e6 hosts.json >same.json 2>told
	grep -q "hosts have 8 units of v100, more of its limit is not used (HOST.units.v100=N" told
	grep -q "the link of v100 is not used between hosts, the network is" told
	# What is reached changes the plan.
	hps-plan --what-if shard.rows_per_s=1e3,link.latency=1 hosts.json 2>told |
		jq -e '.profile.shard.rows_per_s == 1000 and (.profile.shard.measured | not) and
			.profile.link.latency == 1 and .plan.throughput_samples_per_s < 1e5'
	run ! grep "not used" told
	hps-plan -q --what-if c0.units.cpu=1,c1.units.cpu=0,c0.memory=1e9 hosts.json |
		jq -e '([.plan.stages[] | select(.type == "cpu") | .units] | add // 0) <= 1 and
			(.cluster.hosts[] | select(.name == "c0") | .memory == 1e9)'
}

@test "bad documents are named with their place" {
	edited '.profile.types[0].layers[1].forward.c1 = -1' "$P/two-types.json"
	refused 3 "edited.json: profile.types[0].layers[1].forward.c1" edited.json
	edited '.profile.types[0].layers[2].forward.c1 = 0 | .profile.types[0].layers[2].backward.c1 = 0 |
		.profile.types[0].layers[2].forward.c0 = 0 | .profile.types[0].layers[2].backward.c0 = 0' \
		"$P/ctrdnn-here.json"
	refused 3 'layer "fc1" on type "cpu": expected a time > 0' edited.json
	edited '.cluster.types += [{"name": "tpu", "price": 1}]' "$P/two-types.json"
	refused 3 'cluster.types[2]: type "tpu" of the cluster has no times in the profile' edited.json
	edited '.cluster.types[1].limit = 0' "$P/two-types.json"
	refused 3 "cluster.types[1].limit" edited.json
	edited '.profile.layers = [] | .profile.types[].layers = []' "$P/two-types.json"
	refused 3 "profile.layers" edited.json
	edited 'del(.profile)' "$P/two-types.json"
	refused 3 "hps-profile" edited.json
	sed 's/"batch": 1000/"batch": NaN/' "$P/two-types.json" >edited.json
	refused 3 "edited.json" edited.json
	refused 3 "batch" --batch 2 --micro-batches 3 "$P/two-types.json"
	refused 4 "nowhere.json" nowhere.json
	refused 3 "standard input" - </dev/null
}

@test "a full device is an error" {
	run --separate-stderr bash -c 'hps-plan "$0" >/dev/full' "$P/two-types.json"
	status_is 4
}

@test "keep: the plan that is there, as it is" {
	hps-plan -q -t 100000 -m 'fixed:cpu*2|v100*1' "$HPS_ROOT/testdata/profiles/two-types.json" >planned.json
	run --separate-stderr hps-plan -q -m keep --text --explain planned.json
	status_is 0
	output_has "floor 100000"
	output_has "method       fixed:cpu*2|v100*1"
	# what a search would never choose stays; the shards, too
	hps-plan -q --shards 5 -m 'fixed:v100*3' planned.json >odd.json
	run --separate-stderr hps-plan -q -m keep odd.json
	status_is 0
	[ "$(jq -c '.plan | [.stages, .ps_shards, .throughput_samples_per_s]' <<<"$output")" = \
		"$(jq -c '.plan | [.stages, .ps_shards, .throughput_samples_per_s]' odd.json)" ]
	run hps-plan -q -m keep "$HPS_ROOT/testdata/profiles/two-types.json"
	status_is 3
	output_has "has no plan to keep"
}

@test "explain: what the floor costs is not what the method costs" {
	run hps-plan -q -m all:v100 -t 100 --text --explain "$P/two-types.json"
	status_is 0
	output_has "floor: 100 does not bind, 225734 is cheaper"
	output_has "this plan costs "
	run hps-plan -q -m exact -t 3e5 --text --explain "$P/two-types.json"
	status_is 0
	exact=$(grep "^floor: 300000 costs" <<<"$output")
	! grep "this plan costs" <<<"$output" || false
	run hps-plan -q -m heuristic -t 3e5 --text --explain "$P/two-types.json"
	status_is 0
	output_has "$exact"
	output_has "this plan costs "
}

@test "text: names drive no terminal, prices of 0 are no nan" {
	jq '.cluster.types[].price = 0 | .cluster.ps_price = 0 | .model.layers[0].name = "e\u001b[31m"
		| .model.layers[1].inputs[0] = "e\u001b[31m" | .profile.layers[0].name = "e\u001b[31m"
		| .profile.types[].layers[0].name = "e\u001b[31m"' "$P/two-types.json" >odd.json
	run hps-plan -q -m heuristic -t 1000 --text --explain odd.json
	if [ "$status" -eq 3 ]; then # such a name is refused: as good
		output_has "odd.json"
		return
	fi
	status_is 0
	! grep -q $'\e' <<<"$output" || false
	! grep -Eq "nan|[-+ (]inf" <<<"$output"
}
