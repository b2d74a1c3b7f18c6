// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/listen"
)

// Serving says how a grounding adapter is offered over HTTP by itself.
type Serving struct {
	Addr    string // which --http names
	Hosts   []string
	Origins []string
	Auth    auth.Authenticator // nil: no client is known
	Closed  bool               // queries need a scope too
}

// grace is what a client gets to finish an answer, or a stream, once the server is
// to end.
const grace = time.Second

// ListenAndServe serves until ctx ends. notice is told what there is to ask, and where.
func (g *Adapter) ListenAndServe(ctx context.Context, s Serving, notice io.Writer) error {
	h := auth.Local(auth.LocalOptions{Hosts: s.Hosts, Origins: s.Origins, Log: g.log, HostsSetting: "--allow-host", OriginsSetting: "--allow-origin"},
		g.Handler(s.Auth, s.Closed))
	announce := func(addr string) { s.announce(notice, addr) }
	if err := listen.Serve(ctx, "--http", s.Addr, h, grace, announce, g.log); err != nil {
		return fmt.Errorf("ground: %w", err)
	}
	return nil
}

// announce tells a person what there is now, and what to do with it.
func (s *Serving) announce(w io.Writer, addr string) {
	base := "http://" + addr + "/ground/"
	fmt.Fprintf(w, "The grounding adapter answers at %smcp (streamable HTTP; tools ground and attestation).\n", base)
	if s.Closed {
		fmt.Fprint(w, "Queries need a token with the scope ground:query.\n")
	} else {
		fmt.Fprintf(w, "  ask    npx @modelcontextprotocol/inspector --cli %smcp --transport http \\\n"+
			"           --method tools/call --tool-name ground --tool-arg query=\"sea level\"\n", base)
	}
	if s.Auth != nil {
		fmt.Fprintf(w, "  feed   curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/jsonl\" \\\n"+
			"           --data-binary @attestations.jsonl %sattestations\n", base)
	} else {
		fmt.Fprint(w, "  feed   pellucid-ground import FILE   (over HTTP only with --tokens or --token)\n")
	}
	fmt.Fprint(w, "  end    Ctrl-C\n")
}

// Handler serves the adapter, as ground.Adapter.Handler says. who knows the clients; nil:
// no client is known. closed says that queries need a scope too.
func (g *Adapter) Handler(who auth.Authenticator, closed bool) http.Handler {
	return g.Adapter.Handler(ground.HTTPOptions{MCP: g.mcp, Auth: who, RequireQueryScope: closed, Log: g.log})
}

// ServeStdio serves the one client of in and out until in or ctx ends, and closes neither.
func (g *Adapter) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := g.Adapter.ServeStdio(ctx, g.mcp, io.NopCloser(in), unclosed{out})
	if ctx.Err() != nil { // it was told to end
		return nil
	}
	return err
}

// unclosed is an output that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Tokens knows the clients that have a token of the file, and the operator by the one
// token that ref names, which may do everything; either may be "". It is nil where there is
// no token. secret returns what a reference stands for.
func Tokens(file, ref string, secret func(ref string) (string, error)) (auth.Authenticator, error) {
	var all []auth.Authenticator
	if file != "" {
		a, err := local.ReadTokens(file, secret)
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("ground: --tokens: %w", err))
		}
		all = append(all, a)
	}
	if ref != "" {
		_, err := secret(ref)
		if err == nil {
			var a auth.Authenticator
			a, err = auth.ParseTokens(operatorToken(ref), secret)
			all = append(all, a)
		}
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("ground: --token: %w", err))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return auth.Any(all...), nil
}

// operatorToken is a token file with one token that may do everything.
func operatorToken(ref string) []byte {
	type token struct {
		Principal string   `json:"principal"`
		Scopes    []string `json:"scopes"`
		Token     string   `json:"token"`
	}
	file, err := json.Marshal(map[string][]token{"tokens": {{
		"operator", []string{ground.ScopeQuery, ground.ScopeIngest, ground.ScopeEvents}, ref,
	}}})
	if err != nil {
		panic("ground: write a token file: " + err.Error()) // strings always marshal
	}
	return file
}
