# hps-run: a whole job here, whatever happens to its processes.
load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	rows 300 >train.tsv
}

# rows N [BAD]: Criteo rows for the narrow model, row BAD (from 1) with a column missing.
rows() {
	awk -v n="$1" -v bad="${2:-0}" 'BEGIN { for (i = 1; i <= n; i++) {
		printf "%d\t%d\t\t%d\tcafe", i % 2, i, -i
		for (s = 1; s < (i == bad ? 4 : 5); s++) printf "\t%x", i * s % 50
		printf "\n" } }'
}

# job [PLAN]: job.json of the narrow model
job() {
	hps-profile -q --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" |
		hps-plan -q -m "${1:-fixed:cpu*1|cpu*1}" |
		hps-provision -q --shards 2 --run-dir "$BATS_TEST_TMPDIR/s" >job.json
}

# endless: data that never ends, through a pipe, so that a job can be caught at work
endless() {
	while rows 200; do :; done 2>/dev/null
}

# Processes of this test's job: those that have its document on their command line.
processes() {
	ps -eo pid=,comm=,args= | awk -v job="$BATS_TEST_TMPDIR/job.json" '$2 ~ /^hps-(serve|work)/ && index($0, job) { print $1, $2 }'
}

pid_of() {
	processes | awk -v name="$1" '$2 == name { print $1; exit }'
}

none_left() {
	[ -z "$(processes)" ] || { processes; return 1; }
}

# A line came through the events of a job: it is at work.
wait_for_step() {
	read -r line <&7
	case $line in *'"event":"step"'*) ;; *) echo "got: $line"; return 1 ;; esac
}

# begin: the job on endless data in the background, its events on descriptor 7
begin() {
	job
	mkfifo events
	endless | env --default-signal=INT hps-run "$@" "$BATS_TEST_TMPDIR/job.json" --log-every 1 - >events 2>messages &
	run_pid=$!
	exec 7<events
	wait_for_step
}

# finish: the status of hps-run, all its events read
finish() {
	cat <&7 >rest
	exec 7<&-
	status=0
	wait "$run_pid" || status=$?
	output=$(cat messages)
}

@test "a job runs to its end, and is saved" {
	job
	run --separate-stderr hps-run -v --state model "$BATS_TEST_TMPDIR/job.json" --test train.tsv train.tsv
	status_is 0
	[ "$(jq -r .event <<<"$output" | sort -u | tr '\n' ' ')" = "done eval step " ]
	[ "$(jq -r 'select(.event == "done").samples' <<<"$output")" = 300 ]
	grep -q "hps-serve on localhost ended: exit 0" <<<"$stderr"
	ls model/*/save-*/shard-1.hps
	none_left
}

@test "a job from a pipe, as msgpack" {
	job
	hps-provision -q --msgpack --run-dir "$BATS_TEST_TMPDIR/s" job.json >job.mp
	run --separate-stderr bash -c "hps-run - train.tsv <job.mp"
	status_is 0
	[ "$(jq -r 'select(.event == "done").samples' <<<"$output")" = 300 ]
}

@test "the process that fails first is named, with its last words" {
	job
	rows 300 77 >train.tsv
	run --separate-stderr hps-run "$BATS_TEST_TMPDIR/job.json" train.tsv
	status_is 3
	grep -q "hps-run: hps-work on localhost failed first: exit 3, bad input: .*train.tsv:77: " <<<"$stderr"
	none_left
}

@test "a killed server ends the job, and is named" {
	begin
	kill -KILL "$(pid_of hps-serve)"
	finish
	status_is 137
	output_has "hps-run: hps-serve on localhost failed first: exit 137, killed by SIGKILL"
	none_left
}

@test "a killed worker ends the job, and is named" {
	begin
	kill -KILL "$(pid_of hps-work)"
	finish
	status_is 137
	output_has "hps-run: hps-work on localhost failed first: exit 137, killed by SIGKILL"
	none_left
}

# hps-run itself, by the document on its command line
run_pid() {
	ps -eo pid=,args= | awk -v job="$BATS_TEST_TMPDIR/job.json" '/hps-run/ && index($0, job) { print $1; exit }'
}

