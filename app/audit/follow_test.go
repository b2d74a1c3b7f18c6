// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// bothEngines runs a test on a used log of each kind of database.
func bothEngines(t *testing.T, test func(t *testing.T, u *usedLog)) {
	var server pgtest.Server
	t.Cleanup(server.Stop)
	t.Run("sqlite", func(t *testing.T) { test(t, newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))) })
	t.Run("postgres", func(t *testing.T) { test(t, newUsedLog(t, server.Database(t))) })
}

// syncBuffer is safe for use by the follower and the test.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// add adds n records to the log, and returns all lines that an export has then.
func (u *usedLog) add(n int) (lines string) {
	u.t.Helper()
	dir, err := local.OpenState()
	must(u.t, err)
	u.process(dir, true, func(kept *install.Records, _ *storage.Store) {
		for range n {
			must(u.t, kept.Require(&ledger.Event{Kind: ledger.Message, Server: "more", Verdict: "passed"}))
		}
	})
	var b bytes.Buffer
	must(u.t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		head, err := l.Head(ctx)
		must(u.t, err)
		for at := int64(0); at < head.Size; at++ {
			e, err := l.At(ctx, at)
			must(u.t, err)
			must(u.t, writeRows(&b, []sequence.Entry{e}, false))
		}
		return nil
	}))
	return b.String()
}

// follow runs a follower until done says so, or until it ends by itself.
func (u *usedLog) follow(f *Follow, done func() bool) error {
	u.t.Helper()
	f.poll = 5 * time.Millisecond
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	return u.log(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx, l, dir) }()
		var err error
		gone := false
		waittest.Until(u.t, "the follower has written what it should", func() bool {
			select {
			case err = <-ended:
				gone = true
			default:
			}
			return gone || done()
		})
		if stop(); !gone {
			err = <-ended
		}
		return err
	})
}

// holds reports whether a file has this content.
func holds(file, content string) func() bool {
	return func() bool { b, _ := os.ReadFile(file); return string(b) == content }
}

// TestFollowFile: a file gets each record once, whatever the last process has left of it.
func TestFollowFile(t *testing.T) {
	bothEngines(t, func(t *testing.T, u *usedLog) {
		want := u.add(1)
		dir, err := local.OpenState()
		must(t, err)
		file := filepath.Join(t.TempDir(), "records.jsonl")
		stored := dir.File((&Follow{File: file}).positionName())
		last := strings.LastIndexByte(strings.TrimSuffix(want, "\n"), '\n') + 1
		for name, before := range map[string]func(){
			"nothing":                func() { os.Remove(file); os.Remove(stored) },
			"no position":            func() { os.Remove(stored) },
			"a line without its end": func() { must(t, os.Truncate(file, int64(len(want)-1))) },
			"a half line":            func() { must(t, os.Truncate(file, int64(last+9))) },
			"a half line alone":      func() { must(t, os.Truncate(file, 9)); os.Remove(stored) },
			"fewer lines":            func() { must(t, os.Truncate(file, int64(last))) },
			"a half line, no position": func() {
				must(t, os.Truncate(file, int64(last+9)))
				os.Remove(stored)
			},
		} {
			must(t, os.WriteFile(file, []byte(want), 0o600))
			kept := func() bool { return holds(file, want)() && dir.Has(filepath.Base(stored)) }
			must(t, u.follow(&Follow{File: file}, kept))
			before()
			if err := u.follow(&Follow{File: file}, kept); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}

		// A file that was moved away is made again, and goes on where the old one ended.
		moved := false
		must(t, u.follow(&Follow{File: file}, func() bool {
			if !moved {
				moved = true
				must(t, os.Rename(file, file+".1"))
				want = strings.TrimPrefix(u.add(3), want)
			}
			return holds(file, want)()
		}))
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("others may read the file: %v, %v", info, err)
		}
	})
}

// TestFollowRefuses: a file that is not of this log, and a log that lacks exported records, are not written and not skipped.
func TestFollowRefuses(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	want := u.add(1)
	dir, err := local.OpenState()
	must(t, err)
	file := filepath.Join(t.TempDir(), "records.jsonl")
	name := (&Follow{File: file}).positionName()
	lines := strings.SplitAfter(want, "\n")
	origin := "log.example/used"
	for what, tt := range map[string]struct{ content, position, says string }{
		"text":                {"shopping list\n", "", "does not end in a record of this log"},
		"text without an end": {"shopping list", "", "does not end in a record of this log"},
		"other JSON":          {`{"index":1}` + "\n", "", "does not end in a record of this log"},
		"record elsewhere":    {strings.Replace(lines[4], `{"index":4,`, `{"index":5,`, 1), "", "does not end in a record of this log"},
		"record not there":    {strings.Replace(lines[4], `{"index":4,`, `{"index":4000,`, 1), "", "does not end in a record of this log"},
		"half of something":   {lines[4] + "{\"index\":6", "", "does not end in a record of this log"},
		"other log":           {"", `{"origin":"log.example/\u202e","next":3}`, `of the log "log.example/\u202e"`},
		"log lost records":    {"", `{"origin":"` + origin + `","next":4000}`, "the database has lost records"},
		"no position":         {"", `{"next":"x"}`, "cannot be read: remove it"},
	} {
		must(t, os.WriteFile(file, []byte(tt.content), 0o600))
		must(t, dir.Remove(name))
		if tt.position != "" {
			must(t, dir.Write(name, []byte(tt.position)))
		}
		err := u.follow(&Follow{File: file}, func() bool { return false })
		coded, ok := errors.AsType[*exit.Error](err)
		if !ok || coded.Code != exit.Failed || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", what, err)
		}
		if !holds(file, tt.content)() {
			t.Errorf("%s: the file was changed", what)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none", "x"), t.TempDir()} {
		if err := u.follow(&Follow{File: path}, func() bool { return false }); err == nil || strings.Contains(err.Error(), "open ") {
			t.Errorf("a file that cannot be opened: %v", err)
		}
	}
}

