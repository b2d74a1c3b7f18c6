// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

const day = int64(24 * time.Hour / time.Second)

var files = Origin{Server: "files", Tool: "read"}

// TestScores holds the arithmetic to figures that stand in docs/spec/trust.md.
func TestScores(t *testing.T) {
	for _, tt := range []struct {
		name         string
		events       []Observation
		at           int64
		server, tool string
	}{
		{"nothing", nil, 0, "0.700000", "0.700000"},
		{"clean", []Observation{{0, Clean, files, false}}, 0, "0.700250", "0.701000"},
		{"error", []Observation{{0, FindingError, files, false}}, 0, "0.675000", "0.640000"},
		{"error, half a day", []Observation{{0, FindingError, files, false}}, day / 2, "0.682323", "0.657574"},
		{"error, a day", []Observation{{0, FindingError, files, false}}, day, "0.687500", "0.670000"},
		{"error, ten days", []Observation{{0, FindingError, files, false}}, 10 * day, "0.699976", "0.699942"},
		{"error, forty days", []Observation{{0, FindingError, files, false}}, 40 * day, "0.700000", "0.700000"},
		{"false alarm", []Observation{{0, FindingError, files, false}, {60, HeldReleased, files, false}}, 60, "0.707000", "0.720000"},
		{"hijack", []Observation{{0, Hijack, files, false}, {0, Hijack, files, false}}, 0, "0.300000", "0.050000"},
		{"third hijack in the window", []Observation{{0, Hijack, files, false}, {0, Hijack, files, false}, {1, Hijack, files, false}}, 1, "0.300000", "0.050000"},
		{"cap, and a clock that goes back a little", []Observation{{3600, Hijack, files, false}, {3600, Hijack, files, false}, {3599, Hijack, files, false}, {3600, Hijack, files, false}}, 3600, "0.300000", "0.050000"},
		{"cap, and the next hour", []Observation{{0, Hijack, files, false}, {0, Hijack, files, false}, {3600, Hijack, files, false}}, 3600, "0.108572", "0.050000"},
		{"server", []Observation{{0, SurfaceRejected, Origin{Server: "files"}, false}}, 0, "0.400000", "0.700000"},
		{"another's", []Observation{{0, Hijack, Origin{Server: "mail", Tool: "read"}, false}}, 0, "0.700000", "0.700000"},
		{"another tool's", []Observation{{0, FindingError, Origin{Server: "files", Tool: "list"}, false}}, 0, "0.675000", "0.700000"},
		{"unknown kind", []Observation{{0, "made-up", files, false}}, 0, "0.700000", "0.700000"},
		{"before 1970", []Observation{{-1, Hijack, files, false}}, 0, "0.700000", "0.700000"},
		{"clock goes back", []Observation{{10 * day, FindingError, files, false}, {0, FindingError, files, false}}, 0, "0.650000", "0.580000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{})
			for _, e := range tt.events {
				s.Apply(e)
			}
			server, tool := s.Score(Origin{Server: "files"}, tt.at), s.Score(files, tt.at)
			if server.String() != tt.server || tool.String() != tt.tool {
				t.Errorf("got %s, %s; want %s, %s", server, tool, tt.server, tt.tool)
			}
		})
	}
}

// TestDecayTable: the values of docs/spec/trust.md, a few parts in 2^32 below the powers of two.
func TestDecayTable(t *testing.T) {
	if decay[0] != 1<<32 || decay[32] != 3_037_000_488 || decay[63] != 2_170_868_191 {
		t.Errorf("decay is %d, %d, %d", decay[0], decay[32], decay[63])
	}
	for i := 1; i < len(decay); i++ {
		if decay[i] >= decay[i-1] {
			t.Fatalf("decay rises at %d", i)
		}
	}
}

