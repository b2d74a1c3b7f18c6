// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

var now = date("2026-06-01")

// vote is a vote that counts under most profiles here: did:web:NAME.example
// says verdict.
func vote(name string, verdict attest.Verdict, change ...func(*Vote)) Vote {
	v := Vote{
		ID:         "sha256:" + name,
		Validator:  "did:web:" + name + ".example",
		Verdict:    verdict,
		Domain:     "scientific-default",
		Topic:      "science:climate",
		Issued:     date("2026-05-01"),
		Status:     Live,
		Reputation: One,
		Trust:      One,
	}
	for _, f := range change {
		f(&v)
	}
	return v
}

func in(d Domain) func(*Vote)        { return func(v *Vote) { v.Domain = d } }
func on(topic string) func(*Vote)    { return func(v *Vote) { v.Topic = topic } }
func is(s Status) func(*Vote)        { return func(v *Vote) { v.Status = s } }
func issued(day string) func(*Vote)  { return func(v *Vote) { v.Issued = date(day) } }
func expires(day string) func(*Vote) { return func(v *Vote) { v.Expires = date(day) } }
func reputed(s Score) func(*Vote)    { return func(v *Vote) { v.Reputation = s } }
func trusted(s Score) func(*Vote)    { return func(v *Vote) { v.Trust = s } }
func by(did string) func(*Vote)      { return func(v *Vote) { v.Validator = did } }
func called(id string) func(*Vote)   { return func(v *Vote) { v.ID = id } }

// ballot is one vote of every kind in every domain of p.
func ballot(p *Profile) []Vote {
	var out []Vote
	for i, d := range append(p.Domains(), "scientific-default", "unknown") {
		for k, verdict := range []attest.Verdict{attest.Verified, attest.False, attest.Verified, attest.Disputed} {
			name := fmt.Sprintf("v%d-%d", i, k%3)
			out = append(out, vote(name, verdict, in(d), on([]string{"health:vaccines", "health", "science", ""}[k]),
				called(fmt.Sprintf("sha256:%d-%d", i, k)), is(Status(k%4)), issued(fmt.Sprintf("2026-0%d-01", k+1)), reputed(One/Score(k+1))))
		}
	}
	return out
}

const twoDomains = `{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:two","version":"1","issued":"2026-01-01T00:00:00Z","expires":"2026-12-31T00:00:00Z",
	"domains":[{"name":"scientific-default","weight":1,"topics":["science"],"minReputation":0.3},{"name":"journalism-default","weight":0.5}],
	"validators":{"trust":{"minimum":0.2,"validators":{"did:web:doubtful.example":0.5,"did:web:out.example":0.1}}},
	"topics":{
		"science":{"minValidators":2},
		"science:climate":{"threshold":0.7},
		"science:climate:models":{"rule":"unanimous","minReputation":0,"weights":{"journalism-default":0}}
	}}`