// TestFollowStdout: standard output gets what it did not get before, and a process that could not write says so.
func TestFollowStdout(t *testing.T) {
	bothEngines(t, func(t *testing.T, u *usedLog) {
		want := u.add(1)
		var out syncBuffer
		must(t, u.follow(&Follow{Stdout: &out}, func() bool { return out.String() == want }))
		grown := u.add(600) // more than a batch
		var next syncBuffer
		failing := io.MultiWriter(&next, failAfter{&next, len(grown) - len(want) - 100})
		if err := u.follow(&Follow{Stdout: failing}, func() bool { return false }); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("an output that was closed: %v", err)
		}
		var again syncBuffer
		must(t, u.follow(&Follow{Stdout: &again}, func() bool {
			return strings.HasSuffix(grown, again.String()) && strings.HasSuffix(again.String(), grown[len(grown)-900:])
		}))
		if first, _, _ := strings.Cut(again.String(), "\n"); !strings.Contains(next.String(), first+"\n") {
			t.Errorf("records between the two processes are missing: the second begins with %.40s", first)
		}
		reader, writer := io.Pipe() // is not read
		defer reader.Close()
		u.add(1)
		begun := make(chan struct{})
		go func() { _, _ = reader.Read(make([]byte, 1)); close(begun) }()
		must(t, u.follow(&Follow{Stdout: writer}, func() bool {
			select {
			case <-begun:
				return true
			default:
				return false
			}
		}))
	})
}

// failAfter fails once so much was written to b.
type failAfter struct {
	b *syncBuffer
	n int
}

func (f failAfter) Write(p []byte) (int, error) {
	if len(f.b.String()) > f.n {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestFollowDamaged: a record that is damaged or missing is left out and told, and does not hold up the others.
func TestFollowDamaged(t *testing.T) {
	bothEngines(t, func(t *testing.T, u *usedLog) {
		lines := strings.SplitAfter(u.add(1), "\n")
		var at [2]int64
		for i, line := range lines[3:5] {
			_, err := fmt.Sscanf(line, `{"index":%d,`, &at[i])
			must(t, err)
		}
		must(t, u.exec(fmt.Sprint("UPDATE ledger_leaves SET envelope = ", map[bool]string{true: `'\x00'::bytea`, false: `x'00'`}[storage.IsPostgres(u.where)], " WHERE idx = ", at[0])))
		must(t, u.exec(fmt.Sprint("DELETE FROM ledger_leaves WHERE idx = ", at[1])))
		want := strings.Join(append(lines[:3:3], lines[5:]...), "")
		var out, log syncBuffer
		must(t, u.follow(&Follow{Stdout: &out, Log: slog.New(slog.NewTextHandler(&log, nil))}, func() bool { return out.String() == want }))
		for _, index := range at {
			if !strings.Contains(log.String(), fmt.Sprint(" index=", index, "\n")) {
				t.Errorf("record %d is left out without a word: %s", index, &log)
			}
		}
	})
}

// TestWithoutLinks: a file has one path, whether it is there yet or not, by whatever link it is named.
func TestWithoutLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "d", "here"), nil, 0o600))
	if err := os.Symlink(filepath.Join(dir, "d"), filepath.Join(dir, "to-d")); err != nil {
		t.Skip(err) // Windows, without the right to make links
	}
	if _, err := os.Readlink(filepath.Join(dir, "to-d")); err != nil {
		t.Skip(err) // Wine
	}
	must(t, os.Symlink(filepath.Join(dir, "d", "here"), filepath.Join(dir, "to-here")))
	for path, want := range map[string]string{"d/here": "d/here", "to-d/here": "d/here", "to-here": "d/here", "to-d/new": "d/new", "no/such": "no/such"} {
		if got := withoutLinks(filepath.Join(dir, filepath.FromSlash(path))); got != filepath.Join(dir, filepath.FromSlash(want)) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestFollowAlone: one process at a time writes to an output, and the next one goes on.
func TestFollowAlone(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	want := u.add(1)
	dir, err := local.OpenState()
	must(t, err)
	held, err := dir.Lock("export.json.lock")
	must(t, err)
	var out, log syncBuffer
	must(t, u.follow(&Follow{Stdout: &out, Log: slog.New(slog.NewTextHandler(&log, nil))}, func() bool {
		if held != nil && strings.Contains(log.String(), "another process exports") {
			if out.String() != "" {
				t.Error("it writes beside the other process")
			}
			must(t, held.Close())
			held = nil
		}
		return out.String() == want
	}))
	held, err = dir.Lock("export.json.lock")
	must(t, err)
	var waits syncBuffer
	must(t, u.log(func(_ context.Context, l *storage.Ledger, dir *state.Dir) error {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- (&Follow{Stdout: &out, Log: slog.New(slog.NewTextHandler(&waits, nil))}).Run(ctx, l, dir)
		}()
		waittest.Until(t, "it waits", func() bool { return strings.Contains(waits.String(), "another process exports") })
		stop()
		return <-ended // although it waits
	}))
	must(t, held.Close())
	held, err = dir.Lock("export.json.lock") // once the one that waited has let it go
	must(t, err)
	must(t, held.Close())
}
