// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// DefaultGuardSeverity is the severity from which a source is blamed and withheld, in
// thousandths.
const DefaultGuardSeverity = 250

// GuardSettings are what a configuration and the command line say of a guard together.
type GuardSettings struct {
	Guard      rules.Guard
	Store      rules.Store
	Evidence   rules.Evidence
	DB         install.Database // goes before Store
	Key        llm.Key          // for the provider; zero: clients bring their own
	Listen     string           // the address
	Hosts      []string         // names by which clients know it, beside those of loopback
	Tokens     string           // file of the tokens of the callers; "": every caller that can connect
	Secret     func(ref string) (string, error)
	Webhooks   map[string]*rules.Webhook    // receivers of what waits
	Servers    []*rules.Server              // that the configuration names
	Seal       func([]byte) ([]byte, error) // to the reviewers; nil: what is held is not encrypted
	TwoPersons bool                         // the release of a call needs two persons
	Severity   int                          // from which a source is blamed and withheld
}

// scopeGuard is what a token needs for the guard.
const scopeGuard = "guard:ask"

// Settings of a guard that exclude each other.
var (
	ErrGuardNeedsKey = errors.New("--tokens needs --key or --aws: without them, a client's key is the provider's")
	ErrGuardSpent    = errors.New("an address that is not loopback needs --tokens with --key or --aws: without them every machine of the network could spend the key")
)

// A Guard is the model guard with what it keeps: the store, the ledger and the files of its
// decisions.
type Guard struct {
	set   *GuardSettings
	guard *guard.Guard
	audit bool
	log   *slog.Logger
	ring  *keyring.Ring // the keys of the installation

	shared bool     // other replicas may use the store
	close  []func() // in the order of opening
}

// OpenGuard opens the guard of the state directory. Its errors have exit codes.
func OpenGuard(ctx context.Context, set *GuardSettings, log *slog.Logger) (_ *Guard, err error) {
	o, err := set.options()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	if o.Auth, err = set.who(); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	o.Scope, o.Log = scopeGuard, log
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	g := &Guard{set: set, audit: o.Audit, log: log}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	db := cmp.Or(set.DB, install.Database(set.Store.Path), install.Database(set.Store.URL.Reveal()))
	g.shared, o.Flag = storage.IsPostgres(string(db)), db.Flag("")
	s, err := db.Open(ctx, dir, true)
	if err != nil {
		return nil, err
	}
	g.close = append(g.close, func() { s.Close() })
	records, err := g.keep(ctx, o, dir, s)
	if err != nil {
		return nil, err
	}
	g.hooks(o, s, records)
	if err := g.openWebhooks(ctx, s); err != nil {
		return nil, err
	}
	if g.guard, err = guard.New(*o); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return g, nil
}

// keep opens the records, and has o frame and judge by what the state directory holds.
func (g *Guard) keep(ctx context.Context, o *guard.Options, dir *state.Dir, s *storage.Store) (guardTrail, error) {
	kept, err := dir.Sub("guard")
	if err != nil {
		return guardTrail{}, exit.With(exit.Config, err)
	}
	evidence := g.set.Evidence
	evidence.Mode = rules.Required // whatever becomes of results, a decision is nothing without its record
	records := install.OpenRecords(s, dir, &evidence, install.PollSeldom, g.log)
	g.close = append(g.close, records.Close)
	if g.shared {
		if err := records.Replica(ctx); err != nil {
			return guardTrail{}, err
		}
	}
	if g.ring, err = local.Ring(dir); err != nil {
		return guardTrail{}, err
	}
	follow, stop := context.WithCancel(ctx)
	g.close = append(g.close, stop)
	go local.FollowKeys(follow, dir, g.ring, g.log, nil)
	o.Frame = func() frame.Key { return local.FenceOf(g.ring) }
	sources := &sourceTrust{ledger: s.Ledger(), log: g.log}
	sources.follow(ctx)
	o.Trust = sources.of
	if o.Policy.Guess {
		hints := &toolHints{}
		hints.follow(ctx, s, g.log)
		o.Policy.Hints = hints.of
	}
	return guardTrail{records, kept}, nil
}

