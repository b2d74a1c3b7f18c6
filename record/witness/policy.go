// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Witness is one that a policy names.
type Witness struct {
	Key *ledger.Witness
	URL string // submission prefix; "": it is not asked
}

// A Policy says which witnesses there are, and which of their cosignatures are enough (C2SP
// tlog-policy).
type Policy struct {
	Logs      []*ledger.Key // that are trusted; empty: the policy names none
	Witnesses []Witness
	quorum    node // the zero value asks for nothing
}

// A node is a witness or a group of nodes of which some are enough.
type node struct {
	key     *ledger.Witness
	members []node
	need    int
}

// Bounds of a policy.
const (
	maxPolicy  = 64 << 10
	maxMembers = 64 // witnesses, and groups, and logs
)

// NewPolicy makes the policy that asks for the cosignatures of quorum of the witnesses; 0 stands for
// all of them.
func NewPolicy(list []Witness, quorum int) (*Policy, error) {
	if quorum < 0 || quorum > len(list) {
		return nil, errors.New("witness: policy: the quorum is greater than the number of witnesses")
	}
	if quorum == 0 {
		quorum = len(list)
	}
	p := &Policy{Witnesses: list, quorum: node{need: quorum}}
	for i, w := range list {
		if slices.ContainsFunc(list[:i], func(o Witness) bool { return o.Key.SameKey(w.Key) }) {
			return nil, errTwice
		}
		p.quorum.members = append(p.quorum.members, node{key: w.Key})
	}
	return p, nil
}

// Satisfied reports whether the cosignatures are enough.
func (p *Policy) Satisfied(by []ledger.Cosignature) bool { return p.quorum.satisfied(by) }

func (n *node) satisfied(by []ledger.Cosignature) bool {
	if n.key != nil {
		return slices.ContainsFunc(by, func(c ledger.Cosignature) bool { return c.Witness.String() == n.key.String() })
	}
	have := 0
	for i := range n.members {
		if n.members[i].satisfied(by) {
			have++
		}
	}
	return have >= n.need
}

// Keys are the keys of the witnesses.
func (p *Policy) Keys() []*ledger.Witness {
	out := make([]*ledger.Witness, len(p.Witnesses))
	for i := range p.Witnesses {
		out[i] = p.Witnesses[i].Key
	}
	return out
}

var (
	errTwice  = errors.New("witness: policy: a key stands there twice")
	errQuorum = errors.New("witness: policy: there is not exactly one quorum line")
)

// A policyReader reads a policy line by line.
type policyReader struct {
	p     *Policy
	names map[string]*node // defined so far
	used  map[string]bool  // members of a group
	done  bool             // the quorum was read
}

// ParsePolicy reads a policy file. Its errors name a line and quote nothing.
func ParsePolicy(b []byte) (*Policy, error) {
	if len(b) > maxPolicy {
		return nil, errors.New("witness: policy: longer than 64 KiB")
	}
	r := policyReader{p: &Policy{}, names: map[string]*node{}, used: map[string]bool{}}
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if err := r.line(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("%w (line %d)", err, n)
		}
	}
	if !r.done {
		return nil, errQuorum
	}
	return r.p, nil
}

func (r *policyReader) line(line string) error {
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("witness: policy: a control character")
		}
	}
	words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' })
	if len(words) == 0 || words[0][0] == '#' {
		return nil
	}
	switch {
	case words[0] == "log" && (len(words) == 2 || len(words) == 3):
		return r.log(words[1])
	case words[0] == "witness" && (len(words) == 3 || len(words) == 4):
		url := ""
		if len(words) == 4 {
			url = words[3]
		}
		return r.witness(words[1], words[2], url)
	case words[0] == "group" && len(words) >= 4:
		return r.group(words[1], words[2], words[3:])
	case words[0] == "quorum" && len(words) == 2:
		return r.quorum(words[1])
	}
	return errors.New("witness: policy: want log, witness, group or quorum, with their parts")
}

func (r *policyReader) log(vkey string) error {
	k, err := ledger.ParseKey(vkey)
	switch {
	case err != nil:
		return err
	case len(r.p.Logs) == maxMembers:
		return errors.New("witness: policy: more than 64 logs")
	case slices.ContainsFunc(r.p.Logs, func(o *ledger.Key) bool { return o.String() == vkey }):
		return errTwice
	}
	r.p.Logs = append(r.p.Logs, k)
	return nil
}

func (r *policyReader) witness(name, vkey, url string) error {
	k, err := ledger.ParseWitness(vkey)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(r.p.Witnesses, func(o Witness) bool { return o.Key.SameKey(k) }):
		return errTwice
	}
	if url != "" {
		if _, _, err := egress.Base(url, false); err != nil {
			return fmt.Errorf("witness: policy: %w", err)
		}
	}
	r.p.Witnesses = append(r.p.Witnesses, Witness{k, url})
	return r.define(name, &node{key: k})
}

func (r *policyReader) define(name string, n *node) error {
	if name == "none" || r.names[name] != nil {
		return errors.New("witness: policy: a name is defined twice, or is none")
	}
	if len(r.names) == 2*maxMembers {
		return errors.New("witness: policy: more than 128 witnesses and groups")
	}
	r.names[name] = n
	return nil
}

func (r *policyReader) group(name, threshold string, members []string) error {
	g := &node{}
	for _, m := range members {
		n := r.names[m]
		if n == nil || r.used[m] {
			return errors.New("witness: policy: a member of a group is not defined before, or is a member twice")
		}
		r.used[m] = true
		g.members = append(g.members, *n)
	}
	switch threshold {
	case "any":
		g.need = 1
	case "all":
		g.need = len(members)
	default:
		k, err := strconv.Atoi(threshold)
		if err != nil || k < 1 || k > len(members) || strconv.Itoa(k) != threshold {
			return errors.New("witness: policy: want any, all or a number of members")
		}
		g.need = k
	}
	return r.define(name, g)
}

func (r *policyReader) quorum(name string) error {
	if r.done {
		return errQuorum
	}
	r.done = true
	if name == "none" {
		return nil
	}
	n := r.names[name]
	if n == nil {
		return errors.New("witness: policy: the quorum is not defined before")
	}
	r.p.quorum = *n
	return nil
}
