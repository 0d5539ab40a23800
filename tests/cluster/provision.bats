# What hps-provision writes can be run: every mode of synchronisation, and replicas of all stages.
load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	rows 48 >train.tsv
	# Whatever this machine has, the cluster has room.
	hps-profile -q --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" |
		jq '.cluster.types[0].limit = 8 | .cluster.hosts[0].units.cpu = 8 |
			.cluster.hosts[0].ps_cores = 4' >profile.json
}

@test "every sync, dense-sync and number of replicas is refused, or runs to its end" {
	ran=0
	for plan in 'cpu*1|cpu*1' 'cpu*2|cpu*1' 'cpu*1|cpu*3'; do
		hps-plan -q -m "fixed:$plan" profile.json >plan.json
		for sync in bsp asp; do
			for dense in auto ps ring; do
				run --separate-stderr hps-provision -q --sync $sync --dense-sync $dense \
					--batch 12 --micro-batches 2 --shards 2 plan.json
				if [ "$sync $dense" = "asp ring" ]; then
					status_is 2
					output_is ""
					continue
				fi
				status_is 0
				printf '%s\n' "$output" >job.json
				[ $sync = bsp ] || jq -e '[.deployment.stages[].dense_sync == "ps"] | all' job.json
				hps-run -q job.json train.tsv >events
				[ "$(event done events .samples)" = 48 ]
				ran=$((ran + 1))
			done
		done
	done
	[ "$ran" = 15 ]
}
