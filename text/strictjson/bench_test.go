// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// benchTexts are messages as they go over the wire.
func benchTexts(b *testing.B) map[string][]byte {
	text := func(s string, n int) []byte {
		var body []byte
		for len(body) < n {
			body = append(body, s...)
		}
		out := []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":`)
		out = AppendQuote(out, string(body))
		return append(out, `}],"isError":false,"_meta":{"progressToken":3}}}`...)
	}
	texts := map[string][]byte{
		"small":   []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"Lisbon","days":3,"units":"metric"},"_meta":{"progressToken":12}}}`),
		"prose":   text("The quick brown fox jumps over the lazy dog, and reads \"the news\".\n", 10<<10),
		"russian": text("\u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a. ", 10<<10),
		"numbers": []byte("[" + strings.Repeat("[1,-2.5,31415926535,6.02e23,0],", 500) + "[]]"),
	}
	if src, err := realSurface(); err == nil {
		texts["surface"] = src
	}
	return texts
}

func BenchmarkReset(b *testing.B) {
	for name, src := range benchTexts(b) {
		b.Run(name+"/strictjson", func(b *testing.B) {
			var d Doc
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Reset(src, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encoding-json-Valid", func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(src) {
					b.Fatal("invalid")
				}
			}
		})
		b.Run(name+"/jsontext", func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			r := strings.NewReader("")
			dec := jsontext.NewDecoder(r)
			for b.Loop() {
				r.Reset(alias(src))
				dec.Reset(r)
				for {
					if _, err := dec.ReadToken(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRewrite replaces one string of a message and emits the whole.
func BenchmarkRewrite(b *testing.B) {
	for name, src := range benchTexts(b) {
		if name != "prose" && name != "russian" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			var d Doc
			var e Edits
			var out []byte
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Reset(src, Limits{}); err != nil {
					b.Fatal(err)
				}
				e.Reset()
				for c := range d.Root().Get("result").Get("content").Elements() {
					t := c.Get("text")
					e.ReplaceText(t, alias(t.Raw()))
				}
				out = e.Apply(out[:0], d.Root())
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	src, err := realSurface()
	if err != nil {
		b.Skip(err)
	}
	var out []byte
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if out, err = Canonical(out[:0], src, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// realSurface is what a public server says of itself.
func realSurface() ([]byte, error) {
	path, err := datatest.Find("../..", "mcp-surfaces/server-memory.json")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
