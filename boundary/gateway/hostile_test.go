// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// TestTime runs on a fake clock: the default limits are minutes.
func TestTime(t *testing.T) {
	tests := map[string]func(t *testing.T, r *rig){
		"silence": func(t *testing.T, r *rig) {
			start := time.Now()
			r.request("1", "ping", "")
			m := parse(t, <-r.client.lines)
			if m.text("error", "message") != errTimeout.text || time.Since(start) < defaultTimeout || time.Since(start) > defaultTimeout+2*time.Second {
				t.Errorf("after %v: %v", time.Since(start), m)
			}
			<-r.server.lines
		},
		"progress for ever": func(t *testing.T, r *rig) {
			start := time.Now()
			r.request("1", "ping", `{"_meta":{"progressToken":7}}`)
			for {
				time.Sleep(time.Minute)
				r.server.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)
				if m := parse(t, <-r.client.lines); m["error"] != nil {
					break
				}
			}
			if got := time.Since(start); got < longestFactor*defaultTimeout || got > longestFactor*defaultTimeout+2*time.Minute {
				t.Errorf("ended after %v", got)
			}
		},
		"a person thinks": func(t *testing.T, r *rig) {
			up := r.request("1", "ping", "")
			time.Sleep(8 * time.Minute)
			r.server.send(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`)
			ask := parse(t, <-r.client.lines)
			time.Sleep(9 * time.Minute)
			r.client.send(`{"jsonrpc":"2.0","id":` + string(ask["id"]) + `,"result":{"action":"accept"}}`)
			<-r.server.lines
			time.Sleep(9 * time.Minute)
			r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
			if m := parse(t, <-r.client.lines); m["result"] == nil {
				t.Errorf("answer %v", m)
			}
		},
		"client never answers": func(t *testing.T, r *rig) {
			r.server.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			<-r.client.lines
			if m := parse(t, <-r.server.lines); m.text("error", "message") != errClientGone.text {
				t.Errorf("answer %v", m)
			}
		},
		"listing hangs": func(t *testing.T, r *rig) {
			r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`)
			<-r.server.lines // tools/list
			start := time.Now()
			if m := parse(t, <-r.server.lines); m.str("method") != "tools/call" || time.Since(start) > 2*listPatience {
				t.Errorf("after %v: %v", time.Since(start), m)
			}
		},
		"subscription": func(t *testing.T, r *rig) {
			up := r.request("1", "subscriptions/listen", "")
			time.Sleep(48 * time.Hour)
			r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
			if m := parse(t, <-r.client.lines); m["result"] == nil {
				t.Errorf("answer %v", m)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
		})
	}
}

// TestLongLine sends an answer of 100 MB, as one line, to somebody who waits.
func TestLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MB")
	}
	r := newRig(t)
	up := r.request("1", "tools/call", `{"name":"read"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunk := strings.Repeat("x", 1<<20)
	_, _ = io.WriteString(r.server.w, `{"jsonrpc":"2.0","id":`+up+`,"result":{"content":[{"type":"text","text":"`)
	for range 100 {
		_, _ = io.WriteString(r.server.w, chunk)
	}
	_, _ = io.WriteString(r.server.w, `"}]}}`+"\n")
	if m := parse(t, r.client.next()); m.text("error", "message") != errBadAnswer.text {
		t.Errorf("answer %v", m)
	}
	runtime.ReadMemStats(&after)
	if got := after.Sys - before.Sys; got > 200<<20 {
		t.Errorf("took %d MiB", got>>20)
	}
	up = r.request("2", "tools/call", `{"name":"read"}`)
	if m := r.result(up, `{"content":[]}`); m["result"] == nil {
		t.Errorf("the next call: %v", m)
	}
}

func TestFlood(t *testing.T) {
	r := newRig(t)
	var b bytes.Buffer
	for range 20_000 {
		b.WriteString("noise\n" + `{"jsonrpc":"2.0","id":77,"result":{}}` + "\n")
	}
	if _, err := r.server.w.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	up := r.request("1", "ping", "")
	if m := r.result(up, `{}`); m["result"] == nil {
		t.Errorf("answer %v", m)
	}
	if n := len(r.log.String()); n > 1<<20 {
		t.Errorf("log of %d bytes", n)
	}
}

// TestServerDoesNotRead has a server that asks without end and never reads.
func TestServerDoesNotRead(t *testing.T) {
	serverR, serverW := io.Pipe()
	deafR, deafW := io.Pipe()
	clientR, clientW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), wire.NewLines(clientR, outW, wire.LinesOptions{}),
			wire.NewLines(serverR, deafW, wire.LinesOptions{}), Config{Sink: &memory{}})
	}()
	for range 5000 {
		if _, err := io.WriteString(serverW, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	clientW.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("hangs")
	}
	deafR.Close()
	serverW.Close()
	outR.Close()
}

// failing is a Sink that cannot keep anything.
type failing struct{}

func (failing) Record(Decision) error { return errors.New("disk full") }

func TestSinkFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Sink = failing{} })
	up := r.request("1", "tools/call", `{"name":"read"}`)
	if m := r.result(up, `{"content":[]}`); m["result"] == nil {
		t.Errorf("answer %v", m)
	}
	if !strings.Contains(r.log.String(), "a decision could not be recorded") {
		t.Errorf("log %s", r.log)
	}
}

func TestNoRandomness(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.rand = strings.NewReader("") })
	up := r.request("1", "resources/read", `{"uri":"x"}`)
	if m := r.result(up, `{"contents":[]}`); m.text("error", "message") != errWithheld.text {
		t.Errorf("delivered without evidence: %v", m)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"no sink": {}, "profile": {Sink: failing{}, Profile: 9}, "frame": {Sink: failing{}, Frame: 2},
		"limit": {Sink: failing{}, Timeout: -1}, "ceiling": {Sink: failing{}, MaxChars: 1},
	} {
		a, b := io.Pipe()
		conn := wire.Pull(wire.NewLines(a, b, wire.LinesOptions{}))
		if err := Run(t.Context(), wire.Push(conn), wire.Push(conn), c); err == nil && name != "ceiling" {
			t.Errorf("%s: accepted", name)
		}
	}
}
