// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"go.uber.org/goleak"
)

func pullLines(r io.Reader, w io.Writer, opt LinesOptions) ReadConn { return Pull(NewLines(r, w, opt)) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// readAll reads until the end and says what came: method, or result's id, or the reason for refusal.
func readAll(t *testing.T, c ReadConn) (got []string) {
	t.Helper()
	for {
		m, err := c.Read(t.Context())
		var v *Violation
		switch {
		case err == io.EOF:
			return got
		case errors.As(err, &v):
			got = append(got, "! "+v.Reason)
		case err != nil:
			return append(got, "error "+err.Error())
		default:
			got = append(got, m.Method+m.ID.raw)
			m.Release()
		}
	}
}

func TestLinesRead(t *testing.T) {
	t.Parallel()
	long := `{"jsonrpc":"2.0","method":"long","params":{"s":"` + strings.Repeat("x", 100_000) + `"}}`
	for _, tt := range []struct{ name, in, want string }{
		{"one", ping + "\n", "ping1"},
		{"CRLF", ping + "\r\n" + ping + "\r\n", "ping1,ping1"},
		{"empty lines", "\n\r\n  \n" + ping + "\n\n", "ping1"},
		{"no end", ping, "ping1"},
		{"noise between", "Server started\n" + ping + "\n", "! unexpected byte,ping1"},
		{"NUL", "\x00\n" + ping + "\n", "! unexpected byte,ping1"},
		{"broken", "{\"jsonrpc\":\n" + ping + "\n", "! unexpected end,ping1"},
		{"long and short", long + "\n" + ping + "\n" + long + "\n", "long,ping1,long"},
		{"many small", strings.Repeat(ping+"\n", 1000), strings.TrimSuffix(strings.Repeat("ping1,", 1000), ",")},
		{"batch", "[" + ping + "]\n", "! a batch, which this revision does not have"},
		{"nothing", "", ""},
	} {
		for _, r := range []struct {
			name string
			r    io.Reader
		}{
			{"whole", strings.NewReader(tt.in)},
			{"with end", iotest.DataErrReader(strings.NewReader(tt.in))},
			{"bytes", iotest.OneByteReader(strings.NewReader(tt.in))},
		} {
			t.Run(tt.name+"/"+r.name, func(t *testing.T) {
				l := pullLines(r.r, io.Discard, LinesOptions{})
				defer l.Close()
				if got := strings.Join(readAll(t, l), ","); got != tt.want {
					t.Errorf("read %.200q, want %.200q", got, tt.want)
				}
			})
		}
	}
}

func TestLinesBatches(t *testing.T) {
	t.Parallel()
	l := pullLines(strings.NewReader("["+ping+","+ping+",7]\n"+ping+"\n"), io.Discard, LinesOptions{})
	defer l.Close()
	AllowBatches(l, true)
	if got, want := strings.Join(readAll(t, l), ","), "ping1,ping1,! not a JSON object,ping1"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

// endless yields head, then n bytes of filler, then tail.
func endless(head string, n int64, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), io.LimitReader(filler{}, n), strings.NewReader(tail))
}

type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestLinesTooLong(t *testing.T) {
	const size = 100 << 20
	for _, tt := range []struct {
		name, head, tail string
		want             Violation
		rest             string
	}{
		{"id first", `{"jsonrpc":"2.0","id":41,"result":{"t":"`, `"}}` + "\n" + ping + "\n", Violation{ID: IntID(41), Kind: Response}, "ping1"},
		{"id last", `{"result":{"t":"`, `"},"jsonrpc":"2.0","id":"k"}` + "\n" + ping + "\n", Violation{ID: StringID("k"), Kind: Response}, "ping1"},
		{"no line feed at all", "", "", Violation{}, ""},
		{"request", `{"jsonrpc":"2.0","id":3,"method":"a","params":{"id":4,"s":"`, `"}}` + "\n", Violation{ID: IntID(3), Kind: Request}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			l := pullLines(endless(tt.head, size, tt.tail), io.Discard, LinesOptions{Limits: strictjson.Limits{Bytes: 1 << 20}})
			defer l.Close()
			_, err := l.Read(t.Context())
			var v *Violation
			if !errors.As(err, &v) || v.Reason != "message too long" || v.ID != tt.want.ID || v.Kind != tt.want.Kind {
				t.Fatalf("Read = %v (%+v)", err, v)
			}
			if got := strings.Join(readAll(t, l), ","); got != tt.rest {
				t.Errorf("then %q, want %q", got, tt.rest)
			}
			runtime.ReadMemStats(&after)
			if d := after.TotalAlloc - before.TotalAlloc; d > 16<<20 {
				t.Errorf("a line of 100 MiB under a limit of 1 MiB took %d MiB", d>>20)
			}
		})
	}
}

