# hps: objects in build/ (build-SAN/ with SAN=...), sources by wildcard. `make help` lists the targets.

ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar
PREFIX ?= /usr/local
DESTDIR ?=
# Portable by default: hot kernels carry their own clones (lib/base/hot.h).
MARCH ?=
OPT ?= -O2
J ?= $(shell nproc 2>/dev/null || echo 2)

comma := ,
empty :=
space := $(empty) $(empty)

BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
	-Wno-unused-parameter -Wno-format-truncation \
	-Wno-missing-field-initializers $(if $(findstring clang,$(CC)),-Wno-unknown-warning-option)
ifdef DEV
WARN += -Werror -Wundef -Wformat=2 -Wno-format-nonliteral -Wold-style-definition
endif

CPPFLAGS_ALL := -D_GNU_SOURCE -Ilib $(CPPFLAGS)
CFLAGS_ALL := -std=c11 $(OPT) -g -ffp-contract=off -fno-math-errno -pthread $(WARN) \
	$(if $(MARCH),-march=$(MARCH))
LDFLAGS_ALL := -pthread -Wl,--as-needed
ifdef SAN
CPPFLAGS_ALL += -DHPS_SANITIZE
CFLAGS_ALL += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_ALL += -fsanitize=$(SAN)
else
CPPFLAGS_ALL += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
CFLAGS_ALL += -fstack-protector-strong -fPIE
LDFLAGS_ALL += -pie -Wl,-z,relro,-z,now
endif
CFLAGS_ALL += $(CFLAGS)
LDFLAGS_ALL += $(LDFLAGS)
# The name that msgpack-c's C library has here: msgpackc on Debian 12, msgpack-c later.
MSGPACK := $(if $(wildcard /usr/lib/*/libmsgpack-c.so),-lmsgpack-c,-lmsgpackc)
LIBS := -lopenblas -lzmq $(MSGPACK) -ljansson -lz -lzstd -lm -lpthread

# While a module is half written: make BUILD=/tmp/mine SKIP='lib/net/% tests/unit/test_net_%'
SKIP ?=
LIB_SRC := $(filter-out $(SKIP),$(sort $(wildcard lib/*/*.c)))
CMD_SRC := $(filter-out $(SKIP),$(sort $(wildcard cmd/hps-*.c)))
UNIT_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/unit/test_*.c)))
UNIT_HELP := $(filter-out tests/unit/test_% $(SKIP),$(sort $(wildcard tests/unit/*.c)))
FUZZ_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/fuzz/fuzz_*.c)))
BENCH_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/bench/bench_*.c)))
# Programs that the bats files start beside the commands.
AUX_SRC := $(filter-out $(SKIP) tests/cluster/preload_%,$(sort $(wildcard tests/cli/*.c tests/cluster/*.c)))
# Libraries that the bats files put before libzmq.
PRELOAD_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/cluster/preload_*.c)))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

LIB := $(BUILD)/libhps.a
CMDS := $(patsubst cmd/%.c,$(BUILD)/bin/%,$(CMD_SRC))
UNITS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
REPLAYS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/tests/replay_%,$(FUZZ_SRC))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
AUX := $(patsubst tests/%.c,$(BUILD)/tests/%,$(AUX_SRC)) \
	$(patsubst tests/%.c,$(BUILD)/tests/%.so,$(PRELOAD_SRC))
ALL_OBJ := $(call obj,$(LIB_SRC) $(CMD_SRC) $(UNIT_SRC) $(UNIT_HELP) $(FUZZ_SRC) $(BENCH_SRC) \
	$(AUX_SRC) tests/fuzz/replay.c)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.PHONY: all tests

all: $(CMDS) $(LIB) $(if $(SAN),,compile_commands.json)
tests: $(UNITS) $(REPLAYS) $(AUX)

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Rewritten only when the flags change, so that everything is rebuilt then, and only then.
FLAGS := $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(LIBS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS)' | cmp -s - $@ || printf '%s\n' '$(FLAGS)' >$@

# The list of members is a prerequisite too: a removed source leaves the archive.
$(BUILD)/lib.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(LIB_SRC) | cmp -s - $@ || printf '%s\n' $(LIB_SRC) >$@

$(LIB): $(call obj,$(LIB_SRC)) $(BUILD)/lib.list
	@echo "  AR      $@"
	@rm -f $@ && $(AR) rcs $@ $(call obj,$(LIB_SRC))

# Helpers of unit tests, as an archive: a test links only those it calls.
HELPERS := $(BUILD)/tests/libunit.a
$(BUILD)/unit.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(UNIT_HELP) | cmp -s - $@ || printf '%s\n' $(UNIT_HELP) >$@

$(HELPERS): $(call obj,$(UNIT_HELP)) $(BUILD)/unit.list
	@mkdir -p $(@D)
	@rm -f $@ && $(AR) rcs $@ $(call obj,$(UNIT_HELP))

link = @mkdir -p $(@D) && echo "  LINK    $@" && \
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $(filter %.o %.a,$^)

$(BUILD)/bin/hps-%: $(BUILD)/obj/cmd/hps-%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/test_%: $(BUILD)/obj/tests/unit/test_%.o $(HELPERS) $(LIB)
	$(link) -lcmocka $(LIBS)

$(BUILD)/tests/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/bench/bench_%: $(BUILD)/obj/tests/bench/bench_%.o $(HELPERS) $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/cli/%: $(BUILD)/obj/tests/cli/%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/cluster/%: $(BUILD)/obj/tests/cluster/%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/cluster/preload_%.so: tests/cluster/preload_%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) -O2 -Wall -shared -fPIC -D_GNU_SOURCE -o $@ $< -ldl

# --- tests ---

UNIT_RUN := $(UNITS) $(REPLAYS)
CLI_RUN := $(sort $(wildcard tests/cli/*.bats))
CLUSTER_RUN := $(sort $(wildcard tests/cluster/*.bats))

# What tests find in their environment. A sanitizer's exit status is none of ours.
TEST_ENV := HPS_ROOT='$(CURDIR)' HPS_BIN='$(abspath $(BUILD))/bin' \
	HPS_TESTS='$(abspath $(BUILD))/tests' \
	ASAN_OPTIONS=exitcode=99:strict_string_checks=1:$$ASAN_OPTIONS \
	UBSAN_OPTIONS=print_stacktrace=1:$$UBSAN_OPTIONS \
	HPS_TEST_TIMEOUT=$(if $(SAN),900,280) TSAN_OPTIONS=suppressions='$(CURDIR)/tests/tsan.supp':$$TSAN_OPTIONS
PROVE := prove --jobs $(J) --exec scripts/run-test

# A make of its own, since what is installed before it changes what it finds; on all cores
# where no -j was given.
SUBMAKE = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(J))

# $(1): the files to run
define run_tests
@scripts/setup build check
$(SUBMAKE) all tests
@$(TEST_ENV) $(PROVE) $(1)
endef

# Slow ones first, so that both cores are busy to the end.
check:
	$(call run_tests,$(CLUSTER_RUN) $(CLI_RUN) $(UNIT_RUN))
check-unit:
	$(call run_tests,$(UNIT_RUN))
check-cli:
	$(call run_tests,$(CLI_RUN))
check-cluster:
	$(call run_tests,$(CLUSTER_RUN))

lint:
	@scripts/setup build check lint
	$(SUBMAKE) all
	@HPS_BIN='$(abspath $(BUILD))/bin' scripts/lint

format:
	find lib cmd tests -name '*.[ch]' -print0 | xargs -0 clang-format -i

# One JSON line for each benchmark whose name begins with BENCH.
BENCH ?=
bench:
	@scripts/setup build
	$(SUBMAKE) all benches
	@HPS_ROOT='$(CURDIR)' HPS_BIN='$(abspath $(BUILD))/bin' scripts/bench $(BUILD)/bench '$(BENCH)'
benches: $(BENCHES)

demo:
	@scripts/setup build demo
	$(SUBMAKE) all
	@HPS_BIN='$(abspath $(BUILD))/bin' PATH='$(abspath $(BUILD))/bin:$(CURDIR)/scripts':"$$PATH" \
		scripts/demo

# --- fuzzing: make fuzz FUZZ=doc SECONDS=60, with clang's libFuzzer ---

FUZZ ?= doc
SECONDS ?= 60
fuzz:
	@scripts/setup build fuzz
	$(SUBMAKE) BUILD=build-fuzz CC=clang SAN=address,undefined \
		CFLAGS=-fsanitize=fuzzer-no-link build-fuzz/fuzz_$(FUZZ)
	@mkdir -p build-fuzz/corpus/$(FUZZ) testdata/fuzz/$(FUZZ)
	build-fuzz/fuzz_$(FUZZ) -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix=testdata/fuzz/$(FUZZ)/ \
		build-fuzz/corpus/$(FUZZ) testdata/fuzz/$(FUZZ)

build-fuzz/fuzz_%: build-fuzz/obj/tests/fuzz/fuzz_%.o $(LIB)
	$(link) -fsanitize=fuzzer $(LIBS)

# --- for editors and clang-tidy ---

ALL_SRC := $(LIB_SRC) $(CMD_SRC) $(UNIT_SRC) $(UNIT_HELP) $(FUZZ_SRC) tests/fuzz/replay.c $(BENCH_SRC) \
	$(AUX_SRC) $(PRELOAD_SRC)
$(BUILD)/src.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(ALL_SRC) | cmp -s - $@ || printf '%s\n' $(ALL_SRC) >$@

compile_commands.json: $(BUILD)/flags $(BUILD)/src.list
	@{ sep='['; for f in $(ALL_SRC); do \
		printf '%s\n{"directory":"%s","file":"%s","command":"%s -c %s"}' \
			"$$sep" '$(CURDIR)' "$$f" '$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL)' "$$f"; \
		sep=','; done; printf '\n]\n'; } >$@

# --- installing ---

MAN1 := $(sort $(wildcard man/*.1))
MAN7 := $(sort $(wildcard man/*.7))
RUN := $(wildcard scripts/hps-run)
MODELS := $(sort $(wildcard testdata/models/*.json))
BINDIR := $(DESTDIR)$(PREFIX)/bin
MANDIR := $(DESTDIR)$(PREFIX)/share/man
SHAREDIR := $(DESTDIR)$(PREFIX)/share/hps

install: all
	install -d '$(BINDIR)' '$(MANDIR)/man1' '$(MANDIR)/man7' '$(SHAREDIR)/models'
	$(if $(CMDS)$(RUN),install -m 755 $(CMDS) $(RUN) '$(BINDIR)')
	$(if $(MAN1),install -m 644 $(MAN1) '$(MANDIR)/man1')
	$(if $(MAN7),install -m 644 $(MAN7) '$(MANDIR)/man7')
	$(if $(MODELS),install -m 644 $(MODELS) '$(SHAREDIR)/models')

uninstall:
	rm -f $(foreach f,$(CMDS) $(RUN),'$(BINDIR)/$(notdir $(f))') \
		$(foreach f,$(MAN1),'$(MANDIR)/man1/$(notdir $(f))') \
		$(foreach f,$(MAN7),'$(MANDIR)/man7/$(notdir $(f))')
	rm -rf '$(SHAREDIR)'

clean:
	rm -rf build build-* compile_commands.json

help:
	@echo 'make            build the commands into $(BUILD)/bin'
	@echo 'make check      set up, build, run every test (check-unit, check-cli, check-cluster: a part)'
	@echo 'make lint       format, layers, static analysis, man pages, shell scripts'
	@echo 'make format     clang-format over all sources'
	@echo 'make demo       train a model on generated data, from nothing to a summary'
	@echo 'make bench      benchmarks, one JSON line each; BENCH=prefix chooses'
	@echo 'make fuzz       FUZZ=doc SECONDS=60: fuzz one reader (clang)'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR= (uninstall takes it away again)'
	@echo 'make clean      remove what was built'
	@echo 'with SAN=address,undefined or SAN=thread: a sanitized build beside the plain one'
	@echo 'with DEV=1: more warnings, and each is an error; MARCH=native: for this processor only'

FORCE:
.PHONY: check check-unit check-cli check-cluster lint format bench benches demo fuzz install uninstall \
	clean help FORCE

-include $(ALL_OBJ:.o=.d)
