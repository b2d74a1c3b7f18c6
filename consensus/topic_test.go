package consensus

import (
	"slices"
	"strings"
	"testing"
)

func TestTopicValid(t *testing.T) {
	for topic, want := range map[string]bool{
		"science":                        true,
		"technology:software:security":   true,
		"Technology:v1.2:-_.":            true,
		strings.Repeat("a:", 127) + "ab": true,
		strings.Repeat("a:", 128) + "a":  false, // 257 octets
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

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		topic, root string
		want        bool
	}{
		{"a:b", "a", true},
		{"a:b", "a:b", true},
		{"a:b", "", true},
		{"", "", true},
		{"", "a", false},
		{"a", "a:b", false},
		{"ab", "a", false},
		{"a-b", "a", false},
		{"b:a", "a", false},
	} {
		if got := within(tt.topic, tt.root); got != tt.want {
			t.Errorf("within(%q, %q) = %v", tt.topic, tt.root, got)
		}
	}
	if got, want := slices.Collect(above("a:bc:d")), []string{"a:bc:d", "a:bc", "a"}; !slices.Equal(got, want) {
		t.Errorf("above: %q, want %q", got, want)
	}
	if got := slices.Collect(above("::")); !slices.Equal(got, []string{"::", ":"}) {
		t.Errorf("above: %q", got)
	}
}
