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

# Packages that start goroutines: the race detector runs over these, and is so slow that
# it gets the short form of the long tests.
CONCURRENT := ./boundary/gateway ./grounding/ground ./model/guard ./record/hold ./model/counterfactual/run ./model/llm/... ./boundary/classify ./boundary/classify/judge ./boundary/classify/remote \
  ./record/ledger ./mcp/wire ./platform/auth ./grounding/didweb ./platform/child ./mcp/era ./boundary/fleet \
  ./boundary/meter ./boundary/plug ./boundary/rules ./platform/state ./boundary/admit ./storage ./record/sequence \
  ./mcp/forward ./platform/replica ./platform/peer ./record/webhook ./boundary/evidence ./record/witness ./record/standing ./record/index ./grounding/ingest ./platform/listen ./platform/login ./platform/keychain
# Packages beside these whose memory is used again.
REUSING := ./platform/reuse ./mcp/mcpshape ./boundary/policy/expr
STATICCHECK := go tool -modfile=tools/lint/go.mod staticcheck
GOFILES = git ls-files -co --exclude-standard -- '*.go'

.PHONY: all build run test fmt vet race fuzz lint docs e2e conformance peers nemo python vulnerabilities clean

all: test

build:
	go build -trimpath -ldflags "-s -w" -o bin/pellucid ./cmd/pellucid

# Shows what the boundary does, then serves it on 127.0.0.1:7420 until Ctrl-C.
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

# The picture of README: what a browser shows of a result that the gateway has held. pngquant makes it small.
.PHONY: picture
picture:
	PELLUCID_PICTURE=$(CURDIR)/docs/console.png go test -count=1 -run '^TestConsoleShowsWhy$$' ./e2e
	pngquant --force --strip --output docs/console.png 64 docs/console.png

lint: fmt
	for s in linux darwin windows; do GOOS=$$s go vet ./...; done
	go vet -C lab ./...
	$(STATICCHECK) ./...
	go tool -modfile=tools/lint/go.mod actionlint
	PELLUCID_LINT=1 go test -count=1 -run '^TestUnreached$$' ./laws

# Rewrites the documents that are derived from the code, and fails where one was stale.
docs:
	PELLUCID_UPDATE_DOCS=1 go test -count=1 -run '^TestDocs' ./...

# Known vulnerabilities in what the programs reach; it asks vuln.go.dev.
vulnerabilities:
	go build -modfile=tools/lint/go.mod -o bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	bin/govulncheck ./...
	bin/govulncheck -C packaging/pack ./...

# Third-party MCP servers and clients, from npm, with Pellucid between them.
e2e: peers
	PELLUCID_E2E=1 go test -count=1 -timeout $(TIMEOUT) ./e2e/...

# The official conformance suite, directly and behind `pellucid up` over HTTP, over pipes
# and with `pellucid wrap` in between, three times each. It prints the table.
conformance: peers
	PELLUCID_E2E=1 PELLUCID_ROUNDS=3 go test -count=1 -timeout $(TIMEOUT) -run '^TestConformance' -v ./e2e

# Installs them. With them in place `make test` runs those tests too.
PEERS := .tools/e2e/node_modules/.package-lock.json
peers: $(PEERS)

$(PEERS): e2e/node/package-lock.json e2e/node/package.json e2e/node/.npmrc
	mkdir -p .tools/e2e
	cp $^ .tools/e2e/
	cd .tools/e2e && npm ci --no-progress
	touch $@

# The framework of NeMo Guardrails, from PyPI. With it in place `make peers-test` runs the
# example of docs/examples/nemo in it.
# A witness of transparency-dev, for the tests of record/witness and app. It is a module of its own: no binary of ours
# contains it.
.PHONY: publish-peers
publish-peers:
	mkdir -p .tools/publish
	go build -C e2e/publish -trimpath -o $(CURDIR)/.tools/publish/ github.com/transparency-dev/witness/cmd/omniwitness \
	  github.com/transparency-dev/witness/cmd/generate_keys

nemo: .tools/nemo/installed

.tools/nemo/installed: e2e/nemo/requirements.txt
	python3 -m venv .tools/nemo
	.tools/nemo/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# A server of the Python SDK, from PyPI. With it in place `make peers-test` reaches it over HTTP.
python: .tools/python/installed

.tools/python/installed: e2e/python/requirements.txt
	python3 -m venv .tools/python
	.tools/python/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

.PHONY: all build run test fmt vet race fuzz lint docs e2e conformance peers nemo python vulnerabilities clean
clean:
	rm -rf bin .tools dist packaging/generated
