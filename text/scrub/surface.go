// SPDX-License-Identifier: Apache-2.0

package scrub

import "github.com/pellucid-mcp/pellucid/text/ucd"

// refuseSuspicious refuses text that holds a code point of the server verifier's
// SUSPICIOUS_UNICODE, on the raw text; ill-formed text too, which nothing could be
// said about. With Wide it refuses every hidden character that faithful would
// remove, but lets line breaks pass. spec: scrub/3.11
func refuseSuspicious(p *pass) {
	if p.policy.Wide {
		refuseHidden(p)
		return
	}
	s := p.text
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		i = at + w
		r, _, ok := ucd.Decode(s[at:])
		switch {
		case !ok && prop&ucd.IllFormed != 0:
			p.r.refuse(Suspicious, IllFormedUTF8, at, i)
		case ucd.Suspicious(r):
			p.r.refuse(Suspicious, classOf(r), at, i)
		}
	}
}

// refuseHidden asks faithful what it would remove.
func refuseHidden(p *pass) {
	events := &p.r.ed.events
	mend(p)
	if len(*events) > 0 {
		p.r.refuse(Suspicious, IllFormedUTF8, (*events)[0].Start, (*events)[0].End)
	}
	p.begin()
	dropHiddenFaithfully(p)
	for _, e := range *events {
		if e.Class != LineBreak && e.Class != OddSpace {
			_, w, _ := ucd.Decode(p.text[e.Start:])
			p.r.refuse(Suspicious, e.Class, e.Start, e.Start+w)
		}
	}
	p.begin() // nothing is changed
	if at, end := describedOut(p.text); at >= 0 {
		p.r.refuse(Suspicious, OddWhiteSpace, at, end)
	}
}
