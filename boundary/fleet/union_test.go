// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// translate is how the gateway uses package era.
func translate(_ string, c wire.Conn, _ wire.Era) wire.Conn {
	return adapt(c, patience)
}

func adapt(c wire.Conn, patience time.Duration) wire.Conn {
	return era.Adapt(c, era.Options{Patience: patience})
}

// listened is a front that tells when a subscription has been acknowledged.
type listened struct {
	wire.Conn
	acknowledged chan bool
}

func (l *listened) Write(ctx context.Context, out *wire.Message) error {
	method := out.Method
	err := l.Conn.Write(ctx, out)
	if method == mcpmsg.Acknowledged {
		l.acknowledged <- true
	}
	return err
}

// connectListening is connect for a client that hears of changed lists from here on.
func connectListening(t *testing.T, opt *mcp.ClientOptions, f *Fleet, era wire.Era) *mcp.ClientSession {
	t.Helper()
	acknowledged := make(chan bool, maxListens)
	s := connect(t, opt, func(ctx context.Context, c wire.Conn) error {
		return f.ServeAll(ctx, Client{Conn: &listened{c, acknowledged}, Era: era})
	})
	toolNames(t, s) // the answer comes after notifications/initialized has been read
	if era == wire.Modern {
		select {
		case <-acknowledged:
		case <-time.After(patience):
			t.Fatal("no subscription")
		}
	}
	return s
}

func inside(name string, tools ...string) Server {
	dial, _ := sdk(func() *mcp.Server { return toolServer(name, tools...) })
	return Server{Name: name, Dial: dial, Config: config(name)}
}

func toolNames(t testing.TB, s *mcp.ClientSession) (names []string, meta mcp.Meta) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	cursor := ""
	for {
		r, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range r.Tools {
			names = append(names, tool.Name)
		}
		if meta == nil {
			meta = r.Meta
		}
		if cursor = r.NextCursor; cursor == "" {
			return names, meta
		}
	}
}

// eras runs a test with a client of each era.
func eras(t *testing.T, test func(t *testing.T, era wire.Era, opt *mcp.ClientOptions)) {
	t.Run("legacy", func(t *testing.T) { test(t, wire.Legacy, &mcp.ClientOptions{}) })
	t.Run("modern", func(t *testing.T) { test(t, wire.Modern, &mcp.ClientOptions{}) })
}

func TestUnion(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		progress := make(chan string, 8)
		opt.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Message
		}
		f := fleetOf(t, Options{Translate: translate}, inside("alpha", "who", "what"), inside("beta_2", "who"))
		s := connect(t, opt, all(f, era))
		got, meta := toolNames(t, s)
		slices.Sort(got)
		if want := []string{"alpha_what", "alpha_who", "beta-2_who"}; !slices.Equal(got, want) {
			t.Fatalf("tools: %q, want %q", got, want)
		}
		if meta[keyAbsent] != nil {
			t.Errorf("absent: %v", meta)
		}
		for _, name := range got {
			prefix, tool, _ := strings.Cut(name, "_")
			want := strings.ReplaceAll(prefix, "-", "_") + "/" + tool + "/hello"
			if text := call(t, s, name, "hello"); text != want {
				t.Errorf("%s says %q, want %q", name, text, want)
			}
		}
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		params := &mcp.CallToolParams{Name: "alpha_who", Arguments: map[string]any{}}
		params.SetProgressToken("tok")
		if _, err := s.CallTool(ctx, params); err != nil {
			t.Fatal(err)
		}
		select {
		case msg := <-progress:
			if msg != "half of alpha" {
				t.Errorf("progress %q", msg)
			}
		case <-ctx.Done():
			t.Error("no progress")
		}
		for _, bad := range []string{"who", "gamma_who", "alpha", "_who", "alpha_", "alpha_nothing_01234567", ""} {
			if text, err := tryCall(s, bad, ""); err == nil && !strings.Contains(text, "unknown tool") {
				t.Errorf("%q answers %q", bad, text)
			}
		}
		testPrompts(t, ctx, s)
		testResources(t, ctx, s)
	})
}

// A counter is a policy that remembers what it was told.
type counter struct {
	mu   sync.Mutex
	seen []policy.Input
}

func (*counter) Reads() policy.Reads { return policy.Reads{Session: true} }

