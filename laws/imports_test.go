// SPDX-License-Identifier: Apache-2.0

// Package laws_test holds the laws of the whole repository: who may import whom, and what may stand in a file.
package laws_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/pellucid-mcp/pellucid"

// root is the folder of the repository. Every path in these tests begins there.
const root = ".."

// rooted returns the path by which the tests reach a file of the repository.
func rooted(path string) string { return filepath.Join(root, filepath.FromSlash(path)) }

// importPolicy lists every import that is allowed. A line is a package, a colon, and
// everything outside the standard library that its non-test files may import: packages
// of this module by their path in it, other modules by a prefix of theirs.
// A package may name only packages that stand on a line above its own, so imports form
// no circle. "*" allows every package above, and "!" takes one of these out again.
// A line that begins with # heads the packages of one layer, which is a folder of the top
// level, and says what they do.
const importPolicy = `
# text: parses text, makes it safe and labels it; it uses no clock, file or network
text/finding:
text/ucd:
text/rfc3339:
text/eventstream:
text/strictjson:    github.com/go-json-experiment/json
text/jsonc:
text/scrub:         text/finding text/ucd
text/href:          text/finding text/ucd
text/frame:         text/finding text/scrub text/ucd text/strictjson

# platform: is what Pellucid needs of the machine: processes, files, addresses, terminals, and who a caller is
platform/child:    text/finding golang.org/x/sys
platform/backoff:
platform/reuse:
platform/intake:
platform/intake/intaketest:
platform/loopback:
platform/egress:   platform/loopback
platform/sigv4:    github.com/aws/aws-sdk-go-v2
platform/privacy:  golang.org/x/sys
platform/state:    platform/privacy golang.org/x/sys
platform/syserror: golang.org/x/sys
platform/logtest:
platform/waittest:
platform/programtest:
platform/pgtest:   platform/programtest github.com/jackc/pgx
platform/datatest:
platform/auth:     text/finding text/rfc3339 text/strictjson github.com/go-jose/go-jose golang.org/x/time platform/syserror
platform/keyring:
platform/capture:  filippo.io/age platform/keyring
platform/keychain: github.com/zalando/go-keyring github.com/godbus/dbus
platform/login:    text/finding text/strictjson platform/auth platform/backoff platform/capture platform/egress platform/keychain platform/loopback platform/state github.com/go-json-experiment/json
platform/lease: platform/backoff golang.org/x/sys
platform/peer:
platform/listen:   text/finding platform/auth platform/loopback platform/syserror
platform/resident:
platform/signin:
platform/terminal: platform/privacy text/finding text/scrub text/href text/ucd text/strictjson github.com/go-json-experiment/json golang.org/x/sys
platform/build:    text/scrub
platform/logs:     golang.org/x/time
platform/valueref: platform/terminal text/finding
platform/scripttest: github.com/rogpeppe/go-internal

# mcp: reads and writes messages of the Model Context Protocol, in both eras, and lists where third-party text stands in them
mcp/wire:     text/eventstream text/finding text/strictjson platform/backoff platform/reuse platform/intake platform/syserror
mcp/mcpmsg:   text/strictjson mcp/wire
mcp/mcpshape: text/strictjson platform/reuse mcp/mcpmsg
mcp/session:  text/strictjson platform/keyring mcp/wire
mcp/forward: text/strictjson platform/backoff platform/peer platform/lease mcp/wire mcp/session
mcp/era:      text/strictjson platform/keyring mcp/wire mcp/mcpmsg mcp/mcpshape

# record: keeps what was decided, with proofs, and what waits for a reviewer
record/ledger:   text/finding text/frame text/strictjson platform/reuse golang.org/x/mod
record/ledger/ledgertest: record/ledger
record/witness: platform/backoff platform/egress record/ledger
record/hold:     text/finding text/frame text/scrub text/strictjson
record/captures: platform/capture
record/webhook:  text/frame platform/backoff platform/lease platform/egress platform/loopback
record/trust:
record/sequence: platform/backoff platform/lease platform/state record/ledger
record/index:    text/finding text/frame platform/backoff platform/terminal record/ledger record/sequence
record/review:   text/finding text/frame text/scrub text/strictjson platform/capture platform/terminal record/captures record/hold record/index record/webhook
record/standing: text/finding platform/terminal record/ledger record/trust record/sequence

# model: asks language models, and finds the piece of a context that took control of one
model/interval:
model/format:             text/eventstream text/strictjson
model/counterfactual:     text/frame text/ucd text/strictjson model/format
model/llm:                text/eventstream text/finding text/strictjson model/format platform/backoff platform/egress github.com/failsafe-go
model/llm/llmtest:        text/strictjson platform/sigv4 model/format model/llm
model/counterfactual/run: text/strictjson model/format model/counterfactual model/llm
model/delegation:         text/frame text/strictjson model/counterfactual
model/guard:              text/eventstream text/finding text/frame text/strictjson platform/auth platform/egress platform/intake platform/sigv4 record/hold model/format model/counterfactual model/counterfactual/run model/delegation model/llm github.com/prometheus/client_golang
model/analysis:           text/finding text/frame text/rfc3339 text/strictjson platform/terminal model/format model/counterfactual model/counterfactual/run model/delegation model/guard model/llm
model/jobs:               model/counterfactual/run github.com/jackc/pgx github.com/riverqueue/river

# boundary: decides which servers may be used and what passes of each message; it reads the configuration, shows what waits for a reviewer, and rewrites clients' configurations so that their servers run behind Pellucid
boundary/blob:                 golang.org/x/text
boundary/policy:               text/finding
boundary/policy/expr:          text/finding platform/reuse boundary/policy cel.dev/cel-go
boundary/policy/values:        text/finding text/strictjson model/counterfactual model/delegation boundary/policy/expr cel.dev/cel-go
boundary/classify:             boundary/policy github.com/failsafe-go golang.org/x/time
boundary/classify/local:       boundary/classify text/ucd
boundary/classify/deep:        text/finding boundary/classify boundary/classify/local golang.org/x/sys
boundary/classify/judge:       boundary/classify
boundary/classify/remote:      text/strictjson platform/egress platform/sigv4 boundary/classify
boundary/classify/onnx:       text/finding text/strictjson platform/backoff platform/child boundary/classify
boundary/validate:             text/strictjson github.com/santhosh-tekuri/jsonschema
boundary/surface:              text/finding text/scrub text/ucd text/strictjson mcp/wire mcp/mcpmsg mcp/mcpshape boundary/blob
boundary/descriptions:         text/finding text/scrub boundary/policy boundary/classify boundary/classify/local boundary/surface
boundary/surface/pintest:      boundary/surface
boundary/pinview:              text/finding platform/terminal boundary/surface
boundary/pinfile:              text/finding text/strictjson platform/state boundary/surface
boundary/gateway:              text/finding text/scrub text/href text/frame text/strictjson text/ucd platform/intake platform/loopback platform/reuse mcp/wire mcp/mcpmsg mcp/mcpshape record/captures record/hold boundary/policy boundary/classify boundary/validate boundary/surface boundary/blob
boundary/evidence:             text/frame record/hold record/ledger record/trust record/standing boundary/policy boundary/classify boundary/gateway boundary/surface boundary/validate
boundary/admit:                text/finding text/frame text/strictjson platform/backoff mcp/wire mcp/mcpmsg boundary/policy boundary/classify boundary/descriptions boundary/surface boundary/gateway
boundary/fleet:                text/finding text/frame text/strictjson platform/backoff platform/child mcp/wire mcp/mcpmsg boundary/gateway platform/intake
boundary/rules:                text/finding text/scrub text/href text/frame text/jsonc text/rfc3339 text/strictjson text/ucd platform/auth platform/build platform/capture platform/egress platform/listen platform/logs platform/loopback platform/valueref platform/signin platform/terminal mcp/wire record/captures record/trust record/ledger record/webhook record/witness model/delegation model/format model/llm boundary/classify boundary/classify/deep boundary/classify/local boundary/classify/onnx boundary/classify/remote boundary/gateway boundary/policy boundary/policy/expr boundary/policy/values boundary/surface github.com/goccy/go-yaml github.com/fsnotify/fsnotify
boundary/classifiers:          text/finding text/scrub text/strictjson model/llm boundary/policy boundary/gateway boundary/classify boundary/classify/deep boundary/classify/judge boundary/classify/local boundary/classify/onnx boundary/rules
boundary/reviewer:             model/llm boundary/rules boundary/surface boundary/classify boundary/policy
boundary/plug:                 text/finding text/frame text/scrub text/strictjson platform/intake boundary/gateway github.com/go-json-experiment/json
boundary/hook/socket:          platform/state
boundary/hook:                 text/frame text/strictjson boundary/gateway boundary/hook/socket
boundary/protect:              text/finding text/jsonc text/strictjson platform/build platform/privacy platform/state platform/terminal github.com/pelletier/go-toml/v2 go.yaml.in/yaml/v3
boundary/preflight:            text/finding text/strictjson platform/build platform/child platform/terminal mcp/wire boundary/classify boundary/descriptions boundary/fleet boundary/pinview boundary/protect boundary/reviewer boundary/rules boundary/surface
boundary/meter:                text/finding text/scrub text/frame mcp/mcpmsg boundary/policy boundary/classify boundary/gateway go.opentelemetry.io/otel github.com/prometheus

# storage: keeps state in SQLite or Postgres, behind interfaces that the packages above define
storage: text/finding platform/backoff platform/privacy mcp/session record/captures record/hold record/ledger record/sequence record/index boundary/surface github.com/jackc/pgx github.com/pressly/goose modernc.org/sqlite golang.org/x/text platform/lease platform/signin record/webhook platform/syserror

# grounding: checks and stores signed attestations, composes a verdict from them, and serves both to a model
grounding/attest:    text/finding text/scrub text/href text/ucd text/rfc3339 text/strictjson github.com/mr-tron/base58
grounding/consensus: text/href text/ucd text/rfc3339 text/strictjson grounding/attest
grounding/didweb:    text/href grounding/attest
grounding/demonstration: text/href text/strictjson grounding/attest
grounding/ground:    text/finding text/scrub text/href text/frame text/rfc3339 text/strictjson text/ucd platform/auth platform/terminal mcp/wire mcp/mcpmsg grounding/attest grounding/consensus github.com/modelcontextprotocol/go-sdk platform/intake
grounding/store:     storage grounding/attest grounding/consensus grounding/ground golang.org/x/text
grounding/store/storetest: storage grounding/store
grounding/validator: text/finding text/strictjson platform/privacy platform/terminal grounding/attest
grounding/ingest:    text/finding platform/backoff platform/state platform/terminal text/strictjson grounding/attest grounding/ground
grounding/corpus:
grounding/conform:   text/finding text/strictjson text/ucd platform/terminal grounding/attest grounding/corpus github.com/modelcontextprotocol/go-sdk platform/syserror

# app: opens an installation and assembles what a verb serves from compiled rules; it also checks, audits and demonstrates an installation, erases a person from it, and holds the exit codes
app/demo:    text/finding text/frame text/scrub platform/state platform/terminal github.com/modelcontextprotocol/go-sdk
app/exit: platform/syserror
app/commandline: text/finding platform/listen platform/logs platform/terminal app/exit github.com/alecthomas/kong
app/local:   text/finding text/frame platform/auth platform/keyring platform/privacy platform/state platform/terminal platform/valueref record/ledger record/sequence record/index storage app/exit
app/grounding: text/finding text/frame text/href text/scrub text/strictjson platform/auth platform/build platform/keyring platform/listen platform/state platform/terminal platform/valueref record/index record/ledger record/sequence record/standing record/trust storage grounding/attest grounding/consensus grounding/demonstration grounding/didweb grounding/ground grounding/ingest grounding/store grounding/validator app/exit app/local
app/install: app/exit app/local boundary/evidence boundary/pinfile boundary/pinview boundary/protect boundary/rules boundary/surface mcp/wire platform/backoff platform/capture platform/login platform/state platform/terminal record/captures record/hold record/index record/ledger record/sequence record/witness storage text/finding
app/forget:  text/finding platform/backoff platform/login platform/state platform/terminal record/hold record/ledger record/sequence boundary/surface storage app/exit app/install app/local
app/audit:   text/finding text/frame platform/privacy platform/backoff platform/state platform/terminal record/hold record/ledger record/review record/witness record/sequence record/index boundary/evidence boundary/surface storage app/exit app/install app/local github.com/go-json-experiment/json golang.org/x/mod
app/explain: text/finding text/frame platform/state platform/terminal record/hold record/ledger record/review record/sequence record/standing record/trust boundary/policy boundary/gateway boundary/surface storage app/audit app/install app/local
app/backtest: text/finding platform/capture platform/terminal record/captures record/ledger record/sequence record/standing record/trust boundary/policy boundary/policy/expr boundary/rules storage app/install
app/console/marked: text/scrub text/ucd
app/console: platform/capture record/captures record/review boundary/fleet boundary/policy boundary/gateway boundary/rules boundary/surface boundary/pinview app/explain text/finding text/frame platform/auth platform/signin platform/terminal record/hold record/index record/ledger record/sequence storage text/scrub text/ucd app/console/marked github.com/coreos/go-oidc/v3 golang.org/x/oauth2 golang.org/x/time model/counterfactual model/guard platform/intake
app/guardreport: platform/state platform/terminal record/ledger record/sequence model/delegation model/guard model/analysis storage model/interval app/install
app:         text/finding text/strictjson text/frame platform/backoff platform/capture platform/child platform/keyring platform/intake platform/login platform/loopback platform/sigv4 platform/state platform/auth platform/listen platform/logs platform/resident platform/terminal platform/build mcp/wire mcp/era mcp/session record/captures record/ledger record/hold record/index record/trust record/sequence record/standing model/format model/counterfactual model/delegation model/llm model/guard model/analysis boundary/classify boundary/policy boundary/policy/values boundary/validate boundary/surface boundary/gateway boundary/evidence boundary/admit boundary/descriptions boundary/fleet boundary/rules boundary/classifiers boundary/reviewer boundary/plug boundary/meter storage app/audit app/explain app/exit app/install app/local platform/peer platform/lease record/webhook mcp/forward platform/egress platform/signin app/console boundary/hook boundary/hook/socket
app/apptest: platform/logtest boundary/rules app github.com/modelcontextprotocol/go-sdk
app/doctor:  text/finding text/strictjson platform/privacy platform/backoff platform/build platform/listen platform/login platform/peer platform/lease platform/state platform/terminal mcp/mcpmsg record/hold record/ledger record/sequence boundary/fleet boundary/gateway boundary/protect boundary/rules boundary/surface storage app/install app/local boundary/hook

# cmd: holds the programs: flags in, words and exit codes out
cmd/pellucid:       * !grounding/attest !grounding/consensus !grounding/demonstration !grounding/didweb !grounding/ground !grounding/store !grounding/store/storetest !grounding/validator !grounding/ingest !grounding/corpus !grounding/conform !app/grounding github.com/alecthomas/kong github.com/go-json-experiment/json
cmd/pellucid-hook:  boundary/hook/socket
cmd/pellucid-ground: platform/build platform/egress platform/terminal platform/valueref grounding/attest grounding/ground grounding/validator grounding/corpus grounding/conform app/exit app/commandline app/local app/grounding github.com/alecthomas/kong

# e2e: tests the program against servers and clients that others wrote
e2e:
e2e/deploy:
e2e/replicas: platform/pgtest
e2e/release:
`

