// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/pellucid-mcp/pellucid/platform/listen"

// hostFlags say under which names clients reach a server of ours.
type hostFlags struct {
	AllowHost []string `placeholder:"HOST" help:"Host name or address by which clients reach this server, if not a loopback address; may be repeated."`
}

// check is listen.CheckHosts with these hosts.
func (f *hostFlags) check(flag, addr string, origins []string, open error) error {
	return listen.CheckHosts(flag, addr, f.AllowHost, origins, open)
}
