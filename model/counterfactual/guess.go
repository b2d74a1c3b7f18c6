// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// readVerbs are the verbs of tools that only look.
var readVerbs = set(`browse check compare count crawl describe extract fetch filter find get inspect list lookup preview query read retrieve scrape search show summarize
	view whoami`)

// actVerbs are the verbs of tools that change something, send something or run something.
// One of them makes a call privileged wherever it stands in the name.
var actVerbs = set(`accept activate add adjust allocate allow amend append apply approve assign attach authorize ban bash cancel clear
	clone configure confirm connect convert create deactivate decline decrypt delete deny deploy destroy
	detach disable disband disconnect dismiss dispatch donate drop edit eject empty enable encrypt enqueue
	enroll erase eval evaluate exec execute expel fix flush force forward generate give hire initiate inject
	insert install instantiate invite invoke join kick kill launch leave lend migrate modify mute navigate
	notify overwrite pay perform persist prepend promote provision publish purge put quarantine quit reassign
	reboot rebuild recreate redeem redeploy redirect reject relay reload remit remove rename reorder repair
	repay replace reschedule reset resize resolve respond restart restore resume retry revert revoke rollback
	rotate save sell send shell shutdown snooze spawn steal submit subscribe suspend sync terminal terminate toggle transact
	transmit truncate unapprove unassign unban unblock undeploy undo uninstall unlink unlock unmerge unmute
	unpublish unshare unstar unsubscribe update upgrade upload upsert wipe withdraw write`)

// actNouns are verbs of the same kind that names use as nouns as well: get_merge_request,
// list_workflow_run. They count where no reading verb stands before them, and behind a
// word that joins a verb on.
var actNouns = set(`alert archive bid block book bookmark boost broadcast bulk buy call change charge click close
	comment commission commit control copy credit debit deposit drag duplicate email export fill fork grant
	import invoice issue label link lock log login logout mail mark merge message move note open order patch
	pin post press print process pull purchase push reaction record refresh refund register release reply
	request review run schedule script set share sign spend split star start stop swap switch tag task test
	tip trade transfer transition trigger trust tweet type vote watch wire`)

// joins are the words behind which another verb stands.
var joins = set(`also and n or plus then to`)

// set returns the words, made into a set when it is first asked for.
func set(words string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for w := range strings.FieldsSeq(words) {
			out[w] = true
		}
		return out
	})
}

// maxGuessed is how many bytes of a name are looked at: a longer one is not guessed at.
const maxGuessed = 256

// A Hint is what the approved surface of a server says of a tool beside its name.
type Hint struct {
	Reads bool // readOnlyHint: true
	Acts  bool // readOnlyHint: false, or destructiveHint: true
}

// guess is the privilege of a tool that no rule names. A server chooses names and hints,
// so either can make a call privileged; for it not to be, the name has to say that the
// tool looks, or the hint, and no verb in the name anything else.
func (p *Privileges) guess(tool string) int {
	var h Hint
	if p.Hints != nil {
		h = p.Hints(tool)
	}
	reads, noun, acts := nameSays(tool)
	if acts || h.Acts || !h.Reads && (!reads || noun) {
		return 1000
	}
	return 0
}

// writing matches a statement that changes something, of SQL, Cypher and GraphQL.
var writing = regexp.MustCompile(`(?is)^[\s(]*(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update\s+\S+.*\sset\s|delete\s+from|(?:create|drop|alter|comment\s+on)\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unique\s+|materialized\s+)?` +
	`(?:table|index|view|user|role|database|schema|function|trigger|extension|procedure|sequence|policy|column|constraint|type)\b|create\s*\(|merge\s|truncate\s|grant\s+\S+.*\sto\s|revoke\s+\S+.*\sfrom\s|copy\s+\S+\s+(?:from|to)\s|call\s+\S+|exec(?:ute)?\s|vacuum|reindex|attach\s+database|load\s+(?:data|csv)|pragma\s+\w+\s*=|mutation\b)`)

