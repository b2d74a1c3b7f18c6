// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"iter"
	"maps"
	"math"
	"slices"
	"time"
)

// Bounds of what is kept.
const (
	maxServers    = 4096
	maxTools      = 1024 // of one server
	maxValidators = 65_536
	maxMarks      = 64 // of one server: the last contents that counted
)

// other is the tool for all tools of a server that there is no room for.
const other = "other"

// A State is what the events so far have made of every score. It is not safe for
// concurrent use; see [Book].
type State struct {
	o          Options
	quantum    int64 // seconds
	servers    table[*server]
	validators table[*record]
}

type server struct {
	record
	tools table[*record]
	marks []int64 // of contents, the last one last
}

// A record is one score.
type record struct {
	score  Score
	at     int64 // quantum of Unix time up to which the score has moved towards rest
	window int64 // that counts are of
	counts [len(effects)]uint8

	loweredBy int   // index in effects of what lowered the score last
	loweredAt int64 // in seconds, where something has lowered it
}

// A table has room for most records. What is at rest can be forgotten without a
// trace, so a full table is swept, at most once in a quantum.
type table[R any] struct {
	rows  map[string]R
	most  int
	swept int64 // quantum of the last sweep
}

// New returns the State before any event.
func New(o Options) *State {
	o = o.OrDefault()
	return &State{
		o: o, quantum: int64(o.HalfLife/time.Second) / quantaPerHalfLife,
		servers:    newTable[*server](maxServers),
		validators: newTable[*record](maxValidators),
	}
}

// Options returns the options that the scores are computed by.
func (s *State) Options() Options { return s.o }

func newTable[R any](most int) table[R] {
	return table[R]{rows: map[string]R{}, most: most, swept: math.MinInt64}
}

// A Change is what an event did to one score. From and To are equal if it was
// one too many of its kind, or the score is at its bound.
type Change struct {
	origin   Origin
	From, To Score
}

// Apply counts an event. It returns what changed: nothing for an event that names
// nobody, or a validator without a proof.
func (s *State) Apply(e Observation) []Change {
	i := indexOf(e.Kind)
	if i < 0 || !e.Origin.valid() || e.Time < 0 {
		return nil
	}
	if e.Origin.Validator != "" {
		r := s.validator(e)
		if r == nil {
			return nil
		}
		return s.change(nil, r, e.Origin, i, effects[i].own, e.Time)
	}
	srv := s.server(e)
	switch {
	case srv == nil, effects[i].own < 0 && srv.rememberMark(e.Mark):
		return nil
	case e.Origin.Tool == "":
		return s.change(nil, &srv.record, e.Origin, i, effects[i].own, e.Time)
	}
	tool, name := s.tool(srv, e)
	out := s.change(nil, tool, Origin{Server: e.Origin.Server, Tool: name}, i, effects[i].own, e.Time)
	return s.change(out, &srv.record, Origin{Server: e.Origin.Server}, i, effects[i].above, e.Time)
}

// rememberMark reports whether the content of that mark has counted before.
func (s *server) rememberMark(mark int64) (counted bool) {
	if mark == 0 {
		return false
	}
	if slices.Contains(s.marks, mark) {
		return true
	}
	if len(s.marks) == maxMarks {
		s.marks = slices.Delete(s.marks, 0, 1)
	}
	s.marks = append(s.marks, mark)
	return false
}

// validator is the record that e counts for; nil without a proof. A caller that makes up
// validators finds no room in the end, and those that are known keep theirs.
func (s *State) validator(e Observation) *record {
	if !e.Proven {
		return nil
	}
	r := s.validators.rows[e.Origin.Validator]
	if r == nil && s.validators.room(e.Time/s.quantum, func(r *record) bool { return s.atRest(r, e.Time) }) {
		r = s.fresh(e.Time)
		s.validators.rows[e.Origin.Validator] = r
	}
	return r
}

func (s *State) server(e Observation) *server {
	r := s.servers.rows[e.Origin.Server]
	if r == nil && s.servers.room(e.Time/s.quantum, func(r *server) bool { return s.forgotten(r, e.Time) }) {
		r = &server{record: *s.fresh(e.Time), tools: newTable[*record](maxTools)}
		s.servers.rows[e.Origin.Server] = r
	}
	return r
}

// tool is the record that e counts for, and its name: other's where there is no room.
func (s *State) tool(srv *server, e Observation) (*record, string) {
	name := e.Origin.Tool
	if srv.tools.rows[name] == nil && !srv.tools.room(e.Time/s.quantum, func(r *record) bool { return s.atRest(r, e.Time) }) {
		name = other
	}
	if srv.tools.rows[name] == nil {
		srv.tools.rows[name] = s.fresh(e.Time)
	}
	return srv.tools.rows[name], name
}

