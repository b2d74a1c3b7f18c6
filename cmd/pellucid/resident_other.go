//go:build !linux

package main

// dropStartup does something on Linux only.
func dropStartup() {}
