#!/usr/bin/env bats
# hps-serve: what it refuses, whom it waits for, what it saves, loads and exports.

load ../cluster/helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# trained [SHARDS]: a saved model in state/, its last event in done.
trained() {
	rows 240 1 >train.tsv
	rows 100 2 >test.tsv
	job 1 "${1:-2}" 1 24 bsp ps
	start serve hps-serve --state state job.json
	start work hps-work --epochs 2 --test test.tsv job.json train.tsv
	ends work 0
	ends serve 0
}

@test "options that make no sense" {
	run hps-serve --timeout never job.json
	status_is 2
	output_has "--timeout"
	run hps-serve a.json b.json
	status_is 2
	run hps-serve --export out job.json
	status_is 2
	output_has "--state"
}

@test "a job that is none" {
	run hps-serve </dev/null
	status_is 3
	output_has "standard input"
	run hps-serve absent.json
	status_is 4
	output_has absent.json
	echo '{"hps": 1, "model": 3}' >bad.json
	run hps-serve bad.json
	status_is 3
	output_has "bad.json: model"
	job 1 1 1 24 bsp ps
	jq 'del(.deployment)' job.json >none.json
	run hps-serve none.json
	status_is 3
	output_has hps-provision
}

@test "a host that the deployment does not have" {
	job 1 1 1 24 bsp ps
	run hps-serve --host mars job.json
	status_is 2
	output_has 'no host "mars"'
	output_has "shards are on here"
	# several hosts, none of this machine's name
	job 1,1 2 1 24 bsp ps spread
	run hps-serve job.json
	status_is 2
	output_has "this machine's name"
	output_has --host
	run hps-serve --host h0 job.json
	status_is 0
	output_has "nothing to serve"
}

@test "who does not come is named" {
	job 1,1 2 1 24 bsp ps spread
	run hps-serve --timeout 0.2 --host here job.json
	status_is 5
	output_has "within 0.2 s"
	output_has "shard 1 on host s1 (hps-serve)"
	output_has "stage 1 replica 0 on host h1 (hps-work)"
	run hps-serve --timeout 0.2 --host s1 - <job.json
	status_is 5
	output_has "the coordinator, hps-serve on here"
}

@test "an address that is not this host's" {
	job 1 1 1 24 bsp ps
	jq '.deployment.shards[0].endpoint = "tcp://192.0.2.1:4444"' job.json >far.json
	run hps-serve far.json
	status_is 5
	output_has "shard 0"
	output_has "192.0.2.1:4444"
}

@test "a signal while it waits" {
	job 1 1 1 24 bsp ps
	start serve hps-serve --state state job.json
	timeout 20 sh -c 'until grep -q "no save yet" serve.err; do :; done'
	kill -TERM "$(child serve)"
	ends serve 0
	[ -z "$(ls s 2>/dev/null)" ]
}

@test "a state directory that cannot be" {
	job 1 1 1 24 bsp ps
	run hps-serve --state /dev/null/state job.json
	status_is 4
	output_has /dev/null
}

