// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/href"
)

// databases starts once a test wants Postgres.
var databases pgtest.Server

// groundToken may do everything with an adapter of these tests.
const groundToken = "e2e-6f1c0b7d93a84e25b1d7c3f08a92e64d"

// stores runs f with the place of an empty store of each kind.
func stores(t *testing.T, f func(t *testing.T, in *install, db string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, newInstall(t), filepath.Join(t.TempDir(), "ground.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, newInstall(t), databases.Database(t)) })
}

// groundProgram is the program of the adapter.
func groundProgram(t testing.TB) string {
	t.Helper()
	bin, err := grounding()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// ground is `pellucid-ground ARG…` with a token in its environment.
func (in *install) ground(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(groundProgram(t), args...)
	cmd.Env = append(in.env(), "GROUND_TOKEN="+groundToken)
	return cmd
}

// must runs a command that has to succeed and returns what it printed.
func must(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s\n%s", cmd.Args[1:], err, stderr.Bytes(), out[:min(len(out), 4000)])
	}
	return string(out)
}

// serveGround runs an adapter on a port of its own until the test ends, and returns
// the URL of its endpoints.
func (in *install) serveGround(t testing.TB, args ...string) string {
	t.Helper()
	cmd := in.ground(t, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("the adapter ended before the test did: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the adapter ended with %v", err)
		}
	})
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the adapter does not say where it is: %v", err)
		}
		if _, rest, ok := strings.Cut(line, "answers at "); ok {
			go io.Copy(io.Discard, lines) // it must not block on its pipe
			url, _, _ := strings.Cut(rest, "mcp ")
			return url
		}
	}
}

// climate imports the real claims and returns the store.
func (in *install) climate(t testing.TB, db string) {
	t.Helper()
	file, err := datatest.Find("..", "climate-fever/climate-fever.jsonl.gz")
	if err != nil {
		t.Skip(err)
	}
	receipts := must(t, in.ground(t, "import", "--json", "--db", db, climateVotes(t, file)))
	const votes = 18_486
	if n := strings.Count(receipts, `"accepted":true`); n != votes {
		t.Fatalf("%d votes were accepted, want %d", n, votes)
	}
}

// climateVotes writes the votes of the data set as attestations, with a key for each place of a vote, and returns
// the path of that file.
func climateVotes(t testing.TB, file string) string {
	t.Helper()
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]attest.Verdict{"SUPPORTS": attest.Supported, "REFUTES": attest.False, "NOT_ENOUGH_INFO": attest.Unverified}
	var out bytes.Buffer
	for d := json.NewDecoder(z); d.More(); {
		var row struct {
			ID        string `json:"claim_id"`
			Claim     string
			Evidences []struct {
				Article, Evidence string
				Votes             []*string
			}
		}
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for i, e := range row.Evidences {
			uri, err := href.Parse("https://en.wikipedia.org/wiki/" + regexp.MustCompile("[^A-Za-z0-9]+").ReplaceAllString(e.Article, "_"))
			if err != nil {
				t.Fatal(err)
			}
			for k, vote := range e.Votes {
				if vote == nil {
					continue
				}
				place := fmt.Sprint(i, ":", k)
				seed := sha256.Sum256([]byte(place))
				key, err := attest.GenerateKey(bytes.NewReader(seed[:]))
				if err != nil {
					t.Fatal(err)
				}
				s := attest.Statement{ID: "urn:climate-fever:vote:" + row.ID + ":" + place, Version: attest.V03, Validator: key.DID(),
					Claim:   attest.Claim{Text: row.Claim, Language: "en", Topic: "climate", GroupID: "urn:climate-fever:claim:" + row.ID},
					Verdict: verdicts[*vote], Domain: "scientific-default", Rationale: "One annotator's vote.",
					Evidence: []attest.Evidence{{Quote: e.Evidence, URI: uri, Role: "wikipedia"}}, DependsOn: []string{uri.String()},
					Issued: time.Date(2020, 12, 1, 0, 0, 0, 0, time.UTC)}
				signed, err := attest.Sign(s.AppendJSON(nil), key, attest.SignOptions{})
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(signed, '\n'))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "votes.jsonl")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var groundQuestion = map[string]any{"query": "Sea level rise has been accelerating", "limit": 5}

// TestGroundClimate: both eras, over HTTP and stdio, get an answer of the schema that
// the adapter declares, twice: as structured content, and in a fence.
func TestGroundClimate(t *testing.T) {
	t.Parallel()
	in, db := newInstall(t), filepath.Join(t.TempDir(), "ground.db")
	in.climate(t, db)
	url := in.serveGround(t, "--db", db)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for name, transport := range map[string]mcp.Transport{
			"http":  &mcp.StreamableClientTransport{Endpoint: url + "mcp"},
			"stdio": &mcp.CommandTransport{Command: in.ground(t, "serve", "--stdio", "--db", db)},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
				s, err := c.Connect(soon(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := s.InitializeResult().ProtocolVersion; got != version {
					t.Fatalf("protocol version %s", got)
				}
				in.checkGround(t, s)
			})
		}
	}
}

