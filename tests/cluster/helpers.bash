# What every bats file of tests/cluster loads: jobs over real processes on ipc:// sockets in the
# test's own directory. Every process is waited for, and its exit status looked at; whatever a
# failed test leaves is ended in teardown.
load ../cli/helpers

tests_dir="${HPS_TESTS:-$HPS_BIN/../tests}"
make_job="$tests_dir/cluster/make_job"

# job STAGES SHARDS MICRO BATCH SYNC DENSE [HOSTS] [MODEL]: writes job.json (make_job.c).
job() {
	"$make_job" "${8:-$HPS_ROOT/testdata/models/narrow/ctrdnn.json}" "$BATS_TEST_TMPDIR/s" \
		"$1" "$2" "$3" "$4" "$5" "$6" "${7:-one}" >job.json
}

# rows N [SEED]: rows for the narrow CTRDNN (3 integers, 5 ids) whose label depends on them.
rows() {
	awk -v n="$1" -v seed="${2:-1}" 'BEGIN {
		srand(seed)
		for (i = 0; i < n; i++) {
			w = 0; line = ""
			for (d = 0; d < 3; d++) {
				x = int(rand() * 50); w += x > 25 ? 0.5 : -0.5
				line = line "\t" (rand() < 0.05 ? "" : x)
			}
			for (s = 0; s < 5; s++) {
				x = int(rand() * 9); w += (x * 7 % 5 - 2) * 0.7
				line = line sprintf("\t%08x", 4096 * s + x)
			}
			print (rand() < 1 / (1 + exp(-w)) ? 1 : 0) line
		}
	}'
}

# start NAME COMMAND...: in the background, limited; stdout to NAME.out, stderr to NAME.err. A signal
# waits until the command is ready for it.
declare -gA pid=()
start() {
	local name=$1
	shift
	timeout -k 5 60 env --block-signal=INT --block-signal=TERM "$@" >"$name.out" 2>"$name.err" </dev/null 3>&- &
	pid[$name]=$!
}

# ends NAME STATUS: wait for it; its status is STATUS.
ends() {
	local rc=0
	wait "${pid[$1]}" || rc=$?
	unset "pid[$1]"
	if [ "$rc" -ne "$2" ]; then
		echo "$1: expected exit status $2, got $rc"
		tail -n 20 "$1.err" "$1.out"
		return 1
	fi
}

# says NAME TEXT: its messages hold TEXT.
says() {
	if ! grep -qF -- "$2" "$1.err"; then
		echo "$1: expected a message with: $2"
		cat "$1.err"
		return 1
	fi
}

# child NAME: the process under timeout(1), to be sent a signal: once it is the command, no more env(1).
child() {
	local c
	until c=$(pgrep -P "${pid[$1]}") && [[ $(cat "/proc/$c/comm" 2>/dev/null) == hps-* ]]; do
		kill -0 "${pid[$1]}" || return 1
	done
	echo "$c"
}

# first_line FILE: wait until a process has written a line there.
first_line() {
	timeout 120 tail -n +1 -f "$1" 2>/dev/null | head -n 1 >/dev/null
	[ -s "$1" ]
}

# event NAME FILE FILTER: jq on the last event of a kind.
event() {
	jq -s -r "map(select(.event == \"$1\")) | last | $3" "$2"
}

# no_time FILE: the events without figures of time.
no_time() {
	jq -c 'del(.samples_per_s, .seconds, .saved)' "$1"
}

teardown() {
	local name
	for name in "${!pid[@]}"; do
		kill -KILL "$(pgrep -P "${pid[$name]}")" "${pid[$name]}" 2>/dev/null || true
		wait "${pid[$name]}" 2>/dev/null || true
	done
}
