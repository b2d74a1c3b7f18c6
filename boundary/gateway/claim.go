// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// agree reports whether the headers of a message say what its body says. What
// they say beyond that is passed on: the server may know of tools that it has
// not listed to us.
//
// spec: SEP-2243
func agree(route *wire.Route, claim *wire.Claim, headers []mcpmsg.ParamHeader) bool {
	if route.Name != "" && route.Name != claim.Name {
		return false
	}
	route.Name = claim.Name
	for _, h := range headers {
		claimed, there := claim.Params[strings.ToLower(h.Name)]
		value, is := route.Params[h.Name]
		if there != is || claimed != value && !sameInteger(claimed, value) {
			return false
		}
	}
	for name, value := range claim.Params {
		if slices.ContainsFunc(headers, func(h mcpmsg.ParamHeader) bool { return strings.EqualFold(h.Name, name) }) {
			continue
		}
		if route.Params == nil {
			route.Params = make(map[string]string, len(claim.Params))
		}
		route.Params[name] = value
	}
	return true
}

// sameInteger reports whether both are spellings of one integer: 42 and 42.0.
func sameInteger(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
}
