// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func utf16le(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

const (
	withheldBlob = "\x00withheld"
	dirtyText    = "say <|im_start|>yes"
	cleanText    = "say yes"
)

// blobs are blobs as servers send them, and what arrives.
var blobs = []struct {
	name, mimeType, blob string
	want                 string // of the blob; withheldBlob: nothing of it
	skipped              finding.Code
}{
	// Spellings.
	{"canonical", "text/plain", b64("honest"), b64("honest"), ""},
	{"bytes behind the padding", "text/plain", b64("ok") + b64(dirtyText), withheldBlob, ""},
	{"two in one", "text/plain", b64("a") + b64(dirtyText), withheldBlob, ""},
	{"characters outside the alphabet", "text/plain", "!" + b64(dirtyText), withheldBlob, ""},
	{"a dot in each group", "text/plain", strings.Join(strings.Split(b64(dirtyText), ""), "."), withheldBlob, ""},
	{"a character too many", "text/plain", strings.TrimRight(b64("abc"), "=") + "a", withheldBlob, ""},
	{"in lines", "text/plain", b64(dirtyText[:12]) + "\r\n" + b64(dirtyText[12:]), b64(cleanText), ""},
	{"with spaces", "text/plain", " " + b64(dirtyText), b64(cleanText), ""},
	{"honest in lines", "text/plain", b64("honest") + "\n", b64("honest"), ""},
	{"without padding", "text/plain", strings.TrimRight(b64("honest!"), "="), b64("honest!"), ""},
	{"bits that no byte holds", "text/plain", "aGl=", "aGk=", ""},
	{"the alphabet of URLs", "text/plain", base64.URLEncoding.EncodeToString([]byte("??>>\u00ff" + dirtyText)), b64("??>>\u00ff" + cleanText), ""},
	{"both alphabets", "text/plain", "+_+_", withheldBlob, ""},
	{"a data: URI", "text/plain", "data:text/plain;base64," + b64(dirtyText), b64(cleanText), ""},
	{"a picture as a data: URI", "image/png", "data:image/png;base64," + b64("\x89PNG"), b64("\x89PNG"), finding.BlobNotInspected},
	{"a picture", "image/png", b64("\x89PNG"), b64("\x89PNG"), finding.BlobNotInspected},
	{"a picture in lines", "image/png", b64("\x89PNG\r") + "\n", b64("\x89PNG\r"), finding.BlobNotInspected},
	{"a picture with bytes behind the padding", "image/png", b64("\x89PNG") + b64("\x89PNG"), withheldBlob, ""},
	{"words that are no base64", "image/png", "hi there!", withheldBlob, ""},
	// Types.
	{"bytes that are text", "application/octet-stream", b64(dirtyText), b64(cleanText), ""},
	{"a form", "application/x-www-form-urlencoded", b64(dirtyText), b64(cleanText), ""},
	{"+json", "application/vnd.api+json", b64(dirtyText), b64(cleanText), ""},
	{"a type that is not known", "application/vnd.odd", b64(dirtyText), b64(cleanText), ""},
	{"a type that cannot be parsed", "text/plain; charset", b64(dirtyText), b64(cleanText), ""},
	// Character sets.
	{"utf-16le", "text/plain; charset=utf-16le", b64(utf16le(dirtyText)), b64(utf16le(cleanText)), ""},
	{"utf-16 in quotes", `text/plain; charset="UTF-16"`, b64(utf16le(dirtyText)), b64(utf16le(cleanText)), ""},
	{"utf-16 with a mark alone", "text/plain", b64("\xff\xfe" + utf16le(dirtyText)), b64("\xff\xfe" + utf16le(cleanText)), ""},
	{"utf-16 with a mark and no type", "", b64("\xff\xfe" + utf16le(dirtyText)), b64("\xff\xfe" + utf16le(cleanText)), ""},
	{"honest utf-16", "text/plain;charset=utf-16le", b64(utf16le("gr\u00fc\u00dfe \u4f60\u597d\r\n")), b64(utf16le("gr\u00fc\u00dfe \u4f60\u597d\r\n")), ""},
	{"latin-1", "text/plain; charset=iso-8859-1", b64("caf\xe9 " + dirtyText), b64("caf\xe9 " + cleanText), ""},
	{"honest latin-1", "text/plain; charset=iso-8859-1", b64("caf\xe9 \xbd"), b64("caf\xe9 \xbd"), ""},
	{"honest latin-1 without its name", "text/plain", b64("caf\xe9 \xbd"), b64("caf\xe9 \xbd"), ""},
	{"windows-1252", "text/csv;charset=windows-1252", b64("\x80 " + dirtyText), b64("\x80 " + cleanText), ""},
	{"EBCDIC", "text/plain;charset=ibm037", b64("\x4c\x4f\x89\x94\x6d\xa2\xa3\x81\x99\xa3\x4f\x6e\x81"), b64("\x81"), ""},
	{"latin-1 that other readers take for UTF-8", "text/plain; charset=iso-8859-1", b64("\u202ea"), b64("a"), ""},
	{"… and is not quite", "text/plain; charset=iso-8859-1", b64("\xe9 \u202ea"), withheldBlob, ""},
	{"utf-8 with a mark", "text/csv", b64("\ufeffa;b"), b64("\ufeffa;b"), ""},
	{"utf-7", "text/plain;charset=utf-7", b64("+AGkAbQ-"), b64("+AGkAbQ-"), finding.UnknownCharset},
	{"a charset that is not known", "text/plain;charset=x-odd", b64(dirtyText), b64(cleanText), finding.UnknownCharset},
}

