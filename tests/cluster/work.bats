#!/usr/bin/env bats
# hps-work and hps-serve as processes: a job trains, evaluates, saves, predicts.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	rows 600 1 >train.tsv
	rows 200 2 >test.tsv
}

@test "a job trains, evaluates and saves" {
	job 2,1 2 2 24 bsp ps
	start serve hps-serve --state model job.json
	start work hps-work --epochs 8 --log-every 10 --test test.tsv job.json train.tsv
	ends work 0
	ends serve 0
	[ "$(event done work.out .steps)" = 200 ]
	[ "$(event done work.out .samples)" = 4800 ]
	[ "$(event done work.out .saved)" != null ]
	[ "$(event done work.out .tables.emb.refused)" = 0 ]
	[ "$(event eval work.out .rows)" = 200 ]
	[ "$(event eval work.out '.auc > 0.75')" = true ]
	[ "$(event eval work.out .epoch)" = 7 ]
	# every tenth step, and each epoch's last: 25 steps an epoch
	[ "$(jq -c 'select(.event == "step") | .step' work.out | tr '\n' ' ')" = \
		"$(for s in $(seq 0 199); do
			(((s + 1) % 10 == 0 || (s + 1) % 25 == 0)) && echo "$s"
		done | tr '\n' ' ')" ]
	[ -z "$(cat serve.out)" ]
	[ -z "$(ls s 2>/dev/null)" ] # no socket is left
}

@test "a configuration repeats bit for bit, whatever runs on which host" {
	for hosts in one one spread; do
		job 2,1 2 2 24 bsp ps $hosts
		if [ $hosts = one ]; then
			start serve hps-serve job.json
			start work hps-work --log-every 1 --test test.tsv job.json train.tsv
			ends work 0
			ends serve 0
			no_time work.out >events."${first:-1}"
			first=2
			continue
		fi
		for h in here s1; do start serve-$h hps-serve --host $h job.json; done
		for h in h0 h1 h2; do
			start work-$h hps-work --host $h --log-every 1 --test test.tsv job.json train.tsv
		done
		for p in work-h0 work-h1 work-h2 serve-here serve-s1; do ends $p 0; done
		[ ! -s work-h0.out ]
		[ ! -s work-h1.out ]
		no_time work-h2.out >events.3
	done
	cmp events.1 events.2
	# the job has other host names, and so another identity, but the same numbers
	cmp events.1 events.3
}

@test "asp trains every row once an epoch, over several hosts" {
	job 2,2 2 2 24 asp ps spread
	for h in here s1; do start serve-$h hps-serve --host $h job.json; done
	for h in h0 h1 h2 h3; do
		start work-$h hps-work --host $h --epochs 2 --test test.tsv job.json train.tsv
	done
	for p in work-h0 work-h1 work-h2 work-h3 serve-here serve-s1; do ends $p 0; done
	[ "$(event done work-h2.out .samples)" = 1200 ]
	[ "$(event eval work-h2.out .rows)" = 200 ]
}

@test "a ring stage's parameters are saved, and loaded on another number of shards" {
	job 1,2 1 2 24 bsp ring
	start serve hps-serve --state model job.json
	start work hps-work --test test.tsv job.json train.tsv
	ends work 0
	ends serve 0
	auc=$(event eval work.out .auc)
	job 1,1 3 1 24 bsp ps
	start serve hps-serve --state model job.json
	start work hps-work --eval job.json test.tsv
	ends work 0
	ends serve 0
	[ "$(event eval work.out .auc)" = "$auc" ]
	[ "$(event step work.out .)" = null ]
}

