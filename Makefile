# wpptrace: make, make demo, make test; the rest is for those who change it.

# What runs goroutines is tested with the race detector, which takes ten times as long: with -short,
# without what takes longest. Those of loader/cfg and loader/image run in the tests of the planner.
# A program that is built with it sleeps for a second before it exits, unless told otherwise: each
# guard that a test starts would.
RACE = ./compress/spill ./compress/wpp/... ./decoder/values ./internal/coverage ./internal/jsondoc \
	./internal/memory ./internal/parallel ./internal/record/... ./internal/saturating \
	./internal/statusline ./internal/testenv ./internal/text ./kernel-tests/production/load \
	./loader/attach ./loader/guard ./loader/plan/planner ./loader/target ./query/...
# All others run without it, and of these once more what has more to do without -short. Those that
# run side by side are most of them kernel-tests, which wait for the kernel more than they compute.
AGAIN = ./compress/... ./internal/record/... ./loader/plan/... ./query/...

.PHONY: wpptrace docs install uninstall deb demo overlap test kernel-tests matrix production soak \
	bench fuzz generate fmt clean

wpptrace:
	@.ci/need-go
	CGO_ENABLED=0 go build -trimpath -o wpptrace ./cmd/wpptrace

# What is installed goes below PREFIX; a package is made of it below DESTDIR.
PREFIX = /usr/local
DESTDIR =
ZSH = $(PREFIX)/share/zsh/site-functions
SHARE = $(DESTDIR)$(PREFIX)/share

docs:
	@.ci/need-go
	rm -rf build/docs
	go run -tags docs ./cmd/wpptrace docs build/docs
	gzip -9n build/docs/man1/*

install: wpptrace docs
	install -D -m 755 wpptrace $(DESTDIR)$(PREFIX)/bin/wpptrace
	install -D -m 644 -t $(SHARE)/man/man1 build/docs/man1/*
	install -D -m 644 build/docs/completions/wpptrace.bash \
		$(SHARE)/bash-completion/completions/wpptrace
	install -D -m 644 -t $(SHARE)/fish/vendor_completions.d build/docs/completions/wpptrace.fish
	install -D -m 644 build/docs/completions/_wpptrace $(DESTDIR)$(ZSH)/_wpptrace
	install -D -m 644 -t $(SHARE)/doc/wpptrace README.md LICENSE
	install -D -m 644 -t $(SHARE)/doc/wpptrace/docs docs/*.md
	install -D -m 644 LICENSE $(SHARE)/doc/wpptrace/copyright

# What install has put below the same PREFIX.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/wpptrace $(SHARE)/man/man1/wpptrace.1.gz \
		$(SHARE)/man/man1/wpptrace-*.1.gz $(SHARE)/bash-completion/completions/wpptrace \
		$(SHARE)/fish/vendor_completions.d/wpptrace.fish $(DESTDIR)$(ZSH)/_wpptrace
	rm -rf $(SHARE)/doc/wpptrace

# The Debian package, build/wpptrace_VERSION_amd64.deb.
deb:
	rm -rf build/root build/*.deb
	$(MAKE) install PREFIX=/usr DESTDIR=build/root ZSH=/usr/share/zsh/vendor-completions
	VERSION=$$(cat cmd/wpptrace/VERSION) go tool -modfile=tools/nfpm.mod nfpm package \
		-f packaging/nfpm.yaml -p deb -t build

# Attaches to a bash that is at work and prints its hot subpaths. As root.
demo: wpptrace
	@.ci/need bash
	demo/run

# Tables 8 and 9 of docs/overlap.md, as root: a few minutes, on a machine that does nothing else.
overlap: wpptrace
	@.ci/need bash gzip perl python3 sqlite3
	demo/overlap

# As root. Some ten minutes on two cores, or twenty where the machine does something else, too.
test:
	@.ci/need-go
	@.ci/need gcc g++ objdump:binutils bash gzip sed sqlite3 python3 lua5.1 xz:xz-utils dwz cpio \
		lcov gdb
	go vet ./...
	go vet -tags docs ./cmd/wpptrace
	go tool -modfile=tools/staticcheck.mod staticcheck ./...
	@test -z "$$(gofmt -l .)" || { echo "not formatted, run make fmt:"; gofmt -l .; exit 1; }
	CGO_ENABLED=0 GOOS=darwin go build ./compress/... ./query/...
	GORACE=atexit_sleep_ms=0 go test -race -short $(RACE)
	go test -timeout 40m -parallel 4 $$(go list ./... | grep -vxF "$$(go list $(RACE))") $(AGAIN)

# The same programs on other kernels, those of kernel-tests/vm, which QEMU emulates: some hours.
KERNEL_TESTS = TestCheck|TestManyProbes|TestZooIsExact|TestAttachInMidRun|TestSamples
COUNTING_TESTS = TestCoverageOfTheZoo|TestInterestingOfTheZoo|TestNewEdges
kernel-tests:
	@.ci/need-go
	@.ci/need gcc g++ clang bash gzip sed sqlite3 python3 qemu-system-x86_64:qemu-system-x86 cpio
	WPPTRACE_KERNELS='$(KERNEL_TESTS)|$(COUNTING_TESTS)' go test -count 1 -timeout 0 -v \
		-run TestKernels ./kernel-tests/vm

# Every program in every flavour of compiler and flags, against single-stepping: some three hours.
matrix:
	@.ci/need-go
	@.ci/need gcc g++ objdump:binutils bash gzip sed sqlite3 python3 clang lua5.1 gdb
	WPPTRACE_MATRIX=1 go test -timeout 0 -v ./kernel-tests

# What wpptrace -p does to real servers at work, and what it sees of them: a table, and a JSON
# object for each run in build/production.json. As root. An hour or so for all of them, on a
# machine that does nothing else; PRODUCTION='-servers redis,nginx -runs 2' measures less. The
# system's own servers are not started where they are installed.
production:
	@.ci/need-go
	@RUNLEVEL=1 .ci/need redis-server nginx:nginx-light memcached pgbench:postgresql \
		python3 gcc g++ objcopy:binutils perl node:nodejs java:default-jre-headless \
		javac:default-jdk-headless rustc firefox-esr perf:linux-perf bpftrace
	@ls /usr/lib/*/libpython3.*.so.1.0 >/dev/null 2>&1 || .ci/need libpython:libpython3-dev
	@mkdir -p build
	go run ./kernel-tests/production -json build/production.json $(PRODUCTION)

