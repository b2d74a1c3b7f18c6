// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// none stands for a name that there is not.
const none = "-"

// AppendText appends the event as one line without its end, which is how a record
// keeps it:
//
//	<time> <kind> server <server> <tool or ->
//	<time> <kind> validator <validator> <proven or ->
func (e Observation) AppendText(dst []byte) ([]byte, error) {
	if !e.Kind.known() || !e.Origin.valid() || e.Time < 0 || e.Proven && e.Origin.Validator == "" {
		return dst, errors.New("trust: event: without a subject or a kind")
	}
	dst = append(strconv.AppendInt(dst, e.Time, 10), ' ')
	dst = append(append(dst, e.Kind...), ' ')
	if v := e.Origin.Validator; v != "" {
		dst = append(append(append(dst, "validator "...), v...), ' ')
		if e.Proven {
			return append(dst, "proven"...), nil
		}
		return append(dst, none...), nil
	}
	dst = append(append(append(dst, "server "...), e.Origin.Server...), ' ')
	if e.Origin.Tool == "" {
		return append(dst, none...), nil
	}
	return append(dst, e.Origin.Tool...), nil
}

// MarshalText is AppendText to nothing.
func (e Observation) MarshalText() ([]byte, error) { return e.AppendText(nil) }

// UnmarshalText reads what AppendText has written, and nothing else.
func (e *Observation) UnmarshalText(text []byte) error {
	if len(text) > 1024 {
		return errEvent
	}
	f := strings.Split(string(text), " ")
	if len(f) != 5 {
		return errEvent
	}
	at, err := strconv.ParseInt(f[0], 10, 64)
	out := Observation{Time: at, Kind: Kind(f[1])}
	switch {
	case err != nil:
		return errEvent
	case f[2] == "server":
		out.Origin.Server = f[3]
		if f[4] != none {
			out.Origin.Tool = f[4]
		}
	case f[2] == "validator":
		out.Origin.Validator, out.Proven = f[3], f[4] == "proven"
	default:
		return errEvent
	}
	// One spelling of each event: what is written again is what was read.
	if again, err := out.MarshalText(); err != nil || !bytes.Equal(again, text) {
		return errEvent
	}
	*e = out
	return nil
}

var errEvent = errors.New("trust: event: not as AppendText writes it")

// ErrSnapshot: a snapshot is damaged, or of another version or other Options. Its
// events have to be replayed.
var ErrSnapshot = errors.New("trust: no snapshot of this version and these options")

// Name names the arithmetic of o: scores of one name can be compared.
//
//	<version> <rest> <floor> <half-life in seconds>
func (o Options) Name() string {
	o = o.OrDefault()
	return fmt.Sprintf("%s %d %d %d", version, o.Rest, o.Floor, o.HalfLife/time.Second)
}

// Snapshot is the State as text: the same State always makes the same bytes.
//
//	pellucid-trust 1 <rest> <floor> <half-life in seconds> <servers swept> <validators swept>
//	server <name> <score> <quantum> <window> <counts in hexadecimal> <tools swept>
//	tool <name> <score> <quantum> <window> <counts>
//	validator <name> <score> <quantum> <window> <counts>
//
// Servers stand in the order of their names, each before its tools; validators
// come last. Every line ends with a line feed.
func (s *State) Snapshot() []byte {
	b := fmt.Appendf(nil, "pellucid-trust %s %d %d\n", s.o.Name(), s.servers.swept, s.validators.swept)
	for o, r := range s.records() {
		switch {
		case o.Validator != "":
			b = appendRecord(b, "validator ", o.Validator, r)
		case o.Tool != "":
			b = appendRecord(b, "tool ", o.Tool, r)
		default:
			b = appendRecord(b, "server ", o.Server, r)
			b = strconv.AppendInt(append(b, ' '), s.servers.rows[o.Server].tools.swept, 10)
		}
		b = append(b, '\n')
	}
	return b
}

func appendRecord(b []byte, what, name string, r *record) []byte {
	return fmt.Appendf(b, "%s%s %d %d %d %x", what, name, r.score, r.at, r.window, r.counts[:])
}

// Restore returns the State that made a snapshot. Any other bytes, and a snapshot
// under other Options, are ErrSnapshot.
func Restore(snapshot []byte, o Options) (*State, error) {
	s := New(o)
	r := restorer{s: s}
	for i, line := range strings.SplitAfter(string(snapshot), "\n") {
		if line == "" {
			break
		}
		if !r.line(i, strings.Split(strings.TrimSuffix(line, "\n"), " ")) {
			return nil, ErrSnapshot
		}
	}
	// One spelling of each State, so that nothing stands in a snapshot unread.
	if !bytes.Equal(s.Snapshot(), snapshot) {
		return nil, ErrSnapshot
	}
	return s, nil
}

type restorer struct {
	s       *State
	current *server
}

func (r *restorer) line(i int, f []string) bool {
	if i == 0 {
		if len(f) != 7 {
			return false
		}
		return integer(f[5], &r.s.servers.swept) && integer(f[6], &r.s.validators.swept)
	}
	if len(f) < 6 || !isName(f[1]) {
		return false
	}
	rec := new(record)
	if !r.record(rec, f) {
		return false
	}
	switch {
	case f[0] == "server" && len(f) == 7 && len(r.s.servers.rows) < maxServers:
		r.current = &server{record: *rec, tools: newTable[*record](maxTools)}
		r.s.servers.rows[f[1]] = r.current
		return integer(f[6], &r.current.tools.swept)
	case f[0] == "tool" && len(f) == 6 && r.current != nil && len(r.current.tools.rows) <= maxTools: // and other
		r.current.tools.rows[f[1]] = rec
	case f[0] == "validator" && len(f) == 6 && len(r.s.validators.rows) < maxValidators:
		r.s.validators.rows[f[1]] = rec
	default:
		return false
	}
	return true
}

func (r *restorer) record(rec *record, f []string) bool {
	var score int64
	if !integer(f[2], &score) || !integer(f[3], &rec.at) || !integer(f[4], &rec.window) {
		return false
	}
	if score < int64(r.s.o.Floor) || score > int64(One) || rec.at < 0 || rec.window < 0 || len(f[5]) != 2*len(rec.counts) {
		return false
	}
	rec.score = Score(score)
	for i := range rec.counts {
		n, err := strconv.ParseUint(f[5][2*i:2*i+2], 16, 8)
		if err != nil || uint8(n) > effects[i].most {
			return false
		}
		rec.counts[i] = uint8(n)
	}
	return true
}

func integer(s string, to *int64) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	*to = n
	return err == nil
}
