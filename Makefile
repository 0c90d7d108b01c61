# Ringway: see README.md. Every target installs what it needs, and says so.

CARGO ?= cargo

# Where `install` installs: LIBDIR the libraries; DESTDIR is a folder to do it in.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SYSCONFDIR ?= /etc
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions

# Where the programs and libraries are that `install` installs.
BUILT ?= target/release

# `make install TOOLS=1` puts the names of netmap's tools beside `ringway`, and not into a directory of their own.
TOOLS ?=
INSTALLING = PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' SYSCONFDIR='$(SYSCONFDIR)' ZSHDIR='$(ZSHDIR)' \
    BUILT='$(BUILT)' DESTDIR='$(DESTDIR)' TOOLS='$(TOOLS)'

FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
CAPTURE_SECONDS ?= 60
SIMULATE_SECONDS ?= 3600
SIMULATE_SEED ?= 1000
ATTACK_SECONDS ?= 10
ATTACK_BOUND_MS ?= 50
MUTANTS_SHARD ?= 0/20
MUTANTS_CRATES ?= flow filter vnet kring region ring file packet xdp vale
RINGWAY_KILLS ?= 10000
RINGWAY_WRITES ?= 1000000000

.PHONY: build demo check quick test lab conformance instructions record-instructions soak capture simulate attack bench record-bench merge-bench lint api asan miri fuzz mutants install uninstall deb packages-test clean

build:
	@scripts/need build
	$(CARGO) build --release --workspace

demo:
	@scripts/need build demo
	$(CARGO) build --release --workspace --quiet
	@target/release/ringway-demo

# What has changed: format, lints and tests of those crates, and lints and unit tests of the crates that use
# them directly. BASE=COMMIT compares with that commit in place of the branch that this one follows.
BASE ?=
check:
	@scripts/need build test
	@scripts/check $(BASE)

# The unit tests of all crates.
quick:
	@scripts/need build test
	$(CARGO) test --profile quick --workspace --lib --bins

# Everything. STEPS="tests claims" runs only those of its steps.
STEPS ?=
test:
	@scripts/need build demo test
	@scripts/test $(STEPS)

# Debian's kernels in virtual machines, with the network cards that QEMU has, each mode of each: makes
# docs/kernels.md, which takes hours. LAB="--kernel 6.12 --card igb" makes the rows of one guest anew; with names of
# checks, LAB="--kernel 6.12 --card igb in out", it leaves the document alone.
LAB_SERIES = 6.1 6.12 6.18 7.2 7.3
LAB ?=
lab:
	@scripts/need build lab
	@lab/fetch $(LAB_SERIES)
	$(CARGO) build --profile quick --workspace
	@status=0; target/quick/ringway-lab run $(LAB) || status=$$?; \
	    target/quick/ringway-lab table > docs/kernels.md; exit $$status

# Each API's rules, one by one, in every way that programs can run; prints a table for each. Part of `test`.
conformance:
	@scripts/need build demo test
	$(CARGO) build --profile quick --workspace
	$(CARGO) test --profile quick -p ringway-conformance

# Instructions and system calls a packet on each path, held against bench/instructions/record.toml: fails when
# one has grown by more than 3 %, on any machine. Part of `test`.
instructions:
	@scripts/need build test
	$(CARGO) build --release --quiet -p ringwayd -p ringway-preload
	$(CARGO) bench --quiet -p ringway-instructions

# Makes what is counted now the record: for a change that is worth its instructions, or saves some.
record-instructions:
	@scripts/need build test
	$(CARGO) build --release --quiet -p ringwayd -p ringway-preload
	$(CARGO) bench --quiet -p ringway-instructions -- record

# Links flap, clients come and are killed, everything changes, for SOAK_SECONDS: nothing may leak.
# `test` does it for 20 seconds.
soak:
	@scripts/need build demo test
	$(CARGO) build --profile quick --workspace
	RINGWAY_SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --profile quick -p ringway-tests --test soak \
	    -- --nocapture

# A generator at full speed is captured to a file in TMPDIR for CAPTURE_SECONDS, which takes up to a
# gigabyte a second: what is sent is written, or counted as dropped. `test` sends two million packets.
capture:
	@scripts/need build test
	$(CARGO) build --profile quick --workspace
	RINGWAY_CAPTURE_SECONDS=$(CAPTURE_SECONDS) $(CARGO) test --profile quick -p ringway-cli --test cli \
	    capture::what_is_sent_is_written_or_counted_as_dropped -- --exact --nocapture

# Random histories of clients, failures and interfaces for the registry, with a kernel that is simulated, for
# SIMULATE_SECONDS from the seed SIMULATE_SEED on. `test` has 120 of them.
simulate:
	@scripts/need build test
	RINGWAY_SECONDS=$(SIMULATE_SECONDS) RINGWAY_SEED=$(SIMULATE_SEED) RINGWAY_STEPS=5000 \
	    $(CARGO) test --profile quick -p ringway-registry --test simulation -- --nocapture

# Everything that is known to be tried against a system daemon, ATTACK_SECONDS each, while bystanders
# measure: they may wait for ATTACK_BOUND_MS. Then RINGWAY_WRITES random writes of clients into their own
# rings, and RINGWAY_KILLS processes killed at random moments, which takes hours. For a machine that has
# nothing else to do; `test` does the same in minutes.
attack:
	@scripts/need build test
	$(CARGO) build --profile quick --workspace
	RINGWAY_ATTACK_SECONDS=$(ATTACK_SECONDS) RINGWAY_ATTACK_BOUND_MS=$(ATTACK_BOUND_MS) \
	    $(CARGO) test --profile quick -p ringway-tests --test attack -- --nocapture
	RINGWAY_WRITES=$(RINGWAY_WRITES) $(CARGO) test --profile quick -p ringway-tests \
	    --test writes -- --nocapture
	RINGWAY_KILLS=$(RINGWAY_KILLS) $(CARGO) test --profile quick -p ringway-tests \
	    --test kill --test kill_nics -- --nocapture

