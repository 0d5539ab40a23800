#!/bin/bash
# plan.published.METHOD: what each rival's plan costs over the learned one's, on this machine's
# profiles of our four models, in clusters of two and four types, at floors of 10, 30, 60 and 90 %
# of the highest throughput there is; the paper's form and its merge rule, the same budget for all.
#
#   value       median over models, clusters and floors of cost / cost of the reference
#   worst, best the largest and the least of them (below 1: cheaper than the reference)
#   floors      the median at each floor
#   not_found   cases in which the rival found no plan, of `cases`
#   reference   rl, or exact where no rl is built
#
# heuristic is layers with sparse rows on CPU, all others on the fastest type; all-cpu and all-gpu
# are one type for all layers, the best of the GPU types.
#
# plan.published.worst is the largest ratio of all rivals. What the authors of HeterPS state (arXiv
# 2111.10635) is one figure for all of them, "up to 312.3 %" between RL's cost and the others', read
# here as a ratio of at most 4.123. They give it for their models, prices and cluster; workloads
# here are ours, so the figures may be read side by side but not as one measurement.
#
# Our rivals are closer to rl than the authors' are: greedy, genetic and Bayesian search end as cheap as
# rl in the median and, where floors are tight, at 1.0 to 1.9 times its cost; exact is never dearer. What
# rl is far ahead of is what people place by hand: the heuristic and one type for all.
set -eu -o pipefail

root=${HPS_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
bin=${HPS_BIN:-$root/build/bin}
PATH=$bin:$PATH
budget=${HPS_BENCH_EVALUATIONS:-3000}

# Asked for is this benchmark, a part of it, or all that begins as its name does.
name=plan.published
asked=${HPS_BENCH:-}
[[ $name == "$asked"* || $asked == "$name"* ]] || exit 0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

plan() {
	hps-plan -q --form paper --merge --seed 1 "$@"
}

# Methods that are built, of those that the authors compare and ours.
methods=exact
for method in rl rl+polish rl-rnn greedy bayes genetic anneal random heuristic; do
	hps-plan -q -m "$method" </dev/null >/dev/null 2>"$tmp/why" || true
	grep -q 'unknown method' "$tmp/why" || methods=$methods,$method
done
case ,$methods, in *,rl,*) reference=rl ;; *) reference=exact ;; esac

for cluster in two-types four-types; do
	types=$root/testdata/clusters/$cluster.json
	singles=$(jq -r '[.types[] | "all:" + .name] | join(",")' "$types")
	for model in ctrdnn-16 matchnet 2emb nce; do
		hps-profile -q --quick "$root/testdata/models/$model.json" "$types" >"$tmp/job.json"
		highest=$(plan -m exact --pareto 2 --text "$tmp/job.json" | tail -1 | cut -f1)
		for share in 0.1 0.3 0.6 0.9; do
			plan -t "$(jq -n "$highest * $share")" --budget "$budget" \
				--compare "$methods,$singles" "$tmp/job.json" |
				jq -c --arg m "$model" --arg c "$cluster" --argjson s "$share" \
					'{model: $m, cluster: $c, share: $s, rows: .}'
		done
	done
done | jq -cs --arg reference "$reference" --argjson budget "$budget" '
	def median: sort | if length == 0 then null
		elif length % 2 == 1 then .[length / 2 | floor]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	def ratios: [.[].ratio | numbers];
	# Of the GPU types the best one is the rival.
	def rival: if . == "all:cpu" then "all-cpu" else sub("^all:.*"; "all-gpu") end;
	[.[] | . as $case
	 | (first(.rows[] | select(.method == $reference)) | .plan.cost_per_sample) as $base
	 | .rows[] | select(.method != $reference)
	 | {method: (.method | rival), share: $case.share,
	    case: "\($case.model)/\($case.cluster)/\($case.share)",
	    ratio: (if .plan and $base then .plan.cost_per_sample / $base else null end)}]
	| group_by([.method, .case]) | map(.[0] + {ratio: (ratios | min)}) as $all
	| ($all | group_by(.method)[]
	   | {bench: "plan.published.\(.[0].method)", value: (ratios | median), unit: "ratio",
	      worst: (ratios | max), best: (ratios | min),
	      floors: (group_by(.share) | map({(.[0].share | tostring): (ratios | median)}) | add),
	      cases: length, not_found: (map(select(.ratio == null)) | length),
	      reference: $reference, evaluations: $budget}),
	  {bench: "plan.published.worst", value: ($all | ratios | max), unit: "ratio",
	   method: ($all | map(select(.ratio)) | max_by(.ratio) | .method),
	   authors_read_as: 4.123, reference: $reference}'
