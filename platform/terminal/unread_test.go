// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUnread: the end of the reader of a pipe is noticed without a write. A pipe that is read, and a file, are
// watched as long as the context lasts.
func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if Unread(ctx, w) || ctx.Err() == nil {
		t.Error("a pipe that is read counts as unread")
	}
	told := make(chan bool)
	go func() { told <- Unread(t.Context(), w) }()
	r.Close()
	if !<-told {
		t.Error("a pipe that is not read counts as read")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, stop = context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if Unread(ctx, f) {
		t.Error("a file counts as unread")
	}
}
