# Does a job learn what there is to learn?
load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	models=$HPS_ROOT/testdata/models
	# Learning is measured at full size: the sanitizers' builds learn the same, slowly.
	case $HPS_BIN in *build-*) skip "sanitizer build" ;; esac
}

# job MODEL PLAN
job() {
	hps-profile -q --quick "$1" | hps-plan -q -m "$2" |
		hps-provision -q --run-dir "$BATS_TEST_TMPDIR/s" >job.json
}

@test "generated data: within 0.01 of the best possible AUC" {
	hps-data gen --rows 500000 --ids 50 --interactions 0.1 --seed 3 -o train.tsv
	hps-data gen --rows 100000 --skip 500000 --ids 50 --interactions 0.1 --seed 3 \
		--truth truth.json -o test.tsv
	job "$models/ctrdnn-generated.json" 'fixed:cpu*1|cpu*1'
	hps-run -q job.json --epochs 2 --log-every 1000 --test test.tsv train.tsv >events
	run jq -rs --slurpfile truth truth.json '
		map(select(.event == "eval") | .auc) | last | [., $truth[0].best_auc]
		| if .[0] > .[1] - 0.01 and .[0] <= .[1] + 0.001 then "near" else "\(.)" end' events
	output_is near
}

@test "criteo-10k: AUC of the last 2,000 rows after one epoch on 8,000, 5 seeds" {
	data=${HPS_DATA:-$HPS_ROOT/../shared/data}/criteo-10k/criteo_first10000.tsv
	[ -r "$data" ] || skip "no real data here"
	job "$models/ctrdnn-criteo-10k.json" 'fixed:cpu*1'
	for seed in 1 2 3 4 5; do
		hps-provision -q --seed "$seed" --run-dir "$BATS_TEST_TMPDIR/s" job.json >seed.json
		hps-run -q seed.json --rows 0:8000 --test "$data" --test-rows 8000:10000 "$data"
	done | jq -c 'select(.event == "eval")' >evals
	cat evals
	[ "$(jq -s 'length == 5 and all(.rows == 2000 and .auc >= 0.70)
		and ([.[].auc] | add / 5) >= 0.715 and ([.[].auc] | unique | length) == 5' evals)" = true ]
}
