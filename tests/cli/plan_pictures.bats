#!/usr/bin/env bats
# hps-plan --plot and --dot: pictures that other programs read.

load helpers

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$HPS_ROOT/testdata/profiles
}

# well_formed FILE: is it XML?
well_formed() {
	if command -v xmllint >/dev/null; then
		xmllint --noout "$1"
	elif command -v python3 >/dev/null; then
		python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
	else
		skip "neither xmllint nor python3"
	fi
}

# layer_names FILE: the text elements that begin with a layer's number.
layer_names() {
	sed -n 's/.*<text class="small" x="60.0"[^>]*>\(.*\)<\/text>/\1/p' "$1" | grep '^[0-9]'
}

# hostile: a profile whose layers' names are markup, quotes, controls and no end.
hostile() {
	jq '.profile.layers[0].name = "a<b>&\"\\N\u0001\u001b]]> \u65e5"
		| .profile.layers[2].name = "x\" onload=\"alert(1)"
		| .profile.layers[3].name = "-->\n" + ("long " * 20)' "$P/opt350.json" >hostile.json
}

@test "plot: every layer, stage and type, the plan among the frontier" {
	hps-plan -q -m exact --form paper -t 51.2 --merge --plot plan.svg "$P/opt350.json" >plan.json
	well_formed plan.svg
	jq -e .plan.proven plan.json
	[ "$(layer_names plan.svg | wc -l)" -eq "$(jq '.profile.layers | length' plan.json)" ]
	[ "$(grep -c '>stage [0-9]*<' plan.svg)" -eq "$(jq '.plan.stages | length' plan.json)" ]
	jq -r '.plan.stages[] | ">\(.units) × \(.type)<"' plan.json | while read -r label; do
		grep -q "$label" plan.svg
	done
	grep -q ">floor<" plan.svg
	grep -q ">this plan<" plan.svg
	[ "$(grep -c '<circle' plan.svg)" -gt 5 ]
	# The same bytes again, and as the only output.
	hps-plan -q -m exact --form paper -t 51.2 --merge --plot - "$P/opt350.json" | cmp - plan.svg
}

@test "plot: names can not break out" {
	hostile
	hps-plan -q --form paper -m all:A100-40 --plot plan.svg hostile.json >/dev/null
	well_formed plan.svg
	[ "$(layer_names plan.svg | sed -n 1p)" = '0 a&lt;b&gt;&amp;&quot;\N��]]&gt; 日' ]
	[ "$(layer_names plan.svg | sed -n 3p)" = '2 x&quot; onload=&quot;alert(1)' ]
	[ "$(layer_names plan.svg | sed -n 4p)" = '3 --&gt;�long long long long long …' ]
}

@test "plot: 64 types, each with a look and a name of its own" {
	jq '(.cluster.types[0]) as $c | (.profile.types[0]) as $p |
		.cluster.types = [range(64) as $t | $c + {name: "type\($t)"}] |
		.profile.types = [range(64) as $t | $p + {name: "type\($t)"}]' "$P/opt350.json" >many.json
	jq -r '[range(26) as $l | "type\($l * 2)*1@\($l)-\($l)"] | join("|")' -n >stages
	hps-plan -q --form paper -m "fixed:$(cat stages)" --plot many.svg many.json >/dev/null
	well_formed many.svg
	# Colour and hatching of the swatches: one look for each type.
	for ((t = 0; t < 52; t += 2)); do
		grep -q ">1 × type$t<" many.svg
		sed -n "s/.*id=\"t$t\".* d=\"\([^\"]*\)\".*/\1/p" many.svg >hatch
		echo "$((t % 8)) $(cat hatch)"
	done | sort | uniq -d >twice
	[ ! -s twice ]
}

@test "plot with pareto draws that frontier" {
	hps-plan -q --pareto 6 --text --plot plan.svg "$P/two-types.json" >frontier.tsv
	well_formed plan.svg
	[ "$(grep -c '<circle' plan.svg)" -eq "$(($(wc -l <frontier.tsv) - 1))" ]
}

@test "dot: stages, layers, bytes, servers" {
	hps-plan -q -m 'fixed:cpu*1@0-2|cpu*1@3-' --dot plan.dot "$P/ctrdnn-here.json" >plan.json
	[ "$(grep -c 'subgraph cluster_' plan.dot)" -eq 2 ]
	grep -q 'data -> l0 \[label="208 B"\]' plan.dot
	grep -q 'l0 -> l1 \[label="1.04 kB"\]' plan.dot
	grep -q 'l2 -> l3 \[label="1.6 kB.*back 1.6 kB", penwidth' plan.dot
	grep -q 'l5 -> loss' plan.dot
	grep -q 'l0 -> ps .*rows' plan.dot
	grep -q 'parameter servers.*shard 0' plan.dot
	grep -q 'sets the pace' plan.dot
	hps-plan -q -m 'fixed:cpu*1@0-2|cpu*1@3-' --dot - "$P/ctrdnn-here.json" | cmp - plan.dot
	hostile
	hps-plan -q --form paper -m all:A100-40 --dot hostile.dot hostile.json >/dev/null
	grep -qF 'l0 [label="a<b>&amp;\"\\N��]]> 日"]' hostile.dot
	if command -v dot >/dev/null; then
		dot -Tsvg plan.dot >drawn.svg
		dot -Tsvg hostile.dot >drawn.svg
	fi
}

@test "pictures that can not be" {
	run --separate-stderr hps-plan --plot - --dot - "$P/two-types.json"
	status_is 2
	output_is ""
	run --separate-stderr hps-plan --plot - --text "$P/two-types.json"
	status_is 2
	run --separate-stderr hps-plan --compare exact --dot x.dot "$P/two-types.json"
	status_is 2
	run --separate-stderr hps-plan --plot nowhere/x.svg "$P/two-types.json"
	status_is 4
	output_is ""
	output=$stderr
	output_has "nowhere/x.svg"
	# No plan, no picture; an old one stays.
	echo old >old.svg
	run --separate-stderr hps-plan -t 1e12 --plot old.svg "$P/two-types.json"
	status_is 1
	[ "$(cat old.svg)" = old ]
	run bash -c 'hps-plan -q --plot - "$0" >/dev/full' "$P/two-types.json"
	status_is 4
}
