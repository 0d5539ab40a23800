#!/usr/bin/env bats
# hps-profile --import: what other tools measured, through the pipe; and what is refused.

load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	data=${HPS_DATA:-$HPS_ROOT/../shared/data}
	graph=$HPS_ROOT/testdata/examples/branches.graph.txt
	folders=$HPS_ROOT/testdata/examples/sailor
	two=$HPS_ROOT/testdata/clusters/two-types.json
	four=$HPS_ROOT/testdata/clusters/four-types.json
	cat >gpus.json <<-'END'
		{"types": [{"name": "A100-40", "device": "cuda", "price": 3.673385, "limit": 1664},
		           {"name": "V100-16", "device": "cuda", "price": 2.859998, "limit": 1664},
		           {"name": "GH-96", "device": "cuda", "price": 11.06, "limit": 1664}]}
	END
}

# refused STATUS TEXT ARG...: exit status, the text on standard error, nothing on standard output.
refused() {
	rejected "$1" "$2" hps-profile "${@:3}"
}

@test "a graph becomes a job without a model, that is planned and provisioned but not trained" {
	run --separate-stderr hps-profile -v --import pipedream "$graph" "$two"
	status_is 0
	[[ $stderr == *"6 layers; a batch is 8 samples"* ]]
	[[ $stderr == *'1 of 2 types measured, the first is "v100"; 1 input nodes dropped'* ]]
	echo "$output" >job.json
	jq -e '.model == null and .profile.source == "pipedream branches.graph.txt"
		and (.profile.types | map([.name, .simulated])) == [["cpu", true], ["v100", false]]
		and .profile.digest == "0000000000000000"' job.json
	hps-plan -m exact job.json | hps-provision -q >deployed.json
	jq -e '.plan.proven and .deployment.stages[-1].last == 5' deployed.json
	run hps-work deployed.json /dev/null
	status_is 3
	output_has "a job of a foreign profile"
	output_has "not trained"
	run hps-serve deployed.json
	status_is 3
	output_has "a job of a foreign profile"
	run hps-profile deployed.json
	status_is 3
	run hps-profile --merge deployed.json "$HPS_ROOT/testdata/models/narrow/ctrdnn.json"
	status_is 3
	output_has "another model"
}

@test "from standard input, of another type and batch, as a table" {
	hps-profile -q --type cpu --batch 4 --import pipedream - "$two" <"$graph" >job.json
	jq -e '.profile | .batch == 4 and .source == "pipedream standard input"
		and (.types | map(.simulated)) == [false, true]' job.json
	run hps-profile -q --text --import pipedream "$graph" - <"$two"
	status_is 0
	output_has "node10"
	output_has "cpu (declared, not measured)"
}

@test "folders of a sailor profile are the types" {
	hps-profile -q --import sailor "$folders/" "$four" >job.json
	jq -e '.profile | .source == "sailor sailor" and .batch == 8 and .batches == [1, 4, 8]
		and (.types | map(.simulated)) == [true, true, false, false]
		and ([.types[].layers[1].alpha] | map(. * 1000 | round)) == [900, 900, 900, 800]' job.json
	run hps-plan -m exact -t 2000 job.json
	status_is 0
}

@test "wrong use" {
	refused 2 'expected "pipedream" or "sailor", got "onnx"' --import onnx "$graph" "$two"
	refused 2 "needs a profile and CLUSTER" --import pipedream "$graph"
	refused 2 "only one of MODEL, CLUSTER" --import pipedream - -
	refused 2 "--quick: with --import nothing is timed" --quick --import pipedream "$graph" "$two"
	refused 2 "--merge: with --import" --merge x --import pipedream "$graph" "$two"
	refused 2 "--type: the folders" --type v100 --import sailor "$folders" "$four"
	refused 2 "--batch is for --import" --batch 4 "$HPS_ROOT/testdata/models/narrow/ctrdnn.json"
	refused 2 'no type "tpu"' --type tpu --import pipedream "$graph" "$two"
	refused 2 "the largest that was is 8" --batch 16 --import sailor "$folders" "$four"
	refused 7 'type "V100-16"' --import pipedream "$graph" gpus.json
	grep -v Linear "$graph" | grep -v node7 >nameless
	refused 2 "give it with --batch" --import pipedream nameless "$two"
}