func (c *counter) Decide(in policy.Input) policy.Ruling {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.Direction == policy.Call {
		c.seen = append(c.seen, in)
	}
	return policy.Ruling{}
}

// TestUnionCounts: the servers of one session count together, and those of another session apart.
func TestUnionCounts(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		c := &counter{}
		servers := []Server{inside("alpha", "who"), inside("beta", "who")}
		for i := range servers {
			of := servers[i].Config
			servers[i].Config = func(principal string) gateway.Config {
				cfg := of(principal)
				cfg.Policy = c
				return cfg
			}
		}
		f := fleetOf(t, Options{Translate: translate}, servers...)
		for range 2 {
			s := connect(t, opt, all(f, era))
			for _, name := range []string{"alpha_who", "beta_who", "alpha_who"} {
				call(t, s, name, "hello")
			}
			last := c.seen[len(c.seen)-1].Session
			if last.Calls != 2 || !maps.Equal(last.CallsOf, map[string]int{"alpha/who": 1, "beta/who": 1}) {
				t.Errorf("before the third call: %+v", last)
			}
		}
	})
}

func testPrompts(t *testing.T, ctx context.Context, s *mcp.ClientSession) {
	for _, server := range []string{"alpha", "beta_2"} {
		name := strings.ReplaceAll(server, "_", "-") + "_greet"
		r, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Messages[0].Content.(*mcp.TextContent).Text; text != "I am "+server {
			t.Errorf("%s: %q", name, text)
		}
		c, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: name},
			Argument: mcp.CompleteParamsArgument{Name: "x", Value: "y"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Completion.Values[0]; got != server+":greet" {
			t.Errorf("completion of %s: %q", name, got)
		}
		uri := "tpl://" + server + "/{x}"
		if c, err = s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: uri},
			Argument: mcp.CompleteParamsArgument{Name: "x", Value: "y"}}); err != nil {
			t.Fatal(err)
		}
		if got := c.Completion.Values[0]; got != server+":"+uri {
			t.Errorf("completion of %s: %q", uri, got)
		}
	}
	if _, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"}); err == nil {
		t.Error("a prompt without prefix is found")
	}
}

func testResources(t *testing.T, ctx context.Context, s *mcp.ClientSession) {
	for uri, owner := range map[string]string{
		"mem://alpha/one": "alpha", "mem://beta_2/one": "beta_2", "mem://both": "alpha",
		"tpl://beta_2/z": "beta_2", "tpl://alpha/z": "alpha", "mem://both#server=beta-2": "beta_2",
		"same://x/y": "alpha", "same://x/y#server=beta-2": "beta_2",
	} {
		r, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		own, _, _ := strings.Cut(uri, "#")
		if got := r.Contents[0].Text; got != owner+" has "+own {
			t.Errorf("%s: %q", uri, got)
		}
	}
	if _, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "mem://nobody"}); err == nil || !strings.Contains(err.Error(), textNoURI) {
		t.Errorf("a resource of nobody's: %v", err)
	}
	r, err := s.ListResources(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Resources) != 4 || r.Meta["dev.pellucid/leftOut"] != nil {
		t.Errorf("%d resources, %v", len(r.Resources), r.Meta)
	}
	templates, err := s.ListResourceTemplates(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, tpl := range templates.ResourceTemplates {
		list = append(list, tpl.URITemplate)
	}
	slices.Sort(list)
	if want := []string{"same://{x}/y", "same://{x}/y#server=beta-2", "tpl://alpha/{x}", "tpl://beta_2/{x}"}; !slices.Equal(list, want) {
		t.Errorf("%q", list)
	}
	c, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "same://{x}/y#server=beta-2"},
		Argument: mcp.CompleteParamsArgument{Name: "x", Value: "y"}})
	if err != nil || c.Completion.Values[0] != "beta_2:same://{x}/y" {
		t.Errorf("completion: %v, %v", c, err)
	}
}