func TestLinesWithoutEnd(t *testing.T) {
	t.Parallel()
	head := `{"jsonrpc":"2.0","id":41,"result":{"t":"`
	l := pullLines(io.MultiReader(strings.NewReader(head), filler{}), io.Discard, LinesOptions{Limits: strictjson.Limits{Bytes: 1 << 20}})
	defer l.Close()
	_, err := l.Read(t.Context())
	var v *Violation
	if !errors.As(err, &v) || v.Offset < maxSkip {
		t.Fatalf("first Read = %v", err)
	}
	if _, err := l.Read(t.Context()); !errors.Is(err, errEndless) {
		t.Errorf("second Read = %v, want %v", err, errEndless)
	}
}

func TestLinesMessageOwnsItsBytes(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"result":{"n":"%d%s"}}`+"\n", i, i, strings.Repeat("-", i*37))
	}
	l := pullLines(&in, io.Discard, LinesOptions{})
	defer l.Close()
	var all []*Message
	for {
		m, err := l.Read(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for i, m := range all {
		if want := fmt.Sprintf("%d%s", i, strings.Repeat("-", i*37)); m.Result.Get("n").Text() != want {
			t.Fatalf("message %d was overwritten", i)
		}
		m.Release()
	}
}

func TestLinesReadContext(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	l := pullLines(r, io.Discard, LinesOptions{})
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Read = %v", err)
	}
	go io.WriteString(w, ping+"\n")
	if m, err := l.Read(t.Context()); err != nil || m.Method != "ping" {
		t.Errorf("Read after a context ended: %v, %v", m, err)
	}
}

// writes counts the writes that reach it.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

func TestLinesWrite(t *testing.T) {
	t.Parallel()
	var w writes
	l := pullLines(strings.NewReader(""), &w, LinesOptions{})
	defer l.Close()
	big := `{"s":"` + strings.Repeat("b", maxOneWrite) + `"}`
	for _, raw := range []string{"{}", "{\r\n \"a\": 1\n}", big, big[:len(big)-1] + "\n}"} {
		if err := l.Write(t.Context(), NewResult(IntID(1), []byte(raw))); err != nil {
			t.Fatal(err)
		}
	}
	const head = `{"jsonrpc":"2.0","id":1,"result":`
	want := []string{head + "{}}\n", head + "{   \"a\": 1 }}\n", head, big, "}\n", head + big[:len(big)-1] + " }}\n"}
	if got := strings.Join(w.all, "|"); got != strings.Join(want, "|") {
		t.Errorf("writes = %.300q", got)
	}
}

func TestLinesWriteDoesNotInterleave(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	l := pullLines(strings.NewReader(""), w, LinesOptions{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			m := NewResult(IntID(int64(i)), []byte(`{"s":"`+strings.Repeat("y", i*9000)+`"}`))
			if err := l.Write(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	go func() { wg.Wait(); l.Close() }()
	back := pullLines(r, io.Discard, LinesOptions{})
	defer back.Close()
	if got := readAll(t, back); len(got) != 20 || strings.Contains(strings.Join(got, ""), "!") {
		t.Errorf("%d messages: %.300q", len(got), got)
	}
}

// A noting is a context that tells when it is waited for.
type noting struct {
	context.Context
	asked chan struct{}
}

func (n *noting) Done() <-chan struct{} {
	n.asked <- struct{}{}
	return n.Context.Done()
}

// A peer that stops reading holds up neither a context, nor Close, nor a second writer's context.
func TestLinesPeerStopsReading(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := pullLines(strings.NewReader(""), w, LinesOptions{})
	big := NewResult(IntID(1), []byte(`{"s":"`+strings.Repeat("z", 1<<20)+`"}`))
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := l.Write(ctx, big); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Write = %v", err)
		}
		cancel()
	}
	errs := make(chan error)
	waits := &noting{Context: context.Background(), asked: make(chan struct{}, 9)}
	go func() { errs <- l.Write(waits, big) }()
	<-waits.asked
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Errorf("Write under way at Close = %v", err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("Close took %v", d)
	}
	if _, err := l.Read(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close = %v", err)
	}
	if err := l.Write(t.Context(), big); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close = %v", err)
	}
}

func TestLinesPeerGone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := pullLines(strings.NewReader(""), w, LinesOptions{})
	defer l.Close()
	r.Close()
	if err := l.Write(t.Context(), NewRequest(IntID(1), "ping", nil)); !errors.Is(err, ErrPeerClosed) {
		t.Errorf("Write = %v", err)
	}
}

// A stuckCloser's Close does not return before its channel is closed.
type stuckCloser struct {
	io.Writer
	release chan struct{}
}

func (c stuckCloser) Close() error { <-c.release; return nil }

func TestLinesCloseIsPrompt(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	l := pullLines(strings.NewReader(""), stuckCloser{io.Discard, release}, LinesOptions{})
	if err := l.Close(); !errors.Is(err, errCloseBlocked) {
		t.Errorf("Close = %v", err)
	}
}

func TestLineReaderGivesUpOnNoProgress(t *testing.T) {
	t.Parallel()
	l := pullLines(neverReader{}, io.Discard, LinesOptions{})
	defer l.Close()
	if _, err := l.Read(t.Context()); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Read = %v", err)
	}
}

type neverReader struct{}

func (neverReader) Read([]byte) (int, error) { return 0, nil }

func FuzzLines(f *testing.F) {
	for _, tt := range decodeTests {
		f.Add([]byte(tt.in+"\n"+ping), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, chunk int) {
		const limit = 100
		lr := lineReader{r: &chunked{b, 1 + max(0, chunk)%100}, max: limit}
		var want []string
		for _, line := range bytes.Split(b, []byte{'\n'}) {
			switch s := string(trimEnd(line)); {
			case len(line) > limit:
				want = append(want, "too long")
			case s != "":
				want = append(want, s)
			}
		}
		for i := 0; ; i++ {
			line, owned, err := lr.next()
			got := string(line)
			var v *Violation
			if errors.As(err, &v) {
				got = "too long"
			} else if err != nil {
				if i != len(want) {
					t.Fatalf("%d lines, want %q", i, want)
				}
				return
			}
			if i >= len(want) || got != want[i] {
				t.Fatalf("line %d = %q, want %q", i, got, want)
			}
			owned.Release()
		}
	})
}

// chunked gives at most n bytes a read.
type chunked struct {
	b []byte
	n int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:min(c.n, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}

func BenchmarkLinesRoundTrip(b *testing.B) {
	for _, size := range []int{128, 10 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r1, w1, _ := os.Pipe()
			r2, w2, _ := os.Pipe()
			near, far := pullLines(r1, w2, LinesOptions{}), pullLines(r2, w1, LinesOptions{})
			defer near.Close()
			defer far.Close()
			go func() {
				for {
					m, err := far.Read(context.Background())
					if err != nil {
						return
					}
					far.Write(context.Background(), m)
				}
			}()
			msg := NewResult(IntID(1), []byte(`{"s":"`+strings.Repeat("b", size)+`"}`))
			b.SetBytes(int64(msg.Len()))
			b.ReportAllocs()
			for b.Loop() {
				near.Write(b.Context(), msg)
				m, err := near.Read(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
	}
}

// TestLinesStray: the operator hears once of lines that are no messages, and each of them is still a violation.
func TestLinesStray(t *testing.T) {
	var told []string
	in := "Server \u202e1.0 \u2705\n\n[1, 2]\nnull\n42\n{\"level\":\"info\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}\n"
	c := Pull(NewLines(strings.NewReader(in), io.Discard, LinesOptions{Stray: func(s string) { told = append(told, s) }}))
	var strays, others int
	for {
		_, err := c.Read(t.Context())
		var v *Violation
		if !errors.As(err, &v) {
			break
		}
		if v.Told {
			strays++
		} else {
			others++
		}
	}
	if want := `"Server \u202e1.0 \u2705"`; strays != 5 || others != 1 || len(told) != 1 || told[0] != want {
		t.Errorf("%d lines, %d others, %q", strays, others, told)
	}
}