@test "a signal is passed on: the job saves and ends well" {
	for s in TERM INT HUP; do
		begin --state "model-$s"
		kill "-$s" "$(run_pid)"
		finish
		status_is 0
		[ "$(tail -n 1 rest | jq -r '.event, .interrupted' | tr '\n' ' ')" = "done true " ]
		ls "model-$s"/*/save-*/shard-0.hps
		rm events
	done
	none_left
}

@test "a signal while the processes start ends them, and is no failure" {
	job
	mkfifo started
	for after in hps-serve hps-work; do
		endless | timeout 60 hps-run -v "$BATS_TEST_TMPDIR/job.json" - >events 2>started &
		job_pid=$!
		exec 8<started
		while read -r line <&8 && [[ $line != *"started $after"* ]]; do :; done
		kill -TERM "$(run_pid)"
		cat <&8 >messages
		exec 8<&-
		status=0
		wait "$job_pid" || status=$?
		output=$(cat messages)
		[ "$status" = 0 ] || status_is 143
		! grep "failed first" messages || false
		none_left
	done
}

@test "an evaluation of no rows has null figures, and says why" {
	job
	for words in "--test train.tsv --test-rows 9000:" "--eval --rows 9000:"; do
		# shellcheck disable=SC2086
		run --separate-stderr hps-run -q --state model "$BATS_TEST_TMPDIR/job.json" $words train.tsv
		status_is 0
		[ "$(jq -c 'select(.event == "eval") | [.rows, .auc, .auc_reason, .logloss_reason]' <<<"$output")" = \
			'[0,null,"no rows","no rows"]' ]
	done
}

@test "closed descriptors are no reason to wait" {
	job
	timeout 60 hps-run -q "$BATS_TEST_TMPDIR/job.json" train.tsv <&- >events
	[ "$(jq -r 'select(.event == "done").samples' events)" = 300 ]
	timeout 60 hps-run -q "$BATS_TEST_TMPDIR/job.json" train.tsv <&- >&- 2>&- && rc=0 || rc=$?
	[ "$rc" = 4 ] # the events are lost
	none_left
}

@test "a host named twice runs once" {
	job
	run --separate-stderr hps-run -v --host localhost --host=localhost "$BATS_TEST_TMPDIR/job.json" train.tsv
	status_is 0
	[ "$(grep -c ": started " <<<"$stderr")" = 2 ]
}

@test "on a terminal, too, messages are kept and the last words are told" {
	command -v script || skip "no script(1)"
	job
	rows 300 77 >train.tsv
	run script -qefc "hps-run -k $BATS_TEST_TMPDIR/job.json train.tsv" /dev/null
	status_is 3
	output_has "hps-work on localhost failed first: exit 3, bad input: "
	grep -q "train.tsv:77: " hps-run.*/*.log
}

@test "a worker that fails before it joins ends the servers, too" {
	job
	run --separate-stderr timeout 60 hps-run -v "$BATS_TEST_TMPDIR/job.json" absent.tsv
	status_is 4
	grep -q "hps-work on localhost failed first: exit 4, I/O: .*absent.tsv" <<<"$stderr"
	grep -q "hps-serve on localhost ended" <<<"$stderr"
	none_left
}

@test "a folder for messages that cannot be made is an error" {
	job
	TMPDIR=/dev/null run hps-run "$BATS_TEST_TMPDIR/job.json" train.tsv
	status_is 4
	output_has "/dev/null/hps-run"
}

@test "a killed hps-run leaves nothing running" {
	begin
	pids=$(processes | cut -d' ' -f1)
	kill -KILL "$(run_pid)"
	finish
	for pid in $pids; do
		timeout 20 tail --pid="$pid" -f /dev/null
	done
	none_left
}

@test "no deployment, no job, wrong options" {
	hps-profile -q --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" >job.json
	run hps-run job.json train.tsv
	status_is 3
	output_has "hps-provision"
	run hps-run absent.json train.tsv
	status_is 4
	run hps-run - train.tsv </dev/null
	status_is 3
	run hps-run
	status_is 2
	run hps-run --wrong job.json
	status_is 2
	output_has "try 'hps-run -h'"
}
