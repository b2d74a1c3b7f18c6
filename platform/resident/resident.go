// SPDX-License-Identifier: Apache-2.0

// Package resident returns memory to the operating system that the process needed only at its start.
package resident
