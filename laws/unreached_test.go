// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// unreached lists what none of the programs under cmd reaches and what stays all the same. A
// line is a function or method, or a package with all that is in it, a colon, and the reason.
const unreached = `
# Public API: other modules call these; here only tests and examples do.
grounding/attest.ContextDocument:  the JSON-LD contexts that a verifier needs beside the library
grounding/attest.Attestation.Signed: whether there is a proof, before it is checked
record/ledger.AddCosignature:      adds what witnesses answer to a checkpoint, after checking it
text/href.Bare:                    reads back what URI.Rendered has written
text/scrub.EncodedTokens:          counts control tokens behind escapes, for reports
text/scrub.unescape:               part of EncodedTokens
text/scrub.Replay:                 checks a list of events against input and output
text/scrub.Steps:                  the steps of a profile in order, which the specification is held to

# The lab measures or trains with them, and tests of the product use them.
boundary/classify/local.New:         makes a model of trained weights
boundary/classify/local.Reader.Next: reads the features on which a model is trained
boundary/classify/local.Reader.Span: the place of a token in its text
boundary/classify/deep.Loaded:       a model of weights that are in memory
boundary/gateway.NewLines:           writes decisions as JSON lines
boundary/gateway.Lines.Record:       part of NewLines
model/counterfactual.Drive:          runs a plan whose answers are known
model/counterfactual.Run.Turn:       the context of one turn of a recorded run
text/scrub.Tokens:                   the list of control tokens

# Windows alone reaches these; their tests run on every system.
platform/child.isBatch:            whether cmd.exe runs a program
platform/child.batchLine:          the command line for it
platform/child.batchWriter.word:   part of batchLine
platform/child.batchWriter.toggle: part of batchLine

# Tools of tests, and programs that write what is generated.
app/apptest:              a running gateway for tests
text/ucd.CCC:             the combining class, which tests of the tables and oracles compare
boundary/surface/pintest: the same tests for every store of pins
grounding/store/storetest: the same tests for every store of attestations
platform/scripttest:      what the scripts of both programs share
e2e:                      tests of the program against servers and clients that others wrote
e2e/deploy:               tests of the chart, the Compose file, the proxies and the alerts
e2e/release:              tests of what a release is made of
e2e/replicas:             replicas that are killed while clients call
mcp/wire.Decoded:         how often a route parses messages, counted by app.TestDecodes
mcp/wire.Watch:           which goroutines use a message, counted by app.TestHandovers
mcp/wire.Push:             a test reads and writes one side of a layer
mcp/wire.pushed.AllowBatches: part of Push
mcp/wire.pushed.Start:     part of Push
mcp/wire.pushed.read:      part of Push
model/llm/llmtest:        a provider of models for tests
record/ledger/ledgertest: a log for tests
platform/intake/intaketest: requests that tests begin
platform/logtest:         a log that tests read
platform/datatest:        the public test data
platform/pgtest:          a Postgres for tests
platform/programtest:     programs of others for tests
platform/waittest:        tests wait for what other goroutines do
text/ucd/gen:             writes the tables of Unicode
`

// TestUnreached fails where a function or package is reached by no program and is not listed
// above, and where a line above is no longer true. It also fails where not even a test reaches
// a function. Run it with make lint: it compiles everything.
func TestUnreached(t *testing.T) {
	if os.Getenv("PELLUCID_LINT") == "" {
		t.Skip("the whole program is analysed by make lint")
	}
	const names = `{{range .Funcs}}{{printf "%s.%s\n" $.Path .Name}}{{end}}`
	found := goOutput(t, "tool", "-modfile=tools/lint/go.mod", "deadcode", "-f", names, "./cmd/...")
	linked := goOutput(t, "list", "-deps", "./cmd/...")
	for _, pkg := range goOutput(t, "list", "./...") {
		if pkg != module+"/laws" && !slices.Contains(linked, pkg) {
			found = append(found, pkg)
		}
	}
	for _, wrong := range compareUnreached(unreached, found) {
		t.Error(wrong)
	}
	for _, f := range goOutput(t, "tool", "-modfile=tools/lint/go.mod", "deadcode", "-test", "-f", names, "./...") {
		t.Errorf("no program and no test reaches %s", f)
	}
}

// compareUnreached returns what is wrong with list, where found is what no program reaches.
func compareUnreached(list string, found []string) (wrong []string) {
	reasons := map[string]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, ":")
		if strings.TrimSpace(reason) == "" {
			wrong = append(wrong, "no reason is given for "+name)
		}
		if _, twice := reasons[name]; twice {
			wrong = append(wrong, "two lines for "+name)
		}
		reasons[name] = reason
	}
	for _, f := range found {
		name := strings.TrimPrefix(f, module+"/")
		if _, listed := reasons[name]; !listed {
			wrong = append(wrong, "no program reaches "+name+": delete it, or list it with a reason")
		}
		delete(reasons, name)
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		wrong = append(wrong, name+" is listed, but a program reaches it, or it does not exist")
	}
	return wrong
}

// goOutput returns the lines that the go command prints.
func goOutput(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

func TestCompareUnreached(t *testing.T) {
	const list = `
# heading
a/b.F: a reason
a/b.T.M: a reason
c: a reason
c: a reason
d.F:
`
	got := compareUnreached(list, []string{module + "/a/b.F", module + "/a/b.New", module + "/c", module + "/e"})
	want := []string{
		"two lines for c",
		"no reason is given for d.F",
		"no program reaches a/b.New: delete it, or list it with a reason",
		"no program reaches e: delete it, or list it with a reason",
		"a/b.T.M is listed, but a program reaches it, or it does not exist",
		"d.F is listed, but a program reaches it, or it does not exist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
