package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/counterfactual"
	modelguard "github.com/pellucid-mcp/pellucid/guard"
	"github.com/pellucid-mcp/pellucid/hold"
	"github.com/pellucid-mcp/pellucid/internal/auth"
	"github.com/pellucid-mcp/pellucid/internal/loopback"
	"github.com/pellucid-mcp/pellucid/internal/rules"
	"github.com/pellucid-mcp/pellucid/internal/standing"
	"github.com/pellucid-mcp/pellucid/ledger"
	"github.com/pellucid-mcp/pellucid/llm"
)

type guardCmd struct {
	Listen   string `default:"127.0.0.1:7421" placeholder:"ADDR" help:"Listen there (default ${default})."`
	Upstream string `required:"" placeholder:"URL" help:"The provider, such as https://api.openai.com/v1 or https://api.anthropic.com."`
	stateDB
	Mode       string   `enum:"enforce,audit" default:"enforce" help:"enforce holds privileged calls; audit holds nothing, and records what would have been held."`
	Fail       string   `enum:"closed,open" default:"closed" help:"What happens to a call that could not be decided: closed refuses it, open lets it through."`
	Buffer     bool     `help:"Hold every answer whole: a streamed one can be repaired then, and text comes only at its end."`
	Privileged []string `sep:"none" placeholder:"GLOB" help:"Tool whose calls need a verdict, whatever else is said; may be repeated."`
	ReadOnly   []string `sep:"none" placeholder:"GLOB" help:"Tool that only looks; may be repeated."`
	NoGuess    bool     `help:"Do not take tools for read-only that are called get_, list_, read_ and the like."`
	Untrusted  []string `sep:"none" placeholder:"GLOB" help:"Tool whose description is a stranger's text as well; may be repeated."`
	Key        string   `placeholder:"REF" help:"Key for the provider: env:NAME or file:PATH. Without it, clients bring their own."`
	Tokens     string   `placeholder:"FILE" completion:"files" help:"Who may ask, with which bearer token (scope guard:ask). Needs --key."`
	AllowHost  []string `placeholder:"HOST" help:"Name or address under which clients reach this server, if not that of loopback; may be repeated."`
	Calls      int      `default:"12" help:"Calls of the model that one decision may take (default ${default})."`
	Factor     int64    `default:"3" help:"Tokens that one decision may take, as a multiple of what the held answer has cost (default ${default})."`
	Seconds    int64    `default:"60" help:"Time that one decision may take (default ${default})."`
	Severity   int      `default:"250" help:"From this severity on (0 to 1000), a source is blamed (default ${default})."`
	logFlags
}

// scopeGuard is what a token needs for this verb's server.
const scopeGuard = "guard:ask"

func (guardCmd) Help() string {
	return `A proxy in front of a model's provider, for clients of OpenAI's chat completions and
responses and Anthropic's messages: point their base URL here. Text passes through as it
comes. Where the model proposes a privileged tool call while text of strangers is in the
context, the call is held, and the model is asked again with pieces of it withheld: a call
that was the user's goes on, one that some text has caused does not. What was decided is in
the ledger, and whole, for pellucid ccr replay, in guard/ID.json in the state directory.
Calls that wait for a person are in pellucid quarantine. Exit codes: 0 ended by a signal,
1 failed, 2 wrong usage, 3 bad configuration.`
}

// Validate is called by kong; its error is one of usage.
func (c *guardCmd) Validate() error {
	switch {
	case c.Tokens != "" && c.Key == "":
		return errors.New("--tokens needs --key: without it, a client's key is the provider's")
	case c.Calls < 1 || c.Factor < 1 || c.Seconds < 1 || c.Seconds > 3600 || c.Severity < 0 || c.Severity > 1000:
		return errors.New("--calls, --factor, --seconds or --severity is out of range")
	}
	if err := auth.CheckLocal(c.AllowHost, nil); err != nil {
		return err
	}
	if loopback.Listener(c.Listen) {
		return nil
	}
	switch {
	case c.Key != "" && c.Tokens == "":
		return errors.New("an address that is not loopback needs --tokens with --key: anybody could spend it")
	case len(c.AllowHost) == 0:
		return errors.New("an address that is not loopback needs --allow-host: under which name do clients reach it?")
	}
	return nil
}

func (c *guardCmd) Run(e *env) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	log := c.logger(e.Stderr)
	dir, err := openState()
	if err != nil {
		return err
	}
	s, err := c.open(ctx, dir, true)
	if err != nil {
		return err
	}
	defer s.Close()
	kept := filepath.Join(dir.Path(), "guard")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return withCode(exitConfig, errors.New("guard: the directory for evidence cannot be made"))
	}
	records := openRecords(s, dir, &rules.Evidence{Mode: rules.Required}, pollSeldom, log)
	defer records.close()
	fence, err := fenceKey(dir)
	if err != nil {
		return err
	}
	o, err := c.options(e)
	if err != nil {
		return err
	}
	o.Frame, o.Log = &fence, log
	trail := guardTrail{records, kept}
	o.Hooks = modelguard.Hooks{Sink: trail, Blame: trail.blame, MinSeverity: c.Severity,
		Desk: hold.New(s, hold.Options{Evidence: records.Held})}
	g, err := modelguard.New(*o)
	if err != nil {
		return withCode(exitConfig, err)
	}
	return c.serve(ctx, e.Stderr, g, log)
}

