// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	tokensPage = "../../docs/spec/tokens.md"
	written    = "<!-- written by 'make docs' -->\n"
	endWritten = "<!-- /written -->\n"
)

// TestDocsTokens holds the list of docs/spec/tokens.md against the table. With
// PELLUCID_UPDATE_DOCS set it rewrites a stale page, and still fails.
func TestDocsTokens(t *testing.T) {
	b, err := os.ReadFile(tokensPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), written)
	_, after, ok2 := strings.Cut(rest, endWritten)
	if !ok || !ok2 {
		t.Fatal("docs/spec/tokens.md has lost its marks")
	}
	fresh := before + written + listUnpackaged() + endWritten + after
	if fresh == string(b) {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Fatal("docs/spec/tokens.md is stale: run 'make docs'")
	}
	if err := os.WriteFile(tokensPage, []byte(fresh), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Error("docs/spec/tokens.md was stale and has been rewritten")
}

// listUnpackaged lists the tokens without a package, by family.
func listUnpackaged() string {
	var page strings.Builder
	var families []string
	none := map[string][]string{}
	for _, tok := range Tokens() {
		if !strings.HasPrefix(tok.Package, "none") {
			continue
		}
		if len(none[tok.Family]) == 0 {
			families = append(families, tok.Family)
		}
		none[tok.Family] = append(none[tok.Family], "`"+tok.Text+"`")
	}
	for _, f := range families {
		fmt.Fprintf(&page, "* %s: %s\n", f, strings.Join(none[f], " "))
	}
	return page.String()
}
