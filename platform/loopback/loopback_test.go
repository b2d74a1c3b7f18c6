// SPDX-License-Identifier: Apache-2.0

package loopback

import "testing"

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "127.1": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "::ffff:192.0.2.1": false, "fe80::1%eth0": false,
		"127.0.0.1.example": false, "localhost.example": false, "example.com": false, "[::1]": false, "127.0.0.1:80": false,
	} {
		if got := Host(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestListener(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:7420": true, "127.9.9.9:0": true, "[::1]:80": true, "localhost:80": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "192.0.2.1:80": false, "localhost.example:80": false,
		"127.0.0.1": false, "127.0.0.1.example:80": false, "": false,
	} {
		if got := Listener(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
