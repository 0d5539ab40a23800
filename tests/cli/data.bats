#!/usr/bin/env bats
# hps-data: what its three commands write, and how they fail.

load helpers
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
}

small() {
	hps-data gen -n 2000 --ids 50 "$@"
}

@test "gen: the same bytes for a seed, whatever the threads and the compression" {
	small -j 1 >one
	small -j 3 >three
	cmp one three
	small --compress gzip -o one.gz
	small --compress zstd >one.zst
	gzip -dc one.gz | cmp - one
	zstd -qdc one.zst | cmp - one
	small --seed 2 | { ! cmp -s - one; }
	[ "$(wc -l <one)" -eq 2000 ]
	[ "$(awk -F '\t' 'NF != 40' one | wc -l)" -eq 0 ]
}

@test "gen --skip continues the same data set" {
	small >all
	small -n 1200 >head
	small -n 800 --skip 1200 >tail
	cat head tail | cmp - all
}

@test "gen --truth tells what can be known" {
	small -n 20000 --truth truth.json -o rows.tsv
	[ "$(jq .rows truth.json)" -eq 20000 ]
	[ "$(jq .positives truth.json)" -eq "$(grep -c ^1 rows.tsv)" ]
	jq -e '.best_auc > 0.7 and .best_auc < 0.9' truth.json
	jq -e '(.best_logloss - .expected_logloss | fabs) < 0.02' truth.json
	jq -e '.settings | .ids == 50 and .seed == 1 and .slots == 26' truth.json
	hps-data gen -n 1 --truth one.json >/dev/null
	jq -e '.best_auc == null and .best_logloss > 0' one.json
}

@test "gen: rows and truth are two outputs" {
	refuse() {
		run --separate-stderr hps-data gen -n 10 "$@"
		output_is ""
		output=$stderr
		status_is 2
		output_has "--truth: "
		[ -z "$(ls -I "separate*")" ]
	}
	refuse -o x --truth x
	refuse -o ./x --truth "$PWD/x"
	refuse --truth -
	refuse -o - --truth -
	hps-data gen -n 10 -o rows --truth - | jq -e '.rows == 10'
	[ "$(wc -l <rows)" = 10 ]
	[ ! -e - ]
	# A place that cannot be written is told before the rows are made.
	run hps-data gen -n 10 -o other --truth no/such/place
	status_is 4
	[ ! -e other ]
}

@test "gen: a file at its size limit, and a reader who leaves, exit 4 and leave nothing" {
	for compress in none zstd; do
		rc=0
		(ulimit -f 8 && exec hps-data gen -n 20000 --compress $compress -o big) 2>/dev/null || rc=$?
		[ "$rc" -eq 4 ]
	done
	[ -z "$(ls)" ]
	rc=0
	(ulimit -f 8 && exec hps-data gen -n 20000 >big) 2>/dev/null || rc=$?
	[ "$rc" -eq 4 ]
	{ hps-data gen -n 20000 2>told && echo 0 >rc || echo $? >rc; } | head -n 1 >/dev/null
	[ "$(cat rc)" = 4 ]
	grep -q 'standard output: cannot write: Broken pipe' told
}

@test "gen: other shapes, no blanks" {
	hps-data gen -n 100 --slots 3 --dense 0 --blank-rate 0 >rows
	[ "$(awk -F '\t' 'NF != 4 || /\t(\t|$)/' rows | wc -l)" -eq 0 ]
	hps-data stat --slots 3 --dense 0 rows | jq -e '.rows == 100 and (.slots | length) == 3'
}

@test "gen: options out of range are usage errors" {
	for option in '--ids 0' '--rows -1' '--rows x' '--base-rate 0' '--zipf nan' \
		'--compress bzip2' '--slots 0' '-j 0' 'operand'; do
		run hps-data gen $option
		status_is 2
	done
	run hps-data gen --compress bzip2
	output_is 'hps-data: --compress: expected none, gzip or zstd, got "bzip2"'
}

@test "conv: any compression to any other, joined, a part of the rows" {
	small >all
	split -l 1000 all part
	gzip partaa
	zstd -q --rm partab
	hps-data conv partaa.gz partab.zst | cmp - all
	hps-data conv --compress zstd -o all.zst all
	hps-data conv <all.zst | cmp - all
	hps-data conv --first 901 --last 1100 partaa.gz - <partab.zst >some
	sed -n 901,1100p all | cmp - some
	hps-data conv --first 2000 all | cmp - <(tail -n 1 all)
	run hps-data conv --first 2001 all
	status_is 3
	output_is 'hps-data: no rows are left: the data end at row 2000'
	run hps-data conv --first 5 --last 4 all
	status_is 2
}

@test "conv: line ends are made alike" {
	printf '1\t2\ta\r\n0\t3\tb' | hps-data conv --slots 1 --dense 1 >out
	printf '1\t2\ta\n0\t3\tb\n' | cmp - out
}

@test "malformed lines are named, or left out up to a number" {
	small >rows
	sed -i '17s/^.\t[^\t]*/0\tx/; 40s/\t[^\t]*$//' rows
	for command in conv stat; do
		run hps-data "$command" rows
		status_is 3
		output_has 'hps-data: rows:17: column 2: expected an integer, got "x"'
		run hps-data "$command" --skip-bad 1 rows
		status_is 3
		output_has 'hps-data: rows:40: expected 40 columns, got 39'
		output_has 'hint: malformed lines before it that were skipped: 1'
	done
	hps-data conv --skip-bad 2 -o good rows 2>told
	grep -q 'malformed lines left out: 2' told
	sed '17d; 40d' rows | cmp - good
	hps-data stat --skip-bad 2 rows | jq -e '.rows == 1998 and .bad_lines == 2'
	# A file appears whole or not at all.
	run hps-data conv -o never rows
	status_is 3
	[ -z "$(find . -name 'never*')" ]
}

