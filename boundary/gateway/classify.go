// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Classifiers judge the answers to calls of tools, and watch what else a server says, beside
// all that is decided without them. Those that enforce are asked before anything is delivered, and only the answer
// that they are asked about waits; those in shadow mode are asked behind it.
type Classifiers struct {
	// Of returns those for a tool, by the name that the server gave it. It may be
	// called at the same time.
	Of func(tool string) []*classify.Member
	// Any returns those of every tool, for a task whose tool is not known; nil: Of "". It may be called at the same time.
	Any func() []*classify.Member
	// Also returns those for another kind of message; nil: nothing judges those. They are
	// asked behind delivery, whatever their mode. It may be called at the same time.
	Also func(kind Elsewhere) []*classify.Member
	// Shadow asks those in shadow mode; nil: nobody does, and each time is recorded
	// as dropped.
	Shadow *Shadow
	// Record is told of every verdict; nil: nobody is. It may be called at the same
	// time, and must not block.
	Record func(Classified)
}

// A Classified is the record of a verdict. It holds no third-party text.
type Classified struct {
	Time         time.Time
	Server, Tool string       // labels
	Kind         Elsewhere    // of the message; "": it answers a call of a tool
	Of           ID           // the decision about the same message; zero: it was not recorded
	Input        frame.Digest // of the bytes that came
	Dropped      bool         // nobody was asked, since too much waits already
	classify.Assessment
}

// AppendJSON appends c as one JSON object without a line feed:
//
//	{"v":"0.1","of":"<32 hex digits>","time":"<RFC 3339, UTC>","server":"web","tool":"fetch","input":"sha256:<hex>",
//	 "classified":{"score":0.97,"name":"local","version":"linear-1-0f…","mode":"shadow","outcome":"hold",
//	 "code":"…","reason":"timeout","dropped":true,"segments":2,"asked":1,"cached":1,"microseconds":61}}
//
// Of a message that answers no call of a tool, "kind" stands in the place of "tool".
// outcome is what became of the answer, in shadow mode what would have; code, reason
// and dropped are left out where they do not apply.
func (c *Classified) AppendJSON(dst []byte) []byte {
	dst = append(append(append(dst, `{"v":"0.1","of":"`...), c.Of.String()...), `","time":"`...)
	dst = append(c.Time.UTC().AppendFormat(dst, time.RFC3339Nano), '"')
	dst = appendLabel(dst, "server", c.Server)
	if frame.IsLabel(c.Tool) {
		dst = appendLabel(dst, "tool", c.Tool)
	}
	if c.Kind != "" {
		dst = appendLabel(dst, "kind", string(c.Kind))
	}
	dst = appendDigest(dst, "input", c.Input)
	dst = appendAssessment(append(dst, `,"classified":`...), &c.Assessment)
	dst = dst[:len(dst)-1] // open again
	if c.Dropped {
		dst = append(dst, `,"dropped":true`...)
	}
	dst = strconv.AppendInt(append(dst, `,"segments":`...), int64(len(c.Segments)), 10)
	dst = strconv.AppendInt(append(dst, `,"asked":`...), int64(c.Asked), 10)
	dst = strconv.AppendInt(append(dst, `,"cached":`...), int64(c.Cached), 10)
	dst = strconv.AppendInt(append(dst, `,"microseconds":`...), c.Latency.Microseconds(), 10)
	return append(dst, `}}`...)
}

func appendAssessments(dst []byte, list []classify.Assessment) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(dst, `,"classified":[`...)
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendAssessment(dst, &list[i])
	}
	return append(dst, ']')
}

// appendVerdict appends what a verdict says, without its segments.
func appendAssessment(dst []byte, v *classify.Assessment) []byte {
	dst = strconv.AppendFloat(append(dst, `{"score":`...), v.P, 'g', 4, 64)
	dst = appendLabel(dst, "name", v.Name)
	dst = appendLabel(dst, "version", v.Version)
	dst = appendLabel(dst, "mode", v.Mode.String())
	dst = appendLabel(dst, "outcome", v.Outcome())
	if v.Code != "" {
		dst = appendLabel(dst, "code", string(v.Code))
	}
	if v.Reason != "" {
		dst = appendLabel(dst, "reason", string(v.Reason))
	}
	return append(dst, '}')
}

// judged is what classifiers have to do with one answer.
type judged struct {
	members     []*classify.Member
	narrow      bool                  // the answer cannot hold an injection
	kind        Elsewhere             // "": it answers a call of a tool
	assessments []classify.Assessment // of those that were asked before delivery, or need not be

	// Set by pass.
	evidence ID
	server   string
	input    frame.Digest
	shown    bool // it was delivered, or a part of it
}

// judges says which classifiers have to do with the answer p; nil: none.
func (c *Config) judges(p *passage) *judged {
	if c.Classifiers == nil || p.msg.Local || p.released != "" {
		return nil
	}
	if !p.answersTool() {
		return c.judgesElsewhere(p)
	}
	if p.msg.Kind != wire.Response && p.msg.Kind != wire.ErrorResponse {
		return nil
	}
	members := c.membersOf(p)
	if len(members) == 0 {
		return nil
	}
	return &judged{members: members, narrow: isNarrow(p, c.ruleOf(p).Validation)}
}

