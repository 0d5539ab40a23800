#!/usr/bin/env bats
# The clusters of testdata that are drawn from a seed: they are what their generator makes, and
# planning for them needs no device that they name.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	C=$HPS_ROOT/testdata/clusters
}

bats_require_minimum_version 1.5.0

@test "generated clusters are what make-cluster makes" {
	for n in 4 16 64; do
		"$C/make-cluster" $n $n | cmp - "$C/$n-types.json"
		"$C/make-cluster" $n $n tight | cmp - "$C/$n-types-tight.json"
	done
}

@test "they have so many types, one of them measured, and at most four classes of link" {
	for n in 4 16 64; do
		for f in "$C/$n-types.json" "$C/$n-types-tight.json"; do
			jq -e --argjson n $n '(.types | length) == $n
				and ([.types[] | select(has("like") | not)] | length) == 1
				and ([.types[].link.bandwidth] | unique | length) <= 4' "$f"
		done
		jq -e 'all(.types[]; has("limit") | not)' "$C/$n-types.json"
		jq -e 'all(.types[]; .limit >= 1)' "$C/$n-types-tight.json"
	done
}

@test "make-cluster refuses what it can't make" {
	for args in "" "0 1" "x 1" "4" "4 y" "4 1 loose"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$C/make-cluster" $args
		[ "$status" -ne 0 ]
		output_is ""
	done
}

@test "a plan for 16 declared types is proven and marked simulated" {
	hps-profile -q --quick "$HPS_ROOT/testdata/models/ctrdnn-8.json" "$C/16-types-tight.json" |
		hps-plan -q -m exact >plan.json
	jq -e '.plan.proven and (.profile.types | length) == 16
		and ([.profile.types[] | select(.simulated)] | length) == 15' plan.json
}