// checkGround asks one question and looks at everything that comes back.
func (in *install) checkGround(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	tools, err := s.ListTools(soon(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "ground", Arguments: groundQuestion})
	if err != nil || res.IsError {
		t.Fatalf("call: %v %+v", err, res)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == "ground" {
			valid(t, tool.OutputSchema, raw)
		}
	}
	origin, body, err := in.key(t).Open(res.Content[0].(*mcp.TextContent).Text, frame.Origin{})
	if err != nil || origin.Tool != "ground" {
		t.Fatalf("fence: %+v %v", origin, err)
	}
	if !reflect.DeepEqual(decoded(t, raw), decoded(t, json.RawMessage(body))) {
		t.Error("the fence holds another answer than structuredContent")
	}
	hash := checkAnswer(t, raw)
	one, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "attestation", Arguments: map[string]any{"hash": hash}})
	if err != nil || one.IsError {
		t.Fatalf("attestation: %v", err)
	}
	if r, err := s.ReadResource(soon(t), &mcp.ReadResourceParams{URI: "veritas://attestation/" + hash}); err != nil || len(r.Contents) != 1 {
		t.Errorf("resource: %v", err)
	}
}

// checkAnswer wants a verdict on real votes and returns the hash of one.
func checkAnswer(t *testing.T, raw []byte) string {
	t.Helper()
	isClean(t, "answer", string(raw))
	var a struct {
		Summary      struct{ Validator_count int }                `json:"verdict_summary"`
		Attestations []map[string]any                             `json:"attestations"`
		Meta         struct{ Provenance []struct{ Hash string } } `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	if a.Summary.Validator_count < 5 || len(a.Attestations) != 5 || len(a.Meta.Provenance) != 5 {
		t.Fatalf("answer %s", raw)
	}
	for _, x := range a.Attestations {
		text, _ := x["_untrusted_text"].(map[string]any)
		if text["@type"] != "veritas:UntrustedValidatorText" || text["warning"] == "" {
			t.Errorf("an attestation without a frame: %v", x)
		}
	}
	return a.Meta.Provenance[0].Hash
}

// valid holds value to a declared schema, which refers to nothing outside of itself.
func valid(t *testing.T, schema any, value []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		t.Errorf("the answer is not of the declared schema: %v", err)
	}
}

// TestGroundInspector: the Inspector gets the same through stdio in every era.
func TestGroundInspector(t *testing.T) {
	t.Parallel()
	in, db := newInstall(t), filepath.Join(t.TempDir(), "ground.db")
	i := newInspector(t, in, map[string][]string{"ground": {groundProgram(t), "serve", "--stdio", "--db", db}})
	in.climate(t, db)
	for _, era := range []string{"legacy", "auto", "modern"} {
		t.Run(era, func(t *testing.T) {
			out := i.ask(t, "ground", era, "--method", "tools/call", "--tool-name", "ground",
				"--tool-arg", "query="+groundQuestion["query"].(string), "limit=5")
			var res struct{ StructuredContent json.RawMessage }
			if err := json.Unmarshal(out, &res); err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, res.StructuredContent)
			if !strings.Contains(string(i.ask(t, "ground", era, "--method", "tools/list")), `"outputSchema"`) {
				t.Error("no output schema")
			}
		})
	}
}

// TestGroundConforms: 100 % of the MUST vectors, and of the others, however the
// adapter is fed and wherever it keeps what it is fed.
func TestGroundConforms(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, in *install, db string) {
		t.Run("http", func(t *testing.T) {
			url := in.serveGround(t, "--db", db, "--token", "env:GROUND_TOKEN", "--require-token")
			in.conforms(t, 670, "--url", url+"mcp", "--token", "env:GROUND_TOKEN",
				"--feed", "http="+url+"attestations", "--feed-token", "env:GROUND_TOKEN")
		})
	})
	t.Run("command", func(t *testing.T) { // each vector starts a process: two families show that it is fed
		in, db := newInstall(t), filepath.Join(t.TempDir(), "ground.db")
		in.conforms(t, 50, "--family", "length-attack", "--family", "bidi", "--feed", "command="+groundProgram(t)+" import --db "+db+" -",
			"--", groundProgram(t), "serve", "--stdio", "--db", db)
	})
}

// TestGroundConformsThroughUp: behind the boundary an adapter has the rates that it has by itself, whether the boundary starts
// it or knows its URL. A control token in a quote stays, and no frame is lost.
func TestGroundConformsThroughUp(t *testing.T) {
	t.Parallel()
	t.Run("url", func(t *testing.T) {
		in := newInstall(t)
		url := in.serveGround(t, "--db", filepath.Join(t.TempDir(), "ground.db"), "--token", "env:GROUND_TOKEN")
		base, _ := in.serveUp(t, "version: 1\nhttp: {rate: 0}\nservers: {facts: {url: '"+url+"mcp', profile: veritas-0.1}}\n")
		feed := []string{"--feed", "http=" + url + "attestations", "--feed-token", "env:GROUND_TOKEN"}
		through := in.conforms(t, 670, append(feed, "--url", base+"/mcp/facts")...)
		if bare := in.conforms(t, 670, append(feed, "--url", url+"mcp")...); through != bare {
			t.Errorf("%+v through up, %+v bare", through, bare)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		in, db := newInstall(t), filepath.Join(t.TempDir(), "ground.db")
		families := []string{"--family", "negative", "--family", "direct-injection"}
		dump := filepath.Join(t.TempDir(), "dump.jsonl")
		if err := os.WriteFile(dump, []byte(must(t, in.ground(t, append([]string{"conform", "--dump"}, families...)...))), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = in.ground(t, "import", "--db", db, dump).Run() // some are refused
		command, err := json.Marshal([]string{groundProgram(t), "serve", "--stdio", "--db", db})
		if err != nil {
			t.Fatal(err)
		}
		base, _ := in.serveUp(t, "version: 1\nhttp: {rate: 0}\nservers: {facts: {command: "+string(command)+", profile: veritas-0.1}}\n")
		through := in.conforms(t, 50, append(families, "--url", base+"/mcp/facts")...)
		if bare := in.conforms(t, 50, append(families, "--", groundProgram(t), "serve", "--stdio", "--db", db)...); through != bare {
			t.Errorf("%+v through up, %+v bare", through, bare)
		}
	})
}

// rates are those of a report of conform.
type rates struct{ passed, failed, skipped int }

func (in *install) conforms(t *testing.T, least int, args ...string) rates {
	t.Helper()
	out := must(t, in.ground(t, append([]string{"conform", "--json", "--timeout", "1h"}, args...)...))
	var rep struct {
		Conforms                bool
		Passed, Failed, Skipped int
		Deviations              []any
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	if !rep.Conforms || rep.Failed > 0 || rep.Passed < least {
		t.Errorf("%d passed, %d failed: %v", rep.Passed, rep.Failed, rep.Deviations)
	}
	return rates{rep.Passed, rep.Failed, rep.Skipped}
}

// TestGroundDoors: what needs a token is shut without one, and a page of another
// site gets nothing.
func TestGroundDoors(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	open := in.serveGround(t)
	guarded := in.serveGround(t, "--db", filepath.Join(t.TempDir(), "g.db"), "--token", "env:GROUND_TOKEN", "--require-token")
	for _, c := range []struct {
		url, token, origin string
		status             int
	}{
		{open + "attestations", "", "", 403},
		{open + "attestations", groundToken, "", 403},
		{open + "mcp", "", "https://evil.example", 403},
		{guarded + "mcp", "", "", 401},
		{guarded + "attestations", "", "", 401},
		{guarded + "attestations", "wrong", "", 401},
		{guarded + "attestations", groundToken, "https://evil.example", 403},
		{guarded + "attestations", groundToken, "", 422},
		{guarded + "events", groundToken, "", 422},
	} {
		req, err := http.NewRequestWithContext(soon(t), http.MethodPost, c.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s, token %q, origin %q: status %d, want %d", c.url, c.token, c.origin, res.StatusCode, c.status)
		}
	}
}
