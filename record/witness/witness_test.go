// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/ledger/ledgertest"
	"github.com/pellucid-mcp/pellucid/record/witness"
)

// A cosigner signs as a witness does.
type cosigner struct {
	*ledger.Witness
	private ed25519.PrivateKey
}

func newCosigner(t testing.TB, name string) cosigner {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.ParseWitness(witnessKey(name, public))
	if err != nil {
		t.Fatal(err)
	}
	return cosigner{w, private}
}

// line is the cosignature of a checkpoint.
func (c cosigner) line(checkpoint []byte) string {
	text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
	at := uint64(time.Now().Unix())
	sig := ed25519.Sign(c.private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", at, text))
	raw := binary.BigEndian.AppendUint32(nil, c.KeyHash())
	raw = append(binary.BigEndian.AppendUint64(raw, at), sig...)
	return "\u2014 " + c.Name() + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

func client(t testing.TB, w *ledger.Witness, h http.HandlerFunc) *witness.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := witness.NewClient(witness.Witness{Key: w, URL: srv.URL + "/prefix/"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnswers: what each answer of a witness comes to. Nothing of the answer stands in an error.
func TestAnswers(t *testing.T) {
	log := ledgertest.New(t, "log.example/a", 1)
	cp := log.Grow(t, 300, "a")
	good, other := newCosigner(t, "w.example/1"), newCosigner(t, "w.example/2")
	size := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/x.tlog.size")
			w.WriteHeader(409)
			io.WriteString(w, s)
		}
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, body) }
	}
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want error
	}{
		{"cosigned", status(200, good.line(cp)), nil},
		{"other keys beside", status(200, other.line(cp)+good.line(cp)+good.line(cp)), nil},
		{"another key alone", status(200, other.line(cp)), witness.ErrCosigned},
		{"of another checkpoint", status(200, good.line(log.Grow(t, 0, ""))[:60]+"\n"), witness.ErrCosigned},
		{"garbage", status(200, "\x00\u202egarbage"), witness.ErrAnswer},
		{"no line feed", status(200, strings.TrimSuffix(good.line(cp), "\n")), witness.ErrAnswer},
		{"empty", status(200, ""), witness.ErrAnswer},
		{"megabytes", status(200, strings.Repeat(other.line(cp), 50_000)), witness.ErrAnswer},
		{"many lines", status(200, strings.Repeat(other.line(cp), 65)+good.line(cp)), witness.ErrAnswer},
		{"unknown log", status(404, "<html>"), witness.ErrUnknownLog},
		{"unknown key", status(403, ""), witness.ErrKey},
		{"proof", status(422, ""), witness.ErrProof},
		{"no size", size("x"), witness.ErrAnswer},
		{"a size with a sign", size("+7\n"), witness.ErrAnswer},
		{"a size with a zero before it", size("07\n"), witness.ErrAnswer},
		{"a huge size", size("99999999999999999999\n"), witness.ErrAnswer},
		{"always the same size", size("0\n"), witness.ErrForked},
		{"a size without its type", status(409, "7\n"), witness.ErrAnswer},
		{"gone", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, witness.ErrAway},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, err := client(t, good.Witness, tt.h).Cosign(t.Context(), log, cp)
			switch {
			case tt.name == "a redirect":
				if err == nil || !strings.Contains(err.Error(), "307") {
					t.Errorf("%v", err)
				}
			case !errors.Is(err, tt.want) || (err == nil) != (string(lines) == good.line(cp)) && err != nil:
				t.Errorf("%q, %v", lines, err)
			}
			if err != nil && (strings.Contains(err.Error(), "garbage") || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("the error quotes the witness: %v", err)
			}
		})
	}
	var ahead *witness.Ahead
	if _, err := client(t, good.Witness, size("301\n")).Cosign(t.Context(), log, cp); !errors.As(err, &ahead) || ahead.Size != 301 {
		t.Errorf("a witness that has signed more: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	slow := client(t, good.Witness, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the server notices that the client is gone
		<-r.Context().Done()
	})
	if _, err := slow.Cosign(ctx, log, cp); !errors.Is(err, witness.ErrAway) {
		t.Errorf("a witness that does not answer: %v", err)
	}
}

