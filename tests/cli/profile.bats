# hps-profile: what it writes, what it refuses, what it joins.
load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
	models=$HPS_ROOT/testdata/models
	narrow=$models/narrow/ctrdnn.json
	here=$HPS_ROOT/testdata/clusters/here.json
}

# rows N [BAD]: Criteo rows for the narrow model, row BAD (from 1) with a column missing.
rows() {
	awk -v n="$1" -v bad="${2:-0}" 'BEGIN { for (i = 1; i <= n; i++) {
		printf "%d\t%d\t\t%d\tcafe", i % 2, i, -i
		for (s = 1; s < (i == bad ? 4 : 5); s++) printf "\t%x", i * 8 + s
		printf "\n" } }'
}

@test "a job document of model, cluster and profile" {
	hps-profile --quick "$narrow" "$here" >job.json
	run jq -r '[.hps, .model.name, .cluster.types[0].name, .profile.batch] | join(" ")' job.json
	output_is "1 ctrdnn-narrow cpu 24"
	run jq -r '.profile.layers | map(.name) | join(" ")' job.json
	output_is "emb in fc1 fc2 fc3 out"
	run jq '.profile | (.batches | length >= 4) and .link.measured and .shard.measured
		and ([.layers[].param_bytes] | add) == 4 * (23*9+9 + 9*7+7 + 7*5+5 + 5*2+2)
		and (.types[0] | .simulated == false and (.layers | all(.oct > 0 and .alpha <= 1)))' job.json
	output_is true
	[ -z "$(ls -d hps-link-* 2>/dev/null)" ]
}

@test "without a cluster: this machine" {
	run --separate-stderr bash -c "hps-profile -q --quick '$narrow' | jq -r '.cluster.hosts[0].name, .profile.types[].name'"
	output_is $'localhost\ncpu'
	[ -z "$stderr" ]
}

@test "the model from standard input, and from a job document whose other sections stay" {
	hps-profile --quick <"$narrow" | jq '.mine = {"x": 1} | .plan = {"old": 1}' >job.json
	jq '.cluster.types[0].price = 7' job.json >priced.json
	hps-profile --quick - <priced.json >again.json
	run jq -c '[.mine.x, .plan, .cluster.types[0].price]' again.json
	output_is '[1,null,7]'
	# an operand wins over the document's cluster
	run bash -c "hps-profile -q --quick priced.json '$here' | jq .cluster.types[0].price"
	output_is 0.04
}

@test "msgpack goes through a pipe and back" {
	hps-profile --quick --msgpack "$narrow" | hps-profile --quick >job.json
	run jq -r .model.name job.json
	output_is ctrdnn-narrow
}

@test "batch sizes as told" {
	hps-profile --quick --batches 3,5,30 --rounds 2 "$narrow" >job.json
	run jq -c '[.profile.batches, (.profile.types[0].layers[2].forward_s | length)]' job.json
	output_is '[[3,5,30],3]'
	for bad in 3 '' 0,4 5,4 4,4 1,x 1,,2 1,99999999999; do
		run hps-profile --quick --batches "$bad" "$narrow"
		status_is 2
		output_has "--batches"
	done
}

@test "data: keys are counted, reading is timed" {
	rows 300 >data.tsv
	jq '.tables[0].rows = 0' "$narrow" >model.json
	hps-profile --quick --batches 8,24 --data data.tsv model.json >job.json
	run jq '.profile | .layers[0].sparse_keys * 24 | round, 4 * 24 + 1' job.json
	output_is $'97\n97'
	run jq '.profile.input_s_per_sample > 0' job.json
	output_is true
	gzip -k data.tsv
	run hps-profile -q --quick --text --data data.tsv.gz model.json
	status_is 0
	output_has "input"
}

@test "data that does not hold is named" {
	rows 50 17 >data.tsv
	run hps-profile --quick --data data.tsv "$narrow"
	status_is 3
	output_has "data.tsv:17"
	run hps-profile --quick --data absent.tsv "$narrow"
	status_is 4
	output_has "absent.tsv"
}

@test "a table for a person, and how far it holds" {
	run hps-profile -v --quick --text --transport tcp "$narrow"
	status_is 0
	for word in emb fc3 alpha link shard "a whole pass takes" "all distinct"; do
		output_has "$word"
	done
}

@test "declared types are simulated, other devices refused" {
	hps-profile --quick "$narrow" "$HPS_ROOT/testdata/clusters/four-types.json" >job.json
	run jq -c '.profile.types | map([.name, .simulated])' job.json
	output_is '[["cpu",false],["k80",true],["v100",true],["a100",true]]'
	run jq '.profile.types | (.[0].layers[2].oct / .[3].layers[2].oct) - 140 | fabs < 1e-6' job.json
	output_is true
	jq '.types += [{"name": "h100", "device": "cuda", "price": 9}]' "$here" >cuda.json
	run --separate-stderr hps-profile --quick "$narrow" cuda.json
	status_is 7
	[ -z "$output" ]
	[[ $stderr == *'type "h100"'*cuda* ]]
	[[ $stderr == *hint:*--merge* ]]
}

