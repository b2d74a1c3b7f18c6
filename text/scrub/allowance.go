// SPDX-License-Identifier: Apache-2.0

package scrub

import "github.com/pellucid-mcp/pellucid/text/ucd"

// An Allowance counts what the texts of one item keep under faithful. The limits then
// hold for the texts together: else an item of many short texts keeps many times as much
// as one long text. The zero Allowance is that of a new item. spec: scrub/3.6
type Allowance struct {
	kept    [numUses]int
	visible int
}

// over returns the uses of which more than is allowed would be kept with what the text keeps.
func (p *pass) over(keeps *[numUses]int) (over [numUses]bool, is bool) {
	var before Allowance // the texts of the item that were scrubbed before this one
	if p.r.Item != nil {
		before = *p.r.Item
	}
	seen := -1
	for u, limit := range allowed {
		kept := before.kept[u] + keeps[u]
		if p.policy.Strict && limit.each > 0 && use(u) < laying && keeps[u] > 0 { // what the last uses keep is visible, or leaves a blank
			over[u], is = true, true
			continue
		}
		if limit.each == 0 || keeps[u] == 0 || kept <= limit.always {
			continue
		}
		if seen < 0 {
			seen = before.visible + countVisible(p.text)
		}
		over[u] = kept > limit.always+seen/limit.each
		is = is || over[u]
	}
	return over, is
}

// spend adds the text, as it came out, to its item.
func (p *pass) spend() {
	item := p.r.Item
	if item == nil {
		return
	}
	for u, n := range p.kept {
		item.kept[u] += n
	}
	if f := &p.facts; len(p.r.Edits) == 0 && !f.illFormed && !f.hidden && !f.marked {
		item.visible += ucd.Count(p.text) // what countVisible would find
		return
	}
	item.visible += countVisible(p.text)
}

// countVisible counts the characters that are neither hidden nor marks nor blank. Marks do not
// count because a later step may remove some, and the limit must not change then.
func countVisible(s string) int {
	n := ucd.Count(s)
	for i := 0; i < len(s); {
		at, _, w := ucd.Scan(s, i, ucd.Hidden|ucd.Mark|ucd.Blank)
		if at == len(s) {
			break
		}
		n--
		i = at + w
	}
	return n
}