func TestCompose(t *testing.T) {
	two := mustCompile(t, twoDomains)
	open := ForDomain("scientific-default")
	for _, tt := range []struct {
		name    string
		p       *Profile
		topic   string
		votes   []Vote
		want    Result
		reasons string // of the votes, in the order of the explanation
	}{
		{"none", open, "", nil, Result{attest.Unverified, tooFew, 0, false}, ""},
		{"SUPPORTED helps VERIFIED", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Verified), vote("c", attest.Supported), vote("d", attest.False), vote("e", attest.False)},
			Result{attest.Verified, majority, 5, true}, "a:counted b:counted c:counted d:counted e:counted"},
		{"the one does not contradict the other", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Supported)}, Result{attest.Supported, majority, 2, false}, "a:counted b:counted"},
		{"VERIFIED helps SUPPORTED", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Supported), vote("c", attest.Supported), vote("d", attest.False)},
			Result{attest.Supported, majority, 4, true}, "a:counted b:counted c:counted d:counted"},
		{"together they tie", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Supported), vote("c", attest.False), vote("d", attest.False)},
			Result{attest.Disputed, tie, 4, true}, "a:counted b:counted c:counted d:counted"},
		{"together they lose", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Supported), vote("c", attest.False), vote("d", attest.False), vote("e", attest.False)},
			Result{attest.False, majority, 5, true}, "a:counted b:counted c:counted d:counted e:counted"},
		{"QUALIFIED helps neither", open, "", []Vote{vote("a", attest.Verified), vote("b", attest.Qualified), vote("c", attest.False)}, Result{attest.Disputed, tie, 3, true}, "a:counted b:counted c:counted"},
		{"what all say at least", two, "science:climate:models", []Vote{vote("a", attest.Verified, on("science:climate:models")), vote("b", attest.Verified, on("science:climate:models")), vote("c", attest.Supported, on("science:climate:models"))},
			Result{attest.Supported, majority, 3, false}, "a:counted b:counted c:counted"},
		{"one", open, "", []Vote{vote("a", attest.False)}, Result{attest.False, majority, 1, false}, "a:counted"},
		{"two agree", open, "", []Vote{vote("a", attest.False), vote("b", attest.False)},
			Result{attest.False, majority, 2, false}, "a:counted b:counted"},
		{"a tie", open, "", []Vote{vote("a", attest.False), vote("b", attest.Verified)},
			Result{attest.Disputed, tie, 2, true}, "a:counted b:counted"},
		{"a tie broken by a millionth", open, "", []Vote{vote("a", attest.False), vote("b", attest.Verified, reputed(One-1))},
			Result{attest.False, majority, 2, true}, "a:counted b:counted"},
		{"no verdict has half", open, "", []Vote{vote("a", attest.False), vote("b", attest.False), vote("c", attest.Verified), vote("d", attest.Disputed), vote("e", attest.Qualified)},
			Result{attest.Disputed, belowThreshold, 5, true}, "a:counted b:counted c:counted d:counted e:counted"},
		{"exactly half is not more than half", open, "", []Vote{vote("a", attest.False), vote("b", attest.Verified, reputed(One/2)), vote("c", attest.Qualified, reputed(One/2))},
			Result{attest.Disputed, belowThreshold, 3, true}, "a:counted b:counted c:counted"},
		{"votes for DISPUTED and UNVERIFIED are votes", open, "", []Vote{vote("a", attest.Unverified), vote("b", attest.Unverified), vote("c", attest.Disputed)},
			Result{attest.Unverified, majority, 3, true}, "a:counted b:counted c:counted"},

		{"withheld", open, "", []Vote{
			vote("a", attest.Verified, is(CascadePending)), vote("b", attest.Verified, is(Retracted)), vote("c", attest.Verified, is(StatusUnknown)),
			vote("d", attest.Verified, is(9)), vote("e", attest.Verified, expires("2026-06-01")), vote("f", attest.Verified, issued("2026-06-02")),
			vote("g", attest.Verified, in("journalism-default")), vote("h", attest.Verified, reputed(0)), vote("i", attest.Verified, trusted(0)),
			vote("j", attest.Verified, reputed(One+1)), vote("k", attest.Verified, trusted(1<<31)), vote("l", ""),
			vote("m", attest.Verified, called("")), vote("", attest.Verified, by("")), vote("n", attest.Verified, func(v *Vote) { v.Issued = time.Time{} }),
			vote("o", attest.False, expires("2026-06-02"), issued("2026-06-01"))},
			Result{attest.False, majority, 1, false},
			":invalid a:cascade-pending b:retracted c:invalid d:invalid e:expired f:not-yet-issued g:wrong-domain h:no-weight i:no-weight j:invalid k:invalid l:invalid :invalid n:invalid o:counted"},

		{"the newest of a validator", open, "", []Vote{
			vote("a", attest.Verified, called("sha256:1"), issued("2026-01-01")), vote("a", attest.False, called("sha256:2"), issued("2026-03-01")), vote("a", attest.Verified, called("sha256:3"), issued("2026-02-01"))},
			Result{attest.False, majority, 1, false}, "2:counted 3:superseded 1:superseded"},
		{"the newest that stands", open, "", []Vote{
			vote("a", attest.Verified, called("sha256:1"), issued("2026-01-01")), vote("a", attest.False, called("sha256:2"), issued("2026-03-01"), is(CascadePending))},
			Result{attest.Verified, majority, 1, false}, "2:cascade-pending 1:counted"},
		{"of one date the least hash", open, "", []Vote{vote("a", attest.Verified, called("sha256:2")), vote("a", attest.False, called("sha256:1"))},
			Result{attest.False, majority, 1, false}, "1:counted 2:superseded"},
		{"one attestation twice", open, "", []Vote{vote("a", attest.False), vote("a", attest.False)},
			Result{attest.False, majority, 1, false}, "a:counted a:duplicate"},
		{"one did:web in three spellings", open, "", []Vote{
			vote("a", attest.False, called("sha256:1")), vote("a", attest.False, by("did:web:A.EXAMPLE"), called("sha256:2")), vote("a", attest.False, by("did:web:a.example%3A443"), called("sha256:3"))},
			Result{attest.False, majority, 1, false}, "1:counted 2:superseded 3:superseded"},
		{"another path or port is another validator", open, "", []Vote{
			vote("a", attest.False, called("sha256:1")), vote("a", attest.False, by("did:web:a.example%3A8443"), called("sha256:2")), vote("a", attest.False, by("did:web:a.example:A"), called("sha256:3")), vote("a", attest.False, by("did:web:a.example:a"), called("sha256:4"))},
			Result{attest.False, majority, 4, false}, "1:counted 2:counted 3:counted 4:counted"},

		{"minimum of validators, of the topic's override", two, "science:physics", []Vote{vote("a", attest.False, on("science:physics"))},
			Result{attest.Unverified, tooFew, 1, false}, "a:counted"},
		{"the longest override alone", two, "science:climate", []Vote{vote("a", attest.False)},
			Result{attest.False, majority, 1, false}, "a:counted"},
		{"too few, and they disagree", two, "science", []Vote{vote("a", attest.False), vote("a", attest.Verified, called("sha256:2"), issued("2026-05-02"), is(Retracted))},
			Result{attest.Unverified, tooFew, 1, false}, "2:retracted a:counted"},
		{"threshold of the override", two, "science:climate", []Vote{vote("a", attest.False), vote("b", attest.Verified, in("journalism-default"))},
			Result{attest.Disputed, belowThreshold, 2, true}, "a:counted b:counted"},
		{"the same without it", two, "", []Vote{vote("a", attest.False), vote("b", attest.Verified, in("journalism-default"))},
			Result{attest.False, majority, 2, true}, "a:counted b:counted"},
		{"below the override's topic it applies", two, "science:climate:sea", []Vote{vote("a", attest.False, on("science:climate:sea:level")), vote("b", attest.False)},
			Result{attest.False, majority, 1, false}, "a:counted b:wrong-topic"},
		{"unanimity", two, "science:climate:models", []Vote{vote("a", attest.False, on("science:climate:models"), reputed(1)), vote("b", attest.Verified, on("science:climate:models")), vote("c", attest.Verified, on("science:climate:models"), in("journalism-default"))},
			Result{attest.Disputed, dissent, 2, true}, "a:counted b:counted c:no-weight"},
		{"topics of a domain", two, "", []Vote{vote("a", attest.False, on("religion")), vote("b", attest.False, on("sciences")), vote("c", attest.False, on("religion"), in("journalism-default"))},
			Result{attest.False, majority, 1, false}, "a:wrong-topic b:wrong-topic c:counted"},
		{"reputation and trust", two, "", []Vote{
			vote("a", attest.False, reputed(299_999)), vote("b", attest.False, reputed(300_000)), vote("doubtful", attest.False), vote("doubtful", attest.False, trusted(399_999), issued("2026-05-02"), called("sha256:2")),
			vote("out", attest.False), vote("z", attest.False, trusted(200_000))},
			Result{attest.False, majority, 3, false}, "a:low-reputation b:counted 2:low-trust doubtful:counted out:low-trust z:counted"},

		{"no profile", nil, "", []Vote{vote("a", attest.False)}, Result{attest.Unverified, notInForce, 0, false}, "a:profile-not-in-force"},
		{"the zero profile", &Profile{}, "", []Vote{vote("a", attest.False)}, Result{attest.Unverified, tooFew, 0, false}, "a:wrong-domain"},
		{"a hostile topic", two, strings.Repeat(":", 1<<20), []Vote{vote("a", attest.False)}, Result{attest.Unverified, tooFew, 0, false}, "a:wrong-topic"},
	} {
		v, e := Compose(tt.p, tt.topic, now, tt.votes)
		if d := cmp.Diff(tt.want, v); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
		var reasons []string
		for _, x := range e.Votes {
			reasons = append(reasons, strings.TrimPrefix(x.ID, "sha256:")+":"+string(x.Reason))
			if (x.Reason == Counted) == x.Weight.IsZero() {
				t.Errorf("%s: %s is %s and weighs %v", tt.name, x.ID, x.Reason, x.Weight)
			}
		}
		if got := strings.Join(reasons, " "); got != tt.reasons {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.reasons)
		}
	}
}

