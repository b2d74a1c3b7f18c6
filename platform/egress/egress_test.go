// SPDX-License-Identifier: Apache-2.0

package egress

import "testing"

// TestLoopback: plain http goes to this machine alone, whatever its name leads to.
func TestLoopback(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true, "10.0.0.1:80": false, "[fe80::1%eth0]:80": false, "x": false,
	} {
		if err := onlyLoopback("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestBase(t *testing.T) {
	for _, tt := range []struct {
		in        string
		anywhere  bool
		base      string
		plain, ok bool
	}{
		{"https://api.example.com/v1/", false, "https://api.example.com/v1", false, true},
		{"http://127.0.0.1:8080", false, "http://127.0.0.1:8080", true, true},
		{"http://[::1]/x", false, "http://[::1]/x", true, true},
		{"http://localhost", false, "http://localhost", true, true},
		{"http://example.com", false, "", false, false},
		{"http://example.com", true, "http://example.com", true, true},
		{"http://127.0.0.1.example.com", false, "", false, false},
		{"https://user:pw@example.com", false, "", false, false},
		{"https://example.com/?x=1", false, "", false, false},
		{"https://example.com/#f", false, "", false, false},
		{"ftp://example.com", true, "", false, false},
		{"", true, "", false, false},
		{"https://", true, "", false, false},
	} {
		base, plain, err := Base(tt.in, tt.anywhere)
		if base != tt.base || plain != tt.plain || (err == nil) != tt.ok {
			t.Errorf("Base(%q, %v) = %q, %v, %v", tt.in, tt.anywhere, base, plain, err)
		}
	}
}
