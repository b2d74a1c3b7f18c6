// SPDX-License-Identifier: Apache-2.0

package syserror

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestErrors makes each error with what this system says.
func TestErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, twice := net.Listen("tcp", addr)
	_, elsewhere := net.Listen("tcp", "192.0.2.1:0") // of the addresses that documents show
	reset := resetWrite(t, l)
	l.Close()
	_, nothing := net.Dial("tcp", addr)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	_, piped := w.Write([]byte("x"))

	kinds := map[string]func(error) bool{"in use": InUse, "not here": NotHere, "refused": Refused, "lost": Lost, "timed out": TimedOut}
	for _, c := range []struct {
		kind string
		err  error
	}{
		{"in use", twice}, {"not here", elsewhere}, {"lost", reset}, {"refused", nothing}, {"lost", piped},
		{"", io.EOF}, {"", os.ErrNotExist}, {"", nil},
	} {
		for kind, is := range kinds {
			if is(c.err) != (kind == c.kind) {
				t.Errorf("%v: %s: %t", c.err, kind, is(c.err))
			}
		}
	}
}

// resetWrite is the error of a write to a peer that closed a connection with bytes unread.
func resetWrite(t *testing.T, l net.Listener) error {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	var reset error
	waittest.Until(t, "a reset", func() bool { // the first writes may go before it comes
		_, reset = c.Write([]byte("x"))
		return reset != nil
	})
	return reset
}