// core names the packages that are functions of their arguments alone: no
// clock, no randomness, no files, no network, no goroutine, no lock.
const core = `text/finding text/scrub text/href text/frame grounding/attest grounding/consensus model/format model/counterfactual text/eventstream text/ucd text/rfc3339 text/strictjson`

// bannedImports is what a core package must not import, each with its reason.
// A trailing slash bans what lies below as well.
var bannedImports = map[string]string{
	"os":                 "files and environment",
	"os/":                "processes",
	"io/ioutil":          "files",
	"syscall":            "the machine",
	"net":                "network",
	"net/http":           "network",
	"net/http/":          "network",
	"log":                "logs are the caller's",
	"log/slog":           "logs are the caller's",
	"math/rand":          "randomness is a parameter",
	"math/rand/":         "randomness is a parameter",
	"crypto/rand":        "randomness is a parameter",
	"unicode":            "its tables change with the toolchain: use text/ucd",
	"golang.org/x/text/": "its tables change with the toolchain: use text/ucd",
}

// excused lists imports that a core package may have all the same.
var excused = map[string]string{
	"text/strictjson unicode": "names that encoding/json would take for one another are refused; no hash depends on it",
}

// bannedCalls is what a core package must not name, by import path.
var bannedCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"sync": {"Mutex", "RWMutex", "Cond", "WaitGroup", "NewCond"},
}

