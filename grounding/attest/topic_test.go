// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"strings"
	"testing"
)

func TestTopicValid(t *testing.T) {
	for topic, want := range map[string]bool{
		"science":                        true,
		"technology:software:security":   true,
		"Technology:v1.2:-_.":            true,
		strings.Repeat("a:", 127) + "ab": true,
		strings.Repeat("a:", 128) + "a":  false, // 257 bytes
		"":                               false,
		":":                              false,
		"a:":                             false,
		":a":                             false,
		"a::b":                           false,
		"a b":                            false,
		"a/b":                            false,
		"\u0455cience":                   false,
		"science\u200b":                  false,
		"science\xff":                    false,
	} {
		if got := TopicValid(topic); got != want {
			t.Errorf("TopicValid(%+q) = %v, want %v", topic, got, want)
		}
	}
}
