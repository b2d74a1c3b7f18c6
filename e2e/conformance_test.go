// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/text/frame"
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

// A difference is by how many checks more or fewer than directly there may be, by
// scenario, id and status.
type difference map[string]int

// Streams of 2025-11-25 begin with an event that has an id and no data, which the suite's own server leaves out: one
// check more passes, and the suite sees more events. overPipes is where the gateway reaches the server over pipes: the
// tool that closes its stream of HTTP has none to close, and its result arrives. toServer is over HTTP: the suite asks for
// the rest of a stream that has ended with its answer, and gets 204: nothing follows.
var (
	overPipes = difference{"passed": 1, polling + "server-sse-priming-event SUCCESS": 1, polling + "server-sse-priming-event WARNING": -1,
		polling + "incoming-sse-event INFO": 3}
	toServer = difference{"passed": 1, polling + "server-sse-priming-event SUCCESS": 1, polling + "server-sse-priming-event WARNING": -1,
		polling + "incoming-sse-event INFO": 2, polling + "incoming-response INFO": 1, polling + "outgoing-request INFO": 1}
)

const polling = "server-sse-polling "

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

// A way is how `pellucid up` reaches the suite's server.
type way struct {
	name   string
	server string // as the configuration has it
	may    difference
}

// ways lead from the suite, by HTTP, to the server at url, or to the one that argv
// starts. The suite's client has no stdio, so that the front of `wrap` is driven by
// `up` as its client.
func (in *install) ways(url string, argv []string) []way {
	wrap := append([]string{in.bin, "wrap", "--name", "inner", "--set", "dangerously_allow_sampling=true", "--"}, argv...)
	return []way{
		{"HTTP, up, HTTP", "url: " + url, toServer},
		{"HTTP, up, stdio", "command: " + yamlCommand(argv), overPipes},
		{"stdio, wrap, stdio", "command: " + yamlCommand(wrap) + ", env: {PELLUCID_STATE: " + in.state + "}", overPipes},
	}
}

// serveWay runs `pellucid up` with that one server. Fences are on; sampling is
// allowed, which the suite needs, and its rate is not that of clients.
func (in *install) serveWay(t testing.TB, w way) string {
	t.Helper()
	base, _ := in.serveUp(t, "version: 1\nhttp: {rate: 0}\nservers:\n  srv: {"+w.server+", dangerously_allow_sampling: true}\n")
	return base + "/mcp/srv"
}

