// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The files of a repository that agents read as instructions, by name and by folder, in lower case.
var (
	instructionFiles = []string{"agents.md", "agent.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "skill.md", "copilot-instructions.md",
		".cursorrules", ".windsurfrules", ".clinerules", ".goosehints", ".rules", ".mcp.json", "mcp.json", "opencode.json", "opencode.jsonc"}
	instructionFolders = []string{".agents", ".claude", ".clinerules", ".codex", ".continue", ".cursor", ".gemini", ".github/agents", ".github/instructions",
		".github/prompts", ".junie", ".opencode", ".roo", ".windsurf"}
	instructionEndings = []string{".md", ".mdc", ".txt", ".json", ".jsonc", ".toml", ".yaml", ".yml"}
	skippedFolders     = []string{".git", "node_modules"}
)

// Bounds of a repository.
const (
	maxEntries      = 200_000
	maxInstructions = 4_000
	maxInstruction  = 1 << 20
)

// Directory is a target of the files in a repository that tell an agent what to do. Each is checked as a resource
// whose description is the text of the file. A link is followed within the folder only.
func (f *Finder) Directory(dir string) (*Target, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer root.Close()
	type resource struct {
		URI         string `json:"uri"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	resources, entries := []resource{}, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		entries++
		switch {
		case err != nil:
			return err
		case entries > maxEntries || len(resources) > maxInstructions:
			return errors.New("there are too many files: name a folder inside")
		case d.IsDir() && slices.Contains(skippedFolders, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !isInstruction(name):
			return nil
		}
		text, err := readInstruction(root, name)
		if err == nil && text != "" {
			resources = append(resources, resource{"file:///" + name, name, text})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check: %s: %w", finding.Quote(dir), err)
	}
	if len(resources) == 0 {
		return nil, fmt.Errorf("check: %s has no file that tells an agent what to do: nothing was checked", finding.Quote(dir))
	}
	dump, err := json.Marshal(map[string]any{
		"format":         surface.DumpFormat,
		"initialize":     json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"files","version":"0"}}`),
		"resources/list": []any{map[string]any{"resources": resources}},
	})
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return dumpTarget(f.Server, dir, dump), nil
}

// isInstruction reports whether agents read the file of that path, with slashes, as instructions.
func isInstruction(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(instructionFiles, path.Base(name)) {
		return true
	}
	return slices.Contains(instructionEndings, path.Ext(name)) && slices.ContainsFunc(instructionFolders, func(folder string) bool {
		return strings.HasPrefix(name, folder+"/") || strings.Contains(name, "/"+folder+"/")
	})
}

func readInstruction(root *os.Root, name string) (string, error) {
	file, err := root.Open(name)
	if err != nil {
		return "", err // it names the file; a link out of the folder is one
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", finding.Quote(name))
	}
	b, err := io.ReadAll(io.LimitReader(file, maxInstruction+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxInstruction:
		return "", fmt.Errorf("%s is larger than 1 MiB", finding.Quote(name))
	case !utf8.Valid(b):
		return "", fmt.Errorf("%s is not UTF-8", finding.Quote(name))
	}
	return string(b), nil
}