func TestComposeOutOfForce(t *testing.T) {
	p := mustCompile(t, twoDomains)
	for day, want := range map[string]Basis{"2025-12-31": notInForce, "2026-12-30": majority, "2026-12-31": notInForce} {
		v, e := Compose(p, "", date(day), []Vote{vote("a", attest.False, issued("2025-01-01"))})
		if v.Basis != want || len(e.Votes) != 1 || (e.Votes[0].Reason == Counted) != (want == majority) {
			t.Errorf("%s: %+v %+v", day, v, e.Votes)
		}
	}
}

// TestMinValidators: the bar is the highest of the domains that have a say, and
// no vote moves it.
func TestMinValidators(t *testing.T) {
	p := mustCompile(t, with(one, `{"name":"scientific-default","weight":1,"topics":["science:climate"],"minValidators":3},{"name":"journalism-default","weight":1},{"name":"legal-jurisdiction-eu","weight":0,"minValidators":9}`))
	for topic, want := range map[string]int{"": 3, "science": 3, "science:climate": 3, "science:climate:sea": 3, "science:physics": 1, "law": 1} {
		if _, e := Compose(p, topic, now, nil); e.MinValidators != want {
			t.Errorf("%q: %d, want %d", topic, e.MinValidators, want)
		}
	}
}

