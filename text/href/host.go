// SPDX-License-Identifier: Apache-2.0

package href

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const (
	maxHost  = 253 // RFC 1035, section 2.3.4, less the root
	maxLabel = 63
)

// authority checks the authority that begins at i and ends s, and returns its
// host in lower case, without brackets. There must be no userinfo.
func authority(s string, i int) (host string, err error) {
	if n := strings.IndexByte(s[i:], '@'); n >= 0 {
		return "", refuse(finding.URIHost, i+n)
	}
	end := len(s)
	if n := strings.LastIndexByte(s[i:], ':'); n >= 0 && !strings.HasSuffix(s, "]") {
		end = i + n
		if !validPort(s[end+1:]) {
			return "", refuse(finding.URIHost, end)
		}
	}
	if strings.HasPrefix(s[i:], "[") {
		return addressV6(s[:end], i)
	}
	return hostOrAddress(s[:end], i)
}

// validPort reports whether s is a port from 1 to 65535 without leading zeros.
func validPort(s string) bool {
	if span(s, 0, digit, false) < len(s) || strings.HasPrefix(s, "0") {
		return false
	}
	n, err := strconv.Atoi(s)
	return err == nil && n <= 65535
}

func hostOrAddress(s string, i int) (string, error) {
	if !numeric(s[i:]) {
		return hostName(s, i)
	}
	a, err := netip.ParseAddr(s[i:])
	if err != nil || !a.Is4() || !public(a) {
		return "", refuse(finding.URIHost, i)
	}
	return s[i:], nil
}

// numeric reports whether some reader would take host for an IPv4 address: the
// last label is a number (WHATWG URL, "ends in a number checker"). Only four
// plain decimal numbers are one for every reader.
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last != "" && span(last, 0, digit, false) == len(last) {
		return true
	}
	if len(last) < 2 || last[0] != '0' || last[1]|0x20 != 'x' {
		return false
	}
	for i := 2; i < len(last); i++ {
		if !isHex(last[i]) {
			return false
		}
	}
	return true
}

// notPublic are the IPv4 ranges that lead somewhere else than to a public host.
// The ranges for documentation (TEST-NET) lead nowhere and are not among them.
var notPublic = prefixes(
	"0.0.0.0/8",      // this network
	"10.0.0.0/8",     // private
	"100.64.0.0/10",  // carrier's NAT
	"127.0.0.0/8",    // loopback
	"169.254.0.0/16", // link-local, and with it the clouds' metadata services
	"172.16.0.0/12",  // private
	"192.0.0.0/24",   // protocol assignments
	"192.88.99.0/24", // 6to4 relays
	"192.168.0.0/16", // private
	"198.18.0.0/15",  // benchmarks
	"224.0.0.0/4",    // multicast
	"240.0.0.0/4",    // reserved, broadcast
	"2001::/32",      // Teredo: holds an IPv4 address
	"2001:10::/28",   // ORCHID
	"2001:20::/28",   // ORCHIDv2
	"2002::/16",      // 6to4: holds an IPv4 address
)

// globalV6 is all that has been allocated for unicast. What lies outside is
// loopback, unique local, link-local, multicast, or holds an IPv4 address.
var globalV6 = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func public(a netip.Addr) bool {
	if a.Is6() && !globalV6.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// addressV6 checks the bracketed IPv6 address that begins at i and ends s. Zones
// and addresses of later versions are refused.
func addressV6(s string, i int) (string, error) {
	inside := s[i+1:]
	if !strings.HasSuffix(inside, "]") {
		return "", refuse(finding.URIHost, i)
	}
	inside = inside[:len(inside)-1]
	a, err := netip.ParseAddr(inside)
	if err != nil || !a.Is6() || a.Zone() != "" || !public(a) {
		return "", refuse(finding.URIHost, i)
	}
	return strings.ToLower(inside), nil
}

// local are the domains that by definition are not public (RFC 6761, RFC 6762,
// RFC 8375 and ICANN's reservation of .internal).
var local = []string{"localhost", "local", "internal", "home.arpa"}

// hostName checks the host name that begins at i and ends s, and returns it in
// lower case. It is not an address in any spelling.
func hostName(s string, i int) (string, error) {
	if len(s)-i > maxHost || len(s) == i || numeric(s[i:]) {
		return "", refuse(finding.URIHost, i)
	}
	labels := strings.Split(s[i:], ".")
	at := i
	for k, label := range labels {
		end := at + len(label)
		if n := span(s[:end], at, inHost, false); n < end {
			if classes[s[n]] != 0 || s[n] == '%' {
				return "", refuse(finding.URIHost, n)
			}
			return "", illegal(s, n)
		}
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return "", refuse(finding.URIHost, at)
		}
		labels[k] = strings.ToLower(label) // only now: it would turn U+0130 into "i"
		at = end + len(".")
	}
	if len(labels) == 1 {
		// Not public, and "[inst]", as it would be rendered, is a control token.
		return "", refuse(finding.URIHost, i)
	}
	host := strings.Join(labels, ".")
	for _, name := range local {
		if host == name || strings.HasSuffix(host, "."+name) {
			return "", refuse(finding.URIHost, i)
		}
	}
	if err := internationalLabels(labels, i); err != nil {
		return "", err
	}
	return host, nil
}

