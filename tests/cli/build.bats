# What make does besides compiling: installing, stricter builds, the list for editors. Nothing is
# built here: what is installed is the tree that is under test.

load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	dest=$BATS_TEST_TMPDIR/dest
}

# make_here ARGUMENT...: in the repository, with no flags of a make that runs this test.
make_here() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory -C "$HPS_ROOT" "$@"
}

# installing TARGET [VARIABLE=...]...: without looking at what could be rebuilt (-o all).
installing() {
	make_here -o all BUILD="$(dirname "$HPS_BIN")" "$@" DESTDIR="$dest" PREFIX=/opt/hps
}

@test "install puts commands, manual pages and models under DESTDIR and PREFIX, uninstall takes them" {
	installing install
	for command in $(commands); do
		[ "$(stat -c %a "$dest/opt/hps/bin/${command##*/}")" = 755 ]
	done
	[ "$(ls "$dest/opt/hps/bin" | wc -l)" = "$(commands | wc -l)" ]
	for page in "$HPS_ROOT"/man/*.[17]; do
		cmp "$page" "$dest/opt/hps/share/man/man${page##*.}/${page##*/}"
	done
	for model in "$HPS_ROOT"/testdata/models/*.json; do
		cmp "$model" "$dest/opt/hps/share/hps/models/${model##*/}"
	done
	[ "$(find "$dest" -type f | wc -l)" = \
		$(($(commands | wc -l) + $(ls "$HPS_ROOT"/man/*.[17] "$HPS_ROOT"/testdata/models/*.json | wc -l))) ]
	installing uninstall
	[ -z "$(find "$dest" -type f)" ]
}

@test "the installed hps-run runs a job with the commands beside it" {
	installing install
	# No other place has them.
	PATH=$(tr : '\n' <<<"$PATH" | grep -vxF -e "$HPS_BIN" -e "$HPS_ROOT/scripts" | paste -sd :)
	run command -v hps-work
	status_is 1
	bin=$dest/opt/hps/bin
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	"$bin/hps-data" gen -n 40 --slots 5 --dense 3 -o train.tsv
	"$bin/hps-profile" -q --quick "$HPS_ROOT/testdata/models/narrow/ctrdnn.json" |
		"$bin/hps-plan" -q -m 'fixed:cpu*1' | "$bin/hps-provision" -q >job.json
	"$bin/hps-run" -q job.json train.tsv >events
	jq -se 'map(select(.event == "done")) | .[0].samples == 40' events
	(cd / && "$bin/hps-run" --version) | grep -q '^hps-run '
}

@test "DEV=1 makes each warning an error, and only it does" {
	make_here -n -B DEV=1 BUILD="$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/b/obj/lib/base/err.o" >dev
	grep -q -- ' -Werror .*-c .*lib/base/err.c' dev
	grep -q -- ' -Wmissing-prototypes ' dev
	make_here -n -B BUILD="$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/b/obj/lib/base/err.o" >plain
	grep -q -- ' -Wall .*-c .*lib/base/err.c' plain
	! grep -q -- -Werror plain
}

@test "compile_commands.json is JSON and names every source, each with a command" {
	[ "$HPS_BIN" = "$HPS_ROOT/build/bin" ] || skip "another build writes none"
	jq -r '.[].file' "$HPS_ROOT/compile_commands.json" | sort >listed
	(cd "$HPS_ROOT" && find lib cmd tests -name '*.c') | sort >there
	diff there listed
	jq -e 'all(.[]; (.directory | startswith("/")) and (.file as $f | .command | endswith("-c " + $f)))' \
		"$HPS_ROOT/compile_commands.json"
}
