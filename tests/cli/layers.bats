#!/usr/bin/env bats
# scripts/check-layers passes on the tree as it is, and fails for each rule that is broken.

load helpers

check="$HPS_ROOT/scripts/check-layers"

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p lib cmd tests/unit
	cp -r "$HPS_ROOT"/lib/base "$HPS_ROOT"/lib/doc "$HPS_ROOT"/lib/job lib/
	printf '#include "job/job.h"\n#include <stdio.h>\n#include <sys/stat.h>\n' >cmd/hps-x.c
}

# breaks FILE INCLUDE MESSAGE: the line added to FILE is refused with MESSAGE, and it alone.
breaks() {
	mkdir -p "$(dirname "$1")"
	echo "#include $2" >>"$1"
	run "$check" .
	status_is 1
	output_is "$1:$(wc -l <"$1"): $3"
}

# allows FILE INCLUDE
allows() {
	mkdir -p "$(dirname "$1")"
	echo "#include $2" >>"$1"
	run "$check" .
	status_is 0
	output_is ""
}

@test "the tree keeps to its layers" {
	run "$check" "$HPS_ROOT"
	status_is 0
	output_is ""
}

@test "a copy of the lowest layers passes" {
	run "$check" .
	status_is 0
}

@test "an upward include fails" {
	breaks lib/base/err.c '"doc/doc.h"' 'lib/base may not include doc/doc.h'
}

@test "a sideways include fails" {
	mkdir -p lib/metric
	touch lib/metric/metric.h
	breaks lib/job/model.c '"metric/metric.h"' 'lib/job may not include metric/metric.h'
}

@test "what a lower layer may include is allowed" {
	allows lib/plan/plan.c '"base/err.h"'
	allows lib/plan/plan.c '"graph/graph.h"'
	allows lib/train/replica.c '"wire/msg.h"'
	allows lib/ps/client.c '"table/table.h"'
}

@test "a module may include itself, privately too, with and without its folder" {
	allows lib/doc/at.c '"doc/doc_int.h"'
	allows lib/doc/at.c '"doc_int.h"'
}

@test "another folder's private header fails" {
	breaks lib/job/model.c '"doc/doc_int.h"' 'doc/doc_int.h is private to lib/doc'
}

@test "a private header fails in a command" {
	breaks cmd/hps-x.c '"base/text_int.h"' 'base/text_int.h is private to lib/base'
}

@test "a module that the table does not know fails" {
	mkdir -p lib/misc
	touch lib/misc/misc.c
	run "$check" .
	status_is 1
	output_is 'lib/misc/misc.c:1: lib/misc is not in the table of scripts/check-layers'
	rm lib/misc/misc.c
	breaks lib/job/model.c '"misc/misc.h"' 'lib/misc is not in the table of scripts/check-layers'
}

@test "a header that is nowhere fails" {
	breaks lib/job/model.c '"util.h"' '"util.h" is in no module'
}

@test "a path that climbs fails" {
	breaks lib/job/model.c '"../doc/doc.h"' '../doc/doc.h: a path that climbs'
}

@test "a command that includes a command fails" {
	breaks cmd/hps-x.c '"hps-y.h"' 'hps-y.h: a command includes no command'
}

@test "a command that includes a command by its path fails" {
	breaks cmd/hps-x.c '"cmd/hps-y.c"' 'cmd/hps-y.c: a command includes no command'
}

@test "third-party headers stay in their module" {
	local header owner
	while read -r header owner; do
		rm -rf lib/plan lib/"$owner"/third.c
		allows "lib/$owner/third.c" "<$header>"
		breaks lib/plan/p.c "<$header>" "<$header> belongs to lib/$owner, not to lib/plan"
		rm -rf lib/plan
		breaks cmd/hps-y.c "<$header>" "<$header> belongs to lib/$owner, not to a command"
		rm cmd/hps-y.c
	done <<-END
		jansson.h doc
		msgpack.h doc
		msgpack/pack.h doc
		zmq.h net
		cblas.h tensor
		dnnl.h tensor
		cuda_runtime.h tensor
		zlib.h data
		zstd.h data
		rocksdb/c.h table
	END
}

@test "third-party headers in quotes are seen too" {
	breaks lib/wire/msg.c '"msgpack.h"' '<msgpack.h> belongs to lib/doc, not to lib/wire'
}

@test "spaces do not hide an include" {
	printf ' #  include "doc/doc.h"\n' >>lib/base/err.c
	run "$check" .
	status_is 1
	output_has 'lib/base may not include doc/doc.h'
}

@test "the oracle shares nothing with the executor" {
	breaks tests/unit/oracle.c '"train/replica.h"' 'the oracle may not include train/replica.h'
}
