#!/usr/bin/env bats
# What ends a job: named, with the same status everywhere, and no process left.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	rows 600 1 >train.tsv
}

# A job over hosts that runs until it is ended: two servers, three workers.
long_job() {
	job 2,1 2 2 24 bsp ps spread
	: >work-h2.out # it is there to be watched, and holds nothing of a job before
	for h in here s1; do start serve-$h hps-serve --host $h --dead-after 2 job.json; done
	for h in h0 h1 h2; do
		start work-$h hps-work --host $h --dead-after 3 --epochs 1000000 job.json train.tsv
	done
	first_line work-h2.out
}

@test "a coordinator that has not come is named" {
	job 1 1 1 24 bsp ps
	run hps-work --timeout 0.5 job.json train.tsv
	status_is 5
	output_has "hps-serve on here"
	output_has "has not answered within 0.5 s"
}

@test "workers that have not come are named, by those who wait" {
	job 1,1 1 1 24 bsp ps spread
	start serve hps-serve --host here --timeout 1 job.json
	start work hps-work --host h0 --timeout 5 job.json train.tsv
	ends work 5
	ends serve 5
	says serve "stage 1 replica 0 on host h1 (hps-work)"
	says work "stage 1 replica 0 on host h1 (hps-work)"
	start serve hps-serve --host here --timeout 30 job.json
	start work hps-work --host h0 --timeout 1 job.json train.tsv
	ends work 5
	ends serve 5
	says work "stage 1 replica 0 on host h1 (hps-work)"
}

@test "a killed worker ends the job, named" {
	long_job
	kill -KILL "$(child work-h1)"
	ends work-h1 137
	for p in work-h0 work-h2 serve-here serve-s1; do
		ends $p 5
		says $p "work@h1: silent for 2 s"
	done
}

@test "a killed server ends the job, named" {
	long_job
	kill -KILL "$(child serve-s1)"
	ends serve-s1 137
	for p in work-h0 work-h1 work-h2 serve-here; do
		ends $p 5
		says $p "serve@s1: silent for 2 s"
	done
}

@test "a killed coordinator ends the job, named" {
	long_job
	kill -KILL "$(child serve-here)"
	ends serve-here 137
	for p in work-h0 work-h1 work-h2 serve-s1; do
		ends $p 5
		says $p "hps-serve on here"
		says $p "silent"
	done
}

@test "a message damaged on its way ends the job everywhere, named" {
	case $HPS_BIN in *-address*|*-thread*) skip "a sanitizer must come first" ;; esac
	damage="$tests_dir/cluster/preload_damage.so"
	job 2,1 2 2 24 bsp ps
	for who in serve work; do
		for at in 5 8 21 40; do
			how="flip"
			[ "$at" = 8 ] && how="cut"
			[ "$at" = 21 ] && how="grow"
			pre=(env "LD_PRELOAD=$damage" "DAMAGE_AT=$at" "DAMAGE_HOW=$how")
			if [ $who = serve ]; then
				start serve "${pre[@]}" hps-serve job.json
				start work hps-work --epochs 1000000 job.json train.tsv
			else
				start serve hps-serve job.json
				start work "${pre[@]}" hps-work --epochs 1000000 job.json train.tsv
			fi
			ends work 5
			ends serve 5
			says serve "work@here"
			grep -Eq "what (does not hold|was sent to it): " serve.err
		done
	done
	# who is not yet in is nobody's loss: it alone learns of it, and is missed
	start serve hps-serve --timeout 2 job.json
	start work env "LD_PRELOAD=$damage" DAMAGE_AT=0 DAMAGE_HOW=flip hps-work job.json train.tsv
	ends work 5
	says work "coordinator: refuses what was sent to it"
	ends serve 5
	says serve "missing"
}

@test "a stopped worker is as good as dead" {
	long_job
	stopped=$(child work-h0)
	kill -STOP "$stopped"
	ends work-h2 5
	says work-h2 "work@h0: silent"
	for p in work-h1 serve-here serve-s1; do ends $p 5; done
	kill -CONT "$stopped"
	ends work-h0 5
}

