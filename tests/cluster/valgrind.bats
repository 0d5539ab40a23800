# A short job under valgrind: no invalid access, no leak, in servers, workers and filters.
load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	command -v valgrind >/dev/null || skip "no valgrind here"
	case $HPS_BIN in *build-*) skip "sanitizer build" ;; esac
	grind="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite"
}

@test "plan, provision, train and evaluate, load and predict" {
	awk 'BEGIN { for (i = 1; i <= 60; i++) {
		printf "%d\t%d\t\t%d", i % 2, i, -i
		for (s = 0; s < 5; s++) printf "\t%x", i * s % 50
		printf "\n" } }' >rows.tsv
	hps-profile -q --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" >profile.json
	$grind hps-plan -q -m 'fixed:cpu*1|cpu*1' profile.json >plan.json
	$grind hps-provision -q --shards 2 --run-dir "$BATS_TEST_TMPDIR/s" plan.json >job.json
	for mode in "--test rows.tsv" --predict; do
		$grind hps-serve -q --timeout 120 --dead-after 60 --state model job.json &
		# shellcheck disable=SC2086
		$grind hps-work -q --timeout 120 --dead-after 60 $mode job.json rows.tsv >out
		wait $!
	done
	[ "$(wc -l <out)" = 60 ]
}
