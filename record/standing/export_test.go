// SPDX-License-Identifier: Apache-2.0

package standing

// Size is the size of the log at which the scores stand.
func (f *Follower) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}