// TestUnionLinks: what a result links to is read at the server that made the result, also where
// another one has listed the URI.
func TestUnionLinks(t *testing.T) {
	f := fleetOf(t, Options{Version: "7"}, inside("alpha", "who"), inside("beta", "who"))
	s := connect(t, nil, all(f, wire.Legacy))
	if _, err := s.ListResources(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string][]string{
		"alpha": {"mem://both", "https://example.com/alpha", "mem://alpha/one"},
		"beta":  {"mem://both#server=beta", "https://example.com/beta", "mem://alpha/one#server=beta"},
	} {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: server + "_who", Arguments: map[string]any{"text": "link"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, block := range r.Content {
			switch b := block.(type) {
			case *mcp.ResourceLink:
				got = append(got, b.URI)
			case *mcp.EmbeddedResource:
				got = append(got, b.Resource.URI)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s links to %q, want %q", server, got, want)
		}
		read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: got[0]})
		if err != nil || read.Contents[0].Text != server+" has mem://both" {
			t.Errorf("%s: %v, %v", got[0], read, err)
		}
	}
}

// TestMarkedLinks: another server cannot take a link over by a template, or by listing the URI as it is marked.
func TestMarkedLinks(t *testing.T) {
	for name, list := range map[string]func(*places, *member){
		"template": func(p *places, m *member) { p.claimTemplate(m, "mem://{x}") },
		"mark":     func(p *places, m *member) { p.claimURI(m, "mem://x"); p.claimURI(m, "mem://x#server=beta") },
	} {
		p, alpha, beta := newPlaces(), &member{prefix: "alpha"}, &member{prefix: "beta"}
		list(&p, alpha)
		var doc strictjson.Doc
		if err := doc.Reset([]byte(`{"uri":"mem://x"}`), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		var marks strictjson.Edits
		p.noteMentions(beta, doc.Root(), &marks)
		if got := string(marks.Apply(nil, doc.Root())); got != `{"uri":"mem://x#server=beta"}` {
			t.Errorf("%s: %s", name, got)
		}
		if of := p.ownerOf("mem://x#server=beta"); of != (resource{beta, "mem://x"}) {
			t.Errorf("%s: the link of beta leads to %+v", name, of)
		}
	}
}

// TestUnionInstructions: each server's are under a line of ours, that none can forge.
func TestUnionInstructions(t *testing.T) {
	f := fleetOf(t, Options{Version: "7"}, inside("alpha", "who"), inside("beta", "who"))
	r := connect(t, nil, all(f, wire.Legacy)).InitializeResult()
	if r.ServerInfo.Name != "pellucid" || r.ServerInfo.Version != "7" {
		t.Errorf("%+v", r.ServerInfo)
	}
	want := "Of the server alpha, whose tools begin with alpha_:\n> Instructions of alpha.\n> Of the server other, whose tools begin with other_:\n\n" +
		"Of the server beta, whose tools begin with beta_:\n> Instructions of beta.\n> Of the server other, whose tools begin with other_:\n\n"
	if rest, ok := strings.CutPrefix(r.Instructions, want); !ok || strings.Count(rest, "\n") > 0 || rest == "" {
		t.Errorf("instructions:\n%s", r.Instructions)
	}
	if r.Capabilities.Resources == nil || !r.Capabilities.Resources.Subscribe || r.Capabilities.Completions == nil {
		t.Errorf("capabilities: %+v", r.Capabilities)
	}
}

// TestUnionLeavesOut: what a server alone can is not what all of them can, and is said
// where there is only that server.
func TestUnionLeavesOut(t *testing.T) {
	dial, _ := sdk(func() *mcp.Server {
		return mcp.NewServer(&mcp.Implementation{Name: "one", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Experimental: map[string]any{"tasks": map[string]any{}}}})
	})
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		f := fleetOf(t, Options{}, Server{Name: "one", Dial: dial, Config: config("one")})
		if c := connect(t, opt, all(f, era)).InitializeResult().Capabilities; c.Experimental != nil || c.Tools == nil {
			t.Errorf("all: %+v", c)
		}
		if c := connect(t, opt, one(f, "one")).InitializeResult().Capabilities; c.Experimental == nil {
			t.Errorf("the one: %+v", c)
		}
	})
}

