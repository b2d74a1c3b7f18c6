# SPDX-License-Identifier: Apache-2.0

# Needs Go, git and make on a fresh machine; every target fetches the rest.
# A C compiler is wanted for `make race` only, node for `make peers` only.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

export CGO_ENABLED := 0
export GOTOOLCHAIN ?= local
export GOWORK      := off

FUZZTIME  ?= 2m
FUZZ      ?= ^Fuzz
TIMEOUT   ?= 25m
PARALLEL  ?=
# Tests wait for processes, disks and clocks about as long as they compute, so twice as many
# packages as there are processors run at a time. The longest one comes first.
PACKAGES  ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

# Packages that start goroutines: the race detector runs over these, and gets the short form of the long tests.
CONCURRENT := ./boundary/gateway ./grounding/ground ./model/guard ./record/hold ./model/counterfactual/run ./model/llm/... ./boundary/classify ./boundary/classify/judge ./boundary/classify/remote ./boundary/hook/socket \
  ./record/ledger ./mcp/wire ./platform/auth ./grounding/didweb ./platform/child ./mcp/era ./boundary/fleet \
  ./boundary/meter ./boundary/plug ./boundary/rules ./platform/state ./boundary/admit ./storage ./record/sequence \
  ./mcp/forward ./platform/lease ./platform/peer ./record/webhook ./boundary/evidence ./record/witness ./record/standing ./record/index ./grounding/ingest ./grounding/store ./app/grounding ./platform/listen ./platform/login ./platform/keychain
# Packages beside these whose memory is used again.
REUSING := ./platform/reuse ./mcp/mcpshape ./boundary/policy/expr
STATICCHECK := go tool -modfile=tools/lint/go.mod staticcheck
GOFILES = git ls-files -co --exclude-standard -- '*.go'

.PHONY: all build run test windows peers-test fmt vet race fuzz lint docs e2e conformance peers python nemo witness clean

all: test

build:
	go build -trimpath -ldflags "-s -w" -o bin/pellucid ./cmd/pellucid
	go build -trimpath -ldflags "-s -w" -o bin/pellucid-hook ./cmd/pellucid-hook
	go build -trimpath -ldflags "-s -w" -o bin/pellucid-ground ./cmd/pellucid-ground

# Shows what the boundary does, then serves it and the grounding adapter behind it on 127.0.0.1:7420 until Ctrl-C.
run: build
	bin/pellucid demo
	bin/pellucid up

# What needs nothing but Go. All of vet has run when the tests do, so go test does not run a part of it again.
test: fmt vet
	go test -vet=off -p $(PACKAGES) -timeout $(TIMEOUT) ./e2e ./...

# The tests of make test, and with them those that run programs of others, where these are installed: Postgres, proxies,
# Chromium, node, Python, Helm. make peers, python and deploy-tools install some.
peers-test:
	PELLUCID_PEERS=1 go test -vet=off -p $(PACKAGES) -timeout $(TIMEOUT) ./e2e ./...
	go test -C packaging/pack -timeout $(TIMEOUT) .

# The tests of what touches the system, and the scripts, as Windows programs under Wine: wine, wine64 and
# gcc-mingw-w64-x86-64-win32 of Debian. WINDOWS=./... takes all.
WINDOWS ?= ./platform/... ./boundary/protect ./record/... ./mcp/wire
windows:
	tools/windows.sh .tools/windows $(WINDOWS)
	tools/windows.sh .tools/windows -run "^Test(Scripts|Wrap|KeepCopy)" ./cmd/... ./app/install

fmt:
	@bad=$$($(GOFILES) | xargs -r gofmt -l); \
	if [ -n "$$bad" ]; then echo "gofmt: run 'gofmt -w' on:"; echo "$$bad"; exit 1; fi

vet:
	go vet ./...

# The race detector, and with checkreuse a panic or a fault where memory is used that was given back (platform/reuse).
race:
	@command -v "$$(go env CC)" >/dev/null || { echo "race: the race detector needs a C compiler, and there is no '$$(go env CC)' here"; exit 1; }
	CGO_ENABLED=1 go test -vet=off -p $(PACKAGES) -race -tags checkreuse -short -timeout $(TIMEOUT) $(CONCURRENT) $(REUSING)
	CGO_ENABLED=1 go test -vet=off -race -timeout $(TIMEOUT) -run '^TestHandovers$$' ./app

# Every fuzz target whose name matches FUZZ, one after the other, FUZZTIME each.
fuzz:
	@n=0; for pkg in $$(go list ./...); do \
	  names=$$(go test -list '$(FUZZ)' $$pkg); \
	  for f in $$(grep '^Fuzz' <<<"$$names" || true); do \
	    n=$$((n+1)); echo "== $$pkg $$f"; \
	    go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $(if $(PARALLEL),-parallel $(PARALLEL)) $$pkg; \
	  done; \
	done; echo "fuzz: $$n targets, $(FUZZTIME) each, no failure"

lint: fmt
	for s in linux darwin windows; do GOOS=$$s go vet ./...; done
	go vet -C lab ./...
	$(STATICCHECK) ./...
	go tool -modfile=tools/lint/go.mod actionlint
	PELLUCID_LINT=1 go test -count=1 -run '^TestUnreached$$' ./laws

# Rewrites the documents that are derived from the code, and fails where one was stale.
docs:
	PELLUCID_UPDATE_DOCS=1 go test -count=1 -run '^TestDocs' ./...

# Third-party MCP servers and clients, from npm, with Pellucid between them.
e2e: peers
	PELLUCID_E2E=1 go test -count=1 -timeout $(TIMEOUT) ./e2e/...

# The official conformance suite, directly and behind `pellucid up` over HTTP, over pipes
# and with `pellucid wrap` in between, three times each. It prints the table.
conformance: peers
	PELLUCID_E2E=1 PELLUCID_ROUNDS=3 go test -count=1 -timeout $(TIMEOUT) -run '^TestConformance' -v ./e2e

# Installs programs of others, whose tests `make peers-test` then runs: servers and clients from npm, a server of the
# Python SDK, NeMo Guardrails, and a witness of transparency-dev. No binary of ours contains them.
PEERS := .tools/e2e/node_modules/.package-lock.json
peers: $(PEERS)
python nemo: %: .tools/%/installed

$(PEERS): e2e/node/package-lock.json e2e/node/package.json e2e/node/.npmrc
	mkdir -p .tools/e2e
	cp $^ .tools/e2e/
	cd .tools/e2e && npm ci --no-progress
	touch $@

.tools/%/installed: e2e/%/requirements.txt
	python3 -m venv .tools/$*
	.tools/$*/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

witness:
	mkdir -p .tools/publish
	go build -C e2e/publish -trimpath -o $(CURDIR)/.tools/publish/ github.com/transparency-dev/witness/cmd/omniwitness \
	  github.com/transparency-dev/witness/cmd/generate_keys

clean:
	rm -rf bin .tools dist packaging/generated
