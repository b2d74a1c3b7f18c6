// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// dropStartup does something on Linux only.
func dropStartup() {}
