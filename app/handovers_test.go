// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// users are the goroutines that use messages.
type users struct {
	mu   sync.Mutex
	list map[string]string // the stack at the first use, by the goroutine's id
}

func (u *users) note() {
	buf := make([]byte, 8<<10)
	buf = buf[:runtime.Stack(buf, false)]
	id, _, _ := bytes.Cut(bytes.TrimPrefix(buf, []byte("goroutine ")), []byte(" "))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.list != nil && u.list[string(id)] == "" {
		u.list[string(id)] = string(buf)
	}
}

// during returns the goroutines that use messages while f runs and shortly after it.
func (u *users) during(f func()) map[string]string {
	u.mu.Lock()
	u.list = map[string]string{}
	u.mu.Unlock()
	f()
	time.Sleep(2 * time.Millisecond) // what was written is given back
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.list
	u.list = nil
	return list
}

// outermost is the first function of a goroutine, without the packages' folders.
func outermost(stack string) string {
	stack, _, _ = strings.Cut(stack, "\ncreated by ")
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	name, _, _ := strings.Cut(lines[max(0, len(lines)-2)], "(0x")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// TestHandovers: how many goroutines use a call and its answer, on every route: each one more is a message that
// is handed over, and a goroutine that has to be woken. The two of net/http's connection to a server use no
// message. Other messages of the process count as well, so the fewest of several tries do.
func TestHandovers(t *testing.T) {
	if !wire.Watched {
		t.Skip("messages are watched under the race detector only")
	}
	const most = 4
	var u users
	wire.Watch(u.note)
	t.Cleanup(func() { wire.Watch(func() {}) })
	eachRoute(t, func(t *testing.T, g *apptest.Gateway, s *mcp.ClientSession, tool string) {
		var fewest map[string]string
		for try := range 20 {
			list := u.during(func() {
				if _, err := g.Say(s, tool, "again"); err != nil {
					t.Fatal(err)
				}
			})
			if try == 0 { // the first call has the tools listed
				continue
			}
			if fewest == nil || len(list) < len(fewest) {
				fewest = list
			}
		}
		var names []string
		for _, stack := range fewest {
			names = append(names, outermost(stack))
		}
		t.Logf("%d: %s", len(fewest), strings.Join(names, ", "))
		if n := len(fewest); n < 1 || n > most {
			t.Errorf("%d goroutines use a call and its answer, want at most %d", n, most)
		}
	})
}