# The same on the longest inputs: days. Before it, budgets, faults and memory: some hours, 2 GB of
# disk, on a machine that does nothing else.
soak:
	@.ci/need-go
	@.ci/need gcc g++ objdump:binutils bash gzip sed sqlite3 python3 clang lua5.1 gdb
	WPPTRACE_SOAK=1 go test -timeout 0 -v ./cmd/wpptrace
	WPPTRACE_SOAK=1 go test -timeout 0 -v ./kernel-tests/...

# As root. Some ten minutes, on a machine that does nothing else.
bench:
	@.ci/need-go
	@.ci/need gcc g++ clang bash gzip sqlite3 perl python3 sed bpftrace
	go test -run '^$$' -bench . -benchmem -timeout 20m ./...

# Each fuzz target for a while.
FUZZTIME = 30s
fuzz:
	@.ci/need-go
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo $$package $$target; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

# The committed bindings of the BPF program and of the snapshot's schema.
generate:
	@.ci/need-go
	@.ci/need clang-19 llvm-strip-19:llvm-19 protoc:protobuf-compiler
	@test -e /usr/include/bpf/bpf_helpers.h || .ci/need libbpf-headers:libbpf-dev
	GOBIN=$(CURDIR)/.bin go install google.golang.org/protobuf/cmd/protoc-gen-go
	PATH=$(CURDIR)/.bin:$$PATH go generate ./...

fmt:
	gofmt -w .

clean:
	rm -rf wpptrace build .bin demo.wpp demo.wpp.old
