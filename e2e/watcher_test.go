// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watcher is a client that is told of changes.
type watcher struct {
	t *testing.T
	*mcp.ClientSession
	changed chan struct{}
}

func (in *install) watch(t *testing.T, url, version string) *watcher {
	t.Helper()
	w := &watcher{t: t, changed: make(chan struct{}, 1)}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		},
	})
	var err error
	w.ClientSession, err = c.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// list is the names of the tools, with their descriptions.
func (w *watcher) list() []string {
	w.t.Helper()
	var out []string
	for tool, err := range w.Tools(soon(w.t), nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, tool.Name+": "+tool.Description)
	}
	slices.Sort(out)
	return out
}

// call is the text of a result.
func (w *watcher) call(tool string) string {
	w.t.Helper()
	r, err := w.CallTool(soon(w.t), &mcp.CallToolParams{Name: tool})
	if err != nil {
		return err.Error()
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func (w *watcher) told(what string) {
	w.t.Helper()
	select {
	case <-w.changed:
	case <-time.After(time.Minute):
		w.t.Errorf("the client is not told that %s", what)
	}
}

func (w *watcher) wants(tools ...string) {
	w.t.Helper()
	if got := w.list(); !slices.Equal(got, tools) {
		w.t.Errorf("listed %q, want %q", got, tools)
	}
}

// pins runs `pellucid pins`, which is another process on the same store.
func (in *install) pins(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(in.bin, append([]string{"pins"}, args...)...)
	cmd.Env = in.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pins %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// waiting is the digest of the version of a tool that waits.
func (in *install) waiting(t testing.TB, server, tool string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		for line := range strings.Lines(in.pins(t, "diff", "--json", server)) {
			var c struct{ Kind, Item, Digest string }
			if json.Unmarshal([]byte(line), &c) == nil && c.Kind == "tool" && c.Item == tool {
				return c.Digest
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s of %s does not wait:\n%s", tool, server, in.pins(t, "show", server))
		}
	}
}

func drained(c chan struct{}) {
	time.Sleep(100 * time.Millisecond)
	select {
	case <-c:
	default:
	}
}

func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