// sealQuestion encrypts what is kept with a held call: to the reviewers, else with a key of the installation.
func (g *Guard) sealQuestion(document []byte, id string) ([]byte, error) {
	if g.set.Seal != nil {
		return g.set.Seal(document)
	}
	return (&capture.Sealer{Keys: g.ring}).Seal(document, id)
}

// hooks says what happens to what was decided.
func (g *Guard) hooks(o *guard.Options, s *storage.Store, trail guardTrail) {
	o.Hooks.Sink, o.Hooks.Blame = trail, trail.blame
	o.Hooks.Approvals = hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{Evidence: trail.records.Approval})
	o.Hooks.Desk = hold.New(s, hold.Options{Evidence: trail.records.Held, Seal: g.set.Seal, SealQuestion: g.sealQuestion,
		TwoPersons: func() bool { return g.set.TwoPersons }})
	o.Hooks.Context = g.set.Guard.Context
	if q := g.set.Guard.Quarantine; q.Scope != "off" {
		blocks := hold.NewBlocks(s.Blocks(), hold.BlockOptions{Keep: q.For, Evidence: trail.records.Block})
		o.Hooks.Quarantine, o.Hooks.Quarantined = blockade{blocks, q.Scope}, blockade{blocks, q.Scope}.covers
	}
}

// Close closes what OpenGuard has opened.
func (g *Guard) Close() {
	for i := len(g.close) - 1; i >= 0; i-- {
		g.close[i]()
	}
}

// ownKey reports whether the guard has credentials of its own.
func (s *GuardSettings) ownKey() bool { return !s.Key.IsZero() || s.Guard.AWS != nil }

// who says which clients may ask; nil: every client that can connect.
func (s *GuardSettings) who() (auth.Authenticator, error) {
	switch {
	case s.Tokens == "" && s.ownKey() && !loopback.Listener(s.Listen):
		return nil, fmt.Errorf("guard: %w", ErrGuardSpent)
	case s.Tokens == "":
		return nil, nil
	case !s.ownKey():
		return nil, fmt.Errorf("guard: %w", ErrGuardNeedsKey)
	}
	who, err := local.ReadTokens(s.Tokens, s.Secret)
	if err != nil {
		return nil, fmt.Errorf("guard: --tokens: %w", err)
	}
	return who, nil
}

// ListenAndServe listens until ctx ends, and tells stderr how clients reach it.
func (g *Guard) ListenAndServe(ctx context.Context, stderr io.Writer) error {
	mode := "enforce"
	if g.audit {
		mode = "audit"
	}
	announce := func(addr string) {
		fmt.Fprintf(stderr, "The guard answers at http://%s/v1 (%s).\n"+
			"  OpenAI     OPENAI_BASE_URL=http://%[1]s/v1\n"+
			"  Anthropic  ANTHROPIC_BASE_URL=http://%[1]s\n"+
			"  Bedrock    OPENAI_BASE_URL=http://%[1]s/openai/v1, or ANTHROPIC_BASE_URL=http://%[1]s/anthropic\n"+
			"  end        Ctrl-C\n", addr, mode)
	}
	if err := listen.Serve(ctx, "--listen", g.set.Listen, g.handler(), listen.ShutdownWait, announce, g.log); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	wait, done := context.WithTimeout(context.Background(), listen.ShutdownWait)
	defer done()
	if err := g.guard.Close(wait); err != nil {
		g.log.Warn("the guard stopped before a counterfactual run of the audit mode had ended: its call has no verdict")
	}
	return nil
}

// handler answers clients. A ServeMux would redirect what is not spelled plainly.
func (g *Guard) handler() http.Handler {
	local := auth.Local(auth.LocalOptions{Hosts: g.set.Hosts, Log: g.log, HostsSetting: "--allow-host"}, g.guard)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.RequestURI == "/healthz" {
			_, _ = io.WriteString(w, "ok\n") // the client has gone
			return
		}
		local.ServeHTTP(w, r)
	})
}
