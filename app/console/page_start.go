// SPDX-License-Identifier: Apache-2.0

package console

var startRoutes = []route{
	{pattern: "GET ", least: Viewer, handle: (*Console).start},
}

// start leads to the first page of the rail.
func (c *Console) start(q *request) answer {
	for _, e := range c.rail(q) {
		if e.Path != Base {
			return seeOther(e.Path)
		}
	}
	return missing("Console", "This console has no pages for your role.", "An operator gives roles in the configuration, under console.", "")
}
