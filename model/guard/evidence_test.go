// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"
	"testing"
)

// without is the statement of a decision in which nothing was asked, and held one in which a
// plan was.
const (
	without = `{"act":"refused","audit":false,"context":"sha256:00","format":"openai-chat","id":"00112233445566778899aabbccddeeff",` +
		`"principal":"","reason":"unreadable-answer","response":"hold","version":"guard-evidence/2"}`
	held = `{"act":"repaired","audit":false,"calls":[{"arguments":[{"form":"text","label":"to","segments":"01"}],"digest":"sha256:01",` +
		`"plan":{"request":"sha256:02","response":"sha256:03"},"response":"repair","tool":"send_money","verdict":"not-asked-for"}],"context":"sha256:00",` +
		`"format":"openai-chat","id":"00112233445566778899aabbccddeeff","principal":"","reason":"found-out",` +
		`"repair":{"causes":"01","response":"sha256:04","variant":{"kept":"01","kind":"withhold","without":"0:1-2"}},"response":"repair","version":"guard-evidence/2"}`
)

// TestReplayRefuses: a statement of which anything was changed.
func TestReplayRefuses(t *testing.T) {
	for _, tt := range []struct {
		text    string
		changes [][2]string
	}{
		{without, [][2]string{
			{`"refused"`, `"forwarded"`}, {`"refused"`, `"repaired"`}, {`"hold"`, `"pass"`}, {`"hold"`, `"x"`}, {`"unreadable-answer"`, `"found-out"`},
			{`evidence/2`, `evidence/3`}, {`"audit":false`, `"audit": false`}, {`"audit":false`, `"audit":false,"more":1`},
			{`ddeeff"`, `ddeef"`}, {`"act":"refused"`, `"act":"refused","act":"refused"`}, {`"version"`, `"runs":[{}],"version"`},
		}},
		{held, [][2]string{
			{`"repaired"`, `"forwarded"`}, {`"not-asked-for"`, `"delegated"`}, {`"response":"repair","tool"`, `"response":"pass","tool"`},
			{`"response":"repair","version"`, `"response":"hold","version"`}, {`"response":"sha256:03"`, `"listed":true,"response":"sha256:03"`},
			{`"label":"to",`, `"label":"to","trusted":true,`},
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