func TestScoreText(t *testing.T) {
	for s, want := range map[Score]string{0: "0.000000", 1: "0.000001", 50_000: "0.050000", 999_999: "0.999999", One: "1.000000"} {
		if s.String() != want || strconv.FormatFloat(s.Float(), 'f', 6, 64) != want {
			t.Errorf("%d is %s, %v", s, s, s.Float())
		}
	}
}

func TestFindingKind(t *testing.T) {
	for s, want := range map[finding.Severity]Kind{finding.Info: "", finding.Warn: FindingWarn, finding.Error: FindingError} {
		if got := FindingKind(s); got != want {
			t.Errorf("%v: %q", s, got)
		}
	}
}

// TestUnproven: a validator's score moves by what bears its signature.
func TestUnproven(t *testing.T) {
	s := New(Options{})
	did := Origin{Validator: "did:web:a.example%3A8443"}
	if s.Apply(Observation{0, Hijack, did, false}) != nil || s.Score(did, 0) != 700_000 {
		t.Error("a stranger moved a validator's score")
	}
	if s.Apply(Observation{0, Rejected, did, true}); s.Score(did, 0) != 660_000 {
		t.Errorf("a proven event counts %v", s.Score(did, 0))
	}
}

// TestFull: whoever makes up names moves nobody's score and takes nobody's place.
func TestFull(t *testing.T) {
	s := New(Options{})
	did := func(i int) Origin { return Origin{Validator: "did:key:" + strconv.Itoa(i)} }
	s.Apply(Observation{0, Rejected, did(-1), true})
	for i := range 2 * maxValidators {
		s.Apply(Observation{1, Rejected, did(i), true})
	}
	if n := len(s.validators.rows); n != maxValidators {
		t.Errorf("%d validators are kept", n)
	}
	if got := s.Score(did(-1), 1); got != 660_000 {
		t.Errorf("known validator: %v", got)
	}
	// Once they are at rest there is room again.
	late := 60 * day
	if s.Apply(Observation{late, Rejected, did(-2), true}); s.Score(did(-2), late) != 660_000 || len(s.validators.rows) != 1 {
		t.Errorf("no room: %d", len(s.validators.rows))
	}

	for i := range 2 * maxTools {
		s.Apply(Observation{late, Rejected, Origin{Server: "x", Tool: "t" + strconv.Itoa(i)}, false})
	}
	last := Origin{Server: "x", Tool: "t" + strconv.Itoa(2*maxTools)}
	if n := len(s.servers.rows["x"].tools.rows); n != maxTools+1 {
		t.Errorf("%d tools are kept", n)
	}
	if got := s.Score(last, late); got >= 660_000 {
		t.Errorf("a tool beyond the room that there is begins anew: %v", got)
	}
	for i := range 2 * maxServers {
		s.Apply(Observation{late, Rejected, Origin{Server: "s" + strconv.Itoa(i)}, false})
	}
	if n := len(s.servers.rows); n != maxServers {
		t.Errorf("%d servers are kept", n)
	}
	restored, err := Restore(s.Snapshot(), Options{})
	if err != nil || !bytes.Equal(restored.Snapshot(), s.Snapshot()) {
		t.Errorf("full snapshot: %v", err)
	}
}

var (
	genOrigin = rapid.Custom(func(t *rapid.T) Origin {
		if rapid.IntRange(0, 4).Draw(t, "validator") == 0 {
			return Origin{Validator: rapid.SampledFrom([]string{"did:key:a", "did:key:b"}).Draw(t, "did")}
		}
		return Origin{Server: rapid.SampledFrom([]string{"a", "b", "other"}).Draw(t, "server"),
			Tool: rapid.SampledFrom([]string{"", "x", "y", "other"}).Draw(t, "tool")}
	})
	genEvents = rapid.Custom(func(t *rapid.T) []Observation {
		now := rapid.Int64Range(0, 1<<33).Draw(t, "begin")
		out := make([]Observation, rapid.IntRange(0, 60).Draw(t, "n"))
		for i := range out {
			now = max(0, now+rapid.SampledFrom([]int64{0, 1, 59, 1350, 3600, 90_000, -1, -7200}).Draw(t, "step"))
			o := genOrigin.Draw(t, "origin")
			out[i] = Observation{now, effects[rapid.IntRange(0, len(effects)-1).Draw(t, "kind")].kind, o, o.Validator != "" && rapid.Bool().Draw(t, "proven")}
		}
		return out
	})
)

