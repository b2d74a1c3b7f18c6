// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
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
		{"clean", []Observation{{0, Clean, files, 0, false}}, 0, "0.700250", "0.701000"},
		{"error", []Observation{{0, HiddenMessage, files, 0, false}}, 0, "0.675000", "0.640000"},
		{"error, half a day", []Observation{{0, HiddenMessage, files, 0, false}}, day / 2, "0.682323", "0.657574"},
		{"error, a day", []Observation{{0, HiddenMessage, files, 0, false}}, day, "0.687500", "0.670000"},
		{"error, ten days", []Observation{{0, HiddenMessage, files, 0, false}}, 10 * day, "0.699976", "0.699942"},
		{"error, forty days", []Observation{{0, HiddenMessage, files, 0, false}}, 40 * day, "0.700000", "0.700000"},
		{"false alarm", []Observation{{0, HiddenMessage, files, 0, false}, {60, HeldReleased, files, 0, false}}, 60, "0.707000", "0.720000"},
		{"hijack", []Observation{{0, Hijack, files, 0, false}, {0, Hijack, files, 0, false}}, 0, "0.300000", "0.050000"},
		{"third hijack in the window", []Observation{{0, Hijack, files, 0, false}, {0, Hijack, files, 0, false}, {1, Hijack, files, 0, false}}, 1, "0.300000", "0.050000"},
		{"cap, and a clock that goes back a little", []Observation{{3600, Hijack, files, 0, false}, {3600, Hijack, files, 0, false}, {3599, Hijack, files, 0, false}, {3600, Hijack, files, 0, false}}, 3600, "0.300000", "0.050000"},
		{"cap, and the next hour", []Observation{{0, Hijack, files, 0, false}, {0, Hijack, files, 0, false}, {3600, Hijack, files, 0, false}}, 3600, "0.108572", "0.050000"},
		{"server", []Observation{{0, HeldChange, Origin{Server: "files"}, 0, false}}, 0, "0.650000", "0.700000"},
		{"another's", []Observation{{0, Hijack, Origin{Server: "mail", Tool: "read"}, 0, false}}, 0, "0.700000", "0.700000"},
		{"another tool's", []Observation{{0, HiddenMessage, Origin{Server: "files", Tool: "list"}, 0, false}}, 0, "0.675000", "0.700000"},
		{"unknown kind", []Observation{{0, "made-up", files, 0, false}}, 0, "0.700000", "0.700000"},
		{"before 1970", []Observation{{-1, Hijack, files, 0, false}}, 0, "0.700000", "0.700000"},
		{"clock goes back", []Observation{{10 * day, HiddenMessage, files, 0, false}, {0, HiddenMessage, files, 0, false}}, 0, "0.650000", "0.580000"},
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

// TestLowers: the kinds that lower a score are these, and no other.
func TestLowers(t *testing.T) {
	var kinds []Kind
	for _, f := range effects {
		if f.kind.Lowers() {
			kinds = append(kinds, f.kind)
		}
	}
	if want := []Kind{HiddenMessage, ForgedFrame, ShapeLie, HeldChange, Hijack, HeldDenied}; !slices.Equal(kinds, want) || Kind("made-up").Lowers() {
		t.Errorf("%v, want %v", kinds, want)
	}
}

