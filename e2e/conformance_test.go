package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/frame"
)

// The official conformance suite is run against the Go SDK's own server for it,
// directly and behind Pellucid. A check is known by its scenario, id and status;
// behind Pellucid there have to be the same ones, as often.
var conformanceSets = []struct {
	revision, stateless string
	passed, failed      int // the failures are those of an extension that the server does not have
}{
	{"2025-11-25", "-stateless=false", 82, 0},
	{"2026-07-28", "-stateless=true", 165, 30},
}

// overPipes are the checks that there are beside those of the server over HTTP
// if the gateway reaches it over pipes: the tool that closes its stream of HTTP
// has none to close, and its result arrives.
var overPipes = map[string]int{"server-sse-polling incoming-sse-event INFO": 1}

// clientScenarios are those in which the suite is the server; what it watches
// there is the gateway as a client.
var clientScenarios = []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
	"request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers",
	"http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation"}

// everything builds the SDK's "server" or "client" from the module cache.
func everything(t *testing.T, what string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), what)
	out, err := exec.Command("go", "build", "-o", bin, "github.com/modelcontextprotocol/go-sdk/conformance/everything-"+what).CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// suite returns the command of the conformance suite.
func suite(t *testing.T) []string {
	t.Helper()
	modules := nodeModules(t)
	index := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(index); err != nil {
		t.Skip("the conformance suite is not installed; `make conformance` installs it")
	}
	return []string{nodeBinary(modules), index}
}

// TestConformance prints the table of the suite; $PELLUCID_ROUNDS says how often each is run.
func TestConformance(t *testing.T) {
	suite := suite(t)
	bin := everything(t, "server")
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_ROUNDS")); err == nil {
		rounds = max(n, 1)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-12s %-22s %s\n", "set", "server reached", "passed / failed")
	for _, set := range conformanceSets {
		url := serveEverything(t, bin, set.stateless)
		direct := conform(t, suite, url, set.revision)
		fmt.Fprintf(&table, "%-12s %-22s %d / %d\n", set.revision, "directly", direct.passed, direct.failed)
		if direct.passed != set.passed || direct.failed != set.failed {
			t.Errorf("%s: %d passed, %d failed directly, want %d, %d", set.revision, direct.passed, direct.failed, set.passed, set.failed)
		}
		for _, way := range []struct {
			name  string
			proxy string
			more  map[string]int
		}{
			{"HTTP, gateway, HTTP", startProxy(t, url), nil},
			{"HTTP, gateway, stdio", startProxy(t, bin, set.stateless), overPipes},
		} {
			for range rounds {
				got := conform(t, suite, way.proxy, set.revision)
				fmt.Fprintf(&table, "%-12s %-22s %d / %d\n", set.revision, way.name, got.passed, got.failed)
				if got.passed != set.passed || got.failed != set.failed {
					t.Errorf("%s, %s: %d passed, %d failed", set.revision, way.name, got.passed, got.failed)
				}
				got.compare(t, direct, way.more)
			}
		}
	}
	t.Log(table.String())
}

// outcome is what one run of the suite found.
type outcome struct {
	passed, failed int
	checks         map[string]int
	why            map[string]string
}

func (o *outcome) compare(t *testing.T, direct *outcome, more map[string]int) {
	t.Helper()
	for check, n := range o.checks {
		if want := direct.checks[check]; n != want && n != want+more[check] {
			t.Errorf("%d × %s, directly %d %s", n, check, want, o.why[check])
		}
	}
	for check, want := range direct.checks {
		if o.checks[check] == 0 {
			t.Errorf("0 × %s, directly %d", check, want)
		}
	}
}

var total = regexp.MustCompile(`(?m)^Total: (\d+) passed, (\d+) failed$`)

// conform runs the suite against the server at url.
func conform(t *testing.T, suite []string, url, revision string) *outcome {
	t.Helper()
	dir := t.TempDir()
	out := run(t, suite, "server", "--url", url, "--requirements", revision, "--output-dir", dir)
	m := total.FindSubmatch(out)
	if m == nil {
		t.Fatalf("the suite has no total: %s", out)
	}
	o := checks(t, dir)
	o.passed, _ = strconv.Atoi(string(m[1]))
	o.failed, _ = strconv.Atoi(string(m[2]))
	return o
}

