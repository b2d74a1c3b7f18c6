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

// none is no name.
const none = "-"

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
//	pellucid-trust 2 <rest> <floor> <half-life in seconds> <servers swept> <validators swept>
//	server <name> <score> <quantum> <window> <counts in hexadecimal> <lowered by> <lowered at> <tools swept> <marks>
//	tool <name> <score> <quantum> <window> <counts> <lowered by> <lowered at>
//	validator <name> <score> <quantum> <window> <counts> <lowered by> <lowered at>
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
			for i, mark := range s.servers.rows[o.Server].marks {
				b = strconv.AppendInt(append(b, " ,"[min(i, 1)]), mark, 16)
			}
		}
		b = append(b, '\n')
	}
	return b
}

func appendRecord(b []byte, what, name string, r *record) []byte {
	return fmt.Appendf(b, "%s%s %d %d %d %x %d %d", what, name, r.score, r.at, r.window, r.counts[:], r.loweredBy, r.loweredAt)
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
	if len(f) < 8 || !isName(f[1]) {
		return false
	}
	rec := new(record)
	if !r.record(rec, f) {
		return false
	}
	switch {
	case f[0] == "server" && (len(f) == 9 || len(f) == 10) && len(r.s.servers.rows) < maxServers:
		r.current = &server{record: *rec, tools: newTable[*record](maxTools)}
		r.s.servers.rows[f[1]] = r.current
		return integer(f[8], &r.current.tools.swept) && (len(f) == 9 || r.readMarks(f[9]))
	case f[0] == "tool" && len(f) == 8 && r.current != nil && len(r.current.tools.rows) <= maxTools: // and other
		r.current.tools.rows[f[1]] = rec
	case f[0] == "validator" && len(f) == 8 && len(r.s.validators.rows) < maxValidators:
		r.s.validators.rows[f[1]] = rec
	default:
		return false
	}
	return true
}

func (r *restorer) readMarks(list string) bool {
	for s := range strings.SplitSeq(list, ",") {
		mark, err := strconv.ParseInt(s, 16, 64)
		if err != nil || mark == 0 || len(r.current.marks) == maxMarks {
			return false
		}
		r.current.marks = append(r.current.marks, mark)
	}
	return true
}

func (r *restorer) record(rec *record, f []string) bool {
	var score, lowers int64
	if !integer(f[2], &score) || !integer(f[3], &rec.at) || !integer(f[4], &rec.window) {
		return false
	}
	if score < int64(r.s.o.Floor) || score > int64(One) || rec.at < 0 || rec.window < 0 || len(f[5]) != 2*len(rec.counts) {
		return false
	}
	if !integer(f[6], &lowers) || !integer(f[7], &rec.loweredAt) || lowers < 0 || lowers >= int64(len(effects)) || rec.loweredAt < 0 {
		return false
	}
	rec.score, rec.loweredBy = Score(score), int(lowers)
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