@test "a model is saved, loaded on other shards, and evaluates the same" {
	trained 2
	says serve "saved in state/here"
	[ "$(ls state/here)" = "lock
save-1" ]
	[ "$(ls state/here/save-1)" = "shard-0.hps
shard-1.hps" ]
	for shards in 1 3; do
		job 1 $shards 1 24 bsp ps
		start serve hps-serve --state state job.json
		start eval hps-work --eval job.json test.tsv
		ends eval 0
		ends serve 0
		says serve "loaded state"
		[ "$(event eval eval.out '[.auc, .logloss, .rows]' | tr -d '\n')" = \
			"$(event eval work.out '[.auc, .logloss, .rows]' | tr -d '\n')" ]
	done
	[ "$(ls state/here)" = "lock
save-1" ]
}

@test "training goes on from a save" {
	trained 1
	start serve hps-serve --state state job.json
	start more hps-work job.json train.tsv
	ends more 0
	ends serve 0
	says serve "after 20 steps"
	[ "$(ls state/here)" = "lock
save-2" ]
	run hps-serve --state state --export out
	status_is 0
	[ "$(jq '[.step, .epochs] | tostring' <<<"$output")" = '"[30,3]"' ]
}

@test "dense tensors and figures are exported" {
	trained 2
	run --separate-stderr hps-serve --state state --export out
	status_is 0
	[ "$(jq -r '.tensors | map(.name) | sort | join(" ")' <<<"$output")" = \
		"fc1.W fc1.b fc2.W fc2.b fc3.W fc3.b out.W out.b" ]
	[ "$(jq -c '.tensors[0] | [.name, .shape, .file]' <<<"$output")" = \
		'["fc1.W",[23,9],"out/fc1.W.npy"]' ]
	[ "$(jq '.tables[0].rows' <<<"$output")" = "$(event "done" work.out .tables.emb.rows)" ]
	[ "$(jq '.step' <<<"$output")" = 20 ]
	hps-serve --state state --export out --msgpack job.json >packed
	[ "$(head -c 1 packed | od -An -tu1)" -ge 128 ]
	# the bytes after the head are the floats
	[ "$(stat -c %s out/fc1.W.npy)" -eq $((128 + 23 * 9 * 4)) ]
	for python in python3 /usr/bin/python3 none; do
		[ $python != none ] || skip "no numpy"
		$python -c 'import numpy' 2>/dev/null && break
	done
	run $python -c '
import glob, numpy
for f in sorted(glob.glob("out/*.npy")):
	a = numpy.load(f)
	assert a.dtype == numpy.float32 and a.flags.c_contiguous and numpy.isfinite(a).all()
	print(f, a.shape)'
	status_is 0
	output_has "out/fc1.W.npy (23, 9)"
	output_has "out/out.b.npy (2,)"
}

@test "another model's state, a damaged one, none" {
	trained 1
	job 1 1 1 24 bsp ps one "$HPS_ROOT/testdata/models/narrow/2emb.json"
	run hps-serve --state state job.json
	status_is 3
	output_has "shard-0.hps"
	output_has "another model"
	run hps-serve --state state --export out job.json
	status_is 3
	output_has "another model"
	job 1 1 1 24 bsp ps
	printf x | dd of=state/here/save-1/shard-0.hps bs=1 seek=700 conv=notrunc 2>/dev/null
	for command in "hps-serve --state state job.json" "hps-serve --state state --export out"; do
		run $command
		status_is 3
		output_has "shard-0.hps: block 1 at byte 80"
		output_has "damaged"
	done
	run hps-serve --state elsewhere --export out
	status_is 3
	output_has "elsewhere: holds no save"
}

@test "saves that are passed over are told, numbers out of range refused" {
	trained 1
	mkdir state/here/save-7
	run hps-serve --state state --export out
	status_is 0
	output_has "state: save-7 is not whole: save-1, an older one, is used"
	mv state/here/save-1 kept
	run hps-serve --state state --export out
	status_is 3
	output_has "state: no save is complete: save-7 is empty"
	rmdir state/here/save-7
	for n in 18446744073709551615 99999999999999999999999; do
		mv kept "state/here/save-$n"
		run hps-serve --state state --export out
		status_is 3
		output_has "state/here/save-$n: the number of this save is too large"
		mv "state/here/save-$n" kept
	done
}

@test "a state directory in use names its holder, and the way out" {
	job 1 1 1 24 bsp ps
	start serve hps-serve --state state job.json
	timeout 20 sh -c 'until grep -q "no save yet" serve.err; do :; done'
	job 1 1 1 24 bsp ps one "$HPS_ROOT/testdata/models/narrow/2emb.json"
	run hps-serve --state state job.json
	status_is 4
	output_has "state/here: another hps-serve, process $(child serve), has this state directory"
	output_has "hint: wait until it has ended, end it, or give another --state"
	kill -TERM "$(child serve)"
	ends serve 0
}

@test "what cannot be written is told" {
	trained 1
	run bash -c 'hps-serve --state state --export out >/dev/full'
	status_is 4
	output_has "standard output"
	run hps-serve --state state --export /dev/null/out
	status_is 4
	output_has /dev/null
}