type allowedImports struct {
	internal map[string]bool
	modules  []string
}

// parsePolicy reads the policy and checks the policy itself.
func parsePolicy(t *testing.T, text string) map[string]allowedImports {
	t.Helper()
	out := map[string]allowedImports{}
	folder := ""
	for line := range strings.Lines(text) {
		name, allowed, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if head, is := strings.CutPrefix(name, "# "); is {
			folder = head
			continue
		}
		if first, _, _ := strings.Cut(name, "/"); first != folder {
			t.Errorf("policy: %s stands under %s", name, folder)
		}
		f := allowedImports{internal: map[string]bool{}}
		for _, a := range strings.Fields(allowed) {
			switch {
			case a == "*":
				for above := range out {
					f.internal[above] = true
				}
			case strings.HasPrefix(a, "!"):
				if !f.internal[a[1:]] {
					t.Errorf("policy: %s takes out %s, which it does not allow", name, a[1:])
				}
				delete(f.internal, a[1:])
			case strings.Contains(a, "."):
				f.modules = append(f.modules, a)
			default:
				if _, above := out[a]; !above {
					t.Errorf("policy: %s names %s, which is not on a line above", name, a)
				}
				f.internal[a] = true
			}
		}
		if _, twice := out[name]; twice {
			t.Errorf("policy: two lines for %s", name)
		}
		out[name] = f
	}
	return out
}