// within a statement that begins with a reading word these change something.
var writingLater = regexp.MustCompile(`(?is)^[\s(]*(?:with|match|optional\s+match|unwind|explain\s+analy[sz]e|profile|begin|use|for)\b.*\b(?:insert\s+into|update\s+\S+.*\sset|delete|set|remove|create|merge|detach)\b|^[\s(]*select\b.*\binto\s+(?:outfile|dumpfile|table\b|\w+\s+from\b)`)

// sqlComment matches a comment of SQL, or of GraphQL.
var sqlComment = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*|(?m)^\s*(?:#|//)[^\n]*`)

// actsBy reports whether the arguments of a call make it one that changes something, whatever its name says: a statement
// that writes, and a method of HTTP.
func actsBy(args []byte) (yes bool) {
	var doc strictjson.Doc
	if len(args) > 1<<20 || doc.Reset(args, strictjson.Limits{Depth: 32, Values: 1 << 16}) != nil {
		return false // Proposal says so
	}
	flatten(doc.Root(), "", func(path string, v strictjson.Value) {
		_, leaf := cutLast(path, ".")
		named := words(leaf)
		is := func(list ...string) bool {
			return slices.ContainsFunc(named, func(w string) bool { return slices.Contains(list, w) })
		}
		switch text := v.Text(); {
		case yes:
		case is("method", "verb"):
			yes = slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, strings.ToUpper(strings.TrimSpace(text)))
		case is("sql", "cypher", "statement", "query", "q", "gql", "graphql", "mutation", "expression", "command", "script"):
			for one := range strings.SplitSeq(sqlComment.ReplaceAllString(cutValue(text), " "), ";") {
				yes = yes || writing.MatchString(one) || writingLater.MatchString(one)
			}
		}
	})
	return yes
}

// AsksToWrite reports whether the request has the verb by which the arguments of a call change something.
func (a *Assembly) AsksToWrite(c Call) bool {
	in := words(cutValue(a.Task))
	return slices.ContainsFunc(words(string(c.Arguments[:min(len(c.Arguments), maxValue)])), func(w string) bool {
		return writeVerbs()[w] && slices.ContainsFunc(in, func(s string) bool { return strings.HasPrefix(s, strings.TrimSuffix(w, "e")) })
	})
}

var writeVerbs = set("insert replace update delete drop alter create truncate merge grant revoke copy call exec execute vacuum reindex attach load remove detach post put patch mutation")

// nameSays reads the verbs in a tool's name. reads: one of them looks; noun: one that is a
// noun as well stands where a verb does; acts: one does something else, or the name is not
// read.
func nameSays(name string) (reads, noun, acts bool) {
	if len(name) > maxGuessed {
		return false, false, true
	}
	joined, before := false, ""
	for w := range nameWords(name) {
		switch {
		case w == "": // a letter that is not ASCII may look like any other
			return false, false, true
		case actVerbs()[w], before == "check" && (w == "in" || w == "out" || w == "off"), joined && (actNouns()[w] || !readVerbs()[w] && before != "to"):
			acts = true // behind a word that joins a verb on, a word that does not look may be any verb
		case actNouns()[w]:
			noun = noun || !reads
		case readVerbs()[w]:
			reads = true
		}
		joined, before = joins()[w], w
	}
	return reads, noun, acts
}

// nameWords yields the words of a name in lower case: runs of ASCII letters, cut before a
// capital letter that begins a word. It yields "" for a character that is not ASCII.
func nameWords(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		lower := func(i int) bool { return i < len(name) && 'a' <= name[i] && name[i] <= 'z' }
		upper := func(i int) bool { return i < len(name) && 'A' <= name[i] && name[i] <= 'Z' }
		start := 0
		flush := func(end int) bool { return start == end || yield(strings.ToLower(name[start:end])) }
		for i := range len(name) {
			switch {
			case name[i] >= 0x80:
				yield("")
				return
			case upper(i) && i > 0 && (lower(i-1) || upper(i-1) && lower(i+1)):
				if !flush(i) {
					return
				}
				start = i
			case !lower(i) && !upper(i):
				if !flush(i) {
					return
				}
				start = i + 1
			}
		}
		flush(len(name))
	}
}
