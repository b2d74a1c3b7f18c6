// SPDX-License-Identifier: Apache-2.0

// Package href turns a third party's URI into an allowed URI or a refusal.
//
// An allowed URI is ASCII of at most 1,024 bytes, valid by the grammar of RFC
// 3986, and of one of these forms:
//
//	https://host[:port]/path?query#fragment
//	did:method:id (with path, query, fragment for Parse, bare for ParseDID)
//	urn:doi:10.prefix/suffix   urn:isbn:digits   urn:pmid:digits
//	arxiv:2410.22770v1         arxiv:hep-th/9901001
//
// No reader, however often it decodes, finds in it hidden characters, controls or
// a delimiter that was not there before. The host is a public name or address in
// its usual spelling. No model finds a control token in it, as it stands or as it is
// rendered. An escaped one ("%3Cthink%3E", "&lt;think&gt;") is not a token and is allowed.
// An allowed URI is still third-party text: its target may be harmful.
//
// For people it is rendered as "[host] → URI", which Bare undoes.
//
// It is part of the public API:
//
//	u, err := href.Parse(s) // err is a *Refusal: a code and a byte offset
package href

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// MaxLen is the longest URI allowed, in bytes.
const MaxLen = 1024

// A URI is an allowed URI. Only this package makes one; the zero URI is empty.
type URI struct {
	raw   string
	label string // what is shown before the arrow
	host  string
}

// String is the URI as it was given.
func (u URI) String() string { return u.raw }

// Host is the host of an https or did:web URI in lower case, without brackets
// and port; "" for another.
func (u URI) Host() string { return u.host }

const arrow = "] → "

// Rendered shows the URI to a person: "[host] → URI", and where there is no
// host "[did:method]", "[urn:nid]" or "[arxiv]" in its place.
func (u URI) Rendered() string {
	if u.raw == "" {
		return ""
	}
	return "[" + u.label + arrow + u.raw
}

// Bare is the URI that was rendered as s. It is false for any other s, also
// where the label is not the one that belongs to the URI.
func Bare(s string) (URI, bool) {
	_, raw, ok := strings.Cut(s, arrow)
	if !ok {
		return URI{}, false
	}
	u, err := Parse(raw)
	if err != nil || u.Rendered() != s {
		return URI{}, false
	}
	return u, true
}

// A Refusal says why a string is not allowed as a URI, and where. It holds
// nothing of the string.
type Refusal struct {
	Code   finding.Code // one of the URI… codes
	Offset int          // in bytes
}

// Error is a constant text and the offset.
func (r *Refusal) Error() string {
	return "href: " + string(r.Code) + " at byte " + strconv.Itoa(r.Offset)
}

func refuse(code finding.Code, offset int) error { return &Refusal{code, offset} }

// Parse checks s. The error is a *Refusal.
//
// spec: RFC-VERITAS-MCP-GROUNDING 4.5
func Parse(s string) (URI, error) {
	if len(s) > MaxLen {
		return URI{}, refuse(finding.URILength, MaxLen)
	}
	scheme, err := scanScheme(s)
	if err != nil {
		return URI{}, err
	}
	p := parser{s: s, path: len(scheme) + 1}
	switch scheme {
	case "https":
		err = p.https()
	case "did":
		err = p.did()
	case "urn":
		err = p.urn()
	case "arxiv":
		err = p.arxiv()
	default:
		err = refuse(finding.URIScheme, 0)
	}
	if err != nil {
		return URI{}, err
	}
	if p.escapedColon > 0 {
		// The one delimiter that may be escaped; nothing decodes across it.
		if err := checkDecoding(s[:p.escapedColon], 0); err != nil {
			return URI{}, err
		}
	}
	if err := checkDecoding(s, p.behindColon()); err != nil {
		return URI{}, err
	}
	return URI{raw: s, label: p.label, host: p.host}, nil
}

// ParseDID checks s as a decentralised identifier without path, query and
// fragment. The error is a *Refusal.
func ParseDID(s string) (URI, error) {
	u, err := Parse(s)
	if err != nil {
		return URI{}, err
	}
	if !strings.HasPrefix(s, "did:") {
		return URI{}, refuse(finding.URIScheme, 0)
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return URI{}, refuse(finding.URISyntax, i)
	}
	return u, nil
}