@test "a signal at any process ends the job in order" {
	for p in work-h0 serve-here serve-s1; do
		long_job
		kill -INT "$(child $p)"
		for q in work-h0 work-h1 work-h2 serve-here serve-s1; do ends $q 0; done
		[ "$(event done work-h2.out .interrupted)" = true ]
	done
}

@test "a signal to who waits for others ends the servers too, in order" {
	job 1,1 1 1 24 bsp ps spread
	start serve hps-serve --host here --dead-after 20 job.json
	start work hps-work --host h1 job.json train.tsv
	waiting=$(child work)
	# it has joined once the server has its connection; before, the same must hold
	kill -TERM "$waiting"
	ends work 0
	[ "$(event done work.out .interrupted)" = true ]
	kill -TERM "$(child serve)" 2>/dev/null || true
	ends serve 0
	# alone, nobody is waited for
	start work hps-work --host h1 job.json train.tsv
	kill -TERM "$(child work)"
	ends work 0
}

@test "a full disk under the events is this process' failure; the servers go on, or end at once" {
	[ -c /dev/full ] || skip "no /dev/full"
	job 1 1 1 24 bsp ps
	start serve hps-serve --keep --dead-after 20 job.json
	rc=0
	hps-work --log-every 1000000 job.json train.tsv >/dev/full 2>full.err || rc=$?
	[ $rc = 4 ]
	grep -q "standard output" full.err
	ends serve 4
	says serve "work@here"
}

@test "no rows are left: nothing is trained and nothing saved" {
	job 1,1 1 2 24 bsp ps
	for rows in 600: 100000:100010; do
		start serve hps-serve --state state job.json
		start work hps-work --rows $rows job.json train.tsv
		ends work 3
		says work "train.tsv: no rows are left to train on"
		ends serve 3
		[ ! -e state/here/save-1 ]
	done
	start serve hps-serve --state state job.json
	start work hps-work --skip-bad 100 job.json <(yes nonsense | head -n 50)
	ends work 3
	ends serve 3
	says serve "no rows to train on"
	[ ! -e state/here/save-1 ]
}

@test "damage in the test data is told before anything is trained" {
	job 1,1 1 1 24 bsp ps
	rows 300 2 >test.tsv
	sed -i '217s/\t/\tnine/' test.tsv
	run hps-work --epochs 5 --test test.tsv job.json train.tsv
	status_is 3
	output_has "test.tsv:217"
}

@test "damage met while evaluating: the epoch before it is saved" {
	rows 3000 2 >test.tsv
	echo nonsense >>test.tsv
	job 1,1 2 1 24 bsp ps spread
	for h in here s1; do start serve-$h hps-serve --host $h --state state job.json; done
	mkfifo pipe # is not looked at before
	start work-h1 hps-work --host h1 --test pipe job.json train.tsv
	start work-h0 hps-work --host h0 --test pipe job.json train.tsv
	cat test.tsv >pipe
	for p in work-h0 work-h1 serve-here serve-s1; do
		ends $p 3
		says $p "pipe:3001"
	done
	run hps-serve --state state --export out
	status_is 0
	[ "$(jq '[.step, .epochs] | tostring' <<<"$output")" = '"[25,1]"' ]
}

@test "limits too low for the job are named: descriptors, memory" {
	case $HPS_BIN in *build-*) skip "a sanitizer takes more than any limit" ;; esac
	job 2,1 1 1 24 bsp ps
	run bash -c 'ulimit -n 12; hps-work job.json train.tsv'
	status_is 6
	output_has "file descriptors, the limit is 12"
	run bash -c 'ulimit -n 12; hps-serve job.json'
	status_is 6
	output_has "hint: raise it: ulimit -n"
	run bash -c 'ulimit -n 12; hps-profile --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json"'
	status_is 6
	output_has "file descriptors"
	# a soft limit is raised
	start serve bash -c 'ulimit -Sn 12; exec hps-serve job.json'
	run bash -c 'ulimit -Sn 12; hps-work job.json train.tsv'
	status_is 0
	ends serve 0
	job 1 1 1 1073741824 bsp ps
	run bash -c 'ulimit -v 4000000; hps-work job.json train.tsv'
	status_is 6
	output_has "deployment.batch: micro-batches of 1073741824 rows take at least"
}

