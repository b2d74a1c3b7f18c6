// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"testing"
)

// without is the statement of a decision in which nothing was run.
const without = `{"act":"refused","actions":[],"audit":false,"context":"sha256:00","format":"openai-chat","id":"00112233445566778899aabbccddeeff",` +
	`"principal":"","reason":"unreadable-answer","response":"hold","runs":[],"version":"guard-evidence/1"}`

// TestReplayRefuses: a statement of which anything was changed.
func TestReplayRefuses(t *testing.T) {
	if e, err := Replay([]byte(without)); err != nil || e.Reason != reasonStrange || !IsEvidence([]byte(without)) {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"refused"`, `"forwarded"`}, {`"refused"`, `"repaired"`}, {`"hold"`, `"allow"`}, {`"unreadable-answer"`, `"run"`},
		{`evidence/1`, `evidence/2`}, {`"runs":[]`, `"runs":[{}]`}, {`"actions":[]`, `"actions": []`}, {`"audit":false`, `"audit":false,"more":1`},
		{`ddeeff"`, `ddeef"`}, {`"act":"refused"`, `"act":"refused","act":"refused"`},
	} {
		bad := bytes.Replace([]byte(without), []byte(change[0]), []byte(change[1]), 1)
		if _, err := Replay(bad); err == nil {
			t.Errorf("%s became %s, and it is accepted", change[0], change[1])
		}
	}
}

// FuzzEvidence: any bytes are a statement, which says so, or are none.
func FuzzEvidence(f *testing.F) {
	f.Add([]byte(without))
	f.Add([]byte(`{"version":"guard-evidence/1","runs":[{}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		if e, err := Replay(src); err == nil && (!IsEvidence(src) || e.Act == repaired && len(e.Runs) == 0) {
			t.Errorf("accepted: %q", src)
		}
	})
}