@test "damaged and foreign input is named" {
	small --compress gzip -o whole.gz
	head -c 1000 whole.gz >cut.gz
	run hps-data stat cut.gz
	status_is 3
	output_is "hps-data: cut.gz:$(($(gzip -dc cut.gz 2>/dev/null | wc -l) + 1)): truncated gzip data: it ends after byte 1000
hint: whole lines before it: $(gzip -dc cut.gz 2>/dev/null | wc -l)"
	small --compress zstd -o whole.zst
	head -c 1000 whole.zst >cut.zst
	run hps-data stat cut.zst
	status_is 3
	output_has 'hps-data: cut.zst:1: truncated zstd data: it ends after byte 1000'
	# The first line of later members, and what stands between them.
	small --compress gzip >two.gz
	count=$(gzip -dc two.gz | wc -l) size=$(wc -c <two.gz)
	cp two.gz more.gz
	head -c 500 two.gz >>more.gz
	run hps-data stat more.gz
	status_is 3
	output_has "truncated gzip data: it ends after byte $((size + 500))"
	output_has "hps-data: more.gz:$((count + $(head -c 500 two.gz | gzip -dc 2>/dev/null | wc -l) + 1)): "
	cp two.gz more.gz
	echo junk >>more.gz
	run hps-data stat more.gz
	status_is 3
	output_has "hps-data: more.gz:$((count + 1)): junk after the end of the gzip data, at byte $((size + 1))"
	cp whole.zst more.zst
	printf '\x28\xb5\x2f\xfdjunkjunkjunkjunk' >>more.zst
	run hps-data stat more.zst
	status_is 3
	output_has "hps-data: more.zst:$((count + 1)): corrupt zstd data before byte "
	: >empty
	run hps-data stat empty
	status_is 3
	output_is 'hps-data: empty: the file is empty'
	head -c 5000 /dev/zero >zeros
	run hps-data stat zeros
	status_is 3
	output_has 'hps-data: zeros:1: byte 1 is NUL'
	run hps-data stat absent
	status_is 4
	output_is 'hps-data: absent: cannot open: No such file or directory'
	run hps-data stat .
	status_is 4
	run bash -c 'true | hps-data conv'
	status_is 3
	output_has 'hps-data: standard input: there is no data'
	output_has 'hint: '
	run hps-data stat - - </dev/null
	status_is 2
	output_has 'standard input is named twice'
}

@test "output that cannot be written is an error" {
	run bash -c 'hps-data gen -n 1000 >/dev/full'
	status_is 4
	output_has 'standard output'
	run hps-data gen -n 1000 -o /dev/full
	status_is 4
	run hps-data gen -o absent/file
	status_is 4
	run bash -c 'hps-data gen -n 100000 | head -n 1 | cut -c 1; exit ${PIPESTATUS[0]}'
	status_is 4
}

@test "stat: JSON, msgpack and text agree" {
	small >rows
	hps-data stat rows >stat.json
	jq -e --argjson n "$(grep -c ^1 rows)" '.rows == 2000 and .positives == $n' stat.json
	jq -e --argjson n "$(wc -c <rows)" '.bytes == $n' stat.json
	for column in 15 27 40; do
		jq -e --argjson c $column --argjson d "$(cut -f $column rows | sort -u | wc -l)" \
			'.slots[] | select(.column == $c) | .distinct == $d and .exact' stat.json
	done
	jq -e --argjson b "$(cut -f 5 rows | grep -c '^$')" '.dense[3].blanks == $b' stat.json
	jq -e --argjson m "$(cut -f 5 rows | grep . | sort -n | tail -n 1)" '.dense[3].max == $m' stat.json
	hps-data stat --msgpack rows >stat.mp
	[ "$(head -c 1 stat.mp)" != '{' ]
	hps-data stat --text rows >stat.txt
	grep -q '^rows  *2000$' stat.txt
	[ "$(grep -cE '^ *[0-9]+ ' stat.txt)" -eq 39 ]
}

@test "stat: rows without labels" {
	small | cut -f 2- >rows
	run hps-data stat rows
	status_is 3
	hps-data stat --unlabelled rows | jq -e '.rows == 2000 and .labelled == 0 and .base_rate == null'
}

@test "stat: the real data" {
	file=${HPS_DATA:-$HPS_ROOT/../shared/data}/criteo-10k/criteo_first10000.tsv
	[ -r "$file" ] || skip "no $file"
	hps-data stat "$file" |
		jq -e '.rows == 10000 and .positives == 2182 and .distinct == 43591 and .bad_lines == 0'
}

@test "help of the three commands, and an unknown one" {
	run hps-data -h
	status_is 0
	for command in gen conv stat; do
		output_has "usage: hps-data $command "
		hps-data $command --help | grep -q "^usage: hps-data $command "
	done
	run hps-data --version
	status_is 0
	run hps-data mangle
	status_is 2
	output_has 'expected gen, conv or stat, got "mangle"'
	run hps-data
	status_is 2
}

@test "an interrupted gen leaves nothing behind" {
	hps-data gen -n 1000000000 -o big.tsv &
	pid=$!
	while kill -0 $pid && [ -z "$(ls -A)" ]; do :; done
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	status_is 4
	[ -z "$(ls -A)" ]
}
