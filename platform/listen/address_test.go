// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestIsAddress(t *testing.T) {
	for addr, want := range map[string]bool{
		Default: true, "127.0.0.1:0": true, "[::1]:80": true, "localhost:7420": true, "0.0.0.0:65535": true,
		"": false, ":80": false, "127.0.0.1": false, "127.0.0.1:65536": false, "example.com:80": false,
		"localhost:": false, "localhost:http": false, "[fe80::1%eth0]:80": false, "127.0.0.1:80 ": false,
	} {
		if got := IsAddress(addr); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
}

// TestCheckHosts: an address that other machines reach needs a name, and nothing opens one that
// the caller refuses.
func TestCheckHosts(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		addr           string
		hosts, origins []string
		open           error
		want           string // part of the error; "": none
	}{
		{"127.0.0.1:1", nil, nil, refused, ""},
		{"[::1]:1", []string{"mcp.example.org"}, []string{"https://app.example"}, nil, ""},
		{"0.0.0.0:1", nil, nil, refused, "refused"},
		{"0.0.0.0:1", nil, nil, nil, "needs --allow-host"},
		{":1", nil, nil, nil, "needs --allow-host"},
		{":1", []string{"mcp.example.org"}, nil, nil, ""},
		{"example.com:1", nil, nil, nil, "--at: want HOST:PORT"},
		{"\x1b[31m:1", nil, nil, nil, `"\x1b[31m:1"`},
		{"127.0.0.1:1", []string{"https://no host"}, nil, nil, "host"},
	} {
		err := CheckHosts("--at", tt.addr, tt.hosts, tt.origins, tt.open)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q %q: %v, want %q", tt.addr, tt.hosts, err, tt.want)
		}
	}
}

// TestAtTwice: the error of an address in use says what to do, and names the flag.
func TestAtTwice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := At("--at", l.Addr().String()); err == nil || !strings.Contains(err.Error(), "say another address by --at") {
		t.Error(err)
	}
}
