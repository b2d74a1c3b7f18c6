// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"math"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A ParamHeader binds an argument to the Mcp-Param header that repeats it.
type ParamHeader struct {
	Path []string // member names from the arguments on
	Name string   // without prefix; an RFC 9110 token
}

// Bounds of what one tool's schema may ask for.
const (
	maxParamHeaders = 64
	maxParamDepth   = 16
)

// ParamHeaders returns the x-mcp-header annotations of a tool's inputSchema. A
// schema with one that is invalid (no token, no primitive type, given twice)
// has none: a client must not use such a tool over HTTP.
//
// spec: SEP-2243
func ParamHeaders(inputSchema strictjson.Value) []ParamHeader {
	c := paramCollector{seen: map[string]bool{}}
	if !c.collect(inputSchema.Get("properties"), nil) {
		return nil
	}
	return c.found
}

type paramCollector struct {
	seen  map[string]bool // lower case
	found []ParamHeader
}

func (c *paramCollector) collect(properties strictjson.Value, prefix []string) bool {
	if properties.Kind() != '{' {
		return true
	}
	if len(prefix) == maxParamDepth {
		return false
	}
	for name, prop := range properties.Members() {
		if prop.Kind() != '{' {
			continue
		}
		path := append(prefix[:len(prefix):len(prefix)], name.Text())
		if h := prop.Get("x-mcp-header"); h.Exists() && !c.add(h, prop.Get("type").Text(), path) {
			return false
		}
		if !c.collect(prop.Get("properties"), path) {
			return false
		}
	}
	return true
}

func (c *paramCollector) add(header strictjson.Value, typ string, path []string) bool {
	switch typ {
	case "string", "integer", "boolean":
	default:
		return false
	}
	name := header.Text()
	lower := strings.ToLower(name)
	if !isToken(name) || c.seen[lower] || len(c.found) == maxParamHeaders {
		return false
	}
	c.seen[lower] = true
	c.found = append(c.found, ParamHeader{path, name})
	return true
}

// isToken reports whether s is an RFC 9110 token.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// RouteOf returns what streamable HTTP repeats of a message in its headers.
// headers are those of the tool that params calls.
func RouteOf(method string, params strictjson.Value, headers []ParamHeader) wire.Route {
	var r wire.Route
	if params.Kind() != '{' {
		return r
	}
	r.Version = params.Get("_meta").Get(KeyVersion).Text()
	switch method {
	case CallTool:
		r.Name = params.Get("name").Text()
		r.Params = paramValues(params.Get("arguments"), headers)
	case GetPrompt:
		r.Name = params.Get("name").Text()
	case ReadResource:
		r.Name = params.Get("uri").Text()
	}
	return r
}

func paramValues(arguments strictjson.Value, headers []ParamHeader) map[string]string {
	var values map[string]string
	for _, h := range headers {
		v := arguments
		for _, name := range h.Path {
			if v.Kind() != '{' {
				v = strictjson.Value{}
				break
			}
			v = v.Get(name)
		}
		s, ok := primitive(v)
		if !ok {
			continue
		}
		if values == nil {
			values = make(map[string]string, len(headers))
		}
		values[h.Name] = s
	}
	return values
}

// maxSafe is the last integer for which an IEEE 754 double has no neighbour.
const maxSafe = 1<<53 - 1

// primitive spells a value as a header does; ok is false for null, containers
// and numbers that are no safe integers.
func primitive(v strictjson.Value) (s string, ok bool) {
	switch v.Kind() {
	case '"':
		return v.Text(), true
	case 't':
		return "true", true
	case 'f':
		return "false", true
	case '0':
		f, err := strconv.ParseFloat(string(v.Raw()), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}
