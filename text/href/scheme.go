// SPDX-License-Identifier: Apache-2.0

package href

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The identifiers that have a syntax of their own, which leaves little room for
// prose. They match what the grammar of RFC 3986 has passed already.
var (
	urnSyntax = map[string]func() *regexp.Regexp{
		"doi":  compileOnce(`^10\.[0-9]{4,9}(\.[0-9]+)*/[^?#]+$`),
		"isbn": compileOnce(`^(97[89]-?)?([0-9]-?){9}[0-9Xx]$`),
		"pmid": compileOnce(`^[1-9][0-9]{0,8}$`),
	}
	arxivSyntax = compileOnce(`^([0-9]{4}\.[0-9]{4,5}|[a-z]+(-[a-z]+)*(\.[A-Z]{2})?/[0-9]{7})(v[0-9]{1,3})?$`)
)

// compileOnce returns the compiled pattern, which is compiled when it is first asked for: most
// programs that read addresses never see such an identifier.
func compileOnce(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

func (p *parser) https() error {
	s, i := p.s, p.path
	if !strings.HasPrefix(s[i:], "//") {
		return refuse(finding.URIHost, i)
	}
	i += len("//")
	end := len(s)
	if n := strings.IndexAny(s[i:], "/?#"); n >= 0 {
		end = i + n
	}
	host, err := authority(s[:end], i)
	if err != nil {
		return err
	}
	p.host, p.label = host, host
	return rest(s, end)
}

func (p *parser) did() error {
	if err := rest(p.s, p.path); err != nil {
		return err
	}
	id, end := didParts(p.s)
	if end == 0 {
		return refuse(finding.URISyntax, 0)
	}
	if p.s[:id] == "did:web:" {
		return p.web(id, end)
	}
	p.label = p.s[:id-1]
	return nil
}

// didParts returns where the identifier of a DID begins and ends, behind the method;
// end is 0 where s is not a DID. What follows it is the path, query and fragment. (DID
// Core 1.0, section 3.1.)
func didParts(s string) (id, end int) {
	if !strings.HasPrefix(s, "did:") {
		return 0, 0
	}
	id = len("did:")
	for id < len(s) && ('a' <= s[id] && s[id] <= 'z' || classes[s[id]]&digit != 0) {
		id++
	}
	if id == len("did:") || id == len(s) || s[id] != ':' {
		return 0, 0
	}
	id++
	end = span(s, id, inDID, true)
	if end == id || s[end-1] == ':' || end < len(s) && strings.IndexByte("/?#", s[end]) < 0 {
		return 0, 0
	}
	return id, end
}

// web checks the host, and the port behind an escaped colon, of the did:web
// identifier s[id:end]. An address is not allowed there.
func (p *parser) web(id, end int) error {
	name, _, _ := strings.Cut(p.s[id:end], ":")
	if n := strings.IndexByte(name, '%'); n >= 0 {
		at := id + n
		if !strings.EqualFold(name[n:n+3], "%3A") || !validPort(name[n+3:]) {
			return refuse(finding.URIHost, at)
		}
		p.escapedColon = at
		name = name[:n]
	}
	host, err := hostName(p.s[:id+len(name)], id)
	if err != nil {
		return err
	}
	p.host, p.label = host, host
	return nil
}

func (p *parser) urn() error {
	if err := rest(p.s, p.path); err != nil {
		return err
	}
	nid, nss, _ := strings.Cut(p.s[p.path:], ":")
	nid = strings.ToLower(nid)
	syntax := urnSyntax[nid]
	if syntax == nil {
		return refuse(finding.URIScheme, p.path)
	}
	p.label = "urn:" + nid
	return p.identifier(syntax, len(p.s)-len(nss))
}

func (p *parser) arxiv() error {
	if err := rest(p.s, p.path); err != nil {
		return err
	}
	p.label = "arxiv"
	return p.identifier(arxivSyntax, p.path)
}

func (p *parser) identifier(syntax func() *regexp.Regexp, i int) error {
	if !syntax().MatchString(p.s[i:]) {
		return refuse(finding.URISyntax, i)
	}
	return nil
}
