# What every bats file loads: load helpers (in tests/cli) or load ../cli/helpers.
#
# HPS_ROOT is the repository, HPS_BIN the commands under test; `make check` sets both, and by
# hand they default to the plain build. Tests run with PATH beginning with the commands and
# scripts/, in $BATS_TEST_TMPDIR if they `cd` there; nothing is written elsewhere.
: "${HPS_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${HPS_BIN:=$HPS_ROOT/build/bin}"
export HPS_ROOT HPS_BIN
export PATH="$HPS_BIN:$HPS_ROOT/scripts:$PATH"

# status_is N: the status of the last `run` was N; shows its output otherwise.
status_is() {
	if [ "$status" -ne "$1" ]; then
		echo "expected exit status $1, got $status; output:"
		echo "$output"
		return 1
	fi
}

# output_has TEXT: the output of the last `run` holds TEXT.
output_has() {
	case $output in
	*"$1"*) ;;
	*)
		echo "expected output with: $1"
		echo "got: $output"
		return 1
		;;
	esac
}

# output_is TEXT: the output of the last `run` is TEXT.
output_is() {
	if [ "$output" != "$1" ]; then
		echo "expected: $1"
		echo "got:      $output"
		return 1
	fi
}

# Every command there is: compiled ones, and scripts/hps-* of which there is a man page.
commands() {
	local f
	for f in "$HPS_BIN"/hps-* "$HPS_ROOT"/scripts/hps-*; do
		[ -x "$f" ] && echo "$f"
	done
	return 0
}

# rejected STATUS TEXT COMMAND...: exit status, the text on standard error, nothing on standard output.
rejected() {
	local want=$1 text=$2
	shift 2
	run --separate-stderr "$@"
	output_is ""
	output=$stderr
	status_is "$want"
	output_has "$text"
}
