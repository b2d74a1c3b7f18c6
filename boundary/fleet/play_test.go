// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/child"
)

// roleArg makes the test binary a stdio server that misbehaves.
const roleArg = "fleet-role"

func role(name string) child.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return child.Command{Args: []string{self, roleArg, name}, CloseWait: 200 * time.Millisecond, TermWait: 200 * time.Millisecond}
}

// play is a server with the tool `pid`, written by hand, because an SDK would not
// let it misbehave.
func play(role string) int {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriter(os.Stdout)
	if role == "quitter" {
		return 3
	}
	if role == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if role == "stubborn" {
				time.Sleep(time.Hour)
			}
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct{ Text string }
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if role == "mute" {
			continue
		}
		if role == "picky" && m.Method != "initialize" { // of the first request that it gets
			fmt.Fprintln(os.Stderr, "no session")
			return 3
		}
		if role == "picky" {
			role = "good"
		}
		say := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) }
		switch m.Method {
		case "initialize":
			say(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"player","version":"1"}}`)
		case "tools/list":
			say(`{"tools":[{"name":"pid","description":"Who am I?","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
		case "tools/call":
			switch m.Params.Arguments.Text {
			case "die":
				return 4
			case "hang":
				continue
			case "flood":
				for range 5_000 {
					fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}`)
				}
			case "ask":
				fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"q1","method":"roots/list"}`)
				out.Flush()
				reply, _ := in.ReadBytes('\n')
				var r struct{ Error struct{ Message string } }
				_ = json.Unmarshal(reply, &r)
				say(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Error.Message))
				out.Flush()
				continue
			}
			say(fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, os.Getpid()))
		case "logging/setLevel":
			say(`{}`)
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
		}
		out.Flush()
	}
}