@test "two kinds of CPU hosts are joined" {
	jq '.types = [{"name": "fast", "price": 2}, {"name": "slow", "price": 1},
		{"name": "gpu", "device": "cuda", "price": 5, "like": "slow", "speed": 8}]
		| .hosts[0].units = {"fast": 1, "slow": 1}' "$here" >both.json
	run hps-profile --quick "$narrow" both.json
	status_is 2
	output_has '"fast" and "slow" are both CPUs'
	output_has "--type"
	run --separate-stderr hps-profile --quick --type slow "$narrow" both.json
	status_is 0
	echo "$output" >slow.json
	[[ $stderr == *'type "fast" has no times yet'* ]]
	run jq -c '.profile.types | map(.name)' slow.json
	output_is '["slow","gpu"]'
	hps-profile --quick --type fast --merge slow.json "$narrow" both.json >both.out
	run jq -c '.profile.types | map([.name, .simulated])' both.out
	output_is '[["fast",false],["slow",false],["gpu",true]]'
	[ "$(jq -c '.profile.types[1]' both.out)" = "$(jq -c '.profile.types[0]' slow.json)" ]
	# what both measured is told
	run --separate-stderr hps-profile --quick --type slow --merge both.out "$narrow" both.json
	status_is 0
	[[ $stderr == *'both.out: type "slow" is measured already'* ]]
}

@test "another model's profile is refused by name" {
	hps-profile --quick "$models/narrow/2emb.json" >other.json
	run --separate-stderr hps-profile --quick --merge other.json "$narrow"
	status_is 3
	[ -z "$output" ]
	[[ $stderr == *other.json*'another model'* ]]
	jq 'del(.profile)' other.json >none.json
	run hps-profile --quick --merge none.json "$narrow"
	status_is 3
	output_has 'none.json: no section "profile"'
}

@test "wrong use and bad input" {
	run hps-profile --transport udp "$narrow"
	status_is 2
	output_has 'expected "ipc" or "tcp"'
	run hps-profile --type gpu --quick "$narrow"
	status_is 2
	output_has 'no type "gpu"'
	run hps-profile - - </dev/null
	status_is 2
	output_has "only one of MODEL, CLUSTER"
	run hps-profile --data - </dev/null
	status_is 2
	run hps-profile a b c
	status_is 2
	run hps-profile </dev/null
	status_is 3
	output_has "hint"
	run hps-profile absent.json
	status_is 4
	echo '{"name": "x"}' >bad.json
	run hps-profile bad.json
	status_is 3
	output_has "bad.json"
	run bash -c "hps-profile --quick '$narrow' >/dev/full"
	status_is 4
}

@test "interrupted: nothing on standard output, nothing left behind" {
	mkdir tmp
	TMPDIR=$PWD/tmp env --block-signal=TERM hps-profile --rounds 10000 "$models/ctrdnn.json" >out 2>err 3>&- &
	pid=$!
	# while it measures the link, if this is fast enough to see that
	end=$((SECONDS + 3))
	until [ -n "$(ls -A tmp)" ] || ((SECONDS >= end)); do kill -0 $pid; done
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ "$status" -eq 143 ]
	[ ! -s out ]
	grep -q "hps-profile: interrupted" err
	[ -z "$(ls -A tmp)" ]
}

@test "the page's examples run" {
	cp "$models/ctrdnn.json" "$HPS_ROOT"/testdata/clusters/{four,two}-types.json \
		"$HPS_ROOT/testdata/examples/branches.graph.txt" .
	ln -s "$HPS_ROOT/testdata" .
	jq '.types = [{"name": "fast", "price": 2}, {"name": "slow", "price": 1}]
		| .hosts[0].units = {"fast": 1, "slow": 1}' "$here" >both.json
	awk 'BEGIN { srand(1); for (i = 0; i < 600; i++) { printf "%d", i % 2
		for (k = 0; k < 13; k++) printf "\t%d", i * k % 77
		for (k = 0; k < 26; k++) printf "\t%08x", rand() * 65536
		printf "\n" } }' >train.tsv
	"$HPS_ROOT/scripts/check-docs" --examples hps-profile >examples
	[ "$(grep -c hps-profile examples)" -eq 6 ]
	run --separate-stderr bash -eu -o pipefail examples
	status_is 0
	output_has $'fast\nslow'
	jq -e .plan.proven gpus.json
	jq -e .profile.input_s_per_sample profile.json
}

@test "batches that no memory holds are refused at once, with what they need" {
	jq '.train.batch = 1073741824' "$HPS_ROOT/testdata/models/ctrdnn.json" >huge.json
	run --separate-stderr timeout 20 hps-profile huge.json
	output_is ""
	output=$stderr
	status_is 6
	output_has "a pass over 2147483648 rows needs 3.084e+13 bytes of memory or more, there are "
	output_has "hint: the model's micro-batch has 1073741824 rows"
	run --separate-stderr timeout 20 hps-profile --batches 1,8 --quick huge.json
	status_is 0
}