// asks returns the members of a mode that are to be asked.
func (j *judged) asks(mode policy.Mode) (list []*classify.Member) {
	if j == nil {
		return nil
	}
	for _, m := range j.members {
		is := m.Mode()
		if j.kind != "" {
			is = policy.Shadow
		}
		if is == mode && (!j.narrow || m.All()) {
			list = append(list, m)
		}
	}
	return list
}

// skip gives the verdicts of those that need not be asked.
func (j *judged) skip() {
	for _, m := range j.members {
		if j.narrow && !m.All() {
			j.assessments = append(j.assessments, m.Skipped(classify.Narrow))
		}
	}
}

// askAll asks members about one answer, all at once.
func askAll(ctx context.Context, members []*classify.Member, v *view) []classify.Assessment {
	out := make([]classify.Assessment, len(members))
	var work sync.WaitGroup
	for i, m := range members {
		switch {
		case v.tooLong:
			out[i] = m.Skipped(classify.TooLong)
		case i < len(members)-1:
			work.Go(func() { out[i] = m.Judge(ctx, v.segments) })
		default:
			out[i] = m.Judge(ctx, v.segments)
		}
	}
	work.Wait()
	return out
}

// wantsRaw reports whether one of the members wants text as it was received.
func wantsRaw(members []*classify.Member) bool {
	for _, m := range members {
		if m.Raw() {
			return true
		}
	}
	return false
}

// suspect is the classifier for which an answer is withheld.
type suspect struct {
	name   string
	action policy.Action
}

// classified says why a classifier withholds the answer, or ok.
func (in *inspection) classified() finding.Code {
	if in.tellsUnjudged() {
		return finding.Unjudged
	}
	if in.p.judged == nil {
		return ok
	}
	in.d.Classified = in.p.judged.assessments
	code := ok
	for i := range in.d.Classified {
		v := &in.d.Classified[i]
		if v.Mode != policy.Enforce || v.Action == policy.Allow {
			continue
		}
		why := finding.Suspected
		if !v.Flagged() {
			why = finding.Unjudged
		}
		if in.excepted(why) {
			in.w.addFinding(why, 1, nil)
			continue
		}
		if v.Action > in.suspect.action {
			in.suspect, code = suspect{v.Name, v.Action}, why
		}
	}
	return code
}

// tellClassified tells the verdicts on an answer about which was decided.
func (in *inspection) tellClassified() {
	if in.p.judged != nil && len(in.p.judged.assessments) > 0 {
		in.cfg.tellAssessments(&in.quiet, &in.d, in.p.judged, in.p.judged.assessments, false)
	}
}

// isShown notes that the answer is delivered. j may be nil.
func (j *judged) isShown(d *Decision) {
	if j != nil {
		j.evidence, j.server, j.input, j.shown = d.ID, d.Server, d.Received, true
	}
}

// scoresOf are those of the classifiers that have judged all of an answer.
func scoresOf(list []classify.Assessment) (out []policy.Score) {
	for i := range list {
		if list[i].Reason == classify.Judged {
			out = append(out, policy.Score{Name: list[i].Name, Value: list[i].P})
		}
	}
	return out
}

// tellVerdicts gives verdicts to whoever keeps them, and what is against an answer to
// the operator.
func (c *Config) tellAssessments(q *quiet, d *Decision, j *judged, list []classify.Assessment, dropped bool) {
	for i := range list {
		v := &list[i]
		if j.kind != "" {
			v.Mode = policy.Shadow
		}
		c.logAssessment(q, d, j.kind, v, dropped)
		if c.Classifiers.Record == nil || d.ID == (ID{}) && !v.Flagged() && v.Reason == classify.Judged {
			continue // a message of which there is no record gets none for an honest text
		}
		c.Classifiers.Record(Classified{Time: c.now(), Server: d.Server, Tool: d.Tool, Kind: j.kind, Of: d.ID, Input: d.Received, Dropped: dropped, Assessment: *v})
	}
}

// logVerdict says what is needed to find out whether a classifier is wrong: where in
// the answer it sees what, without a word of it.
func (c *Config) logAssessment(q *quiet, d *Decision, kind Elsewhere, v *classify.Assessment, dropped bool) {
	suspects := v.Flagged()
	if !suspects && (v.Reason == classify.Judged || v.Reason == classify.Narrow || v.Reason == classify.Canceled) {
		return
	}
	args := []any{"classifier", v.Name, "version", v.Version, "mode", v.Mode.String(), "outcome", v.Outcome(),
		"score", v.P, "tool", d.Tool, "evidence", d.ID.String()}
	if kind != "" {
		args = append(args, "kind", string(kind))
	}
	if v.Code != "" {
		args = append(args, "code", string(v.Code))
	}
	if v.Reason != "" {
		args = append(args, "reason", string(v.Reason))
	}
	if v.Err != nil {
		args = append(args, "error", finding.Quote(v.Err.Error()))
	}
	switch {
	case dropped:
		q.warn("classifier not asked: too many results wait for it", args...)
	case suspects:
		for i := range v.Segments {
			if v.Segments[i].Flagged {
				args = append(args, "segment", i, "of", len(v.Segments))
				break
			}
		}
		q.warn("classifier suspects an injection", args...)
	default:
		q.warn("classifier could not judge", args...)
	}
}