func apply(s *State, events []Observation) *State {
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// TestReplay: the same events make the same bytes, also through their text and
// from a snapshot in their midst.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := genEvents.Draw(t, "events")
		want := apply(New(Options{}), events).Snapshot()
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		half, err := Restore(apply(New(Options{}), events[:cut]).Snapshot(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events[cut:] {
			text, err := e.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var again Observation
			if err := again.UnmarshalText(text); err != nil || again != e {
				t.Fatalf("%s: %v, %v", text, again, err)
			}
			half.Apply(again)
		}
		if got := half.Snapshot(); !bytes.Equal(got, want) {
			t.Fatalf("\n%s\nwant\n%s", got, want)
		}
	})
}

// TestOrigin: the scores of a server and its tools are those that its own events
// make; a tool's those of the tool's events; a validator's those that it has signed.
func TestOrigin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := genEvents.Draw(t, "events")
		all := apply(New(Options{}), events)
		of := genOrigin.Draw(t, "of")
		own := slices.DeleteFunc(slices.Clone(events), func(e Observation) bool {
			return e.Origin.Server != of.Server || e.Origin.Validator != of.Validator || of.Tool != "" && e.Origin.Tool != of.Tool
		})
		at := rapid.Int64Range(0, 1<<33).Draw(t, "at")
		if got, want := all.Score(of, at), apply(New(Options{}), own).Score(of, at); got != want {
			t.Fatalf("%+v: %v with others' events, %v without", of, got, want)
		}
	})
}

// TestBounds: no score leaves its bounds, one event moves it no further than the
// table says, and in one window a kind moves it so often.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{})
		for _, e := range genEvents.Draw(t, "events") {
			f := effects[indexOf(e.Kind)]
			for i, c := range s.Apply(e) {
				most := Score(max(f.own, -f.own))
				if i > 0 {
					most = Score(max(f.above, -f.above))
				}
				if d := c.To - c.From; max(d, -d) > most {
					t.Fatalf("%v moved %v by %v", e, c.origin, d)
				}
			}
			for o, score := range s.All(e.Time) {
				if score < 50_000 || score > One {
					t.Fatalf("%v is %v", o, score)
				}
			}
		}
		o := genOrigin.Draw(t, "origin")
		o.Validator = ""
		if o.Server == "" {
			o.Server = "a"
		}
		kind := rapid.IntRange(0, len(effects)-1).Draw(t, "kind")
		s, n := New(Options{}), 0
		for range 200 {
			if c := s.Apply(Observation{7200, effects[kind].kind, o, false}); c[0].From != c[0].To {
				n++
			}
		}
		if n > int(effects[kind].most) {
			t.Fatalf("%s counted %d times", effects[kind].kind, n)
		}
	})
}

// TestOneHour: what a caller can do to an honest server that echoes him, as
// docs/spec/trust.md has it: only by kinds that need nobody else.
func TestOneHour(t *testing.T) {
	s, o := New(Options{}), Origin{Server: "echo", Tool: "say"}
	for range 1000 {
		for _, k := range []Kind{FindingWarn, FindingError, Rejected, Classified} {
			s.Apply(Observation{7200, k, o, false})
		}
	}
	server, tool := s.Score(Origin{Server: "echo"}, 7200), s.Score(o, 7200)
	if tool != 50_000 || server != 700_000-486_000 {
		t.Errorf("server %v, tool %v", server, tool)
	}
	if s.Score(Origin{Server: "echo", Tool: "other"}, 7200) != 700_000 {
		t.Error("another tool's score has moved")
	}
}