@test "a malformed line ends the job everywhere, named" {
	sed -i '417s/\t/\tnine/' train.tsv
	job 2,1 1 2 24 bsp ps spread
	start serve hps-serve --host here job.json
	for h in h0 h1 h2; do start work-$h hps-work --host $h job.json train.tsv; done
	for p in work-h0 work-h1 work-h2 serve; do
		ends $p 3
		says $p "train.tsv:417"
	done
}

@test "a loss that is not finite ends the job, with step, micro-batch, file and lines" {
	jq '.train.optimizer = {"kind": "sgd", "lr": 1e6}
	    | (.layers[] | select(.op == "dense") | .activation) = "linear"' \
		"$HPS_ROOT/testdata/models/narrow/ctrdnn.json" >wild.json
	job 2,1 1 2 24 bsp ps spread wild.json
	start serve hps-serve --host here job.json
	for h in h0 h1 h2; do start work-$h hps-work --host $h job.json train.tsv; done
	for p in work-h0 work-h1 work-h2 serve; do
		ends $p 3
		says $p "loss is"
		grep -Eq 'step [0-9]+, micro-batch [0-3]: loss is (nan|infinite) \(train.tsv: lines [0-9]+ to [0-9]+\)' $p.err
	done
}

@test "a model that the last update spoilt is not saved" {
	jq '.train.optimizer = {"kind": "sgd", "lr": 1e6} | .tables[].optimizer = .train.optimizer' \
		"$HPS_ROOT/testdata/models/narrow/ctrdnn.json" >wild.json
	job 1,1 1 1 24 bsp ps one wild.json
	start serve hps-serve --state state job.json
	# the loss of two steps is finite, what the second one makes of the weights is not
	start work hps-work --rows 0:48 --test train.tsv job.json train.tsv
	ends work 3
	ends serve 3
	grep -Eq 'a score is (nan|infinite) \(train.tsv: lines ' work.err
	[ ! -e state/here/save-1 ]
}

@test "options and data must be the same on all hosts" {
	job 2 1 1 24 bsp ps spread
	start serve hps-serve --host here --timeout 20 job.json
	start a hps-work --host h0 job.json train.tsv
	first=$(child a)
	until grep -q "missing" a.err || ! kill -0 "$first" 2>/dev/null; do
		hps-work --host h1 --epochs 7 --timeout 10 job.json train.tsv 2>b.err && rc=0 || rc=$?
		[ "$rc" != 5 ] && break
	done
	# who comes second is refused
	[ "$rc" = 2 ] || ends a 2
	grep -q "epochs is not what another process of the job says" b.err a.err
	kill -INT "$first" "$(child serve)" 2>/dev/null || true
	wait
	pid=()
}

@test "a second hps-work of the same host is told that the first is there" {
	long_job
	run hps-work --host h0 --epochs 1000000 job.json train.tsv
	status_is 5
	output_has "s/r0-0"
	kill -INT "$(child work-h0)"
	for q in work-h0 work-h1 work-h2 serve-here serve-s1; do ends $q 0; done
}

@test "data that cannot be read are told before anybody is waited for" {
	job 1 1 1 24 bsp ps
	run hps-work job.json absent.tsv
	status_is 4
	output_has "absent.tsv"
	: >empty.tsv
	run hps-work job.json empty.tsv
	status_is 3
	output_has "empty.tsv"
	run hps-work job.json train.tsv --test absent.tsv
	status_is 4
}

@test "a job document without a deployment names the command that adds it" {
	jq '{hps: 1, model: .}' "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" >model.json
	run hps-work model.json train.tsv
	status_is 3
	output_has "hps-provision"
}
