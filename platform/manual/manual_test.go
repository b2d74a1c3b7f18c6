// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWrite(t *testing.T) {
	var b strings.Builder
	p := Page{Name: "pellucid-say", Short: `it's "said"`, Sections: []Section{
		{Heading: "SYNOPSIS", Usage: []string{"pellucid say [flags]", "pellucid say --loud"}, Text: "After it."},
		{Heading: "DESCRIPTION", Text: "One\nparagraph.\n\n    .kept\n      as it \\stands\n\nLast.\n"},
		{Heading: "pellucid say", Below: true, Items: []Item{{"-h, --help", "Shows\n it."}, {"", "\u00a7 1\x1b[31m"}}},
	}}
	if err := Write(&b, p, time.Date(2026, 11, 22, 23, 30, 0, 0, time.FixedZone("", -3600))); err != nil {
		t.Fatal(err)
	}
	want := `.TH PELLUCID\-SAY 1 2026-11-23 Pellucid "Pellucid Manual"
.SH NAME
pellucid\-say \- it\(aqs \(dqsaid\(dq
.SH "SYNOPSIS"
pellucid say [flags]
.br
pellucid say \-\-loud
.PP
After it.
.SH "DESCRIPTION"
One paragraph.
.PP
.RS 4
.nf
\&.kept
  as it \estands
.fi
.RE
.PP
Last.
.SS "pellucid say"
.TP
\fB\-h, \-\-help\fR
Shows it.
.TP
\fB\&\fR
\[u00A7] 1 [31m
`
	if b.String() != want {
		t.Errorf("wrote\n%s\nwant\n%s", b.String(), want)
	}
	if shown := shown(t, b.String()); shown != "" {
		for _, line := range []string{`pellucid-say - it's "said"`, "pellucid say --loud", `.kept`, `  as it \stands`, "\u00a7 1 [31m"} {
			if !strings.Contains(shown, line) {
				t.Errorf("mandoc does not show %q in\n%s", line, shown)
			}
		}
	}
}

// shown returns the page as mandoc shows it, and the empty string where mandoc is not installed.
func shown(t *testing.T, page string) string {
	t.Helper()
	program, err := exec.LookPath("mandoc")
	if err != nil {
		t.Log("mandoc is not installed: the page is not rendered")
		return ""
	}
	path := filepath.Join(t.TempDir(), "page.1")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "-T", "utf8", "-O", "width=200", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Builder{} // without "x, backspace, x", which is bold
	rs := []rune(string(out))
	for i, r := range rs {
		if r != '\b' && (i+1 == len(rs) || rs[i+1] != '\b') {
			plain.WriteRune(r)
		}
	}
	return plain.String()
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", ".x", "'x", `\fB`, "a\nb", "\u202e", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := escape(s)
		if strings.HasPrefix(got, ".") || strings.ContainsAny(got, `'"`) {
			t.Errorf("escape(%+q) = %+q", s, got)
		}
		for _, r := range got {
			if r < ' ' || r > '~' {
				t.Errorf("escape(%+q) holds %U", s, r)
			}
		}
	})
}
