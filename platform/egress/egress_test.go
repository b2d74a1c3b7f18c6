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

// TestPublic: a transport that is for the public network reaches no private one.
func TestPublic(t *testing.T) {
	for address, ok := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true, "[::ffff:8.8.8.8]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "172.16.0.1:443": false, "192.168.1.1:443": false, "169.254.169.254:443": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "[::1]:443": false, "[fe80::1]:443": false, "[fd00::1]:443": false,
		"[::ffff:10.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false, "[2002:a00:1::]:443": false, "[::a00:1]:443": false, "[2001:0:a00:1::]:443": false, "192.0.0.8:443": false, "224.0.0.1:443": false, "255.255.255.255:443": false, "x": false,
	} {
		if err := onlyPublic("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