bench:
	@scripts/need build demo bench
	@bench/fetch-open-vswitch
	$(CARGO) build --release --workspace --quiet
	@target/release/ringway-bench

# Makes what is measured now the record, and the documents' figures of it. For a machine that has nothing else to do;
# it takes an hour.
record-bench:
	@scripts/need build demo bench
	@bench/fetch-open-vswitch
	$(CARGO) build --release --workspace --quiet
	@target/release/ringway-bench --output bench/record.json
	@scripts/performance

# Measures the experiments whose names contain ONLY, and puts them into that record, where they say which commit they
# are of.
merge-bench:
	@test -n "$(ONLY)" || { echo "say which experiments: make merge-bench ONLY='pipe round trip'" >&2; exit 2; }
	@scripts/need build demo bench
	$(CARGO) build --release --workspace --quiet
	@target/release/ringway-bench --merge --only '$(ONLY)' --output bench/record.json
	@scripts/performance

# Crates that are for this project alone.
PRIVATE = $$(grep -hm1 '^name = ' $$(git grep -l '^publish = false' -- '*/Cargo.toml') | sed 's/name = "\(.*\)"/--exclude=\1/')

# The formatter and the lints, as errors; the words of texts (scripts/words); the files that use each other
# (scripts/circles); the documents' figures are those of the record of the benchmark; the public API of the crate
# `ringway` is that of its record, and each item of it has an example; the documentation of the crates has no
# warnings (the command's is the text of its `--help`); the crates can be published; and the fuzz targets compile,
# which are no part of the workspace.
lint:
	@scripts/need build test
	@scripts/words
	@scripts/circles
	@scripts/performance --check
	@scripts/claims
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) run --quiet -p ringway-public-api
	@scripts/examples
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps --workspace --exclude ringway-cli
	$(CARGO) package --quiet --workspace --no-verify --allow-dirty --offline --target-dir target/package $(PRIVATE)
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

# Makes the public API that the crate `ringway` has now the record of it. What has gone from it breaks programs:
# docs/stability.md.
api:
	$(CARGO) run --quiet -p ringway-public-api -- record

# The tests of what touches shared memory, or reads what others have made, under AddressSanitizer (needs a
# nightly). Then the programs that check the rules of the foreign APIs, under it and the sanitizer of undefined
# behaviour, on the libraries as they are.
ASAN_CRATES = region kring mirror ring xdp packet file vale vnet flow ipc portspec proto live-capture tpacket4 pfring qbman usdpaa
ASAN_PROGRAMS = pfring tpacket4 usdpaa usdpaa_interfaces
asan:
	@scripts/need build test
	RUSTFLAGS=-Zsanitizer=address $(CARGO) +nightly test --target x86_64-unknown-linux-gnu \
	    --target-dir target/asan --lib --tests $(addprefix -p ringway-,$(ASAN_CRATES))
	$(CARGO) build --profile quick --workspace
	ASAN_OPTIONS=detect_leaks=0 \
	    RINGWAY_TEST_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -static-libasan" \
	    $(CARGO) test --profile quick -p ringway-conformance $(addprefix --test ,$(ASAN_PROGRAMS))

# The same under Miri, where it is installed (rustup component add miri).
miri:
	PROPTEST_CASES=8 MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test \
	    -p ringway-region -p ringway-kring --lib

# Every fuzz target, for FUZZ_SECONDS each (needs a nightly), from its seeds in fuzz/seeds.
fuzz:
	@scripts/need build test fuzz
	@for target in $$($(CARGO) +nightly fuzz list); do \
	    echo "$$target: $(FUZZ_SECONDS) s"; \
	    mkdir -p fuzz/corpus/$$target fuzz/seeds/$$target; \
	    $(CARGO) +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

# Whether tests would notice if the code were another: small changes, one by one, to the crates that have no other
# parts of Ringway to test them, MUTANTS_CRATES, each with its own tests. MUTANTS_SHARD is a part of them, as 3/20; a
# twentieth takes a quarter of an hour on two cores, all, 0/1, take hours. Fails if fewer than 90 % are noticed. As root,
# in a network namespace of your own (unshare -n): the drivers' tests make interfaces.
mutants:
	@scripts/need build test mutants
	@scripts/mutants $(MUTANTS_SHARD) $(MUTANTS_CRATES)

# Installs what `make build` has built, and builds nothing: root may have no compiler. `uninstall` takes the same away,
# and directories of its own; with TOOLS=1 the tools' names that were installed so. scripts/install has the list.
install:
	@$(INSTALLING) scripts/install add

uninstall:
	@$(INSTALLING) scripts/install remove

# Debian packages, in target/deb, of what `build` makes; BUILT=target/quick packages what is there. As `install` does, it has
# the content from scripts/install.
deb:
	@scripts/need build deb
	[ "$(BUILT)" != target/release ] || $(CARGO) build --release --workspace
	@BUILT=$(BUILT) scripts/deb

# Installs them in an empty Debian 12 and 13, runs README's commands there, upgrades and purges. As root.
SUITES ?= bookworm trixie
packages-test:
	@scripts/need packages
	@scripts/packages-test $(SUITES)

clean:
	$(CARGO) clean
