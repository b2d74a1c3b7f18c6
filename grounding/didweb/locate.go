// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/href"
)

// A location is where the document of a did:web identifier lies.
type location struct {
	did  string
	host string // lower case
	url  string
}

func notHere(why string) error { return fmt.Errorf("%w: %s", attest.ErrNotAuthorised, why) }

// locate maps a did:web identifier to a URL (did:web method specification, "Read").
// The error wraps attest.ErrNotAuthorised.
func locate(did string) (location, error) {
	u, err := href.ParseDID(did)
	if err != nil || !strings.HasPrefix(did, "did:web:") {
		return location{}, notHere("no did:web of a public host")
	}
	id := strings.TrimPrefix(did, "did:web:")
	parts := strings.Split(id, ":")
	authority := u.Host()
	if n := strings.IndexByte(parts[0], '%'); n >= 0 { // "%3A" and a port, says href
		port := parts[0][n+len("%3A"):]
		// Below are the services that do not expect HTTP.
		if p, err := strconv.Atoi(port); err != nil || p != 443 && p < 1024 {
			return location{}, notHere("a port that is not for https")
		}
		authority += ":" + port
	}
	path := "/.well-known"
	if len(parts) > 1 {
		path = ""
	}
	for _, p := range parts[1:] {
		if p == "" || climbs(p) {
			return location{}, notHere("a path that means another")
		}
		path += "/" + p
	}
	address := "https://" + authority + path + "/did.json"
	// What was allowed as a DID is not yet so as a URL: "%2F" is one that decodes.
	if _, err := href.Parse(address); err != nil {
		return location{}, notHere("a path that means another")
	}
	return location{did, u.Host(), address}, nil
}

// climbs reports whether some reader, however often it decodes, takes the segment
// for "." or "..".
func climbs(segment string) bool {
	for {
		if segment == "." || segment == ".." {
			return true
		}
		next, err := url.PathUnescape(segment)
		if err != nil || next == segment {
			return false
		}
		segment = next
	}
}
