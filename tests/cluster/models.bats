# Every model that hps comes with, from a model file to an evaluation; and the demo.
load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
}

@test "all four models profile, plan, train and evaluate, as planned and in two stages" {
	hps-data gen --rows 6000 --ids 50 --seed 2 -o train.tsv
	hps-data gen --rows 1000 --skip 6000 --ids 50 --seed 2 -o test.tsv
	for model in ctrdnn matchnet 2emb nce; do
		hps-profile -q --quick --data train.tsv "$HPS_ROOT/testdata/models/$model.json" >profile.json
		for method in exact heuristic all:cpu 'fixed:cpu*1|cpu*1'; do
			hps-plan -q -m "$method" profile.json >plan.json
			[ "$(jq '.plan.stages[-1].last + 1' plan.json)" = "$(jq '.model.layers | length' plan.json)" ]
		done
		hps-provision -q --shards 2 --run-dir "$BATS_TEST_TMPDIR/s" plan.json >job.json
		hps-run -q job.json --test test.tsv train.tsv >events
		run jq -rs '[(map(select(.event == "done")) | last | .samples),
			(map(select(.event == "eval")) | last | .rows, (.auc > 0 and .auc < 1))] | join(" ")' events
		output_is "6000 1000 true"
	done
}

@test "the demo ends with its summary" {
	export HPS_DEMO_ROWS=8000
	run --separate-stderr "$HPS_ROOT/scripts/demo" "$BATS_TEST_TMPDIR/demo"
	status_is 0
	run jq -r '[.event, .stages, .replicas, .shards, (.auc > 0.5 and .best_auc > .auc),
		(.samples_per_s > 0 and .predicted_samples_per_s > 0)] | join(" ")' <<<"${lines[-1]}"
	output_is "summary 2 2 2 true true"
	ls demo/model/*/save-*/shard-1.hps
}

@test "the demo runs on one core, its stages and shards share it" {
	export HPS_DEMO_ROWS=2000
	core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	run --separate-stderr taskset -c "$core" "$HPS_ROOT/scripts/demo" "$BATS_TEST_TMPDIR/demo"
	status_is 0
	run jq -r '[.event, .stages, .replicas, .shards] | join(" ")' <<<"${lines[-1]}"
	output_is "summary 2 2 2"
	jq -e '.cluster | .types[0].limit == 2 and .hosts[0].cores == 1' demo/job.json
}
