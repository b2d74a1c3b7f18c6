// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A script answers a request: a result, or an error code in decimal, or "" for silence.
type script func(method, cursor string) string

// serve runs a server over pipes and returns the client's side. first messages are
// sent before each answer.
func serve(t testing.TB, answer script, first ...string) wire.ReadConn {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	client := wire.Pull(wire.NewLines(fromServer, toServer, wire.LinesOptions{}))
	server := wire.Pull(wire.NewLines(fromClient, toClient, wire.LinesOptions{}))
	done := make(chan struct{})
	// A pipe of the operating system holds some bytes; these hold none.
	inbox := make(chan *wire.Message, 4*maxChatter)
	go func() {
		defer close(inbox)
		for {
			m, err := server.Read(context.Background())
			if err != nil {
				return
			}
			inbox <- m
		}
	}()
	go func() {
		defer close(done)
		for m := range inbox {
			if m.Kind != wire.Request {
				continue
			}
			out := (*wire.Message)(nil)
			says := answer(m.Method, m.Params.Get("cursor").Text())
			switch {
			case says == "":
				continue
			case says == "bye":
				server.Close()
				return
			case says[0] == '{':
				out = wire.NewResult(m.ID, []byte(says))
			default:
				out = wire.NewError(m.ID, []byte(`{"code":`+says+`,"message":"no \u202e"}`))
			}
			for _, raw := range first {
				if _, err := toClient.Write([]byte(raw + "\n")); err != nil {
					return
				}
			}
			if server.Write(context.Background(), out) != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		client.Close()
		server.Close()
		<-done
	})
	return client
}

// hello is what the servers of these tests say of themselves.
const hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"weather","version":"1.2"},"instructions":"Ask for a city."}`

const discovery = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Ask for a city.","ttlMs":1000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.2"}}}`

const noMethod = "-32601"

// tool is a tool's definition.
func tool(name, description string) string {
	return fmt.Sprintf(`{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}},"required":["city"]}}`,
		strictjson.AppendQuote(nil, name), strictjson.AppendQuote(nil, description))
}

func tools(defs ...string) string { return `{"tools":[` + strings.Join(defs, ",") + `]}` }

// legacy is a server that has these tools and nothing else.
func legacy(list string) script {
	return func(method, _ string) string {
		switch method {
		case "initialize":
			return hello
		case "tools/list":
			return list
		}
		return noMethod
	}
}

// surfaceOf makes a surface of one page of tools.
func surfaceOf(t testing.TB, defs ...string) *Surface {
	t.Helper()
	s, err := ParseDump([]byte(`{"initialize":`+hello+`,"tools/list":[`+tools(defs...)+`]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
