// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the commit that is measured beside

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

var ctx = context.Background()

// A way keeps decisions; done ends it and says how many the ledger has.
type way struct {
	name     string
	sink     gateway.Sink
	required bool
	done     func() int64
}

// journal is what is written where evidence is off.
type journal struct{ j *state.Journal }

func (s journal) Record(d gateway.Decision) error { return s.j.Append(d.AppendJSON(nil)) }

func ways(tb testing.TB) []func() way {
	open := func(name string, bestEffort bool) func() way {
		return func() way {
			dir := stateDir(tb)
			s, err := storage.Open(ctx, filepath.Join(dir.Path(), "pellucid.db"), storage.Options{})
			if err != nil {
				tb.Fatal(err)
			}
			seq := sequence.New(sequence.Options{Store: s.Ledger(), Origin: "bench", Keys: &sequence.Keyring{Dir: dir}})
			run, stop := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); seq.Run(run) }()
			r := evidence.New(evidence.Options{Store: s.Ledger(), Direct: seq, BestEffort: bestEffort, Wake: seq.Wake})
			return way{name, r, !bestEffort, func() int64 {
				if n := r.Close(ctx); n > 0 {
					tb.Errorf("%s: %d lost", name, n)
				}
				stop()
				<-ended
				if err := seq.Flush(ctx); err != nil {
					tb.Error(err)
				}
				defer s.Close()
				return seq.Figures().Size
			}}
		}
	}
	return []func() way{
		func() way {
			j, err := stateDir(tb).Journal("decisions.jsonl", nil)
			if err != nil {
				tb.Fatal(err)
			}
			return way{"off", journal{j}, false, func() int64 { j.Close(); return 0 }}
		},
		open("best-effort", true), open("required", false),
	}
}

func stateDir(tb testing.TB) *state.Dir {
	dir, err := state.OpenAt(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// A session is a client in front of the gateway in front of a server that answers
// every call with a kilobyte.
type session struct {
	to   io.WriteCloser
	from *bufio.Reader
	n    int
}

func newSession(tb testing.TB, w way) *session {
	clientIn, gatewayOut := io.Pipe()
	gatewayIn, clientOut := io.Pipe()
	serverIn, upOut := io.Pipe()
	upIn, serverOut := io.Pipe()
	text := strings.Repeat("A kilobyte of plain text. ", 40)
	go func() {
		lines := bufio.NewScanner(serverIn)
		for lines.Scan() {
			m, err := wire.Decode(lines.Bytes(), strictjson.Limits{})
			if err != nil || m.Kind != wire.Request {
				continue
			}
			result := `{"content":[{"type":"text","text":"` + text + `"}]}`
			if m.Method == "tools/list" {
				result = `{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}`
			}
			fmt.Fprintf(serverOut, "%s\n", wire.NewResult(m.ID, []byte(result)).Append(nil))
			m.Release()
		}
	}()
	go gateway.Run(ctx, wire.NewLines(gatewayIn, gatewayOut, wire.LinesOptions{}), wire.NewLines(upIn, upOut, wire.LinesOptions{}),
		gateway.Config{Name: "bench", Sink: w.sink, RequireEvidence: w.required})
	s := &session{to: clientOut, from: bufio.NewReaderSize(clientIn, 64<<10)}
	tb.Cleanup(func() { clientOut.Close(); clientIn.Close() })
	s.call(tb)
	return s
}

func (s *session) call(tb testing.TB) {
	s.n++
	fmt.Fprintf(s.to, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{}}}`+"\n", s.n)
	line, err := s.from.ReadString('\n')
	if err != nil || !strings.Contains(line, "kilobyte") {
		tb.Errorf("call: %.200s, %v", line, err)
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// commits measures what a durable commit costs by itself.
func commits(tb testing.TB, n int) time.Duration {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(tb.TempDir(), "bare.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB)`); err != nil {
		tb.Fatal(err)
	}
	b := make([]byte, 1200)
	times := make([]time.Duration, n)
	for i := range times {
		began := time.Now()
		if _, err := db.Exec(`INSERT INTO t (b) VALUES (?)`, b); err != nil {
			tb.Fatal(err)
		}
		times[i] = time.Since(began)
	}
	return median(times)
}

// BenchmarkEvidence prints what evidence costs a gateway, every way in one run. Its
// own loop does not count: run it with -benchtime 1x.
func BenchmarkEvidence(b *testing.B) {
	const sessions, slice, rounds = 8, 500 * time.Millisecond, 6
	rate, alone := map[string][]float64{}, map[string][]time.Duration{}
	var bare []time.Duration
	for range rounds { // they take turns
		bare = append(bare, commits(b, 300))
		for _, open := range ways(b) {
			w := open()
			one := newSession(b, w)
			for range 300 {
				began := time.Now()
				one.call(b)
				alone[w.name] = append(alone[w.name], time.Since(began))
			}
			all := make([]*session, sessions)
			for i := range all {
				all[i] = newSession(b, w)
			}
			calls := make(chan int, sessions)
			began := time.Now()
			for _, s := range all {
				go func() {
					n := 0
					for ; time.Since(began) < slice; n++ {
						s.call(b)
					}
					calls <- n
				}()
			}
			sum := 0
			for range all {
				sum += <-calls
			}
			rate[w.name] = append(rate[w.name], float64(sum)/time.Since(began).Seconds())
			if size := w.done(); w.name != "off" && size < int64(sum) {
				b.Errorf("%s: %d records of %d calls", w.name, size, sum)
			}
		}
	}
	off := median(alone["off"])
	b.Logf("a durable commit by itself: %v", median(bare))
	for _, name := range []string{"off", "best-effort", "required"} {
		slices.Sort(rate[name])
		r := rate[name][rounds/2]
		b.Logf("%-12s %8.0f calls/s of %d sessions (%+.0f %%), p50 of one session %v (%+v)", name, r, sessions, 100*(r/rate["off"][rounds/2]-1), median(alone[name]), median(alone[name])-off)
	}
}

// BenchmarkLedger is how fast records are stored, signed, numbered and integrated.
func BenchmarkLedger(b *testing.B) {
	dir := stateDir(b)
	s, err := storage.Open(ctx, filepath.Join(dir.Path(), "pellucid.db"), storage.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l := s.Ledger()
	seq := sequence.New(sequence.Options{Store: l, Origin: "bench", Keys: &sequence.Keyring{Dir: dir}})
	records := make([][]byte, 20_000)
	for i := range records {
		e := ledger.Event{Time: time.Now(), Kind: ledger.Message, Server: "files", Tool: "read_file", Method: "tools/call", Verdict: "changed",
			Subjects: []ledger.Subject{{Role: ledger.Received}, {Role: ledger.Delivered}}}
		var salt ledger.Salt
		rand.Read(e.ID[:])
		rand.Read(salt[:])
		sealed, err := e.Seal(salt)
		if err != nil {
			b.Fatal(err)
		}
		records[i] = sealed.Bytes()
	}
	began := time.Now()
	for part := range slices.Chunk(records, 1024) {
		if err := l.Add(ctx, part); err != nil {
			b.Fatal(err)
		}
	}
	stored := time.Since(began)
	began = time.Now()
	if err := seq.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	integrated := time.Since(began)
	n := float64(len(records))
	b.ReportMetric(n/stored.Seconds(), "stored/s")
	b.ReportMetric(n/integrated.Seconds(), "integrated/s")
	if h, err := l.Head(ctx); err != nil || h.Size != int64(len(records))+1 {
		b.Errorf("size %d, %v", h.Size, err)
	}
}