func (f allowedImports) allows(path string) bool {
	if p, ours := strings.CutPrefix(path, module+"/"); ours {
		return f.internal[p]
	}
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return true // standard library; bannedImports has its own say
	}
	return slices.ContainsFunc(f.modules, func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") })
}

func TestImports(t *testing.T) {
	policy := parsePolicy(t, importPolicy)
	seen := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.path, "_test.go") || file.ignored {
			continue
		}
		pkg := filepath.ToSlash(filepath.Dir(file.path))
		if pkg == "packaging/pack" || strings.HasPrefix(pkg, "lab/") { // modules of their own, of which no program is made that users run
			continue
		}
		f, ok := policy[pkg]
		if !ok {
			// A program or fixture below a package is held to nothing but
			// the module's own requirements; a library must have its line.
			if file.ast.Name.Name != "main" && !seen[pkg] {
				t.Errorf("%s has no line in the import policy", pkg)
			}
			seen[pkg] = true
			continue
		}
		for _, imp := range file.imports() {
			if !f.allows(imp) {
				t.Errorf("%s: the import policy does not let %s import %s", file.path, pkg, imp)
			}
		}
	}
}

// TestImportsOfCore checks that a core package can reach nothing but core
// packages of this module, which makes the bans of TestCorePure transitive.
func TestImportsOfCore(t *testing.T) {
	isCore := strings.Fields(core)
	policy := parsePolicy(t, importPolicy)
	for _, pkg := range isCore {
		for dep := range policy[pkg].internal {
			if !slices.Contains(isCore, dep) {
				t.Errorf("policy: core package %s may import %s, which is not core", pkg, dep)
			}
		}
	}
}