func run(t *testing.T, suite []string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(soon(t), suite[0], slices.Concat(suite[1:], args)...)
	out, _ := cmd.CombinedOutput() // its code says only whether there was a failure
	return out
}

// checks reads what a run has left in dir.
func checks(t *testing.T, dir string) *outcome {
	t.Helper()
	o := &outcome{checks: map[string]int{}, why: map[string]string{}}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(b, &checks); err != nil {
			t.Fatal(err)
		}
		scenario := stamp.ReplaceAllString(filepath.Base(filepath.Dir(name)), "")
		for _, c := range checks {
			key := strings.TrimPrefix(scenario, "server-") + " " + c.ID + " " + c.Status
			o.checks[key]++
			o.why[key] = c.ErrorMessage
		}
	}
	return o
}

// TestConformanceClient: a client behind the gateway is to the suite what it is
// without it.
func TestConformanceClient(t *testing.T) {
	suite := suite(t)
	bin := everything(t, "client")
	behind := strings.Join(append(helperServer(t, "client", mark()), bin), " ")
	for _, scenario := range clientScenarios {
		var o [2]*outcome
		for i, command := range []string{bin, behind} {
			dir := t.TempDir()
			run(t, suite, "client", "--command", command, "--scenario", scenario, "--output-dir", dir)
			o[i] = checks(t, dir)
		}
		if len(o[0].checks) == 0 {
			t.Errorf("%s: no checks", scenario)
		}
		o[1].compare(t, o[0], nil)
	}
}

// stamp is what the suite puts behind the name of a scenario.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*$`)

// serveEverything starts the SDK's server on a free port.
func serveEverything(t *testing.T, bin, stateless string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, "-http="+addr, stateless)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + addr)
		if err == nil {
			resp.Body.Close()
			return "http://" + addr
		}
		if time.Now().After(end) {
			t.Fatal("the server does not listen")
		}
	}
}

// startProxy starts serveProxy before upstream.
func startProxy(t testing.TB, upstream ...string) string {
	t.Helper()
	m := mark()
	argv := append(helperServer(t, "proxy", m), upstream...)
	cmd := exec.Command(argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
		gone(t, m)
		if i := slices.IndexFunc(strings.Split(stderr.String(), "\n"), func(s string) bool {
			return strings.HasPrefix(s, "panic") || strings.HasPrefix(s, "fatal error")
		}); i >= 0 {
			t.Errorf("the gateway fell: %s", stderr.String())
		}
	})
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway does not listen: %s", stderr.String())
	}
	return strings.TrimSpace(url)
}

// TestInspectorFront lists the tools through the Inspector in every era: over
// the gateway's HTTP they are those of the server itself.
func TestInspectorFront(t *testing.T) {
	bin := everything(t, "server")
	stateful, stateless := serveEverything(t, bin, "-stateless=false"), serveEverything(t, bin, "-stateless=true")
	servers := map[string]string{
		"stateful": stateful, "stateful-http": startProxy(t, stateful), "stateful-stdio": startProxy(t, bin, "-stateless=false"),
		"stateless": stateless, "stateless-http": startProxy(t, stateless), "stateless-stdio": startProxy(t, bin, "-stateless=true"),
	}
	type entry struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	entries := map[string]entry{}
	for name, url := range servers {
		entries[name] = entry{"streamable-http", url}
	}
	i := newInspector(t, &install{}, nil)
	b, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.config, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for server, eras := range map[string][]string{"stateful": {"legacy", "auto"}, "stateless": {"legacy", "auto", "modern"}} {
		for _, era := range eras {
			want := i.ask(t, server, era, "--method", "tools/list")
			for _, way := range []string{"-http", "-stdio"} {
				if way == "-stdio" && era == "auto" && server == "stateful" {
					continue // over pipes this server speaks both eras
				}
				if got := i.ask(t, server+way, era, "--method", "tools/list"); !bytes.Equal(got, want) {
					t.Errorf("%s%s, %s: %s\nwant %s", server, way, era, got, want)
				}
				got := i.ask(t, server+way, era, "--method", "tools/call", "--tool-name", "test_simple_text")
				if !bytes.Contains(got, []byte("This is a simple text response for testing.")) || !bytes.Contains(got, []byte(frame.MetaKey)) {
					t.Errorf("%s%s, %s: %s", server, way, era, got)
				}
			}
		}
	}
}