// room reports whether there is room for one more row, after a sweep if need be.
func (t *table[R]) room(quantum int64, rests func(R) bool) bool {
	if len(t.rows) >= t.most && t.swept != quantum {
		t.swept = quantum
		maps.DeleteFunc(t.rows, func(_ string, r R) bool { return rests(r) })
	}
	return len(t.rows) < t.most
}

func (s *State) fresh(now int64) *record {
	return &record{score: s.o.Rest, at: now / s.quantum, window: now / window}
}

// atRest reports whether a record is no different from a fresh one.
func (s *State) atRest(r *record, now int64) bool {
	return s.relaxed(r, now) == s.o.Rest && r.window < now/window
}

func (s *State) forgotten(r *server, now int64) bool {
	if !s.atRest(&r.record, now) || len(r.marks) > 0 {
		return false
	}
	for _, t := range r.tools.rows {
		if !s.atRest(t, now) {
			return false
		}
	}
	return true
}

// change applies delta to one record, if its kind is not over its cap.
func (s *State) change(out []Change, r *record, o Origin, kind int, delta int32, now int64) []Change {
	r.score, r.at = s.relaxed(r, now), now/s.quantum
	if w := now / window; w > r.window || w < r.window-1 { // a clock that goes back a little opens no new window
		r.window, r.counts = w, [len(effects)]uint8{}
	}
	from := r.score
	if r.counts[kind] < effects[kind].most {
		r.counts[kind]++
		r.score = min(max(r.score+Score(delta), s.o.Floor), One)
		if delta < 0 {
			r.loweredBy, r.loweredAt = kind, now
		}
	}
	return append(out, Change{o, from, r.score})
}

// relaxed is the score at a time: the way to rest is halved in each half-life. A
// clock that went back moves nothing.
func (s *State) relaxed(r *record, now int64) Score {
	n := now/s.quantum - r.at
	if n <= 0 {
		return r.score
	}
	gap := r.score - s.o.Rest
	if gap < 0 {
		return s.o.Rest - decayed(-gap, n)
	}
	return s.o.Rest + decayed(gap, n)
}

// decay holds, for n quanta, 2^(-n/64) in units of 2^-32.
var decay = decayTable()

// decayTable begins with 2^32 and multiplies by 2^(-1/64), rounded down.
func decayTable() (out [quantaPerHalfLife]uint64) {
	const quantum = 4_248_701_965 // 2^32 * 2^(-1/64), rounded to the nearest
	out[0] = 1 << 32
	for i := 1; i < len(out); i++ {
		out[i] = out[i-1] * quantum >> 32
	}
	return out
}

// decayed is what is left of gap after n quanta, rounded down.
func decayed(gap Score, n int64) Score {
	if n >= 32*quantaPerHalfLife {
		return 0
	}
	left := uint64(gap) >> (n / quantaPerHalfLife)
	return Score(left * decay[n%quantaPerHalfLife] >> 32)
}

// Score is that of an origin at a time. Of what no event has named it is Rest; of a
// tool that has no room of its own, that of all such tools of its server.
func (s *State) Score(o Origin, now int64) Score {
	if r := s.recordOf(o); r != nil {
		return s.relaxed(r, now)
	}
	return s.o.Rest
}

// Lowered returns what lowered the score of an origin last, and when, if anything has.
func (s *State) Lowered(o Origin) (by Kind, at int64) {
	if r := s.recordOf(o); r != nil && r.loweredAt > 0 {
		return effects[r.loweredBy].kind, r.loweredAt
	}
	return "", 0
}

// recordOf returns the record of an origin, if it has one.
func (s *State) recordOf(o Origin) *record {
	if o.Validator != "" {
		return s.validators.rows[o.Validator]
	}
	srv := s.servers.rows[o.Server]
	switch {
	case srv == nil:
		return nil
	case o.Tool == "":
		return &srv.record
	}
	r := srv.tools.rows[o.Tool]
	if r == nil && len(srv.tools.rows) >= srv.tools.most { // its events are other's
		r = srv.tools.rows[other]
	}
	return r
}

// All yields every score that an event has made: servers by name, each before its
// tools, then validators.
func (s *State) All(now int64) iter.Seq2[Origin, Score] {
	return func(yield func(Origin, Score) bool) {
		for o, r := range s.records() {
			if !yield(o, s.relaxed(r, now)) {
				return
			}
		}
	}
}

func (s *State) records() iter.Seq2[Origin, *record] {
	return func(yield func(Origin, *record) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.servers.rows)) {
			srv := s.servers.rows[name]
			if !yield(Origin{Server: name}, &srv.record) {
				return
			}
			for _, tool := range slices.Sorted(maps.Keys(srv.tools.rows)) {
				if !yield(Origin{Server: name, Tool: tool}, srv.tools.rows[tool]) {
					return
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.validators.rows)) {
			if !yield(Origin{Validator: name}, s.validators.rows[name]) {
				return
			}
		}
	}
}
