#!/usr/bin/env bats
# What hps-plan is given and cannot plan with: each is named with its place, exit status 2 for
# words and 3 for documents, and nothing on standard output.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	TWO=$HPS_ROOT/testdata/profiles/two-types.json
	HERE=$HPS_ROOT/testdata/profiles/ctrdnn-here.json
}

bats_require_minimum_version 1.5.0

# refused STATUS TEXT ARG...: exit status, the text on standard error, nothing on standard output.
refused() {
	rejected "$1" "$2" hps-plan "${@:3}"
}

# bad FILTER TEXT [FILE]: the document, edited by jq, is refused as bad input.
bad() {
	jq "$1" "${3:-$TWO}" >edited.json
	refused 3 "edited.json: $2" edited.json
	# Whatever the method.
	refused 3 "edited.json: $2" -m greedy edited.json
}

@test "a floor of zero, below it, infinite, or no number" {
	for floor in 0 -0 -1 inf -inf infinity nan 1e400 1e-400 x '' '1 2'; do
		refused 2 "-t: expected a number > 0, got \"$floor\"" -t "$floor" "$TWO"
	done
}

@test "methods that are not there, by name, in --compare, with and without an argument" {
	for method in magic EXACT exact: exact:1 all all: fixed: rl-; do
		refused 2 "unknown method \"$method\"; methods are rl, " -m "$method" "$TWO"
	done
	refused 2 "-m: expected METHOD, got \"\"" -m '' "$TWO"
	refused 2 'unknown method "magic"' --compare exact,magic "$TWO"
	refused 2 'no type "tpu"; the cluster has cpu, v100' -m all:tpu "$TWO"
	refused 2 "" -m 'fixed:cpu*0' "$TWO"
	refused 2 "" -m 'fixed:cpu*-1' "$TWO"
	refused 2 "" -m 'fixed:cpu*nan' "$TWO"
}

@test "budgets, batches and edits that mean nothing" {
	for budget in 0 -1 0s -1s nan nans inf infs s '' 1.5; do
		refused 2 "" --budget "$budget" "$TWO"
	done
	for batch in 0 -1 nan inf 1e9 ''; do
		refused 2 "--batch: expected an integer" --batch "$batch" "$TWO"
	done
	refused 2 "v100.limit: expected an integer" --what-if v100.limit=0 "$TWO"
	refused 2 "v100.price: expected a number" --what-if v100.price=nan "$TWO"
	refused 2 "v100.price: expected a number" --what-if v100.price=-1 "$TWO"
	refused 2 "network.bandwidth: expected" --what-if network.bandwidth=inf "$TWO"
	refused 2 "--pareto: expected an integer" --pareto 0 "$TWO"
}

@test "a profile without a type that the cluster has" {
	bad 'del(.profile.types[1])' \
		'cluster.types[1]: type "v100" of the cluster has no times in the profile'
	bad '.cluster.types += [{"name": "tpu", "price": 1}]' \
		'cluster.types[2]: type "tpu" of the cluster has no times in the profile'
	bad '.profile.types = []' 'profile.types: expected at least 1 element, got 0'
	bad '.cluster.types = []' 'cluster.types: expected at least 1 element, got 0'
	bad 'del(.profile)' 'no section "profile"'
	bad 'del(.cluster)' 'no section "cluster"'
}

@test "times that are negative, zero, or no numbers" {
	for part in forward backward; do
		for fit in c0 c1; do
			bad ".profile.types[1].layers[2].$part.$fit = -1e-9" \
				"profile.types[1].layers[2].$part.$fit: expected a number >= 0, got -1e-09"
			bad ".profile.types[1].layers[2].$part.$fit = \"NaN\"" \
				"profile.types[1].layers[2].$part.$fit: expected a number >= 0, got \"NaN\""
			bad ".profile.types[1].layers[2].$part.$fit = null" \
				"profile.types[1].layers[2].$part.$fit: expected a number"
		done
	done
	# A layer that takes no time would be the place for everything.
	bad '.profile.types[0].layers[2].forward = {"c0": 0, "c1": 0}
		| .profile.types[0].layers[2].backward = {"c0": 0, "c1": 0}' \
		'profile: layer "fc1" on type "cpu": expected a time > 0, got 0' "$HERE"
	# Foreign profiles know some layers of no time, but not types of none.
	bad '.profile.types[0].layers[] |= (.forward = {"c0": 0, "c1": 0}
		| .backward = {"c0": 0, "c1": 0} | .oct = 0)' \
		'profile: type "cpu": no layer takes any time'
	bad '.profile.types[0].layers |= .[1:]' 'profile.types[0].layers: expected 6 elements, got 5'
}

@test "NaN and infinity are no JSON, and no msgpack that is taken" {
	for value in NaN nan Infinity -Infinity 1e999; do
		sed "s/\"c1\": 9e-07/\"c1\": $value/" "$TWO" >edited.json
		refused 3 "edited.json: line " edited.json
	done
	# {"hps": 1, "profile": NaN}
	printf '\202\243hps\001\247profile\313\177\370\000\000\000\000\000\000' >edited.msgpack
	refused 3 "edited.msgpack" edited.msgpack
}

@test "limits and batches of zero, prices and links below it" {
	bad '.cluster.types[0].limit = 0' 'cluster.types[0].limit: expected an integer > 0, got 0'
	bad '.cluster.types[0].limit = -3' 'cluster.types[0].limit: expected an integer > 0, got -3'
	bad '.cluster.types[0].limit = 1.5' 'cluster.types[0].limit: expected an integer'
	bad '.cluster.types[0].price = -1' 'cluster.types[0].price: expected a number'
	bad '.cluster.types[0].link.bandwidth = -1' 'cluster.types[0].link.bandwidth: expected a number'
	bad '.profile.batch = 0' 'profile.batch: expected a number > 0'
	bad '.profile.layers[0].param_bytes = -1' \
		'profile.layers[0].param_bytes: expected a number >= 0, got -1'
}

@test "an empty model, and an empty document" {
	bad '.profile.layers = [] | .profile.types[].layers = []' \
		'profile.layers: expected at least 1 element, got 0'
	bad '.model.layers = []' 'model.layers: expected at least 1 element, got 0' "$HERE"
	refused 3 "standard input: no input" - </dev/null
	echo '{}' >edited.json
	refused 3 'edited.json: ' edited.json
}
