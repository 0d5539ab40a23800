#!/usr/bin/env bats
# hps-provision as a filter: units, shards, hosts and addresses.

load helpers

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$HPS_ROOT/testdata/profiles
	hps-plan "$P/ctrdnn-here.json" >plan.json
	hps-plan -m 'fixed:cpu*1|cpu*1' "$P/ctrdnn-here.json" >two.json
}

refused() {
	local status_want=$1 text=$2
	shift 2
	run --separate-stderr hps-provision "$@"
	output_is ""
	output=$stderr
	status_is "$status_want"
	output_has "$text"
}

# four: two.json with four units and four PS cores on two cores.
four() {
	jq '.cluster.types[0].limit = 8 | .cluster.hosts[0].units.cpu = 8 |
		.cluster.hosts[0].ps_cores = 4' "$P/ctrdnn-here.json"
}

@test "a deployment that the reader takes, with what the document had" {
	jq '.mine = 1' plan.json | hps-provision >job.json
	jq -e '.mine == 1 and .plan.method == "exact" and .deployment.digest == .plan.digest' job.json
	jq -e '.deployment | .batch == 1000 and .micro_batches == 1 and .epochs == 1 and .sync == "bsp" and
		.seed == 1 and (.stages | length) == 1 and (.stages[0].replicas | length) == 2 and
		(.shards | length) == 1 and .price_per_hour == 0.12 and .simulated == false' job.json
	# Read again: a command checks every section.
	hps-plan job.json | hps-provision >/dev/null
}

@test "endpoints: ipc under one directory of the job, or counted ports" {
	hps-provision --job j1 --run-dir /run/j1 two.json >job.json
	[ "$(jq -c '[.deployment | .coordinator.endpoint, .shards[].endpoint,
		.stages[].replicas[].endpoint]' job.json)" = \
		'["ipc:///run/j1/c","ipc:///run/j1/s0","ipc:///run/j1/r0.0","ipc:///run/j1/r1.0"]' ]
	hps-provision --transport tcp --base-port 9000 two.json >job.json
	[ "$(jq -c '[.deployment | .coordinator.endpoint, .shards[].endpoint,
		.stages[].replicas[].endpoint]' job.json)" = \
		'["tcp://127.0.0.1:9000","tcp://127.0.0.1:9001","tcp://127.0.0.1:9002","tcp://127.0.0.1:9003"]' ]
	XDG_RUNTIME_DIR=/run/user/7 hps-provision two.json | jq -r .deployment.coordinator.endpoint >a
	grep -qE '^ipc:///run/user/7/hps-ctrdnn-[0-9a-f]{8}/c$' a
	env -u XDG_RUNTIME_DIR hps-provision two.json | jq -r .deployment.coordinator.endpoint >b
	grep -qE '^ipc:///tmp/hps-ctrdnn-[0-9a-f]{8}/c$' b
	for name in "" ../x a/b "a b" -x .x 'a$b' "$(printf 'é')" "$(printf %0129d 0)"; do
		refused 2 '--job' --job="$name" two.json
	done
	hps-provision --job "$(printf %0128d 0)" two.json | jq -e '.deployment.job | length == 128'
	refused 2 "longer than 107 bytes" --run-dir "/$(printf %0110d 0)" two.json
	refused 2 'unknown transport "udp"' --transport udp two.json
}

@test "the same bytes for a named job, through JSON and msgpack" {
	hps-provision --job j plan.json >a.json
	hps-provision --job j plan.json | cmp - a.json
	hps-provision --job j --msgpack plan.json >a.msgpack
	hps-plan --msgpack "$P/ctrdnn-here.json" | hps-provision --job j --msgpack | cmp - a.msgpack
}

@test "units given by hand are kept, others settled, for the plan's floor or another" {
	four | hps-plan -m 'fixed:cpu*3|cpu*1' | hps-provision | jq -c '[.deployment.stages[].replicas | length]' >a
	[ "$(cat a)" = "[3,1]" ]
	four | hps-plan -m 'fixed:cpu*3|cpu*1' | hps-provision -m exact |
		jq -c '[.deployment.stages[].replicas | length]' >b
	[ "$(cat b)" != "[3,1]" ]
	hps-plan -t 30000 --objective price "$P/ctrdnn-here.json" >floor.json
	[ "$(hps-provision floor.json | jq '[.deployment.stages[].replicas | length] | add')" = 1 ]
	[ "$(hps-provision -t 40000 floor.json | jq '[.deployment.stages[].replicas | length] | add')" = 2 ]
	refused 1 "below the floor of 90000" -t 90000 floor.json
	refused 2 'unknown method "magic"' -m magic plan.json
}

@test "methods: newton is as cheap as exact here and bounds it, ratios are kept" {
	hps-plan -q -m heuristic -t 300000 "$P/two-types.json" >gpu.json
	run hps-provision -q -m exact --text gpu.json
	status_is 0
	cost=$(grep '^cost' <<<"$output")
	run hps-provision -q -m newton --text gpu.json
	output_has "method       newton"
	output_has "gap"
	output_has "$cost"
	run hps-provision -q -m staratio --cpus-per-gpu 5 --text gpu.json
	status_is 0
	[ "$(awk '$1 == "cpu" || $1 == "v100" { print $1, $2 }' <<<"$output" | xargs)" = "cpu 5 v100 1" ]
	run hps-provision -q -m stapsratio --ps-per-unit 2 --text gpu.json
	status_is 0
	output_has "ps    -        shards           6"
	# A plan without GPUs has no such ratio.
	refused 1 "no stage on a GPU" -m staratio plan.json
	refused 2 "expected a number > 0" -m staratio --cpus-per-gpu 0 gpu.json
}

