// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestWrapsOneJournal: two programs whose journal becomes full put it aside, and record each decision once.
func TestWrapsOneJournal(t *testing.T) {
	const calls = 12
	state := filepath.Join(t.TempDir(), "state")
	journal := filepath.Join(state, "decisions.jsonl")
	line := append(bytes.Repeat([]byte{' '}, 1023), '\n')
	err := os.Mkdir(state, 0o700)
	if err == nil {
		err = os.WriteFile(journal, bytes.Repeat(line, 64<<10-4), 0o600) // a few decisions below its bound
	}
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		cmd, _ := wrapped(t, asServer("server", "--name", name)...)
		cmd.Env = append(cmd.Env, "PELLUCID_STATE="+state)
		in, out, stderr := start(t, cmd)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		wg.Go(func() {
			for i := range calls {
				fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"poison"}}`+"\n", i+1)
				if _, err := out.ReadString('\n'); err != nil {
					t.Error(err)
					break
				}
			}
			in.Close()
			if err := cmd.Wait(); err != nil || strings.Contains(stderr.String(), "journal") || strings.Contains(stderr.String(), "recorded") {
				t.Errorf("%v: %s", err, stderr)
			}
		})
	}
	wg.Wait()
	was, err := os.Stat(journal + ".1")
	if err != nil || was.Size() > 64<<20 {
		t.Errorf("the journal that was full: %v, %v", was, err)
	}
	recorded := map[string]int{}
	for _, name := range []string{journal, journal + ".1"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range []string{"one", "two"} {
			recorded[server] += strings.Count(string(b), `"server":"`+server+`","tool":"poison"`)
		}
	}
	if recorded["one"] != calls || recorded["two"] != calls {
		t.Errorf("recorded %v of %d each", recorded, calls)
	}
}

// TestWrapClientGone: a client that reads no more has left; that is no failure.
func TestWrapClientGone(t *testing.T) {
	cmd, _ := wrapped(t, asServer("server")...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = w, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}
