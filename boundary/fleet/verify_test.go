// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// TestVerify: a server is dialled for no session before it was verified, one that is
// rejected never is, and whoever asks gets a constant error.
func TestVerify(t *testing.T) {
	dial, dials := sdk(func() *mcp.Server { return toolServer("s", "x") })
	var verdict atomic.Pointer[error]
	var rejected error = &RejectedError{Why: fmt.Errorf("because \u202e %s", strings.Repeat("of this, ", 20))}
	verdict.Store(&rejected)
	f := New(Options{})
	t.Cleanup(func() { _ = f.Close(context.Background()) })
	if err := f.Set([]Server{{Name: "s", Dial: dial, Config: config("s"), Verify: func(context.Context) error { return *verdict.Load() }}}); err != nil {
		t.Fatal(err)
	}
	session := func() string {
		fromClient, client := io.Pipe()
		answers, toClient := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- f.Serve(context.Background(), "s", Client{Conn: wire.NewLines(fromClient, toClient, wire.LinesOptions{}), Era: wire.Legacy})
		}()
		go fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		line := make([]byte, 1<<16)
		n, err := answers.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, answers) }()
		client.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return string(line[:n])
	}
	if got := session(); !strings.Contains(got, textRejected) || strings.Contains(got, "because") || dials.Load() != 0 {
		t.Errorf("%q after %d dials", got, dials.Load())
	}
	if h := f.Health()[0]; h.State != Rejected || h.Why != `because \u202e `+strings.Repeat("of this, ", 20) {
		t.Errorf("%+v", h)
	}
	gone := errors.New("gone")
	verdict.Store(&gone)
	if got := session(); !strings.Contains(got, textAbsent) || dials.Load() != 0 {
		t.Errorf("%q", got)
	}
	if h := f.Health()[0]; h.State != Down {
		t.Errorf("%+v", h)
	}
	verdict.Store(new(error))
	if got := session(); !strings.Contains(got, `"serverInfo"`) || dials.Load() != 1 {
		t.Errorf("%q after %d dials", got, dials.Load())
	}
	if err := f.Probe(context.Background(), "s", func(context.Context, wire.ReadConn) error { return gone }); !errors.Is(err, gone) || dials.Load() != 2 {
		t.Errorf("%v", err)
	}
	if err := f.Verify(context.Background(), "t"); !errors.Is(err, ErrNoServer) {
		t.Error(err)
	}
}

// TestCut: a session that is under way ends with a constant error when its server is
// rejected after all, shared or not, and the next one is turned away.
func TestCut(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			dial, _ := sdk(func() *mcp.Server { return toolServer("s", "x") })
			var verdict atomic.Pointer[error]
			verdict.Store(new(error))
			f := fleetOf(t, Options{}, Server{Name: "s", Dial: dial, Config: config("s"), Shared: shared,
				Verify: func(context.Context) error { return *verdict.Load() }})
			fromClient, client := io.Pipe()
			answers, toClient := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- f.Serve(context.Background(), "s", Client{Conn: wire.NewLines(fromClient, toClient, wire.LinesOptions{}), Era: wire.Legacy})
			}()
			lines := bufio.NewScanner(answers)
			lines.Buffer(nil, 1<<20)
			say := func(line string) {
				if _, err := fmt.Fprintln(client, line); err != nil {
					t.Error(err)
				}
			}
			hear := func(want string) {
				t.Helper()
				for lines.Scan() {
					if strings.Contains(lines.Text(), want) {
						return
					}
				}
				t.Errorf("%s did not come", want)
			}
			say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			hear(`"serverInfo"`)
			say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"text":"1"}}}`)
			hear(`s/x/1`)
			say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"text":"hang"},"_meta":{"progressToken":"p"}}}`)
			hear(`half of`) // the server has begun
			var rejected error = &RejectedError{Why: errors.New("because")}
			verdict.Store(&rejected)
			f.Cut("s")
			hear(`"id":3,"error":{"code":7503,`)
			go func() { _, _ = io.Copy(io.Discard, answers) }()
			select {
			case <-done:
			case <-time.After(patience):
				t.Fatal("the session goes on")
			}
			client.Close()
			if err := f.Verify(context.Background(), "s"); !isRejected(err) || f.Health()[0].Connections != 0 {
				t.Errorf("%v, %+v", err, f.Health()[0])
			}
		})
	}
	f := fleetOf(t, Options{})
	f.Cut("nobody")
}
