// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"maps"
	"strings"
	"testing"
)

// TestStackCount reads a dump as a process prints it.
func TestStackCount(t *testing.T) {
	c := stackCount{by: map[string]int{}}
	for line := range strings.Lines(`SIGQUIT: quit
PC=0x4937c1 m=0 sigcode=0

goroutine 0 gp=0x31ce520 m=0 mp=0x31d1720 [idle]:
runtime.futex(0x31d1878, 0x80, 0x0, 0x0, 0x0, 0x0)
	runtime/sys_linux_amd64.s:569 +0x21
main.notCounted()

goroutine 5 gp=0x1684473710e0 m=nil [select]:
runtime.gopark(0x0?, 0x0?, 0x0?, 0x0?, 0x0?)
	runtime/proc.go:462 +0xce
github.com/pellucid-mcp/pellucid/boundary/gateway.(*relay).watch(0x1, {0x2, 0x3})
	github.com/pellucid-mcp/pellucid/boundary/gateway/relay.go:1 +0x1
github.com/pellucid-mcp/pellucid/boundary/gateway.(*relay).run.func1()

goroutine 6 gp=0x1684473710e0 m=nil [IO wait]:
internal/poll.(*FD).Read(0x0)
net/http.(*connReader).backgroundRead(0x0)

goroutine 7 gp=0x1684473710e0 m=nil [GC worker (idle)]:
runtime.gcBgMarkWorker(0x168447342380)
created by runtime.gcBgMarkStartWorkers in goroutine 1

rax    0xca
`) {
		c.line(strings.TrimRight(line, "\n"))
	}
	want := map[string]int{"boundary/gateway.(*relay).watch": 1, "net/http.(*connReader).backgroundRead": 1,
		"created by runtime.gcBgMarkStartWorkers in goroutine 1": 1}
	if !maps.Equal(c.by, want) {
		t.Errorf("%v, want %v", c.by, want)
	}
}