// options are what the command line says of the guard itself.
func (c *guardCmd) options(e *env) (*modelguard.Options, error) {
	o := &modelguard.Options{
		Upstream: c.Upstream, Buffer: c.Buffer, Policy: c.policy(), Calls: c.Calls, TokenFactor: c.Factor, Millis: c.Seconds * 1000,
		Fail: counterfactual.FailMode{DangerouslyAllowPrivileged: c.Fail == "open"},
	}
	if c.Mode == "audit" {
		o.Mode = modelguard.Audit
	}
	if len(c.Untrusted) > 0 {
		strangers := &counterfactual.Policy{}
		for _, glob := range c.Untrusted {
			strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: glob, Privilege: 1})
		}
		strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: "*"})
		o.UntrustedTool = func(name string) bool { return strangers.Privilege(name) > 0 }
	}
	if c.Key == "" {
		return o, nil
	}
	secret := e.secrets()
	if _, err := secret.optional("guard: --key", c.Key); err != nil {
		return nil, err
	}
	o.Key = llm.NewKey(c.Key, func() (string, error) { return secret(c.Key) })
	if c.Tokens == "" {
		return o, nil
	}
	who, err := parseFile(c.Tokens, func(b []byte) (auth.Authenticator, error) { return auth.ParseTokens(b, secret) })
	if err != nil {
		return nil, withCode(exitConfig, fmt.Errorf("guard: --tokens: %w", err))
	}
	o.Auth, o.Scope = who, scopeGuard
	return o, nil
}

// policy says which calls need a verdict.
func (c *guardCmd) policy() *counterfactual.Policy {
	p := &counterfactual.Policy{}
	for _, glob := range c.Privileged {
		p.Rules = append(p.Rules, counterfactual.ToolRule{Tool: glob, Privilege: 1000})
	}
	for _, glob := range c.ReadOnly {
		p.Rules = append(p.Rules, counterfactual.ToolRule{Tool: glob})
	}
	if !c.NoGuess {
		p.Rules = append(p.Rules, counterfactual.GuessPolicy().Rules...)
	}
	return p
}

// serve listens until ctx ends.
func (c *guardCmd) serve(ctx context.Context, stderr io.Writer, g *modelguard.Guard, log *slog.Logger) error {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	open := http.NewServeMux()
	open.Handle("/", auth.Local(c.AllowHost, nil, g))
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	srv := newServer(open, log)
	fmt.Fprintf(stderr, "The guard answers at http://%s/v1 (%s).\n"+
		"  OpenAI     OPENAI_BASE_URL=http://%[1]s/v1\n"+
		"  Anthropic  ANTHROPIC_BASE_URL=http://%[1]s\n"+
		"  end        Ctrl-C\n", l.Addr(), c.Mode)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("guard: serve: %w", err)
	case <-ctx.Done():
	}
	wait, done := context.WithTimeout(context.Background(), shutdownWait)
	defer done()
	if srv.Shutdown(wait) != nil {
		srv.Close()
	}
	if err := g.Close(wait); err != nil {
		log.Warn("a run of the audit has been cut")
	}
	return nil
}

// guardTrail keeps what the guard decides: the statement whole in a file, and its
// digest in the ledger.
type guardTrail struct {
	records *records
	dir     string
}

// guardSource names the guard in records, which are about no server of the gateway.
const guardSource = "guard"

// Record implements guard.Sink.
func (t guardTrail) Record(_ context.Context, _ string, statement []byte) error {
	var said struct {
		ID, Act, Reason, Response string
	}
	if err := json.Unmarshal(statement, &said); err != nil {
		return err
	}
	id, err := ledger.ParseID(said.ID)
	if err != nil {
		return err
	}
	if err := t.keep(said.ID, statement); err != nil {
		return err
	}
	return t.records.Require(&ledger.Event{
		ID: id, Time: time.Now(), Kind: ledger.Counterfactual, Verdict: said.Act, Reason: said.Reason, Rule: said.Response,
		Subjects: []ledger.Subject{{Role: ledger.Output, Digest: sha256.Sum256(statement)}},
	})
}

// keep writes a statement into a file of its own, whole or not at all.
func (t guardTrail) keep(id string, statement []byte) error {
	f, err := os.CreateTemp(t.dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if all went well
	_, err = f.Write(statement)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(t.dir, id+".json"))
}

// blame records that a source's text took control; scores of trust are made of such
// records.
func (t guardTrail) blame(s modelguard.Source) {
	e := &ledger.Event{Time: time.Now(), Kind: ledger.Counterfactual, Verdict: standing.Hijack, Server: s.Server, Tool: s.Tool,
		Rule: guardSource, Numbers: []ledger.Number{{Name: "severity", N: int64(s.Severity)}},
		Subjects: []ledger.Subject{{Role: ledger.Input, Digest: ledger.Digest(s.Digest)}}}
	if id, err := ledger.ParseID(s.Evidence); err == nil {
		e.Of = id
	}
	t.records.Note(e)
}