func TestCorePure(t *testing.T) {
	isCore := strings.Fields(core)
	for _, file := range goFiles(t) {
		pkg := filepath.ToSlash(filepath.Dir(file.path))
		if strings.HasSuffix(file.path, "_test.go") || file.ignored || !slices.Contains(isCore, pkg) {
			continue
		}
		for _, imp := range file.imports() {
			if why := banned(imp); why != "" && excused[pkg+" "+imp] == "" {
				t.Errorf("%s imports %q: %s", file.path, imp, why)
			}
		}
		for _, bad := range impurities(file.ast) {
			t.Errorf("%s: a core package must not use %s", file.path, bad)
		}
	}
}

func banned(imp string) string {
	if why := bannedImports[imp]; why != "" {
		return why
	}
	for prefix, why := range bannedImports {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(imp, prefix) {
			return why
		}
	}
	return ""
}

// localNames are the import paths of a file by their names in it.
func localNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, imp := range f.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		local := path[strings.LastIndexByte(path, '/')+1:]
		if imp.Name != nil {
			local = imp.Name.Name
		}
		names[local] = path
	}
	return names
}

// TestSystemErrors: Windows has numbers of its own for what befalls an address, a connection or a pipe, and those
// that syscall names never come there. platform/syserror knows them on every system.
func TestSystemErrors(t *testing.T) {
	for _, file := range goFiles(t) {
		if path.Dir(file.path) == "platform/syserror" {
			continue
		}
		for _, name := range systemErrors(file.ast) {
			t.Errorf("%s: %s: platform/syserror tells that on every system", file.path, name)
		}
	}
	const src = `package p
import ("syscall"; w "golang.org/x/sys/windows")
var _ = []any{syscall.EPIPE, syscall.EROFS, w.WSAECONNREFUSED, x.ECONNRESET}`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(systemErrors(f), " "); got != "syscall.EPIPE w.WSAECONNREFUSED" {
		t.Errorf("found %q", got)
	}
}

