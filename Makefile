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
J ?= 2

comma := ,
empty :=
space := $(empty) $(empty)

BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
	-Wno-unused-parameter -Wno-format-truncation \
	-Wno-missing-field-initializers
ifdef DEV
WARN += -Werror -Wundef -Wformat=2 -Wwrite-strings -Wnull-dereference -Wold-style-definition
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
UNIT_HELP := $(filter-out $(UNIT_SRC),$(sort $(wildcard tests/unit/*.c)))
FUZZ_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/fuzz/fuzz_*.c)))
BENCH_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/bench/bench_*.c)))
# Programs that the bats files start beside the commands.
AUX_SRC := $(filter-out $(SKIP),$(sort $(wildcard tests/cli/*.c tests/cluster/*.c)))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

LIB := $(BUILD)/libhps.a
CMDS := $(patsubst cmd/%.c,$(BUILD)/bin/%,$(CMD_SRC))
UNITS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
REPLAYS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/tests/replay_%,$(FUZZ_SRC))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
AUX := $(patsubst tests/%.c,$(BUILD)/tests/%,$(AUX_SRC))
ALL_OBJ := $(call obj,$(LIB_SRC) $(CMD_SRC) $(UNIT_SRC) $(UNIT_HELP) $(FUZZ_SRC) $(BENCH_SRC) \
	$(AUX_SRC) tests/fuzz/replay.c)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.PHONY: all tests

all: $(CMDS) $(LIB)
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

link = @mkdir -p $(@D) && echo "  LINK    $@" && \
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LIB)

$(BUILD)/bin/hps-%: $(BUILD)/obj/cmd/hps-%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/test_%: $(BUILD)/obj/tests/unit/test_%.o $(call obj,$(UNIT_HELP)) $(LIB)
	$(link) -lcmocka $(LIBS)

$(BUILD)/tests/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/bench/bench_%: $(BUILD)/obj/tests/bench/bench_%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/cli/%: $(BUILD)/obj/tests/cli/%.o $(LIB)
	$(link) $(LIBS)

$(BUILD)/tests/cluster/%: $(BUILD)/obj/tests/cluster/%.o $(LIB)
	$(link) $(LIBS)

clean:
	rm -rf build build-* compile_commands.json

FORCE:
.PHONY: clean FORCE

-include $(ALL_OBJ:.o=.d)