// TestOnce: a content counts once for a server, whichever of its tools delivers it and however often, and by itself
// for another server; a raise always counts.
func TestOnce(t *testing.T) {
	s, list, mail := New(Options{}), Origin{Server: "files", Tool: "list"}, Origin{Server: "mail", Tool: "read"}
	for i := range int64(100) {
		s.Apply(Observation{7200 + i, HiddenMessage, files, 7, false})
		s.Apply(Observation{7200 * (i + 1), HiddenMessage, list, 7, false})
	}
	if got := s.Score(list, 0); got != 700_000 || s.Score(files, 0) != 640_000 || s.Score(Origin{Server: "files"}, 0) != 675_000 {
		t.Errorf("%v, %v", s.Score(files, 0), got)
	}
	s.Apply(Observation{0, HiddenMessage, mail, 7, false})
	s.Apply(Observation{0, Clean, mail, 7, false})
	if got := s.Score(mail, 0); got != 641_000 {
		t.Errorf("another server: %v", got)
	}
	for i := range int64(2 * maxMarks) { // the first is forgotten
		s.Apply(Observation{0, HiddenMessage, mail, 8 + i, false})
	}
	if n := len(s.servers.rows["mail"].marks); n != maxMarks {
		t.Errorf("%d marks are kept", n)
	}
	again, err := Restore(s.Snapshot(), Options{})
	if err != nil || !bytes.Equal(again.Snapshot(), s.Snapshot()) {
		t.Fatalf("%v\n%s", err, s.Snapshot())
	}
	if by, at := again.Lowered(files); by != HiddenMessage || at != 7200 {
		t.Errorf("lowered by %q at %d", by, at)
	}
	s.Apply(Observation{8000, Hijack, files, 9, false})
	s.Apply(Observation{8001, Clean, files, 0, false})
	if by, at := s.Lowered(files); by != Hijack || at != 8000 {
		t.Errorf("lowered by %q at %d", by, at)
	}
}

// TestUnproven: a validator's score moves by what bears its signature.
func TestUnproven(t *testing.T) {
	s := New(Options{})
	did := Origin{Validator: "did:web:a.example%3A8443"}
	if s.Apply(Observation{0, Hijack, did, 0, false}) != nil || s.Score(did, 0) != 700_000 {
		t.Error("a stranger moved a validator's score")
	}
	if s.Apply(Observation{0, ShapeLie, did, 0, true}); s.Score(did, 0) != 660_000 {
		t.Errorf("a proven event counts %v", s.Score(did, 0))
	}
}

