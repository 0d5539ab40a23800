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
	rejected "$1" "$2" hps-provision "${@:3}"
}

# four: two.json with four units and four PS cores on two cores.
four() {
	jq '.cluster.types[0].limit = 8 | .cluster.hosts[0].units.cpu = 8 |
		.cluster.hosts[0].ps_cores = 4' "$P/ctrdnn-here.json"
}

@test "a deployment that the reader takes, with what the document had" {
	jq '.mine = 1' plan.json | hps-provision >job.json
	jq -e '.mine == 1 and .plan.method == "rl" and .deployment.digest == .plan.digest' job.json
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

@test "usage: what is used, needed and paid, in the document" {
	jq '.cluster.hosts[0].memory = 8e9' plan.json >roomy.json
	hps-provision --samples 1e6 --epochs 2 roomy.json >job.json
	jq -e '.deployment as $d | $d.usage | .method == "exact" and .samples == 2e6 and
		(.dollars / (2e6 * .cost_per_sample) - 1 | fabs) < 1e-9 and
		(.hours * $d.price_per_hour / .dollars - 1 | fabs) < 1e-9 and
		(.hours * 3600 * $d.predicted_samples_per_s / 2e6 - 1 | fabs) < 1e-9 and
		.types[0].name == "cpu" and .types[0].units == 2 and
		.utilisation > 0 and .utilisation <= 1 and (.stages | length) == 1 and
		.hosts[0].name == "localhost" and .hosts[0].replicas == 2 and .hosts[0].shards == 1 and
		.hosts[0].needs_bytes > 1e8 and .hosts[0].has_bytes == 8e9' job.json
	hps-provision plan.json | jq -e '.deployment.usage | .samples == 0 and .hours == 0 and .dollars == 0'
	# It is read with care, too.
	jq '.deployment.usage.hosts[0].shards = -1' job.json >bad.json
	run hps-provision --watch bad.json </dev/null
	status_is 3
	output_has "deployment.usage.hosts[0].shards"
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

# gpu: embedding on CPUs, the rest on GPUs; no hosts.
gpu() {
	hps-plan -q -m heuristic -t 600000 "$P/two-types.json"
}

@test "simulate: a day of changing load, exact against its rivals, the same each time" {
	gpu >gpu.json
	hps-provision --simulate "$HPS_ROOT/testdata/loads/day.jsonl" --cpus-per-gpu 12 --ps-per-unit 1 \
		gpu.json >a.json
	jq -e '(.policies | map(.policy)) == ["exact", "newton", "staratio", "stapsratio", "peak"] and
		.load.points == 96 and .load.seconds == 86400 and .settings.cpus_per_gpu == 12' a.json
	# Nothing that meets the load is cheaper than exact, changes left out.
	jq -e '.policies[0].dollars as $e | all(.policies[]; .unmet_s == 0 and .dollars >= $e * 0.999)' a.json
	jq -e '.policies[2].cost_over > 1.1 and .policies[2].utilisation_over > 1.1 and
		.policies[4].cost_over > 1.5' a.json
	hps-provision --simulate - --cpus-per-gpu 12 --ps-per-unit 1 gpu.json \
		<"$HPS_ROOT/testdata/loads/day.jsonl" | cmp - a.json
	run hps-provision --simulate "$HPS_ROOT/testdata/loads/day.jsonl" --text gpu.json
	status_is 0
	output_has "exact/this"
	output_has "609060 at the peak"
}

@test "simulate: a load out of reach exits 1 and says from when, and what is the best" {
	gpu >gpu.json
	printf '{"time_s": %d, "target_samples_per_s": %d}\n' 0 100000 600 9000000 1200 5 >load
	run --separate-stderr hps-provision --simulate load gpu.json
	status_is 1
	jq -e '.policies[0] | .unmet_s == 600 and .unmet_from_s == 600 and .best_samples_per_s > 6e5' <<<"$output"
	output=$stderr
	output_has "load: from 600 s on the load is out of reach: 703351 samples/s are the best there is"
}

@test "simulate: by step, too, no static ratio is cheaper" {
	hps-plan -q -m heuristic -t 300000 --evaluator step "$P/two-types.json" >step.json
	printf '{"time_s": %d, "target_samples_per_s": %d}\n' 0 150000 3600 250000 7200 330000 >load
	hps-provision --simulate load step.json >a.json
	jq -e '.policies[0].dollars as $e | .policies[0].unmet_s == 0 and
		all(.policies[]; .unmet_s > 0 or .dollars >= $e * 0.999)' a.json
}

@test "bad loads are named by line" {
	good='{"time_s": 0, "target_samples_per_s": 1}'
	: >empty
	refused 3 "empty: no load in it" --simulate empty plan.json
	printf '%s\n{"time_s": 1, "target_samples_per_s": -4}\n' "$good" >load
	refused 3 "load: line 2: target_samples_per_s: expected a number >= 0" --simulate load plan.json
	printf '%s\n{"time_s": 1, "target_samples_per_s": NaN}\n' "$good" >load
	refused 3 "load: line 2" --simulate load plan.json
	printf '%s\n%s\n' "$good" "$good" >load
	refused 3 "load: line 2: expected a time above 0" --simulate load plan.json
	head -c 3000 "$HPS_BIN/hps-provision" >load
	refused 3 "load: line 1: expected a JSON object" --simulate load plan.json
	refused 3 "load: line 1: expected a JSON object" --watch --load load plan.json
	head -c 200000 /dev/zero | tr '\0' ' ' >load
	refused 3 "load: line 1: a line of more than 65536 bytes" --simulate load plan.json
	refused 4 "nowhere" --simulate nowhere plan.json
	refused 2 "the job must be a file" --simulate - - <plan.json
	refused 2 "the job must be a file" --watch <plan.json
	refused 2 "exclude each other" --watch --simulate load plan.json
	refused 2 "--load goes with --watch" --load load plan.json
	refused 2 "not -t" --watch -t 5 plan.json
	refused 2 "JSON lines and nothing else" --watch --text plan.json
	refused 2 "keep does not follow a load" --watch -m keep plan.json
}

@test "watch: each deployment that is needed or cheaper, until the end" {
	cat >events <<-'END'
		{"event": "load", "time_s": 0, "target_samples_per_s": 20000}
		{"event": "step", "epoch": 1, "step": 3, "samples_per_s": 31000}
		{"event": "load", "time_s": 100, "target_samples_per_s": 50000}
		{"event": "load", "time_s": 200, "target_samples_per_s": 20000}
		{"event": "load", "time_s": 90000, "target_samples_per_s": 20000}
	END
	hps-provision --watch --job w plan.json <events >out
	# Two cores instead of one cost 0.04 more an hour: 60 s at 0.08 are lost in 120 s.
	[ "$(jq -sc 'map([.event, .time_s, .reason])' out)" = \
		'[["deployment",0,"start"],["deployment",100,"needed"],["deployment",320,"cheaper"],["done",90000,null]]' ]
	# A printed deployment is one: put it into the job.
	jq -s '.[1].deployment' out >deployment
	jq --slurpfile d deployment '.deployment = $d[0]' plan.json >job.json
	[ "$(jq -c '[.deployment.job, (.deployment.stages[0].replicas | length)]' job.json)" = '["w-2",2]' ]
	hps-provision job.json >/dev/null
	# What runs by the job's deployment needs no start.
	sed 1q events | hps-provision --watch job.json | jq -sc 'map(.event)' >b
	[ "$(cat b)" = '["done"]' ]
}

@test "watch: bad lines are passed over and told at the end, as is what is out of reach" {
	printf '%s\n' 'no json' '{"event": "load", "target_samples_per_s": 20000}' '{"event": "load"}' '{}' >events
	run --separate-stderr hps-provision --watch plan.json <events
	status_is 3
	[ "$(jq -sc 'map(.event)' <<<"$output")" = '["deployment","done"]' ]
	output=$stderr
	output_has "standard input: line 1: expected a JSON object"
	output_has "standard input: line 3: target_samples_per_s: missing: expected"
	output_has "3 of 4 lines were passed over"
	run --separate-stderr hps-provision --watch plan.json \
		<<<'{"event": "load", "time_s": 3, "target_samples_per_s": 900000}'
	status_is 1
	jq -se '.[0].reason == "best" and .[0].reached == false and .[1].reached == false' <<<"$output"
	output=$stderr
	output_has "from 3 s on a target was out of reach: "
	output_has " samples/s are the best there is"
	run hps-provision --watch plan.json </dev/null
	status_is 0
	run bash -c 'hps-provision -q --watch plan.json <events >/dev/full'
	status_is 4
}

@test "watch: a load from a file goes by in real time, and a signal ends the watch" {
	printf '{"time_s": %s, "target_samples_per_s": %d}\n' 0 20000 0.02 50000 >load
	echo '{"event": "end", "time_s": 0.04}' >>load
	mkfifo never
	exec 9<>never
	hps-provision --watch --load load plan.json <never >out
	[ "$(jq -sc 'map(.reason)' out)" = '["start","needed",null]' ]
	# SIGTERM: in order, with "done". Its first line says that it is up.
	mkfifo lines
	hps-provision --watch plan.json <never >lines 9>&- &
	pid=$!
	exec 8<lines
	echo '{"event": "load", "target_samples_per_s": 20000}' >&9
	read -r line <&8
	kill -TERM "$pid"
	wait "$pid"
	[ "$(jq -r .event <&8)" = done ]
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

@test "a floor that the deployment's steps miss is told" {
	jq '.cluster.hosts = [{ name: "a", address: "10.0.0.1", units: { cpu: 96, v100: 16 } }]' \
		"$HPS_ROOT/testdata/profiles/two-types.json" >hosts.json
	hps-plan -q -m exact -t 350000 hosts.json >rate.json
	run --separate-stderr hps-provision rate.json
	status_is 0
	grep -q "below the floor of 350000" <<<"$stderr"
	hps-plan -q -m exact --evaluator step -t 100000 hosts.json >step.json
	run --separate-stderr hps-provision step.json
	status_is 0
	! grep "below the floor" <<<"$stderr"
}
