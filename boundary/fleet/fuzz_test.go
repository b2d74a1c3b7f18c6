// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// scripted is a server that answers everything with one result, after it has called before
// with each message.
func scripted(result string, before ...func(wire.ReadConn, *wire.Message)) Dialer {
	return func(context.Context) (wire.Conn, error) {
		toServer, fromUs := io.Pipe()
		toUs, fromServer := io.Pipe()
		server := wire.Pull(wire.NewLines(toServer, fromServer, wire.LinesOptions{}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				m, err := server.Read(context.Background())
				if v := (*wire.Violation)(nil); errors.As(err, &v) {
					continue
				}
				if err != nil {
					return
				}
				for _, do := range before {
					do(server, m)
				}
				if m.Kind == wire.Request {
					_ = server.Write(context.Background(), wire.NewResult(m.ID, []byte(result)))
				}
			}
		}()
		return &inProcess{wire.NewLines(toUs, fromUs, wire.LinesOptions{}), func() { server.Close(); <-done }}, nil
	}
}

const everyResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{}},` +
	`"serverInfo":{"name":"s","version":"1"},"tools":[{"name":"t","inputSchema":{"type":"object"}}],"prompts":[{"name":"t"}],` +
	`"resources":[{"uri":"a://b","name":"b"}],"resourceTemplates":[{"uriTemplate":"a://{x}","name":"x"}],"nextCursor":"","content":[],` +
	`"contents":[],"messages":[],"completion":{"values":[]},"task":{"taskId":"1"}}`

// FuzzUnionClient: whatever a client says, it is answered or ended, in bounded time.
func FuzzUnionClient(f *testing.F) {
	for _, lines := range []string{
		sayInitialize + "\n" + sayInitialized + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		sayInitialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a_t_01234567"}}`,
		sayInitialize + "\n" + `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"q://z"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		sayInitialize + "\n" + `{"jsonrpc":"2.0","id":"x","method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"b_t"}}}`,
		sayInitialize + "\n" + `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"info"}}` + "\n" + `{"jsonrpc":"2.0","id":4,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://b"]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"e30"}}`,
	} {
		f.Add([]byte(lines), false)
		f.Add([]byte(lines), true)
	}
	servers := []Server{{Name: "a", Dial: scripted(everyResult), Config: config("a")}, {Name: "b", Dial: scripted(`{}`), Config: config("b")}}
	f.Fuzz(func(t *testing.T, lines []byte, modern bool) {
		fl := New(Options{patience: 200 * time.Millisecond})
		if err := fl.Set(servers); err != nil {
			t.Fatal(err)
		}
		c := Client{Conn: wire.NewLines(io.NopCloser(strings.NewReader(string(lines)+"\n")), io.Discard, wire.LinesOptions{})}
		if modern {
			c.Era = wire.Modern
		}
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		done := make(chan struct{})
		go func() { defer close(done); _ = fl.ServeAll(ctx, c) }()
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal("it does not end")
		}
		if err := fl.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkCall is the time of a small call, of a server alone and among others.
func BenchmarkCall(b *testing.B) {
	servers := []Server{{Name: "a", Dial: scripted(everyResult), Config: config("a")}}
	for _, name := range []string{"b", "c", "d", "e"} {
		servers = append(servers, Server{Name: name, Dial: scripted(everyResult), Config: config(name)})
	}
	f := fleetOf(b, Options{}, servers...)
	for name, serve := range map[string]func(context.Context, wire.Conn) error{"alone": one(f, "a"), "as one": all(f, wire.Legacy)} {
		b.Run(name, func(b *testing.B) {
			toClient, fromClient, done := serveLines(serve)
			client := wire.Pull(wire.NewLines(toClient, fromClient, wire.LinesOptions{}))
			ask := func(id int64, method, params string) {
				request(b, client, id, method, params)
				for {
					m, err := client.Read(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					if m.ID == wire.IntID(id) {
						m.Release()
						return
					}
				}
			}
			ask(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
			tool := map[string]string{"alone": "t", "as one": "a_t"}[name]
			b.ReportAllocs()
			id := int64(1)
			for b.Loop() {
				id++
				ask(id, "tools/call", `{"name":"`+tool+`","arguments":{}}`)
			}
			fromClient.Close()
			<-done
			client.Close()
		})
	}
}
