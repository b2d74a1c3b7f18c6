// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/bucket"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/ledger/ledgertest"
	"github.com/pellucid-mcp/pellucid/record/mirror"
)

// counted counts what is written, and fails after some files.
type counted struct {
	mirror.Target
	put, deleted []string
	fail         int // files until it fails; 0: never
}

var errFull = errors.New("the disk is full")

func (c *counted) Put(ctx context.Context, path string, data []byte, contentType, cacheControl string) error {
	if c.fail > 0 && len(c.put) >= c.fail {
		return errFull
	}
	c.put = append(c.put, path)
	return c.Target.Put(ctx, path, data, contentType, cacheControl)
}

func (c *counted) Delete(ctx context.Context, path string) error {
	c.deleted = append(c.deleted, path)
	return c.Target.Delete(ctx, path)
}

func of(log *ledgertest.Log, target mirror.Target) *mirror.Mirror {
	return mirror.New(mirror.Options{Source: log, Target: target, Every: time.Millisecond,
		Keys: func(context.Context) ([]*ledger.Key, error) { return []*ledger.Key{log.Signer.Key()}, nil }})
}

// targets runs f with a directory and with a bucket of a real server, with the reader of its files.
func targets(t *testing.T, f func(t *testing.T, target mirror.Target, read func(path string) ([]byte, http.Header))) {
	t.Run("directory", func(t *testing.T) {
		dir := t.TempDir()
		f(t, mirror.Dir(dir), func(path string) ([]byte, http.Header) {
			b, _ := os.ReadFile(filepath.Join(dir, path))
			return b, nil
		})
	})
	t.Run("bucket", func(t *testing.T) {
		base := s3Server(t)
		is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
		b, err := bucket.New(base+"/logs/a", &sigv4.Signer{Region: "eu-central-1", Access: is("AKID"), Secret: is("secret")})
		if err != nil {
			t.Fatal(err)
		}
		f(t, b, func(path string) ([]byte, http.Header) {
			resp, err := http.Get(base + "/logs/a/" + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != 200 {
				return nil, nil
			}
			return data, resp.Header
		})
	})
}

// s3Server starts gofakes3, a server of S3's protocol.
func s3Server(t *testing.T) string {
	t.Helper()
	programtest.Need(t)
	bin, err := filepath.Abs("../../.tools/publish/gofakes3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Skip("gofakes3 is not there: make publish-peers builds it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, "-backend", "memory", "-host", addr, "-initialbucket", "logs", "-quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	waittest.Until(t, "gofakes3 listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

// TestMirror: a copy has every file, byte for byte and with its headers, the checkpoint last; what is
// there is not sent again, also after an interruption; narrower tiles go once they are full.
func TestMirror(t *testing.T) {
	targets(t, func(t *testing.T, target mirror.Target, read func(string) ([]byte, http.Header)) {
		log := ledgertest.New(t, "log.example/a", 1)
		log.Grow(t, 1000, "a")
		broken := &counted{Target: target, fail: 3}
		if _, err := of(log, broken).Copy(t.Context()); !errors.Is(err, errFull) {
			t.Fatalf("%v", err)
		}
		if b, _ := read("checkpoint"); b != nil {
			t.Error("there is a checkpoint before its tiles")
		}
		c := &counted{Target: target}
		m := of(log, c)
		done, err := m.Copy(t.Context())
		if err != nil || done.Kept != 3 || done.Size != 1000 || m.Size() != 1000 {
			t.Fatalf("%+v, %v", done, err)
		}
		files := 0
		check := func() {
			t.Helper()
			files = 0
			if err := ledger.Export(t.Context(), log, nil, func(path string, data []byte) error {
				files++
				got, h := read(path)
				if string(got) != string(data) {
					return fmt.Errorf("%s has %d bytes, want %d", path, len(got), len(data))
				}
				// gofakes3 does not give back Cache-Control: TestHeaders of platform/bucket checks that it is sent.
				if contentType, _ := ledger.FileHeaders(path); h != nil && h.Get("Content-Type") != contentType {
					return fmt.Errorf("%s has headers %v", path, h)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		check()
		c.put = nil
		if done, err := m.Copy(t.Context()); err != nil || done.Written != 0 || len(c.put) != 0 {
			t.Errorf("nothing is new: %+v, %v", done, err)
		}
		log.Grow(t, 30, "a")
		if done, err := m.Copy(t.Context()); err != nil || done.Written >= files || done.Kept != 0 {
			t.Errorf("30 records are new: %+v of %d files, %v", done, files, err)
		}
		check()
		if len(c.deleted) == 0 {
			t.Error("narrow tiles are kept although they are full")
		}
		for _, path := range c.deleted {
			if b, _ := read(path); b != nil || !strings.Contains(path, ".p/") {
				t.Errorf("%s is still there", path)
			}
		}
		// A process that begins finds what is there, and one whose log lost records writes nothing.
		if done, err := of(log, c).Copy(t.Context()); err != nil || done.Written != 0 {
			t.Errorf("another process: %+v, %v", done, err)
		}
		c.put = nil
		for name, lost := range map[string]func(*ledgertest.Log){
			"a smaller log":  func(l *ledgertest.Log) { l.Grow(t, 900, "a") },
			"another log":    func(l *ledgertest.Log) { l.Grow(t, 1030, "b") },
			"a larger other": func(l *ledgertest.Log) { l.Grow(t, 1031, "b") },
		} {
			other := ledgertest.New(t, "log.example/a", 1)
			lost(other)
			_, err := of(other, c).Copy(t.Context())
			if seen, ok := errors.AsType[*mirror.Seen](err); !ok || ledger.CheckpointSize(seen.Checkpoint) != 1030 || len(c.put) != 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		stranger := ledgertest.New(t, "log.example/a", 2)
		stranger.Grow(t, 2000, "a")
		if _, err := of(stranger, c).Copy(t.Context()); !errors.Is(err, mirror.ErrForeign) || len(c.put) != 0 {
			t.Errorf("a log with another key: %v", err)
		}
		if err := target.Put(t.Context(), "checkpoint", []byte("nonsense"), "", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := of(log, c).Copy(t.Context()); !errors.Is(err, mirror.ErrForeign) {
			t.Errorf("nonsense: %v", err)
		}
	})
}

// TestMirrorAway: a bucket that is away, or refuses, is an error without its words, and the copy goes
// on by itself later.
func TestMirrorAway(t *testing.T) {
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	b, err := bucket.New("http://127.0.0.1:1/logs", &sigv4.Signer{Region: "r", Access: is("a"), Secret: is("s")})
	if err != nil {
		t.Fatal(err)
	}
	log := ledgertest.New(t, "log.example/a", 1)
	log.Grow(t, 3, "a")
	if _, err := of(log, b).Copy(t.Context()); !errors.Is(err, bucket.ErrAway) || strings.Contains(err.Error(), "127") {
		t.Errorf("%v", err)
	}
	dir := mirror.Dir(t.TempDir())
	failing := &counted{Target: dir, fail: 1}
	m := of(log, failing)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	time.Sleep(20 * time.Millisecond)
	stop()
	<-done
	if _, err := m.Copy(t.Context()); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	failing.fail = 0
	if _, err := m.Copy(t.Context()); err != nil {
		t.Error(err)
	}
}
