// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"strings"
	"testing"
)

// without is the statement of a decision in which nothing was asked, and held one in which a
// plan was.
const (
	without = `{"act":"refused","audit":false,"context":"sha256:00","format":"openai-chat","id":"00112233445566778899aabbccddeeff",` +
		`"principal":"","reason":"unreadable-answer","response":"hold","version":"guard-evidence/3"}`
	held = `{"act":"repaired","audit":false,"calls":[{"arguments":[{"form":"text","label":"to","segments":"01"}],"digest":"sha256:01",` +
		`"plan":{"request":"sha256:02","response":"sha256:03"},"response":"repair","tool":"send_money","verdict":"not-asked-for"}],"context":"sha256:00",` +
		`"format":"openai-chat","id":"00112233445566778899aabbccddeeff","principal":"","reason":"found-out",` +
		`"repair":{"causes":"01","response":"sha256:04","variant":{"kept":"01","kind":"withhold","without":"0:1-2"}},"response":"repair","sources":[{"segment":0,"source":"?/read_note"}],"version":"guard-evidence/3"}`
)

// TestReplayRefuses: a statement in which members contradict each other.
func TestReplayRefuses(t *testing.T) {
	for _, tt := range []struct {
		text    string
		changes [][2]string
	}{
		{without, [][2]string{
			{`"refused"`, `"forwarded"`}, {`"refused"`, `"repaired"`}, {`"hold"`, `"pass"`}, {`"hold"`, `"x"`}, {`"unreadable-answer"`, `"found-out"`},
			{`evidence/3`, `evidence/4`}, {`"audit":false`, `"audit": false`}, {`"audit":false`, `"audit":false,"more":1`},
			{`ddeeff"`, `ddeef"`}, {`"act":"refused"`, `"act":"refused","act":"refused"`}, {`"version"`, `"runs":[{}],"version"`},
		}},
		{held, [][2]string{
			{`"repaired"`, `"forwarded"`}, {`"not-asked-for"`, `"delegated"`}, {`"response":"repair","tool"`, `"response":"pass","tool"`},
			{`"response":"repair","sources"`, `"response":"hold","sources"`}, {`"response":"sha256:03"`, `"listed":true,"response":"sha256:03"`},
			{`"label":"to",`, `"label":"to","trusted":true,`},
			{`"segment":0`, `"segment":1`}, {`"?/read_note"`, `"read_note"`}, {`"?/read_note"`, `"?/read this"`}, {`"?/read_note"`, `"a b/read"`},
			{`{"segment":0,`, `{"segment":0,"source":"?/x"},{"segment":0,`},
		}},
	} {
		if e, err := Replay([]byte(tt.text)); err != nil || !IsEvidence([]byte(tt.text)) || e.ID == "" {
			t.Fatal(err)
		}
		for _, change := range tt.changes {
			bad := strings.Replace(tt.text, change[0], change[1], 1)
			if _, err := Replay([]byte(bad)); err == nil || bad == tt.text {
				t.Errorf("%s became %s, and it is accepted", change[0], change[1])
			}
		}
	}
}

// TestEvidenceSays: what a report reads of a statement.
func TestEvidenceSays(t *testing.T) {
	e, err := Replay([]byte(held))
	if err != nil || !e.Held() || !e.Repaired() || e.Waits() || e.Released() || e.Undecided() || e.Questions() != 1 {
		t.Errorf("%+v, %v, %d questions", e, err, e.Questions())
	}
	again, err := Replay([]byte(strings.Replace(held, `"plan":{`, `"plan":{"cached":true,`, 1)))
	if err != nil || again.Questions() != 0 {
		t.Errorf("a question that an earlier decision asked: %v", err)
	}
	if e, err = Replay([]byte(without)); err != nil || !e.Held() || e.Repaired() || !e.Undecided() || e.Questions() != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	older := strings.Replace(without, "evidence/3", "evidence/2", 1)
	if _, err := Replay([]byte(older)); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	if _, err := Replay([]byte("{")); err == nil || errors.Is(err, ErrVersion) {
		t.Errorf("no JSON: %v", err)
	}
}

// TestReplayTakes: what follows from nothing in a statement is held by its digest in the ledger alone.
func TestReplayTakes(t *testing.T) {
	for _, change := range [][]string{
		{`"principal":""`, `"principal":"ann"`}, {`"audit":false`, `"audit":true`}, {`"context":"sha256:00"`, `"context":"sha256:01"`},
		{`"act":"repaired"`, `"act":"forwarded"`, `"response":"repair"`, `"response":"pass"`},
	} {
		other := strings.NewReplacer(change...).Replace(held)
		if _, err := Replay([]byte(other)); err != nil || other == held {
			t.Errorf("%s became %s: %v", change[0], change[1], err)
		}
	}
}

// FuzzEvidence: any bytes are a statement, which says so, or are none.
func FuzzEvidence(f *testing.F) {
	f.Add([]byte(without))
	f.Add([]byte(held))
	f.Fuzz(func(t *testing.T, src []byte) {
		if e, err := Replay(src); err == nil && (!IsEvidence(src) || e.Act == repaired && e.Repair == nil) {
			t.Errorf("accepted: %q", src)
		}
	})
}