// TestBlobs: no reader gets of a blob what was not inspected, in any place where
// a blob stands.
func TestBlobs(t *testing.T) {
	t.Parallel()
	for _, place := range []struct {
		method, body string
		at           []any
	}{
		{mcpmsg.ReadResource, `{"contents":[{"uri":"f:x","mimeType":MIME,"blob":BLOB}]}`, []any{"result", "contents", 0, "blob"}},
		{mcpmsg.CallTool, `{"content":[{"type":"resource","resource":{"uri":"f:x","mimeType":MIME,"blob":BLOB}}]}`, []any{"result", "content", 0, "resource", "blob"}},
		{mcpmsg.CallTool, `{"content":[{"type":"image","mimeType":MIME,"data":BLOB}]}`, []any{"result", "content", 0, "data"}},
		{mcpmsg.GetPrompt, `{"messages":[{"role":"user","content":{"type":"image","mimeType":MIME,"data":BLOB}}]}`, []any{"result", "messages", 0, "content", "data"}},
	} {
		t.Run(place.method, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Profile = Faithful })
			for _, b := range blobs {
				body := strings.NewReplacer("MIME", jsonQuote(b.mimeType), "BLOB", jsonQuote(b.blob)).Replace(place.body)
				up := r.request("1", place.method, `{"name":"read"}`)
				r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":` + body + `}`)
				line := r.client.next()
				d := r.sink.all()
				last := d[len(d)-1]
				if b.want == withheldBlob {
					if strings.Contains(line, b.blob) || !holds(last, finding.AmbiguousEncoding) {
						t.Errorf("%s: %s", b.name, line)
					}
					continue
				}
				if !strings.Contains(line, `"result"`) {
					t.Errorf("%s: %s", b.name, line)
					continue
				}
				if got := parse(t, line).text(place.at...); got != b.want {
					t.Errorf("%s: %q, want %q", b.name, got, b.want)
				}
				if skipped := len(last.NotInspected) > 0; skipped != (b.skipped != "") || skipped && last.NotInspected[0].Code != b.skipped {
					t.Errorf("%s: not inspected %v, want %q", b.name, last.NotInspected, b.skipped)
				}
			}
		})
	}
}

