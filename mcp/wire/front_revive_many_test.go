// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/logtest"
)

// TestReviveMany: a thousand sessions come back at once, as after a restart. No more servers are begun at a time
// than there may be sessions and such that have just ended; a request that finds no room is told so, and its session
// comes back later.
func TestReviveMany(t *testing.T) {
	t.Parallel()
	const many, places = 1000, 32
	var live, most, begun atomic.Int64
	l, next := processes(t, func(o *FrontOptions) {
		o.Sessions = places
		o.Accept = func(_ context.Context, s *FrontSession, ended func(error)) {
			begun.Add(1)
			for n := live.Add(1); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			conn := Pull(s)
			go func() {
				defer func() { live.Add(-1); ended(nil) }()
				for {
					m, err := conn.Read(context.Background())
					if err != nil {
						return
					}
					switch m.Method {
					case methodInitialize:
						time.Sleep(20 * time.Millisecond) // a server takes its time to start
						_ = s.Write(context.Background(), NewResult(m.ID, []byte(capable)))
					case "tools/list":
						_ = s.Write(context.Background(), NewResult(m.ID, []byte(`{"tools":[]}`)))
					}
					m.Release()
				}
			}()
		}
	})
	for i := range many {
		o := Opening{Params: []byte(`{"protocolVersion":"2025-11-25"}`), Version: "2025-11-25"}
		l.known[fmt.Sprintf("many-%030d", i)] = Kept{Opening: o}
	}
	b := next()
	var said logtest.Buffer
	b.http.Config.ErrorLog = log.New(&said, "", 0)
	b.http.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	var answered, full atomic.Int64
	var clients sync.WaitGroup
	for i := range many {
		clients.Go(func() {
			for tries := 0; ; tries++ {
				resp := b.post(listBody, "Mcp-Session-Id", fmt.Sprintf("many-%030d", i), "Mcp-Protocol-Version", "2025-11-25")
				switch body := all(t, resp); {
				case strings.Contains(body, `"tools":[]`):
					answered.Add(1)
					return
				case (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusServiceUnavailable) && strings.Contains(body, `"code":7408`):
					full.Add(1)
				case strings.Contains(body, `"code":7410`): // its session made room for another
				default:
					t.Errorf("%d %q", resp.StatusCode, body)
					return
				}
				if tries > 2000 {
					t.Error("a session does not come back")
					return
				}
				time.Sleep(time.Duration(10+i%50) * time.Millisecond)
			}
		})
	}
	clients.Wait()
	if answered.Load() != many || most.Load() > lingering*places {
		t.Errorf("%d answered; %d servers at a time, of %d", answered.Load(), most.Load(), begun.Load())
	}
	if n := len(b.f.reviving); n != 0 || b.f.Sessions() > places {
		t.Errorf("%d revivals and %d sessions are left", n, b.f.Sessions())
	}
	if said.String() != "" { // such as a header that was written twice
		t.Errorf("the HTTP server says %.500s", said.String())
	}
	t.Logf("%d were told to try again; %d servers were begun, at most %d at a time", full.Load(), begun.Load(), most.Load())
}
