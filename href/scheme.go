package href

import (
	"regexp"
	"strings"

	"github.com/pellucid-mcp/pellucid/finding"
)

// The identifiers that have a syntax of their own, which leaves little room for
// prose. They match what the grammar of RFC 3986 has passed already.
var (
	// DID Core 1.0, section 3.1; what follows is the path, query and fragment.
	didSyntax = regexp.MustCompile(`^did:([a-z0-9]+):((?:(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})*:)*(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)(?:[/?#]|$)`)

	urnSyntax = map[string]*regexp.Regexp{
		"doi":  regexp.MustCompile(`^10\.[0-9]{4,9}(\.[0-9]+)*/[^?#]+$`),
		"isbn": regexp.MustCompile(`^(97[89]-?)?([0-9]-?){9}[0-9Xx]$`),
		"pmid": regexp.MustCompile(`^[1-9][0-9]{0,8}$`),
	}
	arxivSyntax = regexp.MustCompile(`^([0-9]{4}\.[0-9]{4,5}|[a-z]+(-[a-z]+)*(\.[A-Z]{2})?/[0-9]{7})(v[0-9]{1,3})?$`)
)

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
	m := didSyntax.FindStringSubmatchIndex(p.s)
	if m == nil {
		return refuse(finding.URISyntax, 0)
	}
	method, id, end := p.s[m[2]:m[3]], m[4], m[5]
	if method == "web" {
		return p.web(id, end)
	}
	p.label = "did:" + method
	return nil
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

func (p *parser) identifier(syntax *regexp.Regexp, i int) error {
	if !syntax.MatchString(p.s[i:]) {
		return refuse(finding.URISyntax, i)
	}
	return nil
}