@test "predict prints a score for every row, in order, from a stream" {
	job 3,2 2 2 12 bsp ps
	start serve hps-serve --state model job.json
	start work hps-work --test test.tsv job.json train.tsv
	ends work 0
	ends serve 0
	start serve hps-serve --state model --keep job.json
	cut -f 2- test.tsv | hps-work --predict job.json >unlabelled
	hps-work --predict job.json test.tsv >labelled
	hps-work --predict --rows 50:60 job.json test.tsv >some
	hps-work --eval job.json test.tsv >eval
	kill -TERM "$(child serve)"
	ends serve 0
	[ "$(wc -l <labelled)" = 200 ]
	cmp labelled unlabelled
	cmp <(sed -n 51,60p labelled) some
	awk '$1 < 0 || $1 > 1 { exit 1 }' labelled
	# the mean of the scores over the positives is the calibration of the evaluation
	paste labelled <(cut -f 1 test.tsv) | awk -v c="$(event eval eval .calibration)" '
		{ s += $1; p += $2 } END { d = s / p - c; exit !(d < 1e-6 && d > -1e-6) }'
}

@test "what only evaluates shows its progress on a terminal" {
	command -v script >/dev/null || skip "no script(1)"
	job 2 1 1 24 bsp ps
	start serve hps-serve --state state job.json
	hps-work job.json train.tsv >out
	ends serve 0
	start serve hps-serve --keep --state state job.json
	for mode in eval predict; do
		script -qec "hps-work --$mode job.json test.tsv 2>&1 >$mode.out" /dev/null >$mode.bar </dev/null
	done
	kill -TERM "$(child serve)"
	ends serve 0
	grep -Eq "evaluating [0-9]+  rows" eval.bar
	grep -Eq "predicting [0-9]+  rows" predict.bar
}

@test "predict needs a model" {
	job 1 1 1 24 bsp ps
	start serve hps-serve job.json
	run hps-work --predict job.json test.tsv
	status_is 3
	output_has "serve@here: the servers hold no trained model: hps-serve was started without --state"
	kill -TERM "$(child serve)"
	ends serve 0
}

@test "standard input trains one epoch" {
	job 2 1 1 24 bsp ps
	start serve hps-serve job.json
	gzip -c train.tsv | hps-work job.json >out
	ends serve 0
	[ "$(event done out .samples)" = 600 ]
	run hps-work --epochs 2 job.json - </dev/null
	status_is 2
	output_has "standard input can be read once"
	job 2 1 1 24 bsp ps spread
	run hps-work --host h0 job.json - </dev/null
	status_is 2
	output_has "1 of 2 are here"
}

@test "rows, shuffling and skipping" {
	job 2 1 2 24 bsp ps
	sed -i '7s/.*/rubbish/' train.tsv
	start serve hps-serve job.json
	start work hps-work --skip-bad 1 --rows :100 --shuffle 50 --epochs 2 job.json train.tsv
	ends work 0
	ends serve 0
	[ "$(event done work.out .samples)" = 198 ]
	[ "$(event done work.out .skipped)" = 2 ]
	[ "$(event done work.out .steps)" = 10 ]
	run hps-work --rows 5:3 job.json train.tsv
	status_is 2
	output_has "--rows: expected A:B"
}

@test "an evaluation of one class says why a figure is null" {
	job 1 1 1 24 bsp ps
	grep '^1' test.tsv >ones.tsv
	start serve hps-serve job.json
	start work hps-work --test ones.tsv job.json train.tsv
	ends work 0
	ends serve 0
	[ "$(event eval work.out .auc)" = null ]
	[ "$(event eval work.out .auc_reason)" = "one class only" ]
}

@test "a host without replicas has nothing to do; hosts are listed" {
	job 1 2 1 24 bsp ps spread
	run hps-work --host s1 job.json train.tsv
	status_is 0
	run hps-work --host nowhere job.json train.tsv
	status_is 2
	output_has 'no host "nowhere"'
	run hps-work --hosts job.json
	status_is 0
	output_is "here
s1
h0"
}

@test "a standard output that cannot be written ends the job" {
	job 1 1 1 24 bsp ps
	start serve hps-serve job.json
	run sh -c 'hps-work --log-every 1 job.json train.tsv >/dev/full'
	status_is 4
	output_has "standard output: cannot write"
	ends serve 4
}
