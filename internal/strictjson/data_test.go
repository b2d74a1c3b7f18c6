package strictjson

import (
	"os"
	"path/filepath"
)

// dataDir is where the public test data lies: PELLUCID_DATA, or beside the repository.
func dataDir() string {
	if dir := os.Getenv("PELLUCID_DATA"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}