// TestSender: a checkpoint is kept once enough witnesses have cosigned it. One that is away is asked
// again, the log is never waited for, and one that has seen more is told of.
func TestSender(t *testing.T) {
	log := ledgertest.New(t, "log.example/a", 1)
	ws := []cosigner{newCosigner(t, "w.example/1"), newCosigner(t, "w.example/2"), newCosigner(t, "w.example/3")}
	var away atomic.Bool
	away.Store(true)
	var list []witness.Witness
	for i, w := range ws {
		srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, cp, _ := bytes.Cut(body, []byte("\n\n"))
			switch {
			case i == 1 && away.Load():
				rw.WriteHeader(503)
			case i == 2:
				rw.Header().Set("Content-Type", "text/x.tlog.size")
				rw.WriteHeader(409)
				io.WriteString(rw, "999\n")
			default:
				io.WriteString(rw, w.line(cp))
			}
		}))
		t.Cleanup(srv.Close)
		list = append(list, witness.Witness{Key: w.Witness, URL: srv.URL})
	}
	policy, err := witness.NewPolicy(list, 2)
	if err != nil {
		t.Fatal(err)
	}
	kept, ahead := make(chan []byte, 9), make(chan int64, 99)
	s, err := witness.NewSender(witness.Options{Policy: policy, Source: log, Every: time.Millisecond,
		Save:  func(_ context.Context, msg []byte) error { kept <- msg; return nil },
		Ahead: func(_ context.Context, size int64) { ahead <- size }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	s.Offer(log.Grow(t, 5, "a"))
	if size := <-ahead; size != 999 {
		t.Errorf("%d", size)
	}
	if len(kept) > 0 || s.Enough() != 0 {
		t.Error("one cosignature of two is enough")
	}
	away.Store(false)
	msg := <-kept
	c, err := ledger.OpenCheckpoint(msg, []*ledger.Key{log.Signer.Key()}, policy.Keys())
	if err != nil || c.Size != 5 || len(c.Cosigned) != 2 || !policy.Satisfied(c.Cosigned) || s.Enough() != 5 {
		t.Errorf("%+v, %v", c, err)
	}
	stop()
	<-done
	// A checkpoint that has cosignatures already does not get them twice.
	if r := s.Collect(t.Context(), msg); !r.Enough || bytes.Count(r.Checkpoint, []byte("\u2014")) != 3 {
		t.Errorf("%s", r.Checkpoint)
	}
}

// TestRealWitness: the witness of transparency-dev cosigns what grows, and refuses what does not.
func TestRealWitness(t *testing.T) {
	bin := peer(t, "omniwitness")
	log := ledgertest.New(t, "log.example/real", 2)
	dir := t.TempDir()
	skey, vkey := generateWitness(t, dir)
	logs := filepath.Join(dir, "logs.yaml")
	entry := fmt.Sprintf("Logs:\n  - Origin: %s\n    URL: http://127.0.0.1:1/\n    PublicKey: %s\n    Feeder: none\n", log.Signer.Name(), log.Signer.Key())
	if err := os.WriteFile(logs, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, "--listen", addr, "--metrics_listen", "", "--private_key_path", skey, "--additional_logs", logs, "--db_file", filepath.Join(dir, "w.db"))
	cmd.Stderr, cmd.Stdout = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	waittest.Until(t, "the witness listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	key, err := ledger.ParseWitness(vkey)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() *witness.Client {
		c, err := witness.NewClient(witness.Witness{Key: key, URL: "http://" + addr})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := fresh()
	for _, n := range []int{1, 1, 254, 600} {
		cp := log.Grow(t, n, "a")
		for _, c := range []*witness.Client{c, fresh()} { // the second knows nothing of what the witness has signed
			lines, err := c.Cosign(t.Context(), log, cp)
			if err != nil {
				t.Fatalf("%d more records: %v", n, err)
			}
			opened, err := ledger.OpenCheckpoint(append(bytes.Clone(cp), lines...), []*ledger.Key{log.Signer.Key()}, []*ledger.Witness{key})
			if err != nil || len(opened.Cosigned) != 1 {
				t.Fatalf("%+v, %v", opened, err)
			}
		}
	}
	var ahead *witness.Ahead
	smaller := ledgertest.New(t, "log.example/real", 2)
	if _, err := fresh().Cosign(t.Context(), smaller, smaller.Grow(t, 855, "a")); !errors.As(err, &ahead) || ahead.Size != 856 {
		t.Errorf("a smaller log: %v", err)
	}
	forked := ledgertest.New(t, "log.example/real", 2)
	if _, err := fresh().Cosign(t.Context(), forked, forked.Grow(t, 856, "b")); !errors.Is(err, witness.ErrForked) {
		t.Errorf("another log of that size: %v", err)
	}
	if _, err := fresh().Cosign(t.Context(), forked, forked.Grow(t, 9, "b")); !errors.Is(err, witness.ErrProof) {
		t.Errorf("another log that is larger: %v", err)
	}
	// tlog-witness has 404 and 403 for these; this witness answers with 500 where its database has no row.
	stranger, impostor := ledgertest.New(t, "log.example/stranger", 3), ledgertest.New(t, "log.example/real", 4)
	for _, l := range []*ledgertest.Log{stranger, impostor} {
		if lines, err := fresh().Cosign(t.Context(), l, l.Grow(t, 900, "a")); err == nil {
			t.Errorf("it has cosigned a log that it cannot know: %s", lines)
		}
	}
}