// TestFull: whoever makes up names moves nobody's score and takes nobody's place.
func TestFull(t *testing.T) {
	s := New(Options{})
	did := func(i int) Origin { return Origin{Validator: "did:key:" + strconv.Itoa(i)} }
	s.Apply(Observation{0, ShapeLie, did(-1), 0, true})
	for i := range 2 * maxValidators {
		s.Apply(Observation{1, ShapeLie, did(i), 0, true})
	}
	if n := len(s.validators.rows); n != maxValidators {
		t.Errorf("%d validators are kept", n)
	}
	if got := s.Score(did(-1), 1); got != 660_000 {
		t.Errorf("known validator: %v", got)
	}
	// Once they are at rest there is room again.
	late := 60 * day
	if s.Apply(Observation{late, ShapeLie, did(-2), 0, true}); s.Score(did(-2), late) != 660_000 || len(s.validators.rows) != 1 {
		t.Errorf("no room: %d", len(s.validators.rows))
	}

	for i := range 2 * maxTools {
		s.Apply(Observation{late, ShapeLie, Origin{Server: "x", Tool: "t" + strconv.Itoa(i)}, 0, false})
	}
	last := Origin{Server: "x", Tool: "t" + strconv.Itoa(2*maxTools)}
	if n := len(s.servers.rows["x"].tools.rows); n != maxTools+1 {
		t.Errorf("%d tools are kept", n)
	}
	if got := s.Score(last, late); got >= 660_000 {
		t.Errorf("a tool beyond the room that there is begins anew: %v", got)
	}
	for i := range 2 * maxServers {
		s.Apply(Observation{late, ShapeLie, Origin{Server: "s" + strconv.Itoa(i)}, 0, false})
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
			mark := rapid.Int64Range(0, 9).Draw(t, "content")
			if mark > 0 && o.Tool != "" { // so that no two tools deliver one content
				mark += 100 * int64(o.Tool[0])
			}
			out[i] = Observation{now, effects[rapid.IntRange(0, len(effects)-1).Draw(t, "kind")].kind, o, mark, o.Validator != "" && rapid.Bool().Draw(t, "proven")}
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

// TestReplay: the same events make the same bytes, also from a snapshot in their midst.
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
			half.Apply(e)
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
			if c := s.Apply(Observation{7200, effects[kind].kind, o, 0, false}); c[0].From != c[0].To {
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
		for _, k := range []Kind{ForgedFrame, HiddenMessage, ShapeLie} {
			s.Apply(Observation{7200, k, o, 0, false})
		}
	}
	server, tool := s.Score(Origin{Server: "echo"}, 7200), s.Score(o, 7200)
	if tool != 50_000 || server != 700_000-396_000 {
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
				s.Apply(Observation{last, Clean, o, 0, false})
			}
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	good := apply(New(Options{}), []Observation{{0, Hijack, files, 0, false}, {0, ShapeLie, Origin{Validator: "did:key:a"}, 0, true}}).Snapshot()
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
		{"pellucid-trust 2", "pellucid-trust 1"}, {"validator", "stranger"}, {"000000000100000000", "0000000001000000ff"}, {" 4 0\n", " 9 0\n"}, {" 4 0 -92", " 4 -1 -92"}} {
		bad := bytes.Replace(good, []byte(twist[0]), []byte(twist[1]), 1)
		if _, err := Restore(bad, Options{}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v\n%s", twist, err, bad)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Rest: 2 * One}, {Floor: One}, {Rest: 10}, {HalfLife: time.Nanosecond}, {HalfLife: 1<<63 - 1}, {Rest: -1, Floor: -1, HalfLife: -1}} {
		s := apply(New(o), []Observation{{0, Hijack, files, 0, false}, {1, Clean, files, 0, false}})
		for _, score := range s.All(1 << 40) {
			if score != s.o.Rest || s.o.Floor > s.o.Rest || s.o.Floor <= 0 {
				if s.o.HalfLife < 1000*24*time.Hour {
					t.Errorf("%+v: %v", o, score)
				}
			}
		}
	}
}

func TestBook(t *testing.T) {
	b := NewBook(New(Options{}))
	b.Apply(Observation{0, Hijack, files, 0, false})
	if server, tool := b.Scores(files, 0); server != 500_000 || tool != 300_000 || b.Score(files, 0) != tool {
		t.Errorf("%v, %v", server, tool)
	}
	other := apply(New(Options{}), []Observation{{0, ShapeLie, files, 0, false}})
	if b.Replace(other); !bytes.Equal(b.Snapshot(), other.Snapshot()) {
		t.Errorf("%s", b.Snapshot())
	}
}

// FuzzRestore: any bytes are a State that makes them, or ErrSnapshot.
func FuzzRestore(f *testing.F) {
	f.Add(New(Options{}).Snapshot())
	f.Add(apply(New(Options{}), []Observation{{0, Hijack, files, 0, false}, {0, ShapeLie, Origin{Validator: "did:key:a"}, 0, true}}).Snapshot())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Restore(b, Options{})
		if err != nil {
			return
		}
		if !bytes.Equal(s.Snapshot(), b) {
			t.Fatal("read otherwise than written")
		}
		s.Apply(Observation{1 << 40, Hijack, files, 0, false})
		for range s.All(1 << 40) {
		}
	})
}

func BenchmarkApply(b *testing.B) {
	s, e := New(Options{}), Observation{0, Clean, files, 0, false}
	for b.Loop() {
		e.Time++
		s.Apply(e)
	}
}

func BenchmarkScores(b *testing.B) {
	s := New(Options{})
	for i := range 1000 {
		s.Apply(Observation{0, ShapeLie, Origin{Server: fmt.Sprint("s", i%30), Tool: fmt.Sprint("t", i)}, 0, false})
	}
	book := NewBook(s)
	b.ReportAllocs()
	for b.Loop() {
		book.Scores(Origin{Server: "s3", Tool: "t3"}, 5000)
	}
}