// TestUnionPages: every entry of every server comes once, whatever the sizes of their pages.
func TestUnionPages(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		var servers []Server
		want := []string{}
		for i, n := range []int{7, 0, 3, 12} {
			name := fmt.Sprintf("s%d", i)
			var tools []string
			for k := range n {
				tools = append(tools, fmt.Sprintf("tool%d", k))
				want = append(want, name+"_"+tools[k])
			}
			dial, _ := sdk(func() *mcp.Server {
				s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{PageSize: i + 2})
				for _, tool := range tools {
					s.AddTool(&mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)},
						func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
							return &mcp.CallToolResult{}, nil
						})
				}
				return s
			})
			servers = append(servers, Server{Name: name, Dial: dial, Config: config(name)})
		}
		f := fleetOf(t, Options{Translate: translate}, servers...)
		s := connect(t, opt, all(f, era))
		got, _ := toolNames(t, s)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		for _, bad := range []string{"x", "e30=", "bnVsbA", "WzFd", "eyJhIjoxfQ"} {
			if _, err := s.ListTools(context.Background(), &mcp.ListToolsParams{Cursor: bad}); err == nil || !strings.Contains(err.Error(), textCursor) {
				t.Errorf("cursor %q: %v", bad, err)
			}
		}
	})
}

// TestUnionSlow: a server that says nothing, and one that is not there, hold up nobody.
func TestUnionSlow(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		short := func(_ string, c wire.Conn, _ wire.Era) wire.Conn {
			return adapt(c, 2*time.Second)
		}
		f := fleetOf(t, Options{Translate: short, patience: time.Second},
			player("mute", "mute"), inside("alpha", "who"), player("quitter", "quitter"))
		s := connect(t, opt, all(f, era))
		waittest.Until(t, "a list of alpha alone", func() bool { // a busy machine may make alpha too slow for some
			names, meta := toolNames(t, s)
			if len(names) > 0 && !slices.Equal(names, []string{"alpha_who"}) {
				t.Errorf("%q", names)
			}
			return len(names) > 0 && fmt.Sprint(meta[keyAbsent]) == "[mute quitter]"
		})
		if got := call(t, s, "alpha_who", "x"); got != "alpha/who/x" {
			t.Errorf("%q", got)
		}
		for _, name := range []string{"mute_pid", "quitter_pid"} {
			began := time.Now()
			if _, err := tryCall(s, name, ""); err == nil || !strings.Contains(err.Error(), textAbsent) && era == wire.Legacy {
				t.Errorf("%s: %v", name, err)
			}
			if d := time.Since(began); d > patience/2 {
				t.Errorf("%s: after %v", name, d)
			}
		}
	})
}

// TestUnionHang: a call that hangs does not keep others of the same session waiting,
// and is cancelled.
func TestUnionHang(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		f := fleetOf(t, Options{Translate: translate}, inside("alpha", "who"), inside("beta", "who"))
		s := connect(t, opt, all(f, era))
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		before := hung.Load()
		wg.Go(func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "alpha_who", Arguments: map[string]any{"text": "hang"}})
			if err == nil {
				t.Error("no error of a call that hangs")
			}
		})
		waittest.Until(t, "the call hangs", func() bool { return hung.Load() > before })
		for _, name := range []string{"alpha_who", "beta_who"} {
			call(t, s, name, "x")
		}
		stop()
		wg.Wait()
		call(t, s, "alpha_who", "x")
	})
}

// TestUnionChange: servers that come and go are announced, and the session goes on.
func TestUnionChange(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		changed := make(chan bool, 64)
		alpha, beta := inside("alpha", "who"), inside("beta", "who")
		f := fleetOf(t, Options{Translate: translate}, alpha, beta)
		opt.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- true }
		s := connectListening(t, opt, f, era)
		expect := func(want ...string) {
			t.Helper()
			select {
			case <-changed:
			case <-time.After(patience):
				t.Fatal("no notification")
			}
			waittest.Until(t, fmt.Sprint(want), func() bool {
				got, _ := toolNames(t, s)
				slices.Sort(got)
				return slices.Equal(got, want)
			})
		}
		if err := f.Set([]Server{alpha, beta, inside("gamma", "who")}); err != nil {
			t.Fatal(err)
		}
		expect("alpha_who", "beta_who", "gamma_who")
		if got := call(t, s, "gamma_who", "x"); got != "gamma/who/x" {
			t.Errorf("%q", got)
		}
		if err := f.Set([]Server{alpha}); err != nil {
			t.Fatal(err)
		}
		expect("alpha_who")
		if _, err := tryCall(s, "beta_who", "x"); err == nil {
			t.Error("a server that is no more answers")
		}
		call(t, s, "alpha_who", "x")
	})
}