// TestRecovery: whatever has happened, time alone brings every score back, never
// further away, and nothing is left of it in the end.
func TestRecovery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := genEvents.Draw(t, "events")
		s := apply(New(Options{}), events)
		var last int64
		for _, e := range events {
			last = max(last, e.Time)
		}
		for o, score := range s.All(last) {
			before := score
			for at := last; at < last+21*day; at += day / 5 {
				now := s.Score(o, at)
				if int64(now-700_000)*int64(before-700_000) < 0 || max(now-700_000, 700_000-now) > max(before-700_000, 700_000-before) {
					t.Fatalf("%v went from %v to %v", o, before, now)
				}
				before = now
			}
			if before != 700_000 {
				t.Fatalf("%v stays at %v", o, before)
			}
			// Honest calls do it sooner than time alone.
			if o.Validator == "" {
				s.Apply(Observation{last, Clean, o, false})
			}
		}
	})
}

func TestEventText(t *testing.T) {
	for text, want := range map[string]Observation{
		"0 clean server a -":                          {0, Clean, Origin{Server: "a"}, false},
		"1767225600 finding-error server files read":  {1767225600, FindingError, files, false},
		"1 rejected validator did:key:z6Mk proven":    {1, Rejected, Origin{Validator: "did:key:z6Mk"}, true},
		"1 rejected validator did:web:a.example%3A -": {1, Rejected, Origin{Validator: "did:web:a.example%3A"}, false},
	} {
		var e Observation
		if err := e.UnmarshalText([]byte(text)); err != nil || e != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	for _, text := range []string{"", " ", "0 clean server a", "0 clean server a - ", "00 clean server a -", "+1 clean server a -", "-1 clean server a -",
		"0 made-up server a -", "0 clean server - -", "0 clean server  -", "0 clean somebody a -", "0 clean server a\n -",
		"0 clean validator did:key:a yes", "0 clean server a\u202e x", "99999999999999999999 clean server a -"} {
		if err := new(Observation).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%+q is taken", text)
		}
	}
	for _, e := range []Observation{{}, {0, Clean, Origin{}, false}, {0, Clean, Origin{Server: "a", Validator: "b"}, false}, {0, "x", files, false}, {0, Clean, files, true}} {
		if _, err := e.MarshalText(); err == nil {
			t.Errorf("%+v has a text", e)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	good := apply(New(Options{}), []Observation{{0, Hijack, files, false}, {0, Rejected, Origin{Validator: "did:key:a"}, true}}).Snapshot()
	if _, err := Restore(good, Options{}); err != nil {
		t.Fatalf("%v\n%s", err, good)
	}
	if _, err := Restore(good, Options{Rest: 600_000}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("other options: %v", err)
	}
	for i := range good {
		cut := good[:i]
		if _, err := Restore(cut, Options{}); !errors.Is(err, ErrSnapshot) && !bytes.HasSuffix(cut, []byte("\n")) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for _, twist := range [][2]string{{"server files", "server files2 "}, {" 0 ", " +0 "}, {"tool read", "tool read\ntool read"}, {"300000", "2000000"},
		{"pellucid-trust 1", "pellucid-trust 2"}, {"validator", "stranger"}, {"00000000000000000000", "000000000000000000ff"}} {
		bad := bytes.Replace(good, []byte(twist[0]), []byte(twist[1]), 1)
		if _, err := Restore(bad, Options{}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v\n%s", twist, err, bad)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Rest: 2 * One}, {Floor: One}, {Rest: 10}, {HalfLife: time.Nanosecond}, {HalfLife: 1<<63 - 1}, {Rest: -1, Floor: -1, HalfLife: -1}} {
		s := apply(New(o), []Observation{{0, Hijack, files, false}, {1, Clean, files, false}})
		for _, score := range s.All(1 << 40) {
			if score != s.o.Rest || s.o.Floor > s.o.Rest || s.o.Floor <= 0 {
				if s.o.HalfLife < 1000*24*time.Hour {
					t.Errorf("%+v: %v", o, score)
				}
			}
		}
	}
}

type memory struct {
	snapshot []byte
	err      error
}

func (m *memory) LoadTrust(context.Context) ([]byte, error) { return m.snapshot, m.err }
func (m *memory) SaveTrust(_ context.Context, b []byte) error {
	if m.err == nil {
		m.snapshot = b
	}
	return m.err
}

func TestBook(t *testing.T) {
	ctx, st := t.Context(), &memory{}
	b, err := Open(ctx, st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Save(ctx, st); err != nil || st.snapshot != nil {
		t.Errorf("nothing to save: %v", err)
	}
	b.Apply(Observation{0, Hijack, files, false})
	st.err = errors.New("full disk")
	if err := b.Save(ctx, st); !errors.Is(err, st.err) {
		t.Errorf("save: %v", err)
	}
	if _, err := Open(ctx, st, Options{}); !errors.Is(err, st.err) {
		t.Errorf("open: %v", err)
	}
	st.err = nil
	if err := b.Save(ctx, st); err != nil || st.snapshot == nil {
		t.Errorf("what was not saved is forgotten: %v", err)
	}
	again, err := Open(ctx, st, Options{})
	if server, tool := again.Scores(files, 0); err != nil || server != 500_000 || tool != 300_000 || again.Score(files, 0) != tool {
		t.Errorf("%v, %v, %v", server, tool, err)
	}
	again.Replace(apply(New(Options{}), []Observation{{0, Rejected, files, false}}))
	if err := again.Save(ctx, st); err != nil || !bytes.Equal(st.snapshot, again.Snapshot()) {
		t.Errorf("what was replayed is not saved: %v", err)
	}
	if other, err := Open(ctx, st, Options{Rest: 1}); !errors.Is(err, ErrSnapshot) || other == nil {
		t.Errorf("other options: %v", err)
	}
}

// FuzzEvent: any text is an event of one spelling, or none.
func FuzzEvent(f *testing.F) {
	f.Add([]byte("0 clean server a -"))
	f.Add([]byte("1 rejected validator did:key:z6Mk proven"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e Observation
		if e.UnmarshalText(text) != nil {
			return
		}
		if again, err := e.MarshalText(); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q is %q, %v", text, again, err)
		}
		s := New(Options{})
		s.Apply(e)
		if _, err := Restore(s.Snapshot(), Options{}); err != nil {
			t.Fatalf("%s: %v", s.Snapshot(), err)
		}
	})
}

// FuzzRestore: any bytes are a State that makes them, or ErrSnapshot.
func FuzzRestore(f *testing.F) {
	f.Add(New(Options{}).Snapshot())
	f.Add(apply(New(Options{}), []Observation{{0, Hijack, files, false}, {0, Rejected, Origin{Validator: "did:key:a"}, true}}).Snapshot())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Restore(b, Options{})
		if err != nil {
			return
		}
		if !bytes.Equal(s.Snapshot(), b) {
			t.Fatal("read otherwise than written")
		}
		s.Apply(Observation{1 << 40, Hijack, files, false})
		for range s.All(1 << 40) {
		}
	})
}

func BenchmarkApply(b *testing.B) {
	s, e := New(Options{}), Observation{0, Clean, files, false}
	for b.Loop() {
		e.Time++
		s.Apply(e)
	}
}

func BenchmarkScores(b *testing.B) {
	s := New(Options{})
	for i := range 1000 {
		s.Apply(Observation{0, Rejected, Origin{Server: fmt.Sprint("s", i%30), Tool: fmt.Sprint("t", i)}, false})
	}
	book := NewBook(s)
	b.ReportAllocs()
	for b.Loop() {
		book.Scores(Origin{Server: "s3", Tool: "t3"}, 5000)
	}
}
