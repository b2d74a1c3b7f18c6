// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// TestPullPush: a Conn that is read, pushed and read again says the same in the same order.
func TestPullPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := Pull(Push(Pull(NewLines(near, near, LinesOptions{}))))
		go func() {
			for i := range 3 {
				fmt.Fprintf(far, `{"jsonrpc":"2.0","method":"n%d"}`+"\n", i)
				fmt.Fprintln(far, "no message")
			}
			far.Close()
		}()
		for i := range 3 {
			m, err := c.Read(t.Context())
			if err != nil || m.Method != fmt.Sprint("n", i) {
				t.Fatal(m, err)
			}
			var v *Violation
			if _, err := c.Read(t.Context()); !errors.As(err, &v) {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		c.Close()
		if _, err := c.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	})
}

// TestPullClosed: a message that waits for a reader does not outlive Close.
func TestPullClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := pullLines(near, near, LinesOptions{})
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := c.Read(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		go fmt.Fprintln(far, `{"jsonrpc":"2.0","method":"n"}`)
		synctest.Wait() // it waits now
		c.Close()
		synctest.Wait() // or a goroutine is left, and the test fails
	})
}