var systemError = regexp.MustCompile(`^(WSA)?E(ADDR|CONN|HOST|NET|PIPE|SHUTDOWN|TIMEDOUT)|^ERROR_(BROKEN_PIPE|NO_DATA)$`)

func systemErrors(f *ast.File) (found []string) {
	names := localNames(f)
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && (names[x.Name] == "syscall" || strings.HasPrefix(names[x.Name], "golang.org/x/sys/")) && systemError.MatchString(sel.Sel.Name) {
			found = append(found, x.Name+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

// impurities lists what f does that a core package must not: go statements,
// clocks and locks.
func impurities(f *ast.File) []string {
	names := localNames(f)
	var out []string
	if path, dot := names["."]; dot {
		out = append(out, "a dot import of "+path)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, "a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(bannedCalls[names[x.Name]], n.Sel.Name) {
				out = append(out, names[x.Name]+"."+n.Sel.Name)
			}
		}
		return true
	})
	return out
}

// TestImportsCanFail proves that the checks above see what they look for.
func TestImportsCanFail(t *testing.T) {
	const src = `package p
import ("time"; s "sync"; "math/rand/v2"; "unicode")
var m s.Mutex
func f() { go f(); time.Sleep(1); var _ time.Duration; _ = rand.Int; _ = unicode.Is }`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(impurities(f), " "), "sync.Mutex a goroutine time.Sleep"; got != want {
		t.Errorf("impurities = %q, want %q", got, want)
	}
	for imp, want := range map[string]bool{
		"os": true, "os/exec": true, "net": true, "net/netip": false, "net/url": false, "math/rand/v2": true,
		"math/bits": false, "unicode": true, "unicode/utf8": false, "golang.org/x/text/unicode/norm": true, "sync": false,
	} {
		if got := banned(imp) != ""; got != want {
			t.Errorf("banned(%q) = %v, want %v", imp, got, want)
		}
	}
	parsed := parsePolicy(t, "# a: x\na/b:\na/c:\na/d: * !a/b")["a/d"]
	if parsed.allows(module+"/a/b") || !parsed.allows(module+"/a/c") {
		t.Errorf("what is taken out: %v", parsed.internal)
	}
	fl := allowedImports{internal: map[string]bool{"text/scrub": true}, modules: []string{"golang.org/x/sys"}}
	for imp, want := range map[string]bool{
		module + "/text/scrub": true, module + "/boundary/gateway": false, module: false, "golang.org/x/sys/unix": true,
		"golang.org/x/system": false, "fmt": true,
	} {
		if got := fl.allows(imp); got != want {
			t.Errorf("allows(%q) = %v, want %v", imp, got, want)
		}
	}
}

type goFile struct {
	path    string // from the root of the repository
	ast     *ast.File
	ignored bool // build constraint "ignore"
}

func (f *goFile) imports() []string {
	var out []string
	for _, imp := range f.ast.Imports {
		if p, err := strconv.Unquote(imp.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// goFiles parses every Go file of the module, whatever platform it is for.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	var out []*goFile
	fset := token.NewFileSet()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, rooted(path), nil, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return nil
		}
		out = append(out, &goFile{path, f, buildIgnored(f)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func buildIgnored(f *ast.File) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if c.Pos() < f.Package && strings.TrimSpace(c.Text) == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}