@test "malformed input is named by file and line" {
	refused 3 "/dev/null: no layers" --import pipedream /dev/null "$two"
	sed '3s/forward_compute_time=[^,]*/forward_compute_time=nan/' "$graph" >nan
	refused 3 'nan:3: node "node6": forward_compute_time: expected' --import pipedream nan "$two"
	sed '2s/backward_compute_time=/&-/' "$graph" >negative
	refused 3 'negative:2: node "node7"' --import pipedream negative "$two"
	sed '4s/, parameter_size=.*//' "$graph" >short
	refused 3 'short:4: node "node5": expected parameter_size' --import pipedream short "$two"
	sed '$s/node7/node70/' "$graph" >dangling
	refused 3 'dangling:16: an edge of node "node70"' --import pipedream dangling "$two"
	sed '1p' "$graph" >twice
	refused 3 'twice:2: node "node10" is on line 1 already' --import pipedream twice "$two"
	printf '\tnode6 -- node3\n' | cat "$graph" - >cycle
	refused 3 "reads its own output: a cycle" --import pipedream cycle "$two"
	head -c 3000 "$HPS_BIN/hps-profile" >junk
	refused 3 "junk:1: " --import pipedream junk "$two"
	refused 4 "absent: " --import pipedream absent "$two"
	refused 4 "Is a directory" --import pipedream . "$two"
	refused 4 "absent" --import sailor absent "$four"
	refused 4 "Not a directory" --import sailor "$graph" "$four"
	mkdir -p empty sailor/v100 sailor/cpu
	refused 3 "empty: expected TYPE/profile.json" --import sailor empty "$four"
	cp "$folders/v100/profile.json" sailor/cpu/
	refused 3 "must have the name of a folder; there are " --import sailor sailor gpus.json
	rm -r sailor/cpu
	echo '{"1": {"1": {"0": [1, 2]}}}' >sailor/v100/profile.json
	refused 3 "sailor/v100/profile.json: 1.1.0: expected [forward_s" --import sailor sailor "$four"
	printf '{"1":\n {"1": [}' >sailor/v100/profile.json
	refused 3 "sailor/v100/profile.json: line 2" --import sailor sailor "$four"
	: >sailor/v100/profile.json
	refused 3 "sailor/v100/profile.json" --import sailor sailor "$four"
	mkdir sailor/k80 && mkdir sailor/k80/profile.json && rm -r sailor/v100
	refused 4 "sailor/k80/profile.json" --import sailor sailor "$four"
	run bash -c "hps-profile -q --import pipedream '$graph' '$two' >/dev/full"
	status_is 4
}

@test "every PipeDream graph there is imports and plans" {
	local f n=0
	for f in "$data"/pipedream-profiles/*.graph.txt; do
		[ -r "$f" ] || skip "no $f"
		hps-profile -q --import pipedream "$f" "$two" >job.json
		hps-plan -q -m exact --budget 5s job.json >plan.json
		jq -e '.plan.simulated and .plan.throughput_samples_per_s > 0' plan.json
		n=$((n + 1))
	done
	[ "$n" -gt 0 ]
	# Bytes of all parameters, as the source of the files says them, in MB.
	run jq '[.profile.layers[].param_bytes] | add / 1e5 | round / 10' \
		<(hps-profile -q --import pipedream "$data"/pipedream-profiles/*resnet50.graph.txt "$two")
	output_is 102.2
}

# cost FLOOR [--merge]: dollars of 1024 samples, in millionths.
cost() {
	hps-plan -q -m exact --form paper -t "$@" opt.json |
		jq '.plan | if .proven then .cost_per_sample * 1024 * 1e6 | round else "not proven" end'
}

@test "OPT-350M on three GPU types: the known costs" {
	[ -d "$data/sailor-opt350" ] || skip "no $data/sailor-opt350"
	hps-profile -q --import sailor "$data/sailor-opt350" gpus.json >opt.json
	run jq -c '.profile | .batch, ([.types[].layers[0].alpha] | map(. * 1e4 | round))' opt.json
	output_is $'4\n[9047,9580,8105]'
	[ "$(cost 204.8 --merge)" = 273028 ]
	[ "$(cost 204.8)" = 226054 ]
	[ "$(cost 51.2 --merge)" = 254839 ]
	[ "$(cost 51.2)" = 207832 ]
	run jq '.plan.throughput_samples_per_s * 100 | round' \
		<(hps-plan -q -m exact --form paper -t 51.2 opt.json)
	output_is 12569
}