// internationalLabels checks what the labels in Punycode, the first of which
// stands at i, show to a reader.
func internationalLabels(labels []string, i int) error {
	var topScripts ucd.ScriptSet
	if top := labels[len(labels)-1]; strings.HasPrefix(top, acePrefix) {
		text, _ := decodeLabel(top)
		topScripts = scriptsOf(text)
	}
	for k, label := range labels {
		if strings.HasPrefix(label, acePrefix) {
			text, ok := decodeLabel(label)
			if !ok {
				return refuse(finding.URIHost, i)
			}
			if at := indexHidden(text); at >= 0 {
				return refuse(finding.URIHidden, i)
			}
			// A whole label of look-alikes of ASCII is honest only under a top-level
			// domain of its own script.
			own := scriptsOf(text).And(topScripts).Len() > 0
			if !honest(text) || k < len(labels)-1 && !own && looksASCII(text) {
				return refuse(finding.URIHost, i)
			}
		}
		i += len(label) + len(".")
	}
	return nil
}

func indexHidden(text []rune) int {
	for i, r := range text {
		if hidden(r) {
			return i
		}
	}
	return -1
}

// honest reports whether the label reads as what it is: in its normal form, of
// letters, marks and digits of one script, or of the scripts that Chinese,
// Japanese and Korean write together (UTS #39, "highly restrictive").
func honest(text []rune) bool {
	if s := string(text); !ucd.NFKC.IsNormal(s) || ucd.Of(text[0])&ucd.Mark != 0 {
		return false
	}
	for i, r := range text {
		if !letter(text, i) || ucd.Of(r)&ucd.Flagged != 0 {
			return false
		}
	}
	if scriptsOf(text).Len() > 0 {
		return true
	}
	for _, together := range writtenTogether {
		fits := true
		for _, r := range text {
			fits = fits && (scriptless(r) || ucd.Extensions(r).And(together).Len() > 0)
		}
		if fits {
			return true
		}
	}
	return false
}

var writtenTogether = []ucd.ScriptSet{
	ucd.SetOf(ucd.ScriptLatin, ucd.ScriptHan, ucd.ScriptHiragana, ucd.ScriptKatakana),
	ucd.SetOf(ucd.ScriptLatin, ucd.ScriptHan, ucd.ScriptBopomofo),
	ucd.SetOf(ucd.ScriptLatin, ucd.ScriptHan, ucd.ScriptHangul),
}

// letter reports whether the character at i may stand in a label: it belongs to
// a script, is a mark, an ASCII digit or hyphen, or the Catalan middle dot.
func letter(text []rune, i int) bool {
	switch r := text[i]; {
	case 0x334 <= r && r <= 0x338: // overlays: a struck-out letter is another one
		return false
	case r < 0x80, ucd.Of(r)&ucd.Mark != 0:
		return true
	case r == 0xb7: // RFC 5892, appendix A.3
		return i > 0 && i+1 < len(text) && text[i-1] == 'l' && text[i+1] == 'l'
	default:
		return !scriptless(r)
	}
}

var noScript = ucd.SetOf(ucd.ScriptCommon, ucd.ScriptInherited, ucd.ScriptUnknown)

func scriptless(r rune) bool { return ucd.Extensions(r).And(noScript).Len() > 0 }

// scriptsOf returns the scripts that could have written all of text.
func scriptsOf(text []rune) ucd.ScriptSet {
	var set ucd.ScriptSet
	first := true
	for _, r := range text {
		if scriptless(r) {
			continue
		}
		if first {
			set, first = ucd.Extensions(r), false
		}
		set = set.And(ucd.Extensions(r))
	}
	return set
}

// looksASCII reports whether every character of text is ASCII or taken for it.
func looksASCII(text []rune) bool {
	for _, r := range text {
		if r >= 0x80 && ucd.Of(r)&ucd.Confusable == 0 {
			return false
		}
	}
	return true
}
