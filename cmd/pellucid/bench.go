// SPDX-License-Identifier: Apache-2.0

package main

type benchCmd struct {
	Scrub   benchScrubCmd   `cmd:"" help:"What scrubbing one field costs, beside memcpy and what libraries would do."`
	Gateway benchGatewayCmd `cmd:"" help:"What the boundary adds to a call, beside other proxies, in front of the same server."`
}