@test "shards, batch, epochs, sync, seed as asked for" {
	hps-provision --shards 2 --batch 500 --micro-batches 4 --epochs 3 --sync asp --seed 9 plan.json >job.json
	jq -e '.deployment | (.shards | length) == 2 and .batch == 500 and .micro_batches == 4 and
		.epochs == 3 and .sync == "asp" and .seed == 9' job.json
	refused 1 "3 parameter server shards" --shards 3 plan.json
	refused 2 'ssp:2 is not built yet; bsp and asp are' --sync ssp:2 plan.json
	refused 2 "expected an integer from 1 to 65536" --micro-batches 65537 plan.json
	refused 2 "expected an integer from 1 to 1000000" --epochs 1000001 plan.json
	hps-provision --dense-sync ps plan.json | jq -e '.deployment.stages[0].dense_sync == "ps"'
	hps-provision --dense-sync ring plan.json | jq -e '.deployment.stages[0].dense_sync == "ring"'
}

@test "asp implies the servers, a ring is refused with it" {
	# A stage without dense parameters too.
	hps-plan -m 'fixed:cpu*1@0-0|cpu*1@1-' "$P/ctrdnn-here.json" >cut.json
	for p in plan two cut; do
		for dense in auto ps; do
			hps-provision --sync asp --dense-sync $dense $p.json |
				jq -e '[.deployment.stages[].dense_sync == "ps"] | all'
		done
	done
	hps-provision --sync asp plan.json | jq -c .deployment.stages >asp
	refused 2 '"ring" needs bsp' --sync asp --dense-sync ring plan.json
	output_has "hint: use --dense-sync ps, or --sync bsp"
	# The model may say so too.
	jq '.model.train.sync = "asp"' plan.json >model.json
	hps-provision model.json | jq -c .deployment.stages | jq -e '.[0].dense_sync == "ps"'
	refused 2 '"ring" needs bsp' --dense-sync ring model.json
	hps-provision --sync bsp --dense-sync ring model.json | jq -e '.deployment.sync == "bsp"'
}

@test "hosts of one address get ports of their own, those that cannot meet are refused" {
	jq '.cluster.types[0].limit = 8 | .cluster.hosts =
		[{"name": "a", "units": {"cpu": 4}}, {"name": "b", "units": {"cpu": 4}}]' \
		"$P/ctrdnn-here.json" | hps-plan -m 'fixed:cpu*3|cpu*2' >pair.json
	hps-provision --shards 2 pair.json >job.json
	jq -e '[.deployment | .coordinator, .shards[], .stages[].replicas[] | .endpoint] |
		length == 8 and (unique | length == 8)' job.json
	[ "$(hps-work --hosts job.json | sort | xargs)" = "a b" ]
	refused 3 'hosts "a" and "b" are both at 127.0.0.1' --base-port 65530 pair.json
	jq '.cluster.hosts[1].address = "10.0.0.7"' pair.json >far.json
	refused 3 'host "a" is at 127.0.0.1, where host "b" (10.0.0.7) does not reach it' far.json
	output_has "hint:"
}

@test "the prediction counts filling and draining" {
	one=$(hps-provision --micro-batches 1 two.json | jq .deployment.predicted_samples_per_s)
	many=$(hps-provision --micro-batches 8 two.json | jq .deployment.predicted_samples_per_s)
	rate=$(jq .plan.throughput_samples_per_s two.json)
	jq -n --argjson one "$one" --argjson many "$many" --argjson rate "$rate" -e \
		'$one < 0.7 * $rate and $many > 1.3 * $one and $many < $rate'
}

@test "units that no host has: which type, how many are missing" {
	hps-plan -m all:v100 "$P/two-types.json" >gpu.json
	refused 1 "the cluster has no hosts" gpu.json
	jq '.cluster.hosts = [{"name": "c0", "units": {"cpu": 4}}]' gpu.json >host.json
	refused 1 'type "v100": the plan takes' host.json
	output_has "the hosts have 0"
	output_has "hint:"
	# On paper it can be seen.
	run hps-provision --text host.json
	status_is 0
	output_has "on paper"
	output_has "v100"
}

@test "text: what is used, needed and paid" {
	run hps-provision --text --samples 1e6 --epochs 2 plan.json
	status_is 0
	output_has "slack_us"
	output_has "all, by money"
	output_has "localhost               2       1"
	output_has "dollars per hour"
	output_has "for 2 epochs of 1000000 samples"
}

@test "a host with too little memory is told" {
	jq '.cluster.hosts[0].memory = 1e8' plan.json >small.json
	run --separate-stderr hps-provision small.json
	status_is 0
	output=$stderr
	output_has 'host "localhost" needs'
	run hps-provision -q --text small.json
	output_has "too little"
}

@test "bad documents are named with their place" {
	refused 3 "hps-plan" "$P/ctrdnn-here.json"
	jq '.plan.stages[0].last = 4' plan.json >bad.json
	refused 3 "plan.stages[0].last" bad.json
	jq '.plan.stages[0].type = "tpu"' plan.json >bad.json
	refused 3 "plan.stages[0].type" bad.json
	jq '.plan.digest = "1111111111111111"' plan.json >bad.json
	refused 3 "another model" bad.json
	refused 3 "standard input" </dev/null
	jq '.model.layers[2].units = 300' plan.json >bad.json
	refused 3 "" bad.json
}
