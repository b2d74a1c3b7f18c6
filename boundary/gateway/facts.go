// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of the facts of a call.
const (
	maxSteps   = 200_000  // members and elements that are visited for all pointers of a call
	maxFacts   = 64 << 10 // bytes of texts that are kept of a call
	maxClaims  = 64 << 10 // bytes of a token's claims
	maxCounted = 4096     // tools of a session that are counted apart
)

// factsOf returns the facts of a call that rules read. It returns nil if they read nothing, or if the search takes too
// long: then they fail.
func factsOf(reads policy.Reads, args strictjson.Value, claims []byte) *policy.Facts {
	if len(reads.Args)+len(reads.Claims) == 0 {
		return nil
	}
	f := &policy.Facts{Args: map[string]any{}, Claims: map[string]any{}}
	r := factReader{stepsLeft: maxSteps, bytesLeft: maxFacts}
	for _, pointer := range reads.Args {
		switch v, folded := r.valueAt(args, pointer); {
		case folded:
			f.Args[pointer] = policy.Unreadable{}
		case v.Exists():
			f.Args[pointer] = r.comparableValue(v)
		}
	}
	if r.stepsLeft < 0 {
		return nil
	}
	var doc strictjson.Doc
	if len(reads.Claims) == 0 || len(claims) == 0 || doc.Reset(claims, strictjson.Limits{Bytes: maxClaims, Depth: 16}) != nil {
		return f
	}
	for _, name := range reads.Claims {
		if v := doc.Root().Get(name); v.Exists() {
			f.Claims[name] = r.comparableValue(v)
		}
	}
	return f
}

// A factReader reads values within bounds: a call can be long and the pointers many.
type factReader struct{ stepsLeft, bytesLeft int }

// valueAt returns the value at a well-formed JSON pointer (RFC 6901). folded reports a name on the way that differs
// from one of the pointer in case only. Many servers take the one for the other, the last of both if there are two.
func (r *factReader) valueAt(v strictjson.Value, pointer string) (_ strictjson.Value, folded bool) {
	for _, step := range strings.Split(pointer, "/")[1:] {
		next, also := r.findChild(v, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
		v, folded = next, folded || also
	}
	return v, folded
}

// findChild returns the member with the name step, or the element with the index step, written without a leading zero.
func (r *factReader) findChild(v strictjson.Value, step string) (child strictjson.Value, folded bool) {
	for name, member := range v.Members() {
		if r.stepsLeft--; r.stepsLeft < 0 {
			return child, folded
		}
		switch text := name.Text(); {
		case text == step:
			child = member
		case strings.EqualFold(text, step):
			folded = true
		}
	}
	n := 0
	for e := range v.Elements() {
		if r.stepsLeft--; r.stepsLeft < 0 || strconv.Itoa(n) == step {
			return e, false
		}
		n++
	}
	return child, folded
}

// comparableValue returns v as rules compare it.
func (r *factReader) comparableValue(v strictjson.Value) any {
	switch v.Kind() {
	case 'n':
		return nil
	case 't', 'f':
		return v.Kind() == 't'
	case '0':
		return policy.Number(string(v.Raw()))
	case '"':
		if n := len(v.Raw()) - 2; n <= policy.MaxValue && n <= r.bytesLeft {
			r.bytesLeft -= n
			return strings.Clone(v.Text())
		}
	case '[':
		if v.Len() > policy.MaxElements {
			break
		}
		list := make([]any, 0, v.Len())
		for e := range v.Elements() {
			if e.Kind() == '[' {
				list = append(list, policy.Object{})
				continue
			}
			one := r.comparableValue(e)
			if one == (policy.Unreadable{}) {
				return one // "in" would answer no, although it could be what is looked for
			}
			list = append(list, one)
		}
		return list
	case '{':
		return policy.Object{}
	}
	return policy.Unreadable{}
}

// Counts counts the calls of one session of a client, to all servers. It is safe for concurrent use.
type Counts struct {
	mu    sync.Mutex
	total policy.Session
}

// countCall counts a call of a tool, and returns the counts before it.
func (c *Counts) countCall(tool string, withTools bool) policy.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.copyLocked(withTools)
	c.total.Calls++
	if c.total.CallsOf == nil {
		c.total.CallsOf = map[string]int{}
	}
	if _, known := c.total.CallsOf[tool]; known || len(c.total.CallsOf) < maxCounted {
		c.total.CallsOf[tool]++
	}
	return before
}

// countHeld counts a call or a result that is held.
func (c *Counts) countHeld() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Held++
}

// snapshot returns a copy of the counts.
func (c *Counts) snapshot(withTools bool) policy.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copyLocked(withTools)
}

// copyLocked copies the counts, those of single tools only if a rule reads them.
func (c *Counts) copyLocked(withTools bool) policy.Session {
	out := c.total
	if out.CallsOf = nil; withTools {
		out.CallsOf = maps.Clone(c.total.CallsOf)
	}
	return out
}