// TestUnionRestart: a process of one server that ends and comes back.
func TestUnionRestart(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		changed := make(chan bool, 16)
		opt.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- true }
		f := fleetOf(t, Options{Translate: translate}, player("p", "good"), inside("alpha", "who"))
		s := connectListening(t, opt, f, era)
		first := call(t, s, "p_pid", "")
		for len(changed) > 0 {
			<-changed
		}
		if _, err := tryCall(s, "p_pid", "die"); err == nil || !strings.Contains(err.Error(), textLost) {
			t.Errorf("%v", err)
		}
		call(t, s, "alpha_who", "x")
		select {
		case <-changed:
		case <-time.After(patience):
			t.Error("nobody says that the tools may have changed")
		}
		waittest.Until(t, "a new process", func() bool {
			got, err := tryCall(s, "p_pid", "")
			return err == nil && got != first
		})
	})
}

// TestUnionMay: what a client may not see is not there.
func TestUnionMay(t *testing.T) {
	f := fleetOf(t, Options{Translate: translate}, inside("alpha", "who"), inside("beta", "who"))
	s := connect(t, nil, func(ctx context.Context, c wire.Conn) error {
		return f.ServeAll(ctx, Client{Conn: c, May: func(name string) bool { return name != "beta" }})
	})
	if got, _ := toolNames(t, s); !slices.Equal(got, []string{"alpha_who"}) {
		t.Errorf("%q", got)
	}
	if _, err := tryCall(s, "beta_who", ""); err == nil || !strings.Contains(err.Error(), textNoTool) {
		t.Errorf("%v", err)
	}
}

