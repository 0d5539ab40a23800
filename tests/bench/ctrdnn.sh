#!/bin/bash
# ctrdnn.*: CTRDNN trained end to end, by hps-profile | hps-plan | hps-provision and hps-run, batch 1000.
#
#   ctrdnn.gemm_share   samples/s of one replica and one shard over the rate at which the bare
#                       GEMM calls of a step run alone on one core, before and after
#   ctrdnn.prediction   predicted over measured samples/s, in one stage and in two
#   ctrdnn.auc_gap      best possible AUC less AUC, 500,000 generated rows, 1,000 ids a slot
#
# Medians of several rounds; every round measures all of its parts, in turn.
set -eu -o pipefail

root=${HPS_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
bin=${HPS_BIN:-$root/build/bin}
PATH=$bin:$root/scripts:$PATH
rounds=${HPS_BENCH_ROUNDS:-5}
model=$root/testdata/models/ctrdnn.json
export HPS_ROOT=$root

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
export TMPDIR=$tmp XDG_RUNTIME_DIR=$tmp

wanted() { # is a benchmark of this name asked for?
	case $1 in "${HPS_BENCH:-}"*) return 0 ;; *) return 1 ;; esac
}

gemm_rate() {
	(cd "$root" && HPS_BENCH=nn.ctrdnn "$bin/../bench/bench_nn") |
		jq 'select(.bench == "nn.ctrdnn.gemm_share").gemm_samples_per_s'
}

# measure PLAN MICRO_BATCHES: "predicted measured"
measure() {
	hps-plan -q -m "$1" --micro-batches "$2" profile.json |
		hps-provision -q --shards 1 --micro-batches "$2" --run-dir "$tmp/s" >job.json
	jq .deployment.predicted_samples_per_s job.json
	hps-run -q job.json --log-every 100000 train.tsv | jq 'select(.event == "done").samples_per_s'
}

if wanted ctrdnn.gemm_share || wanted ctrdnn.prediction; then
	hps-data gen --rows 200000 --ids 1000 --seed 5 -o train.tsv
	for ((i = 0; i < rounds; i++)); do
		before=$(gemm_rate)
		hps-profile -q --data train.tsv "$model" >profile.json
		one=$(measure 'fixed:cpu*1' 1 | paste -sd ' ')
		after=$(gemm_rate)
		two=$(measure 'fixed:cpu*1|cpu*1' 4 | paste -sd ' ')
		echo "$before $after $one $two"
	done | jq -nR --argjson reach 0.85 '
		def median: sort | if length % 2 == 1 then .[length / 2 | floor]
			else (.[length / 2 - 1] + .[length / 2]) / 2 end;
		[inputs | split(" ") | map(tonumber)] as $r
		| { bench: "ctrdnn.gemm_share", value: ([$r[] | .[3] * 2 / (.[0] + .[1])] | median),
		    reach: $reach, unit: "ratio", samples_per_s: ([$r[][3]] | median),
		    gemm_samples_per_s: ([$r[] | (.[0] + .[1]) / 2] | median), rounds: ($r | length) },
		  ([1, 2][] as $stages
		   | [$r[] | .[2 * $stages] / .[2 * $stages + 1]]
		   | { bench: "ctrdnn.prediction", value: median, reach: 1, unit: "ratio", stages: $stages,
		       min: min, max: max, samples_per_s: ([$r[][2 * $stages + 1]] | median) })' |
		jq -c .
fi

if wanted ctrdnn.auc_gap; then
	hps-data gen --rows 500000 --ids 1000 --seed 3 -o train.tsv
	hps-data gen --rows 100000 --skip 500000 --ids 1000 --seed 3 --truth truth.json -o test.tsv
	hps-profile -q --quick "$root/testdata/models/ctrdnn-generated.json" |
		hps-plan -q -m 'fixed:cpu*1' | hps-provision -q --run-dir "$tmp/s" >job.json
	hps-run -q job.json --epochs 2 --log-every 100000 --test test.tsv train.tsv |
		jq -cs --slurpfile truth truth.json '(map(select(.event == "eval") | .auc) | last) as $auc
			| { bench: "ctrdnn.auc_gap", value: ($truth[0].best_auc - $auc), reach: 0.01,
			    unit: "auc", auc: $auc, best_auc: $truth[0].best_auc, ids: 1000 }'
fi
