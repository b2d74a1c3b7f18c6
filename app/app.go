// SPDX-License-Identifier: Apache-2.0

// Package app puts the parts together as compiled rules say: it opens what a verb serves, and closes it.
package app
