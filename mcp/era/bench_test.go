// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// echo answers every request at once.
type echo struct {
	answers chan *wire.Message
	result  []byte
	ended   sync.Once
}

func (e *echo) Read(ctx context.Context) (*wire.Message, error) {
	select {
	case m, ok := <-e.answers:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *echo) Write(_ context.Context, out *wire.Message) error {
	if out.Kind != wire.Request {
		return nil
	}
	result := e.result
	switch out.Method {
	case mcpmsg.Initialize:
		result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
	case mcpmsg.Discover:
		result = []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)
	}
	m, err := wire.Decode(wire.NewResult(out.ID, result).Append(nil), testLimits)
	if err == nil {
		e.answers <- m
	}
	return err
}

func (e *echo) Close() error {
	e.ended.Do(func() { close(e.answers) })
	return nil
}

// BenchmarkCall measures one call and its 10 KiB answer: without a translator,
// past one that has nothing to do, and through one.
func BenchmarkCall(b *testing.B) {
	modernCall := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t",` + metaOf(`{}`) + `}}`
	for _, bb := range []struct {
		name, hello, call string
		wrap              func(wire.Conn, Options) *Conn
	}{
		{"direct", legacyHello, legacyCall, nil},
		{"legacy past", legacyHello, legacyCall, Adapt},
		{"modern past", modernCall, modernCall, Adapt},
		{"modern client, legacy server", modernCall, modernCall, asModern},
		{"legacy client, modern server", legacyHello, legacyCall, asLegacy},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e := &echo{answers: make(chan *wire.Message, 8), result: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 10<<10) + `"}]}`)}
			var c wire.ReadConn = e
			if bb.wrap != nil {
				c = wire.Pull(bb.wrap(wire.Push(e), Options{}))
				defer c.Close()
			}
			write(b, c, bb.hello)
			read(b, c)
			out, _ := outgoing(bb.call)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Write(b.Context(), out); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