// TestUnionQuestions: what servers ask of the client comes to it, and its answers to them.
func TestUnionQuestions(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		ask := func(name string) Server {
			dial, _ := sdk(func() *mcp.Server {
				s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
				s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
					func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						e, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who asks? " + name})
						if err != nil {
							return nil, err
						}
						return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(e.Content["name"])}}}, nil
					})
				return s
			})
			return Server{Name: name, Dial: dial, Config: config(name)}
		}
		f := fleetOf(t, Options{Translate: translate}, ask("alpha"), ask("beta"))
		s := connect(t, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				_, who, _ := strings.Cut(r.Params.Message, "? ")
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": who}}, nil
			},
		}, all(f, era))
		var wg sync.WaitGroup
		for _, name := range []string{"alpha", "beta"} {
			wg.Go(func() {
				for range 10 {
					if got, err := tryCall(s, name+"_ask", ""); err != nil || got != name {
						t.Errorf("%q, %v", got, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestUnionUpdates: changes of a resource come to whoever asked for them, from the
// server whose it is and no other.
func TestUnionUpdates(t *testing.T) {
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		updates := make(chan string, 1024)
		opt.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI }
		alpha, beta := toolServer("alpha", "who"), toolServer("beta", "who")
		da, _ := sdk(func() *mcp.Server { return alpha })
		db, _ := sdk(func() *mcp.Server { return beta })
		f := fleetOf(t, Options{Translate: translate}, Server{Name: "alpha", Dial: da, Config: config("alpha")},
			Server{Name: "beta", Dial: db, Config: config("beta")})
		s := connect(t, opt, all(f, era))
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		for _, uri := range []string{"mem://beta/one", "mem://both", "mem://both#server=beta", "tpl://beta/z"} { // the second is alpha's
			if err := s.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
		}
		heard, marked := map[string]bool{}, false
		// says has a server repeat that resources have changed, since a subscription may come
		// later. It ends when the client has heard of the last one twice: what the server said
		// between them would have come.
		says := func(from *mcp.Server, uris ...string) {
			t.Helper()
			last := uris[len(uris)-1]
			heard[last] = true
			for n := 0; n < 2; {
				for _, uri := range uris {
					if err := from.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case uri := <-updates:
					if uri == last {
						n++
					}
					marked = marked || uri == "mem://both#server=beta"
					if !heard[uri] {
						t.Errorf("%q came, which its server has not said", uri)
					}
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
					t.Fatalf("%q does not come", last)
				}
			}
		}
		heard["mem://both#server=beta"] = true // as the client sees beta's
		says(beta, "mem://both", "mem://alpha/one", "mem://beta/one")
		says(alpha, "tpl://beta/z", "mem://alpha/one", "mem://both")
		says(beta, "tpl://beta/z")
		if !marked {
			t.Error("no update of the resource of beta that alpha has too")
		}
	})
}

// stuck is a front that its client does not read.
type stuck struct {
	wire.Conn
	held, release chan struct{}
}

func (s *stuck) Write(ctx context.Context, out *wire.Message) error {
	if out.Kind == wire.Notification {
		select {
		case s.held <- struct{}{}:
		default:
		}
		select {
		case <-s.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Conn.Write(ctx, out)
}

// TestUnionFlood: a server that floods a client which does not read holds up neither
// the answers of others nor the end.
func TestUnionFlood(t *testing.T) {
	f := fleetOf(t, Options{}, player("p", "good"), inside("alpha", "who"))
	held, release := make(chan struct{}, 1), make(chan struct{})
	s := connect(t, nil, func(ctx context.Context, c wire.Conn) error {
		return f.ServeAll(ctx, Client{Conn: &stuck{c, held, release}})
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := tryCall(s, "p_pid", "flood"); err != nil {
			t.Errorf("flood: %v", err)
		}
	})
	<-held
	for range 20 {
		call(t, s, "alpha_who", "x")
	}
	close(release)
	wg.Wait()
}

// decisions keeps what was decided.
type decisions struct {
	mu   sync.Mutex
	list []gateway.Decision
}

// Record implements gateway.Sink.
func (d *decisions) Record(x gateway.Decision) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, x)
	return nil
}

// TestUnionNames: the client is shown names that the interfaces of models take, the server gets its own name, and so
// does the record. A URI of two servers is told once.
func TestUnionNames(t *testing.T) {
	long := "synchronize_all_customer_data_across_multiple_systems_now"
	eras(t, func(t *testing.T, era wire.Era, opt *mcp.ClientOptions) {
		var log logtest.Buffer
		var kept decisions
		dial, _ := sdk(func() *mcp.Server {
			s := toolServer("enterprise_database", "short", "a.b", "a_b", long)
			s.AddPrompt(&mcp.Prompt{Name: "p/q"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: r.Params.Name}}}}, nil
			})
			return s
		})
		big := Server{Name: "enterprise_database", Dial: dial, Config: func(string) gateway.Config {
			c := config("enterprise_database")("")
			c.Sink = &kept
			return c
		}}
		f := fleetOf(t, Options{Translate: translate, Log: slog.New(slog.NewTextHandler(&log, nil))}, inside("alpha", "who"), big)
		s := connect(t, opt, all(f, era))
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		for range 2 {
			r, err := s.ListTools(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			reached := map[string]bool{}
			for _, tool := range r.Tools {
				if !forModels.MatchString(tool.Name) {
					t.Errorf("%q", tool.Name)
				}
				if text, err := tryCall(s, tool.Name, ""); err != nil || reached[text] {
					t.Errorf("%s: %q, %v", tool.Name, text, err)
				} else {
					reached[text] = true
				}
			}
			for _, name := range []string{"short", "a.b", "a_b", long} {
				if !reached["enterprise_database/"+name+"/"] {
					t.Errorf("%s is not reached: %v", name, reached)
				}
			}
			prompts, err := s.ListPrompts(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range prompts.Prompts {
				if !forModels.MatchString(p.Name) {
					t.Errorf("%q", p.Name)
				}
				if got, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name}); err != nil {
					t.Error(err)
				} else if text := got.Messages[0].Content.(*mcp.TextContent).Text; strings.Contains(p.Name, "p_q") && text != "p/q" {
					t.Errorf("%s: %q", p.Name, text)
				}
			}
			if _, err := s.ListResources(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		kept.mu.Lock()
		defer kept.mu.Unlock()
		recorded := map[string]bool{}
		for _, d := range kept.list {
			recorded[d.Tool] = true
		}
		if !recorded["a.b"] || !recorded[long] {
			t.Errorf("recorded: %v", recorded)
		}
		const line = `level=WARN msg="a resource URI or template is listed by two servers: the one of this server has another URI at /mcp" server=enterprise_database entry="\"mem://both\"" listed_as="\"mem://both#server=enterprise-database\""`
		if said := log.String(); strings.Count(said, line) != 1 {
			t.Errorf("log: %s", said)
		}
	})
}
