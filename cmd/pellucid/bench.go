// SPDX-License-Identifier: Apache-2.0

package main

type benchCmd struct {
	Scrub   benchScrubCmd   `cmd:"" help:"Measure what scrubbing one field costs, beside memcpy and libraries."`
	Gateway benchGatewayCmd `cmd:"" help:"Measure what the boundary adds to a call, beside other proxies in front of the same server."`
}
