// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"encoding/hex"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Sink keeps the record of decisions.
type Sink interface {
	// Record is called before the message it speaks of is delivered; of a long message that
	// is delivered without its record too, while it is written. It may be called at the same
	// time. The Decision is not kept by the caller.
	Record(Decision) error
}

// Verdict says what became of a message.
type Verdict string

// The verdicts.
const (
	Passed   Verdict = "passed"   // delivered; nothing was found in it
	Changed  Verdict = "changed"  // delivered without what was found
	Withheld Verdict = "withheld" // a constant text was delivered in its place
	Dropped  Verdict = "dropped"  // nothing was delivered
)

// ID names a decision; placeholders and provenance quote it.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// A Decision is the record of what was done with one message of a server. It
// holds no third-party text: labels stand in the approved surface, all else is
// constant or a number.
//
// As a line of JSON (version 0.1 of the format):
//
//	{"v":"0.1","id":"<32 hex digits>","time":"<RFC 3339, UTC>","server":"files","tool":"read_file",
//	 "method":"tools/call","kind":"result","verdict":"changed",
//	 "received":"sha256:<hex>","delivered":"sha256:<hex>",
//	 "profile":"mcp","sanitation_version":"<of the profile>","unicode_version":"15.0.0",
//	 "inspected":3,"findings":{"tag-character":12},"not_inspected":{"binary":1},"withheld":{"name-refused":1}}
//
// received and delivered are digests of the bytes of the message's params,
// result or error as they came and as they went; the latter is absent when
// nothing of it went. tool is absent where no tool is concerned, or it is not known. The three
// objects count by code and are absent when empty; withheld counts the items
// that gave way to a placeholder, or were left out, beside what was delivered.
// Where one decision stands for many messages (see Repeats) there is their number as
// "repeated", and no digest.
//
// Where control tokens that Pellucid had defused were restored on their way to the server there is
// their number as "restored", with "asked" and "sent", the digests of the params of the request as
// the client sent them and as the server got them. Of an answer of the client, kind "answer", these
// are received and delivered.
//
// Where a rule of a policy has matched there are
//
//	"policy":{"action":"sanitise","rule":"distrusted"},"would":{"action":"hold","rule":"unread"}
//
// Where classifiers were asked, or need not be, there is
//
//	"classified":[{"score":0.97,"name":"shields","version":"prompt-shields-2024-09-01","mode":"enforce","outcome":"hold"}]
//
// as in Classified. In policy there is "failed":true beside a rule that could not be evaluated; would is what rules in
// audit mode would have done that is stricter.
type Decision struct {
	ID        ID
	Time      time.Time
	Server    string
	Tool      string        // no label: none, or not known
	Method    string        // of the table, else frame.Other
	Kind      string        // "result", "error", "request", "notification"; "call": a request of the client; "answer": of the client
	Principal string        // whose session it is; not part of the line
	Wait      time.Duration // how long the Sink may wait for its store; 0: as long as it is set to
	Verdict   Verdict
	Received  frame.Digest
	Delivered frame.Digest // zero: nothing was

	Profile           string
	SanitationVersion string
	UnicodeVersion    string

	Repeated     int // messages that the decision stands for, where those are many; see Repeats
	Inspected    int // strings
	Findings     []policy.Count
	NotInspected []policy.Count
	Withheld     []policy.Count

	Restored int // control tokens that were defused, and are restored in what the server gets
	// Asked and Sent are digests of the params of the request that was answered, where tokens were
	// restored in it: as the client sent them, and as the server got them.
	Asked, Sent frame.Digest

	Fault Fault // that lowers the trust in the server, if any

	Released   string          // item of the queue whose result this is, released by a person
	Validation validate.Result // of structuredContent; zero: there was nothing to judge by
	grounding  *grounding      // of a grounding adapter's answer; nil: it is none
	Policy     policy.Ruling   // zero: no rule of a policy has matched

	// Classified are the verdicts of classifiers that were asked before delivery or
	// need not be asked; those in shadow mode have records of their own.
	Classified []classify.Assessment
}

// A Fault of a message lowers the trust in its server. Kind is one of record/trust. Content is a digest of the content at
// fault, so that the same content counts once.
type Fault struct {
	Kind    string
	Content frame.Digest
}

// The kinds of a Fault.
const (
	hiddenMessage = "hidden-message"
	forgedFrame   = "forged-frame"
	shapeLie      = "shape-lie"
)

func addCount(list []policy.Count, code finding.Code, n int) []policy.Count {
	for i := range list {
		if list[i].Code == code {
			list[i].N += n
			return list
		}
	}
	return append(list, policy.Count{Code: code, N: n})
}

