// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\)[A-Z ]*;`)
	columnName  = regexp.MustCompile(`(?m)^\s*([a-z_]+) `)
	inCode      = regexp.MustCompile("`([^`]+)`")
	dropTable   = regexp.MustCompile(`DROP TABLE (\w+)`)
	dropColumn  = regexp.MustCompile(`ALTER TABLE (\w+) DROP COLUMN (\w+)`)
	addColumn   = regexp.MustCompile(`ALTER TABLE (\w+) ADD COLUMN (\w+)`)
)

// TestKeptListsEveryColumn holds docs/kept.md to the migrations: each column of each table
// stands in a table of the page under the name of its own table, and nothing else does.
func TestKeptListsEveryColumn(t *testing.T) {
	page := keptOnPage(string(readFile(t, "docs/kept.md")))
	schema := map[string][]string{}
	files, err := fs.Glob(os.DirFS(root), "storage/migrations/*/*.sql")
	more, err2 := fs.Glob(os.DirFS(root), "grounding/store/migrations/*/*.sql")
	if err = errors.Join(err, err2); err != nil || len(files) == 0 || len(more) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, file := range append(files, more...) {
		sql := string(readFile(t, file))
		for _, m := range dropTable.FindAllStringSubmatch(sql, -1) {
			delete(schema, m[1])
		}
		for _, m := range dropColumn.FindAllStringSubmatch(sql, -1) {
			schema[m[1]] = slices.DeleteFunc(schema[m[1]], func(c string) bool { return c == m[2] })
		}
		for _, m := range createTable.FindAllStringSubmatch(sql, -1) {
			for _, c := range columnName.FindAllStringSubmatch(m[2], -1) {
				schema[m[1]] = append(schema[m[1]], c[1])
			}
		}
		for _, m := range addColumn.FindAllStringSubmatch(sql, -1) {
			schema[m[1]] = append(schema[m[1]], m[2])
		}
	}
	if len(schema) < 15 {
		t.Fatalf("only %d tables were found: the test does not read the migrations any more", len(schema))
	}
	for table, columns := range schema {
		for _, c := range columns {
			if !slices.Contains(page[table], c) {
				t.Errorf("docs/kept.md does not say why %s.%s is kept", table, c)
			}
		}
		for _, c := range page[table] {
			if !slices.Contains(columns, c) {
				t.Errorf("docs/kept.md has %s.%s, which no migration makes", table, c)
			}
		}
	}
}

// keptOnPage returns the columns that the page lists, by table. The names of the tables stand
// in the first cell of a row, or in the heading above it.
func keptOnPage(page string) map[string][]string {
	out := map[string][]string{}
	var heading []string
	names := func(cell string) (list []string) {
		for _, m := range inCode.FindAllStringSubmatch(cell, -1) {
			list = append(list, m[1])
		}
		return list
	}
	byTable := false
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "##"):
			heading = names(line)
		case len(cells) < 4:
		case strings.TrimSpace(cells[1]) == "table", strings.TrimSpace(cells[1]) == "columns":
			byTable = strings.TrimSpace(cells[1]) == "table"
		case byTable:
			for _, table := range names(cells[1]) {
				out[table] = append(out[table], names(cells[2])...)
			}
		case len(heading) > 0:
			out[heading[0]] = append(out[heading[0]], names(cells[1])...)
		}
	}
	return out
}