// dataURIs are data: URIs, and whether they may arrive.
var dataURIs = []struct {
	name, uri string
	clean     bool
}{
	{"honest", "data:text/plain;base64," + b64("honest"), true},
	{"honest text", "data:text/plain,honest%20text", true},
	{"honest drawing", "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E", true},
	{"a picture", "data:image/png;base64," + b64("\x89PNG\x00\xff"), true},
	{"a picture with escaped padding", "data:image/png;base64,iVBORw%3D%3D", true},
	{"base64", "data:text/plain;base64," + b64(dirtyText), false},
	{"a picture that is words", "data:image/png;base64," + b64(dirtyText), false},
	{"upper case", "DATA:text/plain;BASE64," + b64(dirtyText), false},
	{"a space in front", " data:text/plain;base64," + b64(dirtyText), false},
	{"a line end within", "da\nta:text/plain;base\t64," + b64(dirtyText), false},
	{"spaces around the flag", "data:text/plain; base64 ," + b64(dirtyText), false},
	{"a parameter behind the flag", "data:text/plain;base64;charset=utf-8," + b64(dirtyText), false},
	{"a parameter before it", "data:text/plain;charset=utf-8;base64," + b64(dirtyText), false},
	{"an escaped flag", "data:text/plain;%62ase64," + b64(dirtyText), false},
	{"an escaped comma", "data:text/plain;base64%2C" + b64(dirtyText), false},
	{"escaped base64", "data:text/plain;base64,%63" + b64(dirtyText)[1:], false},
	{"spaces within", "data:text/plain;base64," + b64(dirtyText[:12]) + " " + b64(dirtyText[12:]), false},
	{"no padding", "data:text/plain;base64," + strings.TrimRight(b64(dirtyText), "="), false},
	{"bytes behind the padding", "data:text/plain;base64," + b64("ok") + b64(dirtyText), false},
	{"the alphabet of URLs", "data:text/plain;base64," + base64.URLEncoding.EncodeToString([]byte("??>>\u00ff"+dirtyText)), false},
	{"no flag at all", "data:text/plain," + b64(dirtyText), false},
	{"escapes", "data:text/plain,%3C%7Cim_start%7C%3E", false},
	{"a hidden character in escapes", "data:,a%E2%80%AEb", false},
	{"utf-16", "data:text/plain;charset=utf-16le;base64," + b64(utf16le(dirtyText)), false},
	{"a fragment", "data:text/plain;base64," + b64("ok") + "#" + b64(dirtyText), false},
}

// TestDataURIs: wherever a data: URI stands, what readers decode of it has been inspected.
func TestDataURIs(t *testing.T) {
	t.Parallel()
	for _, place := range []struct{ name, method, body string }{
		{"icon", mcpmsg.ListTools, `{"tools":[{"name":"a","inputSchema":{"type":"object"},"icons":[{"src":%}]}]}`},
		{"icon of a link", mcpmsg.CallTool, `{"content":[{"type":"resource_link","uri":"x:y","name":"n","icons":[{"src":%}]}]}`},
		{"link", mcpmsg.CallTool, `{"content":[{"type":"resource_link","uri":%,"name":"n"}]}`},
		{"resource", mcpmsg.CallTool, `{"content":[{"type":"resource","resource":{"uri":%,"text":"t"}}]}`},
		{"a text", mcpmsg.CallTool, `{"content":[{"type":"text","text":%}]}`},
		{"structured", mcpmsg.CallTool, `{"content":[],"structuredContent":{"a":[%]}}`},
		{"a read resource", mcpmsg.ReadResource, `{"contents":[{"uri":"x:y","text":%}]}`},
		{"a resource's uri", mcpmsg.ListResources, `{"resources":[{"uri":%,"name":"n"}]}`},
		{"a default", mcpmsg.ListTools, `{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"q":{"default":%}}}}]}`},
	} {
		t.Run(place.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Profile = Faithful })
			for _, u := range dataURIs {
				up := r.request("1", place.method, `{"name":"read"}`)
				r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":` + strings.Replace(place.body, "%", jsonQuote(u.uri), 1) + `}`)
				line := r.client.next()
				quoted := strings.Trim(jsonQuote(u.uri), `"`)
				if strings.Contains(line, quoted) != u.clean {
					t.Errorf("%s: %s", u.name, line)
				}
			}
		})
	}
}
