// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// A dumper writes YAML that this package reads: one member a line, every string
// that the author chose in double quotes and ASCII.
type dumper struct {
	b     bytes.Buffer
	depth int

	// whole adds the digest of everything that a dump does not show, such as what a reference
	// stands for. Two whole dumps are equal only where two files mean the same. They never leave
	// the process.
	whole bool
}

func (d *dumper) line(parts ...string) {
	d.b.WriteString(strings.Repeat("  ", d.depth))
	for _, p := range parts {
		d.b.WriteString(p)
	}
	d.b.WriteByte('\n')
}

// word writes a member whose value needs no quotes.
func (d *dumper) word(name, value string) { d.line(name, ": ", value) }

// value writes a string that may be a secret; "" is not written.
func (d *dumper) value(name string, v Value) {
	if v.text == "" {
		return
	}
	d.word(name, quoted(v.String()))
	d.hidden(name, v.text)
}

// hidden adds to a whole dump what no dump shows.
func (d *dumper) hidden(name string, values ...string) {
	if !d.whole {
		return
	}
	print := fingerprint{sha256.New()}
	print.add(values...)
	sum := print.sum()
	d.line("# ", name, " ", hex.EncodeToString(sum[:]))
}

func writeList[T ~string](d *dumper, name string, values []T) {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = quoted(string(v))
	}
	d.line(name, ": [", strings.Join(all, ", "), "]")
}

func (d *dumper) members(table []member) {
	for _, m := range table {
		m.value.write(d, m.name)
	}
}

// object writes a member with members of its own, unless they have nothing to say.
func (d *dumper) object(name string, table []member) {
	head, inside := d.open(name)
	d.members(table)
	d.close(head, inside)
}

// open begins an object; close ends it, or takes it back where nothing stands in it.
func (d *dumper) open(name string) (head, inside int) {
	head = d.b.Len()
	d.line(name, ":")
	d.depth++
	return head, d.b.Len()
}

func (d *dumper) close(head, inside int) {
	d.depth--
	if d.b.Len() == inside {
		d.b.Truncate(head)
	}
}

// item writes an element of a list that is an object.
func (d *dumper) item(table []member) {
	start := d.b.Len()
	d.depth += 2
	d.members(table)
	d.depth -= 2
	if d.b.Len() > start { // the dash stands before the first member
		d.b.Bytes()[start+2*d.depth+2] = '-'
	}
}

// quoted is a double-quoted string of YAML: Go's escapes are some of YAML's.
func quoted(s string) string { return strconv.QuoteToASCII(s) }

// dump writes the rows of a table.
func dump(table []member, whole bool) []byte {
	d := dumper{whole: whole}
	d.members(table)
	return d.b.Bytes()
}