func TestRestrict(t *testing.T) {
	p := mustCompile(t, twoDomains)
	votes := []Vote{vote("a", attest.False), vote("b", attest.Verified, in("journalism-default"))}
	q, ok := p.Restrict("journalism-default")
	if !ok {
		t.Fatal("a domain of the profile is refused")
	}
	if v, _ := Compose(q, "", now, votes); v.Primary != attest.Verified || v.Validators != 1 {
		t.Errorf("%+v", v)
	}
	if v, _ := Compose(p, "", now, votes); v.Validators != 2 {
		t.Errorf("the profile itself has changed: %+v", v)
	}
	if _, ok := p.Restrict("legal-jurisdiction-eu"); ok {
		t.Error("a domain that the profile does not believe is granted")
	}
}

// TestOrderIsTotal: two votes that differ in one thing alone, even such as no
// store should hold, are told apart without regard to which came first.
func TestOrderIsTotal(t *testing.T) {
	for name, change := range map[string]func(*Vote){
		"id":         called("sha256:b"),
		"validator":  by("did:web:A.example"),
		"verdict":    func(v *Vote) { v.Verdict = attest.Verified },
		"domain":     in("journalism-default"),
		"topic":      on("science"),
		"issued":     issued("2026-05-02"),
		"expires":    expires("2026-07-01"),
		"status":     is(Retracted),
		"reputation": reputed(1),
		"trust":      trusted(1),
	} {
		x, y := vote("a", attest.False), vote("a", attest.False, change)
		if x.compare(&y) == 0 || x.compare(&y) != -y.compare(&x) || x.compare(&x) != 0 {
			t.Errorf("%s: %d and %d", name, x.compare(&y), y.compare(&x))
		}
		p := mustCompile(t, twoDomains)
		v, e := Compose(p, "", now, []Vote{x, y})
		w, f := Compose(p, "", now, []Vote{y, x})
		if v != w || !cmp.Equal(e, f, cmp.AllowUnexported(Weight{})) {
			t.Errorf("%s: %+v, the other way round %+v", name, v, w)
		}
	}
}
