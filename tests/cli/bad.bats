# Broken documents, given to the commands that read them: exit 3, the place named, no output.
load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR
	bad=$HPS_ROOT/testdata/bad
}

# refused TEXT COMMAND...
refused() {
	local text=$1
	shift
	run --separate-stderr "$@"
	if [ "$status" -ne 3 ] || [ -n "$output" ] || [[ "$stderr" != *"$text"* ]]; then
		echo "$*: status $status, output '$output', messages '$stderr', expected: $text"
		return 1
	fi
}

@test "models, clusters and jobs that do not hold" {
	n=0
	while IFS=$'\t' read -r file kind text _; do
		case $file in '#'* | '') continue ;; esac
		case $kind in
		model) refused "$file" hps-profile --quick "$bad/$file" ;;
		cluster) refused "$file" hps-profile --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" "$bad/$file" ;;
		job) refused "$file" hps-work "$bad/$file" absent.tsv ;;
		*) false ;;
		esac
		n=$((n + 1))
	done <"$bad/expected.tsv"
	[ "$n" -ge 39 ]
	[ -z "$(find . -type f ! -name "separate-stderr-*")" ]
}

@test "bytes that are no document, whatever reads them" {
	: >empty
	head -c 1000 /dev/urandom >junk
	gzip -c "$HPS_ROOT/testdata/models/ctrdnn.json" >packed
	head -c 500 "$HPS_ROOT/testdata/models/ctrdnn.json" >half
	for file in empty junk packed half; do
		for command in "hps-profile --quick" hps-plan hps-provision hps-serve; do
			refused "$file" $command "$file"
		done
		refused "$file" hps-work "$file" data.tsv
	done
}