// TestConformance prints the table of the suite; $PELLUCID_ROUNDS says how often each is run.
func TestConformance(t *testing.T) {
	t.Parallel()
	suite, in := suite(t), newInstall(t)
	bin := everything(t, "server")
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_ROUNDS")); err == nil {
		rounds = max(n, 1)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-12s %-22s %s\n", "set", "way", "passed / failed")
	for _, set := range conformanceSets {
		url := serveEverything(t, bin, set.stateless)
		direct := conform(t, suite, url, set.revision)
		if direct.passed != set.passed {
			direct = conform(t, suite, url, set.revision) // see below
		}
		fmt.Fprintf(&table, "%-12s %-22s %d / %d\n", set.revision, "directly", direct.passed, direct.failed)
		if direct.passed != set.passed || direct.failed != set.failed {
			t.Errorf("%s: %d passed, %d failed directly, want %d, %d", set.revision, direct.passed, direct.failed, set.passed, set.failed)
		}
		for _, way := range in.ways(url, []string{bin, set.stateless}) {
			at := in.serveWay(t, way)
			for range rounds {
				got := conform(t, suite, at, set.revision)
				differs := got.compare(direct, way.may)
				if len(differs) > 0 { // the suite waits 1.5 s for a notification, by its own clock
					t.Logf("%s, %s, asked again: %s", set.revision, way.name, strings.Join(differs, "; "))
					got = conform(t, suite, at, set.revision)
					differs = got.compare(direct, way.may)
				}
				fmt.Fprintf(&table, "%-12s %-22s %d / %d\n", set.revision, way.name, got.passed, got.failed)
				for _, d := range differs {
					t.Errorf("%s, %s: %s", set.revision, way.name, d)
				}
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

// compare returns how o differs from a run without Pellucid.
func (o *outcome) compare(direct *outcome, may difference) (differs []string) {
	if o.passed != direct.passed && o.passed != direct.passed+may["passed"] || o.failed != direct.failed {
		differs = append(differs, fmt.Sprintf("%d passed, %d failed", o.passed, o.failed))
	}
	for check, n := range o.checks {
		if want := direct.checks[check]; n != want && n != want+may[check] {
			differs = append(differs, fmt.Sprintf("%d × %s, directly %d %s", n, check, want, o.why[check]))
		}
	}
	for check, want := range direct.checks {
		if o.checks[check] == 0 && want+may[check] != 0 {
			differs = append(differs, fmt.Sprintf("0 × %s, directly %d", check, want))
		}
	}
	return differs
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
	t.Parallel()
	suite, in := suite(t), newInstall(t)
	bin := everything(t, "client")
	behind := strings.Join(append(helperServer(t, "client", mark()), in.bin, in.state, bin), " ")
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
		// The gateway looks at the server over a connection of its own before: of what the
		// suite sees there may be more, and nothing else.
		// That connection declares all capabilities, so that a check which the suite skips for a
		// client without them may pass.
		for check, want := range o[0].checks {
			skipped := strings.HasSuffix(check, " SKIPPED")
			if n := o[1].checks[check] + o[1].checks[passed(check)]; n < want && (!skipped || n == 0) {
				t.Errorf("%d × %s, directly %d", n, check, want)
			}
		}
		for check, n := range o[1].checks {
			if o[0].checks[check] == 0 && o[0].checks[strings.TrimSuffix(check, " SUCCESS")+" SKIPPED"] == 0 {
				t.Errorf("%d × %s, directly none %s", n, check, o[1].why[check])
			}
		}
	}
}

// passed is what a skipped check is called where it is made and passes; "" for any other.
func passed(check string) string {
	if name, ok := strings.CutSuffix(check, " SKIPPED"); ok {
		return name + " SUCCESS"
	}
	return ""
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

// runClient runs the client os.Args[6] against the server at the URL os.Args[7],
// with `pellucid up` of the program os.Args[4] and the state os.Args[5] in between.
func runClient() int {
	bin, state, client, url := os.Args[4], os.Args[5], os.Args[6], os.Args[7]
	dir, err := os.MkdirTemp(state, "client-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	file := filepath.Join(dir, "pellucid.yaml")
	config := "version: 1\nservers:\n  srv: {url: " + url + ", dangerously_allow_sampling: true}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	up := exec.Command(bin, "up", "-c", file, "--listen", "127.0.0.1:0")
	up.Env = append(os.Environ(), "PELLUCID_STATE="+dir)
	base, said, err := startUp(up)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(client, base+"/mcp/srv")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	up.Process.Signal(os.Interrupt)
	said.Wait()
	if up.Wait() != nil || err != nil {
		return 1
	}
	return 0
}

// TestInspectorFront lists the tools through the Inspector in every era: those of
// the gateway are those of the server itself, also in eras that it does not speak.
func TestInspectorFront(t *testing.T) {
	t.Parallel()
	bin, in := everything(t, "server"), newInstall(t)
	servers := map[string]string{}
	for name, flag := range map[string]string{"stateful": "-stateless=false", "stateless": "-stateless=true"} {
		url := serveEverything(t, bin, flag)
		ways := in.ways(url, []string{bin, flag})
		servers[name], servers[name+"-http"], servers[name+"-stdio"] = url, in.serveWay(t, ways[0]), in.serveWay(t, ways[1])
	}
	type entry struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	entries := map[string]entry{}
	for name, url := range servers {
		entries[name] = entry{"streamable-http", url}
	}
	i := newInspector(t, in, nil)
	b, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.config, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for server, speaks := range map[string]string{"stateful": "legacy", "stateless": "modern"} {
		want := i.values(t, server, speaks)
		for _, era := range []string{"legacy", "auto", "modern"} {
			for _, way := range []string{"-http", "-stdio"} {
				if d := cmp.Diff(want, i.values(t, server+way, era)); d != "" {
					t.Errorf("%s%s, %s: %s", server, way, era, d)
				}
				got := i.ask(t, server+way, era, "--method", "tools/call", "--tool-name", "test_simple_text")
				if !bytes.Contains(got, []byte("This is a simple text response for testing.")) || !bytes.Contains(got, []byte(frame.MetaKey)) {
					t.Errorf("%s%s, %s: %s", server, way, era, got)
				}
			}
		}
	}
}

// values are the definitions of tools. Bytes do not count: the Inspector writes them
// down in another order in each era.
func (i *inspector) values(t *testing.T, server, era string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, raw := range named(t, i.ask(t, server, era, "--method", "tools/list"), "") {
		var v any
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		out[name] = v
	}
	return out
}