// AppendJSON appends d as one JSON object without a line feed. Every member is
// a label, a code, a number or hexadecimal, so nothing needs an escape.
func (d *Decision) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"v":"0.1","id":"`...)
	dst = hex.AppendEncode(dst, d.ID[:])
	dst = append(dst, `","time":"`...)
	dst = d.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendLabel(dst, "server", d.Server)
	if frame.IsLabel(d.Tool) {
		dst = appendLabel(dst, "tool", d.Tool)
	}
	dst = appendLabel(dst, "method", d.Method)
	dst = appendLabel(dst, "kind", d.Kind)
	dst = appendLabel(dst, "verdict", string(d.Verdict))
	dst = appendDigest(dst, "received", d.Received)
	dst = appendDigest(dst, "delivered", d.Delivered)
	dst = appendLabel(dst, "profile", d.Profile)
	dst = appendLabel(dst, "sanitation_version", d.SanitationVersion)
	dst = appendLabel(dst, "unicode_version", d.UnicodeVersion)
	if d.Repeated > 0 {
		dst = strconv.AppendInt(append(dst, `,"repeated":`...), int64(d.Repeated), 10)
	}
	dst = append(dst, `,"inspected":`...)
	dst = strconv.AppendInt(dst, int64(d.Inspected), 10)
	dst = appendCounts(dst, "findings", d.Findings)
	dst = appendCounts(dst, "not_inspected", d.NotInspected)
	dst = appendCounts(dst, "withheld", d.Withheld)
	if d.Restored > 0 {
		dst = strconv.AppendInt(append(dst, `,"restored":`...), int64(d.Restored), 10)
		dst = appendDigest(appendDigest(dst, "asked", d.Asked), "sent", d.Sent)
	}
	if d.Fault.Kind != "" {
		dst = appendLabel(dst, "fault", d.Fault.Kind)
	}
	if d.Released != "" {
		dst = appendLabel(dst, "released", d.Released)
	}
	dst = appendValidation(dst, d.Validation)
	dst = appendMatch(dst, "policy", d.Policy.Match)
	dst = appendMatch(dst, "would", d.Policy.Would)
	dst = appendAssessments(dst, d.Classified)
	if d.grounding != nil {
		dst = d.grounding.appendJSON(append(dst, `,"grounding":`...))
	}
	return append(dst, '}')
}

func appendLabel(dst []byte, name, value string) []byte {
	if !frame.IsLabel(value) {
		value = frame.Other
	}
	dst = append(append(append(dst, `,"`...), name...), `":"`...)
	return append(append(dst, value...), '"')
}

func appendDigest(dst []byte, name string, d frame.Digest) []byte {
	if d == (frame.Digest{}) {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":"sha256:`...)
	return append(hex.AppendEncode(dst, d[:]), '"')
}

func appendValidation(dst []byte, r validate.Result) []byte {
	if r.Conformity == 0 {
		return dst
	}
	dst = append(append(dst, `,"validation":{"verdict":"`...), r.Conformity.String()...)
	dst = append(dst, '"')
	for _, m := range [...]struct{ name, value string }{{"reason", string(r.Reason)}, {"keyword", r.Keyword}, {"place", r.Pointer}} {
		if m.value != "" {
			dst = strictjson.AppendQuote(append(append(append(dst, `,"`...), m.name...), `":`...), m.value)
		}
	}
	return append(dst, '}')
}

func appendCounts(dst []byte, name string, counts []policy.Count) []byte {
	if len(counts) == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":{`...)
	for i, c := range counts {
		if i > 0 {
			dst = append(dst, ',')
		}
		code := string(c.Code)
		if !frame.IsLabel(code) {
			code = frame.Other
		}
		dst = append(append(append(dst, '"'), code...), `":`...)
		dst = strconv.AppendInt(dst, int64(c.N), 10)
	}
	return append(dst, '}')
}

// Lines is a Sink that writes each decision as one line of JSON. It is safe
// for concurrent use.
type Lines struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewLines returns a Sink over w; each record is one Write.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Record writes d.
func (l *Lines) Record(d Decision) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(d.AppendJSON(l.buf[:0]), '\n')
	_, err := l.w.Write(l.buf)
	return err
}

// ids draws evidence ids from a source of randomness. It is safe for concurrent use.
type ids struct {
	mu sync.Mutex
	r  *bufio.Reader
}

func newIDs(r io.Reader) ids { return ids{r: bufio.NewReaderSize(r, 512)} }

func (s *ids) next() (id ID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = io.ReadFull(s.r, id[:])
	return id, err
}
