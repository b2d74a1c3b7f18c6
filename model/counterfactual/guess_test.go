// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// TestGuess: a verb that acts makes a call privileged wherever it stands in the name, and
// a reading one at the beginning does not outweigh it.
func TestGuess(t *testing.T) {
	p := GuessPrivileges()
	for name, want := range map[string]int{
		"get_mail": 0, "getMail": 0, "get-mail": 0, "GetMail": 0, "mail.get": 1000, "get": 0, "get2": 0, "mcp__github__get_issue": 0, "github_list_issues": 0, "list_sent_items": 0, "getURLInfo": 0,
		"get_merge_request": 0, "get_workflow_run": 0, "list_installed_apps": 0, "search_deleted": 0, "get_sender": 0, "check_status": 0, "getHTTPStatus": 0, "read_text_file": 0, "get_post": 0,
		"get_mail_and_forward": 1000, "get_mail_and_forward_it": 1000, "getMailAndForward": 1000, "getMailForward": 1000, "get-mail-forward": 1000, "get.mail.forward": 1000, "get/mail/forward": 1000, "get_mail2forward": 1000,
		"get_mail__forward": 1000, "GET_MAIL_FORWARD": 1000, "getHTTPSendMail": 1000, "get mail forward": 1000, "get:forward": 1000, "list_and_pay": 1000, "read_then_email": 1000, "find_or_create": 1000, "get_and_post": 1000,
		"read_write_file": 1000, "search_and_replace": 1000, "check_out_branch": 1000, "check_in": 1000, "query_and_run": 1000, "view_then_sign": 1000, "fetch_to_upload": 1000, "show_update": 1000,
		"get_\u0455end": 1000, "get_m\u0430il": 1000, "": 1000, "_": 1000, "getaway": 1000, "send_mail": 1000, "post_list": 1000, "forget": 1000, "budget": 1000, "thread": 1000, "get_" + strings.Repeat("a", 256): 1000,
	} {
		if got := p.Privilege(name); got != want {
			t.Errorf("%+q: %d", name, got)
		}
	}
}

// TestGuessHints: what the approved surface says can make a call privileged, and clears
// only a name that holds no verb that acts.
func TestGuessHints(t *testing.T) {
	p := GuessPrivileges()
	p.Hints = func(tool string) Hint {
		switch {
		case strings.Contains(tool, "reads"):
			return Hint{Reads: true}
		case strings.Contains(tool, "acts"):
			return Hint{Acts: true}
		case strings.Contains(tool, "both"):
			return Hint{Reads: true, Acts: true}
		}
		return Hint{}
	}
	for name, want := range map[string]int{
		"weather_reads": 0, "issue_reads": 0, "send_reads": 1000, "get_and_forward_reads": 1000, "get_and_post_reads": 1000, "get_acts": 1000, "get_both": 1000, "weather": 1000, "get_weather": 0,
	} {
		if got := p.Privilege(name); got != want {
			t.Errorf("%s: %d", name, got)
		}
	}
	p.Rules = []ToolRule{{Tool: "get_acts"}, {Tool: "weather_reads", Privilege: 500}}
	if p.Privilege("get_acts") != 0 || p.Privilege("weather_reads") != 500 {
		t.Error("the operator's rule does not go first")
	}
}

// TestGuessReal: of the tools of published servers, none that says it only reads is held
// that was not held when a name had to begin with one of thirteen verbs, and fewer are.
func TestGuessReal(t *testing.T) {
	dir, err := datatest.Find("../..", "mcp-surfaces")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	type tool struct {
		Name        string
		Annotations struct{ ReadOnlyHint, DestructiveHint *bool }
	}
	p, hinted := GuessPrivileges(), GuessPrivileges()
	n, before, after, known, reading := 0, 0, 0, 0, [4]int{}
	for _, file := range files {
		var dump struct {
			List json.RawMessage `json:"tools/list"`
		}
		b, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(b, &dump) != nil {
			t.Fatal(file, err)
		}
		var pages []struct{ Tools []tool }
		var page struct{ Tools []tool }
		if json.Unmarshal(dump.List, &pages) != nil && json.Unmarshal(dump.List, &page) == nil {
			pages = append(pages, page)
		}
		for _, tt := range pages {
			for _, tool := range tt.Tools {
				ro := tool.Annotations.ReadOnlyHint
				hinted.Hints = func(string) Hint {
					d := tool.Annotations.DestructiveHint
					return Hint{Reads: ro != nil && *ro, Acts: ro != nil && !*ro || ro == nil && d != nil && *d}
				}
				was, is, with := begins(tool.Name), p.Privilege(tool.Name) == 0, hinted.Privilege(tool.Name) == 0
				count := func(n *int, yes bool) {
					if yes {
						*n++
					}
				}
				n++
				count(&before, !was)
				count(&after, !is)
				count(&known, !with)
				if ro == nil {
					continue
				}
				if *ro {
					reading[0]++
					count(&reading[1], !was)
					count(&reading[2], !is)
					count(&reading[3], !with)
					if was && !is {
						t.Errorf("%+.64q only reads, and is held", tool.Name)
					}
				} else if with {
					t.Errorf("%+.64q is not for reading, and is not held where that is known", tool.Name)
				}
			}
		}
	}
	t.Logf("of %d tools %d were held, %d are, %d where the surface is known; of %d with readOnlyHint: true %d, %d, %d", n, before, after, known, reading[0], reading[1], reading[2], reading[3])
	if n < 1000 || after > before || known > after {
		t.Error("more is held than was")
	}
}

// begins reports whether a name begins with a reading verb, which was the rule before.
func begins(name string) bool {
	for _, v := range strings.Fields("get list read search find fetch view show describe query lookup count check") {
		if name == v || strings.HasPrefix(name, v+"_") || strings.HasPrefix(name, v+"-") || strings.Contains(name, "."+v+"_") {
			return true
		}
	}
	return false
}

// FuzzGuess: no name is read beyond its words, and one that holds a verb that acts, set
// off by anything that is no letter, is privileged.
func FuzzGuess(f *testing.F) {
	f.Add("get_mail", "forward", "_")
	f.Add("\u0455", "send", "-")
	f.Fuzz(func(t *testing.T, before, verb, sep string) {
		if sep == "" || strings.ContainsAny(sep, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") || !actVerbs()[verb] {
			verb, sep = "forward", "_"
		}
		if name := before + sep + verb; GuessPrivileges().Privilege(name) == 0 {
			t.Errorf("%+q is not held", name)
		}
	})
}
